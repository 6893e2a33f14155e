"""The roots' files on the local file system: stat, read, walk.

Nothing is decided here: the rules are in `ignore_rules`.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

from anchord.core.ports import EnterDirCallback, PathFilter, ignore_enter_dir
from anchord.core.types import (
    Absent,
    ChangedDuringRead,
    FileContent,
    Fingerprint,
    PathMatch,
    Problem,
    Root,
    RootedPath,
    WalkResult,
)
from anchord.sources.files.file_status import (
    classify,
    fingerprint_of,
    fingerprint_with_wal,
    outcome_of_error,
)
from anchord.sources.files.folder_walk import FolderWalk, list_entries
from anchord.sources.files.ignore_rules import FolderRules
from anchord.sources.files.root_identity import check_root
from anchord.sources.files.rules_reader import RulesReader
from anchord.sources.files.safe_open import (
    DeviceAndInode,
    TopFolderError,
    open_descriptor,
    open_parent,
    open_stream,
)
from anchord.sources.files.secret_names import actual_path, redact_path, redact_walk
from anchord.sources.files.source_memory import SourceMemory
from anchord.sources.files.worktrees import Worktrees

MAX_FILE_BYTES = 2_000_000
"""Larger files are listed in status and not read: what a person wrote is smaller."""
WAL_SUFFIX = "-wal"
"""The write-ahead log of SQLite database `x.db` is `x.db-wal`."""
DATABASE_SUFFIXES = (".vscdb", ".db")

_MAX_READ_ATTEMPTS = 4
_PAUSE_S = 0.01


class FolderFiles:
    """The files of roots on a local file system, read-only.

    No method follows a symbolic link, blocks on a named pipe, or reads outside a root.
    """

    def __init__(
        self,
        roots: Mapping[str, Root],
        own_folders: Sequence[str],
        max_bytes: int,
        memory: SourceMemory | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Read nothing yet.

        Args:
            roots: The roots by name. Changes to the mapping take effect.
            own_folders: Absolute paths of folders that anchord writes; they are never indexed.
            max_bytes: Larger files are not read.
            memory: The last good rules and the folders of the roots; None remembers them in this
                object only.
            clock: Returns the time in nanoseconds since the epoch.
        """
        self.memory = memory or SourceMemory()
        self.worktrees = Worktrees(roots, self.redact_path)
        """Which folders are further worktrees of a repository."""
        self.rules = RulesReader(
            own_folders, self._open_ignore_file, self.memory, self.worktrees, clock
        )
        """The rules of folders."""
        self.redacts_names = False
        """Whether files are known by names without secrets (`secret_names`)."""
        self._roots = roots
        self._forgotten_paths: frozenset[str] = frozenset()
        self._max_bytes = max_bytes

    def set_forgotten_paths(self, paths: Sequence[str]) -> None:
        """Exclude files and folders, whatever the rules say; replaces the earlier list.

        Args:
            paths: Absolute paths.
        """
        actual = [actual_path("/", path[1:]) for path in paths]
        self._forgotten_paths = frozenset(f"/{path}" for path in actual)

    def redact_path(self, path: str) -> str:
        """Return how a path on disk is known: without the secrets in its names."""
        return redact_path(path) if self.redacts_names else path

    def path_filter(self) -> PathFilter:
        """Return a function that applies the rules to paths, for many paths one after another.

        It applies the rules to each folder above a path first. It reads the ignore files of a
        folder once, so it does not see later changes of them.
        """
        self.memory.refresh()
        return _CachingPathFilter(self).match

    def check_root(
        self, root: str, known_paths: Callable[[], Collection[str]], *, accept: bool
    ) -> str:
        """Accept or refuse the folder at a root's path, before a walk of the whole root.

        Args:
            root: Name of the root.
            known_paths: Returns the paths of the root's indexed files.
            accept: Whether a person accepted whatever folder is there.

        Returns:
            Why the folder is refused, with the remedy; "" if it is accepted, or nothing is there.
        """
        return check_root(self._roots[root], self.memory, known_paths, accept=accept)

    def forget_root(self, root: str) -> None:
        """Forget which folder a root had: the next one of this name may have any."""
        self.memory.roots.pop(root, None)
        self.memory.save()

    def fingerprint(self, origin: RootedPath) -> Fingerprint | Absent | Problem:
        """Return a file's fingerprint without reading the file.

        The fingerprint of a SQLite database (.db, .vscdb) includes its write-ahead log.

        Returns:
            The fingerprint; Absent if there is no file, or a folder or a link; a problem if there
            is something that cannot be indexed.
        """
        try:
            with open_parent(*self._place_of_known(origin)) as (folder, name):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                seen = classify(status, self.absolute_path(origin))
                if isinstance(seen, Fingerprint) and name.endswith(DATABASE_SUFFIXES):
                    with suppress(OSError):  # Usually there is no log.
                        wal = os.stat(name + WAL_SUFFIX, dir_fd=folder, follow_symlinks=False)
                        seen = fingerprint_with_wal(seen, wal)
                return seen
        except OSError as error:
            return outcome_of_error(error)

    def list_files_below(self, top_folder: RootedPath) -> list[tuple[str, Fingerprint]]:
        """List all regular files below a folder, for a session that is spread over several files.

        The rules are not applied. Folders that cannot be read are left out.

        Returns:
            Path relative to the folder, with "/", and fingerprint of each file, sorted by path.
        """
        found: list[tuple[str, Fingerprint]] = []
        folders = [""]
        while folders:
            prefix = folders.pop()
            inside = f"{self.path_on_disk(top_folder)}/{prefix}."
            with (
                suppress(OSError),
                open_parent(*self._place_of(RootedPath(top_folder.root, inside))) as (folder, _),
                os.scandir(folder) as entries,
            ):
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{prefix}{entry.name}/")
                    elif entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        found.append((prefix + entry.name, fingerprint_of(status)))
        return sorted(found)

    def read(self, origin: RootedPath) -> FileContent | Absent | Problem | ChangedDuringRead:
        """Read a whole file between two equal fingerprints.

        Reads a file up to four times if it changes meanwhile, with pauses of 10 ms. A file that
        only grows, such as a log, is taken as it was at the last try.

        Returns:
            The content with its fingerprint; ChangedDuringRead if the file kept changing, or grew
            beyond the size limit; Absent or a problem as `fingerprint` has them.
        """
        try:
            with open_descriptor(*self._place_of_known(origin)) as descriptor:
                return self._read_descriptor(descriptor, self.absolute_path(origin))
        except OSError as error:
            return outcome_of_error(error)

    def open(self, origin: RootedPath) -> BinaryIO:
        """Open a regular file as a stream, without a size limit. The caller closes it.

        Raises:
            OSError: It does not exist, is no regular file, or is or lies behind a symbolic link.
        """
        return open_stream(*self._place_of_known(origin))

    def absolute_path(self, origin: RootedPath) -> str:
        """Return a file's absolute path, for databases: SQLite can open them by path only."""
        return os.path.join(self.root_path(origin), self.path_on_disk(origin))

    def walk(
        self, root: str, prefix: str, on_enter_dir: EnterDirCallback = ignore_enter_dir
    ) -> WalkResult | Absent | Problem:
        """List the files below a folder that the rules include.

        A folder below it that cannot be read is a problem in the result, and is listed in
        `unreadable_folders`.

        Args:
            root: Name of the root.
            prefix: The folder's path relative to the root; "" is the root's own folder.
            on_enter_dir: Called with each folder before it is listed.

        Returns:
            The files; an empty result if the rules exclude the folder; Absent if it does not
            exist; a problem if it cannot be read.
        """
        top = self._roots[root]
        prefix = actual_path(top.path, prefix)
        inside = f"{prefix}/." if prefix else "."
        try:
            with open_parent(*self._place_of(RootedPath(root, "."))) as (descriptor, _):
                # Of a folder that is gone, nobody need know the rules of those above it.
                os.stat(prefix or ".", dir_fd=descriptor, follow_symlinks=False)
                rules = self._rules_below(root, prefix)
            if rules is None:
                return WalkResult(skipped_count=1)
            # Fails if a link is on the way.
            with open_parent(*self._place_of(RootedPath(root, inside))) as (descriptor, _):
                device = os.fstat(descriptor).st_dev
                on_enter_dir(RootedPath(root, prefix))
                entries = list_entries(os.path.join(top.path, prefix))
        except TopFolderError as error:
            # Of a root that is away, no folder is known to be gone.
            outcome = outcome_of_error(error)
            return Problem("its root is away") if prefix else outcome
        except OSError as error:
            return outcome_of_error(error)
        walk = FolderWalk(rules, entries, self.rules.subfolder_rules, on_enter_dir)
        result = walk.run(device)
        self.memory.save()
        return redact_walk(result) if self.redacts_names else result

    def _rules_below(self, root: str, prefix: str) -> FolderRules | None:
        """Return the rules inside a folder of a root; None if the rules exclude it."""
        if not prefix:
            self.rules.begin_walk(root)
        rules = self.rules_at_top(root)
        for folder in prefix.split("/") if prefix else ():
            if not rules.match(folder, is_folder=True).is_included:
                return None
            rules = self.rules.subfolder_rules(rules, folder)
        return rules

    def rules_at_top(self, root_name: str) -> FolderRules:
        """Return the rules inside a root's own folder; reads its ignore files."""
        return self.rules.top_rules(self._roots[root_name], self._forgotten_paths)

    @contextmanager
    def _open_ignore_file(self, origin: RootedPath) -> Iterator[int]:
        """Open an ignore file of a root.

        Raises:
            FileNotFoundError: It does not exist, and its root does.
            OSError: It cannot be read.
        """
        try:
            with open_descriptor(*self._place_of(origin)) as descriptor:
                yield descriptor
        except TopFolderError as error:
            raise OSError(errno.EIO, "its root is away") from error

    def _place_of(self, origin: RootedPath) -> tuple[str, str, DeviceAndInode | None]:
        """Return a path's root folder, the path in it, and which folder the root's must be."""
        root = self._roots[origin.root]
        seen = self.memory.roots.get(root.name)
        is_checked = seen is not None and seen.path == root.path
        expected = (seen.device, seen.inode) if seen and is_checked else None
        return root.path, self.path_on_disk(origin), expected

    def root_path(self, origin: RootedPath) -> str:
        """Return the absolute path of a file's root."""
        return self._roots[origin.root].path

    def path_on_disk(self, origin: RootedPath) -> str:
        """Return a file's path on disk relative to its root: with the secrets in its names."""
        return actual_path(self.root_path(origin), origin.path)

    def _place_of_known(self, origin: RootedPath) -> tuple[str, str, DeviceAndInode | None]:
        """Return the same as `_place_of`, for a path that is not an ignore file.

        Raises:
            FileNotFoundError: The path itself holds a secret, and no file is known by it. An index
                from before the rules for secrets can list it.
        """
        if self.redact_path(origin.path) != origin.path:
            raise FileNotFoundError(errno.ENOENT, "it has a redacted name")
        return self._place_of(origin)

    def _read_descriptor(
        self, descriptor: int, absolute_path: str
    ) -> FileContent | Absent | Problem | ChangedDuringRead:
        first = classify(os.fstat(descriptor), absolute_path)
        if not isinstance(first, Fingerprint):
            return first
        for _ in range(_MAX_READ_ATTEMPTS):
            before = fingerprint_of(os.fstat(descriptor))
            if before.size > self._max_bytes:
                # It outgrew the limit since the look that allowed the read. The next look refuses
                # it.
                return ChangedDuringRead()
            data = _read_exactly(descriptor, before.size)
            after = fingerprint_of(os.fstat(descriptor))
            if before == after and len(data) == before.size:
                return FileContent(data, before)
            time.sleep(_PAUSE_S)
        if after.size > before.size == len(data):
            # It only grows, like a log. Its fingerprint is out of date: the next look reads again.
            return FileContent(data, before)
        return ChangedDuringRead()


