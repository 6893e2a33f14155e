"""The roots' files on the local file system: stat, read, walk.

Nothing is decided here: the rules are in `ignore_rules`.
"""

from __future__ import annotations

import codecs
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from anchord.sources.files.ignore_rules import (
    IGNORE_FILE_NAMES,
    FolderRules,
    IgnoreFile,
    root_rules,
)
from anchord.sources.files.safe_open import open_descriptor, open_parent, open_stream
from anchord.sources.files.secret_names import actual_path, redact_path, redact_walk

MAX_FILE_BYTES = 2_000_000
"""Larger files are listed in status and not read: what a person wrote is smaller."""
WAL_SUFFIX = "-wal"
"""The write-ahead log of SQLite database `x.db` is `x.db-wal`."""
DATABASE_SUFFIXES = (".vscdb", ".db")

_MAX_READ_ATTEMPTS = 4
_PAUSE_S = 0.01
_MAX_IGNORE_FILE_BYTES = 1_000_000


class FolderFiles:
    """The files of roots on a local file system, read-only.

    No method follows a symbolic link, blocks on a named pipe, or reads outside a root.
    """

    def __init__(
        self,
        roots: Mapping[str, Root],
        own_folders: Sequence[str],
        max_bytes: int,
        *,
        redacts_names: bool = False,
    ) -> None:
        """Read nothing yet.

        Args:
            roots: The roots by name. Changes to the mapping take effect.
            own_folders: Absolute paths of folders that anchord writes; they are never indexed.
            max_bytes: Larger files are not read.
            redacts_names: Whether files are known by names without secrets (`secret_names`).
        """
        self._redacts_names = redacts_names
        self._roots = roots
        self._own_folders = own_folders
        self._forgotten_paths: frozenset[str] = frozenset()
        self._max_bytes = max_bytes

    def set_forgotten_paths(self, paths: Sequence[str]) -> None:
        """Exclude files and folders, whatever the rules say; replaces the earlier list.

        Args:
            paths: Absolute paths.
        """
        self._forgotten_paths = frozenset(f"/{actual_path('/', path[1:])}" for path in paths)

    def redact_path(self, path: str) -> str:
        """Return how a path on disk is known: without the secrets in its names."""
        return redact_path(path) if self._redacts_names else path

    def path_filter(self) -> PathFilter:
        """Return a function that applies the rules to paths, for many paths one after another.

        It applies the rules to each folder above a path first. It reads the ignore files of a
        folder once, so it does not see later changes of them.
        """
        return _CachingPathFilter(self).match

    def fingerprint(self, origin: RootedPath) -> Fingerprint | Absent | Problem:
        """Return a file's fingerprint without reading the file.

        The fingerprint of a SQLite database (.db, .vscdb) includes its write-ahead log.

        Returns:
            The fingerprint; Absent if there is no file, or a folder or a link; a problem if there
            is something that cannot be indexed.
        """
        try:
            with open_parent(self.root_path(origin), self._actual_path(origin)) as (folder, name):
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
            inside = f"{self._actual_path(top_folder)}/{prefix}."
            with (
                suppress(OSError),
                open_parent(self.root_path(top_folder), inside) as (folder, _),
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
            with open_descriptor(self.root_path(origin), self._actual_path(origin)) as descriptor:
                return self._read_descriptor(descriptor, self.absolute_path(origin))
        except OSError as error:
            return outcome_of_error(error)

    def open(self, origin: RootedPath) -> BinaryIO:
        """Open a regular file as a stream, without a size limit. The caller closes it.

        Raises:
            OSError: It does not exist, is no regular file, or is or lies behind a symbolic link.
        """
        return open_stream(self.root_path(origin), self._actual_path(origin))

    def absolute_path(self, origin: RootedPath) -> str:
        """Return a file's absolute path, for databases: SQLite can open them by path only."""
        return os.path.join(self.root_path(origin), self._actual_path(origin))

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
        rules = self._top_rules(top)
        for folder in prefix.split("/") if prefix else ():
            if not rules.match(folder, is_folder=True).is_included:
                return WalkResult(skipped_count=1)
            rules = self.rules_for_subfolder(rules, folder)
        inside = f"{prefix}/." if prefix else "."
        try:
            with open_parent(top.path, inside) as (descriptor, _):  # Fails if a link is on the way.
                device = os.fstat(descriptor).st_dev
                on_enter_dir(RootedPath(root, prefix))
                entries = list_entries(os.path.join(top.path, prefix))
        except OSError as error:
            return outcome_of_error(error)
        walk = FolderWalk(rules, entries, self.rules_for_subfolder, on_enter_dir)
        result = walk.run(device)
        return redact_walk(result) if self._redacts_names else result

    def rules_at_top(self, root_name: str) -> FolderRules:
        """Return the rules inside a root's own folder; reads its ignore files."""
        return self._top_rules(self._roots[root_name])

    def rules_for_subfolder(
        self,
        parent_rules: FolderRules,
        folder: str,
        entry_names: Sequence[str] = IGNORE_FILE_NAMES,
    ) -> FolderRules:
        """Return the rules inside a sub-folder; reads its ignore files.

        Args:
            parent_rules: The rules inside the folder above.
            folder: The sub-folder's name.
            entry_names: What is in the sub-folder: other ignore files are not opened.
        """
        present = [name for name in IGNORE_FILE_NAMES if name in entry_names]
        path = f"{parent_rules.path}{folder}/"
        ignore_files = self._ignore_files(parent_rules.root, path, present)
        return parent_rules.for_subfolder(folder, ignore_files)

    def _top_rules(self, root: Root) -> FolderRules:
        rules = root_rules(root, self._own_folders, self._forgotten_paths)
        # Later files overrule earlier ones: git's own exclude file comes first.
        ignore_files = [
            *self._ignore_files(root, "", (".git/info/exclude",)),
            *self._ignore_files(root, ""),
        ]
        return rules.for_subfolder("", ignore_files)

    def _ignore_files(
        self, root: Root, folder: str, names: Sequence[str] = IGNORE_FILE_NAMES
    ) -> list[IgnoreFile]:
        """Read a folder's ignore files. `folder` is "" or ends with "/"."""
        found = []
        for name in names:
            content = self._read_ignore_file(RootedPath(root.name, folder + name))
            if content:
                found.append(IgnoreFile(folder + name, _split_ignore_lines(content)))
        return found

    def _read_ignore_file(self, origin: RootedPath) -> bytes:
        try:
            with open_descriptor(self.root_path(origin), origin.path) as descriptor:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return b""
                return _read_exactly(descriptor, _MAX_IGNORE_FILE_BYTES)
        except OSError:
            return b""  # No such file is the usual case; one that cannot be read ignores nothing.

    def root_path(self, origin: RootedPath) -> str:
        """Return the absolute path of a file's root."""
        return self._roots[origin.root].path

    def _actual_path(self, origin: RootedPath) -> str:
        return actual_path(self.root_path(origin), origin.path)

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
        if folder not in self._rules:
            self._rules[folder] = self._read_rules(folder)
        return self._rules[folder]

    def _read_rules(self, folder: RootedPath) -> FolderRules | PathMatch:
        if not folder.path:
            return self._files.rules_at_top(folder.root)
        above, _, name = folder.path.rpartition("/")
        rules_above = self._rules_inside(RootedPath(folder.root, above))
        if isinstance(rules_above, PathMatch):
            return rules_above
        match = rules_above.match(name, is_folder=True)
        return self._files.rules_for_subfolder(rules_above, name) if match.is_included else match


def _split_ignore_lines(content: bytes) -> tuple[str, ...]:
    """Split an ignore file as git does: at line feeds only; a NUL ends a line.

    Names are bytes to git: they become text as `os.fsdecode` does it for paths.
    """
    text = os.fsdecode(content.removeprefix(codecs.BOM_UTF8))
    return tuple(line.partition("\0")[0].removesuffix("\r") for line in text.split("\n"))


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
