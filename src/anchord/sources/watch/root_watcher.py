"""Watches the roots of a running daemon, and finds out when a root's folder is another one.

The system reports nothing when a root's folder is renamed, unmounted or replaced, when something is
mounted below it, or when a symbolic link that leads to it is changed. So `rewatch_changed_roots`
compares device, inode and mounts with what they were. A root that differs is watched again, and the
caller walks it. Folders that cannot be watched are polled, and status says so.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from anchord.core.quoting import quote_name
from anchord.core.types import Problem, Root, RootedPath
from anchord.sources.files.mounts import Mount, list_mounts, mounts_below, remote_fs_type
from anchord.sources.watch.watcher import Watcher, open_watcher

_NO_FOLDER = (0, 0)
_MAX_LISTED_FOLDERS = 3
_LIMIT_ERRORS = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE})
"""What inotify fails with at the limits of watches and of instances."""
_LIMIT_HINT = "raise fs.inotify.max_user_watches, or exclude folders"


@dataclass(slots=True, kw_only=True)
class RootState:
    """What status reports of a root. The work queue sets the fields up to `folder_problems`."""

    root: Root
    is_scanned: bool = False
    """Whether a walk of the whole root has ended since the daemon started."""
    walk_error: str = ""
    """Why the root's folder cannot be walked; its rows are kept meanwhile. "" if it can."""
    is_refused: bool = False
    """Whether another folder than the root's own is at its path."""
    held_deletions: int = 0
    """Files that vanished all at once; their rows are kept until the deletion is confirmed."""
    file_count: int = 0
    """Files that the last walk found and that the rules include, without exchanges."""
    skipped_count: int = 0
    """Files and folders that the rules excluded in the last walk."""
    folder_problems: dict[str, tuple[Problem, int]] = field(default_factory=dict)
    """Path of a folder -> its problem, and since when (nanoseconds since the epoch)."""
    is_watched: bool = False
    watch_error: str = ""
    """Why the root is polled, or polled as well; "" if events suffice."""
    device_and_inode: tuple[int, int] = _NO_FOLDER
    """Of the root's folder when it was watched last; zeros if it did not exist."""
    mounts: tuple[Mount, ...] = ()
    """The mounts at the root's folder and below it when it was watched last."""

    def replace_folder_problems(self, problems: Sequence[tuple[str, Problem]], now_ns: int) -> None:
        """Replace the folders' problems; a folder that had one before keeps its time.

        Args:
            problems: Path relative to the root, and the problem.
            now_ns: The time, in nanoseconds since the epoch.
        """
        since = {path: since_ns for path, (_, since_ns) in self.folder_problems.items()}
        self.folder_problems = {
            path: (problem, since.get(path, now_ns)) for path, problem in problems
        }


