"""Adding and removing roots while the daemon runs, on request or after an edit of the settings."""

from __future__ import annotations

from collections.abc import Sequence

from anchord.config.file import load_config
from anchord.config.roots import add_root_to_config, gather_roots, remove_root_from_config
from anchord.config.schema import RootConfig
from anchord.core.quoting import quote_name, quote_names
from anchord.core.types import Root, RootRemoval
from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import UsageError
from anchord.index.archive_roots import attach_exchanges
from anchord.index.session import IndexWriter
from anchord.ipc.messages.roots import ReloadAnswer
from anchord.sources.files.root_identity import keep_configured_folders


class RootChanges:
    """Changes of the roots. Each method blocks until the writer thread has made the change."""

    def __init__(self, writer: IndexWriter, loop: WriterLoop) -> None:
        """Prepare; the loop must have been started before a method is called."""
        self._writer = writer
        self._loop = loop

    def require_root(self, name: str) -> str:
        """Return a root's name.

        Raises:
            UsageError: There is no such root; the hint lists those that there are.
        """
        names = sorted(self._loop.work_queue.root_watcher.states)
        if name not in names:
            raise UsageError(f"no root {quote_name(name)}", f"there are: {quote_names(names)}")
        return name

    def gather_from_config(self, paths: Sequence[str] = ()) -> list[Root]:
        """Read the configuration file and return the roots that the daemon should have.

        These are the configured ones, those that were given on a command line earlier, and one for
        each of `paths` that lies in none of them.

        Raises:
            ConfigError: The configuration is wrong.
            UsageError: A path cannot be a root.
        """
        anchord_paths = self._writer.paths
        config = load_config(anchord_paths.config_file)
        roots = gather_roots(
            config,
            self._unconfigured(),
            paths,
            anchord_paths.own_folders,
        )
        return keep_configured_folders(roots, self._writer.files.folder_files.memory)

    def apply(self, wanted_roots: Sequence[Root]) -> ReloadAnswer:
        """Remove the roots that are not wanted, with their rows; add new and changed ones."""
        wanted = {root.name: root for root in wanted_roots}
        current = {root.name: root for root in self._writer.roots}
        removed = sorted(current.keys() - wanted.keys())
        for name in removed:
            self._remove(name)
        changed = [root for root in wanted_roots if current.get(root.name) != root]
        for root in changed:
            self._add(root)
        if removed:
            self._loop.submit(self._attach_exchanges).result()
        return ReloadAnswer(
            added=tuple(root.name for root in changed),
            removed=tuple(removed),
        )

    def add_uncovered(self, paths: Sequence[str]) -> None:
        """Add a root for each path that lies in none; it is remembered across restarts.

        Raises:
            ConfigError: The configuration is wrong.
            UsageError: A path cannot be a root.
        """
        known_folders = {root.path for root in self._writer.roots}
        for root in self.gather_from_config(paths):
            if root.path not in known_folders:
                self._add(root)

    def add_to_config(self, new_root: RootConfig) -> Root:
        """Write a root into the configuration file and return it; the index does not change yet.

        Raises:
            ConfigError: The configuration is wrong.
            UsageError: The folder cannot be a root, is one already, or the name is taken.
        """
        anchord_paths = self._writer.paths
        return add_root_to_config(
            anchord_paths.config_file, self._unconfigured(), new_root, anchord_paths.own_folders
        )

    def remove(self, name: str) -> RootRemoval:
        """Take a root out of the configuration file, and delete its rows; conversations are kept.

        Raises:
            UsageError: There is no such root.
        """
        self.require_root(name)
        remove_root_from_config(self._writer.paths.config_file, name)
        removal = self._remove(name)
        self._loop.submit(self._attach_exchanges).result()
        return removal

    def _unconfigured(self) -> list[Root]:
        """Return the roots that were given on a command line and are in no configuration."""
        return [root for root in self._writer.roots if not root.is_configured]

    def _attach_exchanges(self) -> None:
        """Give conversations of a removed root to the root around it, if there is one."""
        attach_exchanges(self._writer.archive, self._writer.roots)
        self._loop.work_queue.reconcile_all()

    def _add(self, root: Root) -> None:
        self._loop.submit(lambda: self._loop.add_root(root)).result()
        if any(each.worktrees == "one" for each in self._writer.roots):
            # It may contain the main checkout of worktrees in other roots.
            self._loop.submit(self._loop.work_queue.reconcile_all).result()

    def _remove(self, name: str) -> RootRemoval:
        return self._loop.submit(lambda: self._loop.remove_root(name)).result()