class _CachingPathFilter:
    """Applies the rules to paths; the rules of each folder are read once."""

    def __init__(self, files: FolderFiles) -> None:
        self._files = files
        self._rules: dict[RootedPath, FolderRules | PathMatch] = {}
        """Folder -> the rules inside it, or the match that excludes it or a folder above."""

    def match(self, origin: RootedPath) -> PathMatch:
        path = actual_path(self._files.root_path(origin), origin.path)
        folder, _, name = path.rpartition("/")
        rules = self._rules_inside(RootedPath(origin.root, folder))
        if isinstance(rules, PathMatch):
            return rules
        return rules.match(name, is_folder=False)

    def _rules_inside(self, folder: RootedPath) -> FolderRules | PathMatch:
        # Not by recursion: thousands of folders can be nested.
        unknown: list[str] = []
        path = folder.path
        while path and RootedPath(folder.root, path) not in self._rules:
            unknown.append(path)
            path = path.rpartition("/")[0]
        top = RootedPath(folder.root, path)
        if top not in self._rules:
            self._rules[top] = self._files.rules_at_top(folder.root)
        rules = self._rules[top]
        for path in reversed(unknown):
            rules = self._rules_of_subfolder(rules, path.rpartition("/")[2])
            self._rules[RootedPath(folder.root, path)] = rules
        return rules

    def _rules_of_subfolder(
        self, rules_above: FolderRules | PathMatch, name: str
    ) -> FolderRules | PathMatch:
        if isinstance(rules_above, PathMatch):
            return rules_above
        match = rules_above.match(name, is_folder=True)
        return self._files.rules.subfolder_rules(rules_above, name) if match.is_included else match


def _read_exactly(descriptor: int, size: int) -> bytes:
    """Read `size` bytes from the file's start; fewer only if the file ends before."""
    blocks = []
    offset = 0
    while offset < size:
        block = os.pread(descriptor, size - offset, offset)
        if not block:
            break
        blocks.append(block)
        offset += len(block)
    return b"".join(blocks)