class RootWatcher:
    """Watches roots, and says which folders must be polled instead."""

    def __init__(self, roots: Iterable[Root], on_hint: Callable[[RootedPath], None]) -> None:
        """Watch nothing yet.

        Args:
            roots: The roots.
            on_hint: Called from the watcher's thread with each path that may have changed; "" is
                the whole root.
        """
        self.states = {root.name: RootState(root=root) for root in roots}
        """State by root name."""
        self._on_hint = on_hint
        self._use_events = False
        self._watcher: Watcher | None = None
        self._earlier_overflow_count = 0
        """Overflows of watchers that were replaced."""
        self._no_watcher_reason = ""

    # What is watched

    def start(self, *, use_events: bool) -> None:
        """Watch every root's own folder. A root that cannot be watched is polled.

        Args:
            use_events: False polls every root: only their folders' identities are recorded.
        """
        self._use_events = use_events
        self._open_watcher()
        for state in self.states.values():
            self._watch(state)

    def close(self) -> None:
        """Stop watching; waits up to 5 s for the watcher's thread."""
        if self._watcher:
            self._watcher.close()

    def add(self, root: Root) -> None:
        """Watch a root, with a fresh state; replaces a root of the same name."""
        self.states[root.name] = RootState(root=root)
        self._watch(self.states[root.name])

    def remove(self, root_name: str) -> None:
        """Stop watching a root and drop its state.

        Raises:
            KeyError: There is no such root.
        """
        if self._watcher:
            self._watcher.remove(root_name)
        self.states.pop(root_name)

    def watch_folder(self, folder: RootedPath) -> None:
        """Watch a folder of a watched root. Call it before the folder is listed."""
        if self._watcher and self.states[folder.root].is_watched:
            self._watcher.watch_folder(folder)

    def unwatch_unlisted_folders(
        self, top_folder: RootedPath, listed_folders: Collection[str]
    ) -> None:
        """Stop watching folders below a folder that a walk of it did not list.

        Args:
            top_folder: The folder that was walked.
            listed_folders: Paths relative to the root of all folders that the walk listed.
        """
        if self._watcher:
            self._watcher.unwatch_unlisted_folders(top_folder, listed_folders)

    # What status reports

    @property
    def overflow_count(self) -> int:
        """How often the system dropped events since the start."""
        current = self._watcher.overflow_count if self._watcher else 0
        return self._earlier_overflow_count + current

    def watch_count(self, root_name: str) -> int:
        """Return how many system watches a root uses."""
        return self._watcher.watch_count(root_name) if self._watcher else 0

    def polled_folders(self, root_name: str) -> tuple[str, ...]:
        """Return the folders of a root that must be polled, because events do not cover them.

        Returns:
            Paths relative to the root; ("",) for the whole root.
        """
        state = self.states[root_name]
        if self._watcher is None or not state.is_watched or state.watch_error:
            return ("",)
        return self._watcher.refused_folders(root_name)

    def polling_reason(self, root_name: str) -> str:
        """Return why folders of a root are polled although events are wanted.

        Returns:
            A sentence for status; "" if none is polled, events are off, or the root cannot be
            walked.
        """
        state, folders = self.states[root_name], self.polled_folders(root_name)
        if not self._use_events or not folders or state.walk_error:
            return ""
        if folders == ("",):
            return state.watch_error or self._no_watcher_reason
        listed = ", ".join(map(quote_name, folders[:_MAX_LISTED_FOLDERS]))
        if len(folders) > _MAX_LISTED_FOLDERS:
            listed += ", ..."
        return f"{len(folders)} folders cannot be watched and are polled ({listed}): {_LIMIT_HINT}"

    def stat_device(self, root_name: str) -> int:
        """Return the device that a root's folder is on now; 0 if the folder does not exist."""
        return _device_and_inode(self.states[root_name].root.path)[0]

    # Whether it is as it was

    def rewatch_changed_roots(self) -> list[str]:
        """Watch roots again whose watch is lost or whose folder is another one.

        Opens a new watcher if the old one has died.

        Returns:
            Names of the roots that must be walked.
        """
        if self._use_events and (self._watcher is None or not self._watcher.is_alive()):
            return self._replace_watcher()
        table = list_mounts()
        changed = []
        for name, state in self.states.items():
            if self._has_lost_watch(state) or _has_moved(state, table):
                self._watch(state)
                changed.append(name)
        return changed

    def _replace_watcher(self) -> list[str]:
        self._open_watcher()
        if self._watcher is None:
            return []  # The next call tries again. Meanwhile every root is polled.
        for state in self.states.values():
            self._watch(state)
        return list(self.states)

    def _has_lost_watch(self, state: RootState) -> bool:
        if not state.is_watched or self._watcher is None:
            return False
        return not self._watcher.is_watching_current_folder(state.root.name)

    @property
    def unseen_roots(self) -> list[str]:
        """Names of the roots that cannot be seen as a whole, or whose deletions are held."""
        states = self.states.items()
        return [name for name, state in states if state.walk_error or state.held_deletions]

    def retargeted_roots(self) -> list[Root]:
        """Return the roots whose configured path is a symbolic link that leads elsewhere now.

        Returns:
            The roots with their new paths. Links that lead to no folder are left out.
        """
        retargeted = []
        for state in self.states.values():
            root = state.root
            if not root.symlink_path:
                continue
            path = os.path.realpath(root.symlink_path)
            if path != root.path and os.path.isdir(path):
                retargeted.append(replace(root, path=path))
        return retargeted

    def _open_watcher(self) -> None:
        """Open a watcher if events are wanted; close the old one."""
        if self._watcher:
            self._earlier_overflow_count += self._watcher.overflow_count
            self._watcher.close()
        self._watcher = None
        if not self._use_events:
            return
        try:
            self._watcher = open_watcher(self._on_hint)
            self._no_watcher_reason = ""
        except OSError as error:
            reason = error.strerror or error
            self._no_watcher_reason = (
                f"the system gives no events ({reason}): folders are polled instead"
            )

    def _watch(self, state: RootState) -> None:
        """Record a root's folder and watch it; a failure goes to `watch_error`."""
        table = list_mounts()
        state.device_and_inode = _device_and_inode(state.root.path)
        state.mounts = mounts_below(state.root.path, table)
        state.is_watched = False
        state.watch_error = ""
        if self._watcher is None:
            return
        if state.device_and_inode == _NO_FOLDER:
            self._watcher.remove(state.root.name)
            return
        try:
            self._watcher.add(state.root)
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            state.watch_error = f"cannot be watched ({reason}): polled instead"
            if error.errno in _LIMIT_ERRORS:
                state.watch_error += f"; {_LIMIT_HINT}"
            return
        state.is_watched = True
        remote = remote_fs_type(state.root.path, table)
        if remote:
            state.watch_error = (
                f"is on {remote}, which reports no changes by other machines: polled as well"
            )


def _has_moved(state: RootState, table: tuple[Mount, ...]) -> bool:
    """Return whether another folder is at a root's path, or another mount at or below it."""
    if _device_and_inode(state.root.path) != state.device_and_inode:
        return True
    return mounts_below(state.root.path, table) != state.mounts


def _device_and_inode(path: str) -> tuple[int, int]:
    """Return the device and inode of a folder; zeros if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return _NO_FOLDER
    return (status.st_dev, status.st_ino)
