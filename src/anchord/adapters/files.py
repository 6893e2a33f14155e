"""The roots' trees: stat, read, walk. Decides nothing; the rules are `core.rules`.

Paths are opened one component at a time from the root's own descriptor with O_NOFOLLOW, so that no swap of a folder for a
symbolic link between look and read leads out of the root; and with O_NONBLOCK, so that a pipe named x.md blocks nobody.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from anchord.core.rules import IGNORE_FILES, IgnoreFile, Scope, scope_of
from anchord.model import Absent, Content, Fingerprint, Found, Origin, Problem, Root, Unstable, Verdict, Walk
from anchord.ports import Entering, Judge, unheard

_READS = 4
_PAUSE_S = 0.01
_MAX_IGNORE_BYTES = 1_000_000
LOG = "-wal"
"""What SQLite adds to the name of a database for its log."""
DATABASES = (".vscdb", ".db")
_new = tuple.__new__
"""Makes a named tuple without a call of Python: a walk makes two for every file."""
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class FolderFiles:
    """The files of roots on a local file system."""

    def __init__(self, roots: Mapping[str, Root], own_state: Sequence[str], max_bytes: int) -> None:
        """Serve these roots. `own_state` are absolute folders of anchord itself; larger files are not read."""
        self._roots = roots
        self._own_state = own_state
        self._forgotten: frozenset[str] = frozenset()
        self._max_bytes = max_bytes

    def forget(self, paths: Sequence[str]) -> None:
        """Never let these absolute paths, and what is below them, into the index; replaces those named before."""
        self._forgotten = frozenset(paths)

    def judge(self) -> Judge:
        """Return a judge of paths; it asks for each folder above a path first, and reads the rules of a folder once."""
        scopes: dict[Origin, Scope | Verdict] = {}

        def inside(folder: Origin) -> Scope | Verdict:
            if folder not in scopes:
                above, _, name = folder.path.rpartition("/")
                scopes[folder] = self._within(folder, inside(Origin(folder.root, above)), name)
            return scopes[folder]

        def verdict(origin: Origin) -> Verdict:
            above, _, name = origin.path.rpartition("/")
            top = Origin(origin.root, "")
            if top not in scopes:
                scopes[top] = self._top(self._roots[origin.root])
            scope = inside(Origin(origin.root, above))
            return scope if isinstance(scope, Verdict) else scope.verdict(name, is_folder=False)

        return verdict

    def _within(self, folder: Origin, above: Scope | Verdict, name: str) -> Scope | Verdict:
        """Return the rules inside a folder, or why nothing of it is let in."""
        if isinstance(above, Verdict):
            return above
        verdict = above.verdict(name, is_folder=True)
        return above.enter(name, self._ignore_files(above.root, f"{folder.path}/")) if verdict.included else verdict

    def fingerprint(self, origin: Origin) -> Fingerprint | Absent | Problem:
        """Look at a path without reading it; at a program's database with what was not yet moved into it."""
        try:
            with self._parent(origin) as (folder, name):
                seen = _classify(os.stat(name, dir_fd=folder, follow_symlinks=False), self._full(origin))
                if isinstance(seen, Fingerprint) and name.endswith(DATABASES):
                    with suppress(OSError):
                        seen = _with_log(seen, os.stat(name + LOG, dir_fd=folder, follow_symlinks=False))
                return seen
        except OSError as error:
            return _trouble(error)

    def listing(self, origin: Origin) -> list[tuple[str, Fingerprint]]:
        """Return the files below a folder by their paths in it, for sessions that are spread over several files."""
        found, folders = list[tuple[str, Fingerprint]](), [""]
        while folders:
            inside = folders.pop()
            below = Origin(origin.root, f"{origin.path}/{inside}.")
            with suppress(OSError), self._parent(below) as (folder, _), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{inside}{entry.name}/")
                    elif entry.is_file(follow_symlinks=False):
                        found.append((inside + entry.name, _fingerprint(entry.stat(follow_symlinks=False))))
        return sorted(found)

    def read(self, origin: Origin) -> Content | Absent | Problem | Unstable:
        """Read a file between two equal fingerprints; one that only grows is taken as it was at the first."""
        try:
            with self._opened(origin) as descriptor:
                return self._read_open(descriptor, self._full(origin))
        except OSError as error:
            return _trouble(error)

    def open(self, origin: Origin) -> BinaryIO:
        """Open a file as a stream, as safely as `read` does.

        Raises:
            OSError: it is not there, or no regular file.
        """
        with self._parent(origin) as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "no regular file")
        return os.fdopen(descriptor, "rb", buffering=1 << 20)

    def full_path(self, origin: Origin) -> str:
        """Return the absolute path of a file, for programs' own databases, which nothing but their path opens."""
        return self._full(origin)

    def walk(self, root: str, prefix: str, entering: Entering = unheard) -> Walk | Absent | Problem:
        """List what the rules let in. A folder that cannot be read is a problem and is named in `unread`."""
        top = self._roots[root]
        scope = self._top(top)
        for folder in prefix.split("/") if prefix else ():
            if not scope.verdict(folder, is_folder=True).included:
                return Walk(skipped=1)
            scope = scope.enter(folder, self._ignore_files(top, f"{scope.path}{folder}/"))
        try:
            with self._parent(Origin(root, f"{prefix}/." if prefix else ".")) as (top_folder, _):  # No link on the way.
                device = os.fstat(top_folder).st_dev
                entering(Origin(root, prefix))
                entries = _listed(os.path.join(top.path, prefix))
        except OSError as error:
            return _trouble(error)
        return replace(_Walker(self, entering, scope, entries).result(), device=device)

    def enter(self, scope: Scope, folder: str, names: Sequence[str]) -> Scope:
        """Return the rules inside a sub-folder that holds these names."""
        present = [name for name in IGNORE_FILES if name in names]
        return scope.enter(folder, self._ignore_files(scope.root, f"{scope.path}{folder}/", present))

    def _top(self, root: Root) -> Scope:
        scope = scope_of(root, self._own_state, self._forgotten)
        return scope.enter("", [*self._ignore_files(root, "", (".git/info/exclude",)), *self._ignore_files(root, "")])

    def _ignore_files(self, root: Root, base: str, names: Sequence[str] = IGNORE_FILES) -> list[IgnoreFile]:
        found = []
        for name in names:
            content = self._small(Origin(root.name, base + name))
            if content:
                found.append(IgnoreFile(base + name, _ignore_lines(content)))
        return found

    def _small(self, origin: Origin) -> bytes:
        try:
            with self._opened(origin) as descriptor:
                return _read_exactly(descriptor, _MAX_IGNORE_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        except OSError:
            return b""  # No such file is the usual case; one that cannot be read ignores nothing.

    def _full(self, origin: Origin) -> str:
        return os.path.join(self._roots[origin.root].path, origin.path)

    @contextmanager
    def _opened(self, origin: Origin) -> Iterator[int]:
        with self._parent(origin) as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _parent(self, origin: Origin) -> Iterator[tuple[int, str]]:
        *folders, name = origin.path.split("/")
        descriptor = os.open(self._roots[origin.root].path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor, name
        finally:
            os.close(descriptor)

    def _read_open(self, descriptor: int, full: str) -> Content | Absent | Problem | Unstable:
        before = _classify(os.fstat(descriptor), full)
        if not isinstance(before, Fingerprint):
            return before
        for _ in range(_READS):
            before = _fingerprint(os.fstat(descriptor))
            if before.size > self._max_bytes:
                return Unstable()  # It outgrew the limit since the look that let it through; the next look refuses it.
            data = _read_exactly(descriptor, before.size)
            after = _fingerprint(os.fstat(descriptor))
            if before == after and len(data) == before.size:
                return Content(data, before)
            time.sleep(_PAUSE_S)
        if after.size > before.size == len(data):
            return Content(data, before)  # A log that never rests: its next look finds it changed, as it is.
        return Unstable()


def _with_log(seen: Fingerprint, log: os.stat_result) -> Fingerprint:
    """Join a database with its write-ahead log: what a program wrote last stands in there."""
    times = max(seen.mtime_ns, log.st_mtime_ns), max(seen.ctime_ns, log.st_ctime_ns)
    return Fingerprint(seen.size + log.st_size, *times, seen.inode, seen.device)


class _Walker:
    """One walk. Folders are visited with a stack of our own: no depth of a tree ends it."""

    def __init__(self, files: FolderFiles, entering: Entering, scope: Scope, entries: list[os.DirEntry[str]]) -> None:
        self._found: list[Found] = []
        self._problems: list[tuple[str, Problem]] = []
        self._folder_problems: list[tuple[str, Problem]] = []
        self._unread: list[str] = []
        self._skipped = 0
        self._folders = [scope.path.rstrip("/")]
        self._files = files
        self._entering = entering
        self._work = [(scope, entries)]
        while self._work:
            inside, listed = self._work.pop()
            for entry in listed:
                self._visit(inside, entry)

    def result(self) -> Walk:
        """Return what was seen."""
        problems, folder_problems = tuple(self._problems), tuple(self._folder_problems)
        unread, folders = tuple(self._unread), tuple(self._folders)
        return Walk(tuple(self._found), problems, folder_problems, unread, self._skipped, folders)

    def _visit(self, scope: Scope, entry: os.DirEntry[str]) -> None:
        path = scope.path + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        verdict = scope.verdict(entry.name, is_folder=is_folder)
        if not verdict.included:
            self._skipped += 1
            if entry.is_symlink() and _leads_up(entry.path):
                self._folder_problems.append((path, _LOOP))
        elif is_folder:
            self._enter(scope, entry, path)
        else:
            self._look(entry, path)

    def _enter(self, scope: Scope, entry: os.DirEntry[str], path: str) -> None:
        self._entering(Origin(scope.root.name, path))
        try:
            entries = _listed(entry.path)
        except OSError as error:
            trouble = _trouble(error)
            if isinstance(trouble, Problem):
                self._unread.append(path)
                self._folder_problems.append((path, trouble))
            return
        self._folders.append(path)
        self._work.append((self._files.enter(scope, entry.name, [e.name for e in entries]), entries))

    def _look(self, entry: os.DirEntry[str], path: str) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):  # As of nearly every entry of every walk.
                self._found.append(_new(Found, (path, _fingerprint(status))))
                return
            seen: object = _classify(status, entry.path)
        except OSError as error:
            seen = _trouble(error)
        if isinstance(seen, Problem):
            self._problems.append((path, seen))
        else:
            self._skipped += 1


_LOOP = Problem("symbolic link to a folder above it: not followed")
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _listed(path: str) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        return list(entries)


def _ignore_lines(content: bytes) -> tuple[str, ...]:
    """Split as git does: at line feeds alone, and a NUL ends a line; names are bytes, as `os.fsdecode` shows them."""
    text = os.fsdecode(content.removeprefix(codecs.BOM_UTF8))
    return tuple(line.partition("\0")[0].removesuffix("\r") for line in text.split("\n"))


def _fingerprint(seen: os.stat_result) -> Fingerprint:
    return _new(Fingerprint, (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_dev))


def _classify(seen: os.stat_result, full: str) -> Fingerprint | Absent | Problem:
    kind = stat.S_IFMT(seen.st_mode)
    if kind == stat.S_IFREG:
        return _fingerprint(seen)
    if kind == stat.S_IFDIR:
        return Absent("a folder")
    if kind == stat.S_IFLNK:
        return _classify_link(full)
    return Problem(f"{_KINDS.get(kind, 'no regular file')}: not indexed")


def _classify_link(full: str) -> Absent | Problem:
    if _leads_up(full):
        return _LOOP
    try:
        Path(full).stat()
    except OSError as error:
        what = "in a loop" if error.errno == errno.ELOOP else "to nothing"
        return Problem(f"symbolic link {what}: not indexed")
    return Absent("a symbolic link: not followed, its target is indexed where it stands")


def _leads_up(full: str) -> bool:
    """Whether a symbolic link leads to a folder that holds it."""
    folder = os.path.realpath(os.path.dirname(full)) + "/"
    return folder.startswith(os.path.realpath(full).rstrip("/") + "/")


def _trouble(error: OSError) -> Absent | Problem:
    if error.errno in _GONE:
        return Absent()
    words = os.strerror(error.errno).lower() if error.errno else "cannot be read"
    return Problem(f"{words}: not indexed")


def _read_exactly(descriptor: int, size: int) -> bytes:
    """Read from the start; fewer bytes only at the end of the file."""
    blocks = []
    at = 0
    while at < size:
        block = os.pread(descriptor, size - at, at)
        if not block:
            break
        blocks.append(block)
        at += len(block)
    return b"".join(blocks)
