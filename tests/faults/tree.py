"""A real temporary tree that operations change. It records the events of a watcher and former contents."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

MOST_FILES = 30
_KEPT = 12
_LARGE = 300_000

NAMES = (
    "a.md",
    "b.md",
    "c.md",
    "note.md",
    "list.txt",
    "tool.py",
    "book.ipynb",
    "README",
    "data.json",
    "odd.bin",
    ".hidden.md",
)
FOLDERS = (
    "docs",
    "src",
    "notes",
    "docs/deep",
    "docs/deep/er",
    "x.md",
    "node_modules",
    "notes/archive",
)


class NotNow(Exception):  # noqa: N818 - no error: the tree has nothing that the operation could be done to
    """An operation has nothing to work on."""


@dataclass
class Tree:
    """The indexed folder, and another one on the same file system."""

    folder: Path
    outside: Path
    touched: dict[str, None] = field(default_factory=dict)
    """Paths that a watcher would have hinted at since this was last emptied, in order."""
    earlier: list[tuple[str, bytes]] = field(default_factory=list)
    """(path, content) of some writes, the latest last, to restore them."""
    snapshots: list[dict[str, bytes]] = field(default_factory=list)
    """States of all files, to switch to as to branches."""

    def __post_init__(self) -> None:
        """Make the folders."""
        self.folder.mkdir(exist_ok=True)
        self.outside.mkdir(exist_ok=True)

    def full(self, path: str) -> str:
        """Return the absolute path."""
        return os.path.join(self.folder, path)

    def touch(self, *paths: str) -> None:
        """Record the event of a watcher."""
        self.touched.update(dict.fromkeys(paths))

    # The present files, always in the same order

    def files(self) -> list[str]:
        """Return every regular file."""
        return sorted(self._entries(stat.S_ISREG))

    def folders(self) -> list[str]:
        """Return every folder below the top."""
        return sorted(self._entries(stat.S_ISDIR))

    def others(self) -> list[str]:
        """Return everything that is neither: links, pipes."""
        return sorted(self._entries(lambda mode: not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)))

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file at a path; a link to one is none."""
        return os.path.isfile(self.full(path)) and not os.path.islink(self.full(path))

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder at a path, the top included; a link to one is none."""
        return os.path.isdir(self.full(path)) and not os.path.islink(self.full(path))

    def _entries(self, is_wanted: Callable[[int], bool]) -> list[str]:
        found = []
        for folder, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                full = os.path.join(folder, name)
                if is_wanted(os.lstat(full).st_mode):
                    found.append(os.path.relpath(full, self.folder))
        return found

    # Choosing

    def any_file(self, rng: Random) -> str:
        """Choose a file, but none that was grown past the limit.

        Raises:
            NotNow: there is none.
        """
        found = [path for path in self.files() if os.lstat(self.full(path)).st_size <= _LARGE]
        if not found:
            raise NotNow
        return rng.choice(found)

    def any_text(self, rng: Random) -> tuple[str, str]:
        """Choose a text file; return its path and content.

        Raises:
            NotNow: there is none.
        """
        path = self.any_file(rng)
        try:
            return path, self.read(path).decode()
        except UnicodeDecodeError:
            raise NotNow from None

    def any_folder(self, rng: Random) -> str:
        """Choose a folder below the top.

        Raises:
            NotNow: there is none.
        """
        found = self.folders()
        if not found:
            raise NotNow
        return rng.choice(found)

    def new_path(self, rng: Random, name: str = "") -> str:
        """Choose a path whose folder is there (or is made now) and at which there is nothing.

        Raises:
            NotNow: The path exists, a parent is not a folder, or there are enough files.
        """
        if len(self.files()) >= MOST_FILES:
            raise NotNow
        folder = rng.choice(("", "", *FOLDERS, *self.folders()))
        path = os.path.join(folder, name or rng.choice(NAMES))
        if os.path.lexists(self.full(path)) or not self._make_folder(folder):
            raise NotNow
        return path

    def _make_folder(self, folder: str) -> bool:
        at = ""
        for part in folder.split("/") if folder else ():
            at = os.path.join(at, part)
            if self.is_folder(at):
                continue
            if os.path.lexists(self.full(at)):
                return False
            os.mkdir(self.full(at))
            self.touch(at)
        return True

    # Plain changes, with their events

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return Path(self.full(path)).read_bytes()

    def write(self, path: str, data: bytes | str) -> None:
        """Write in place; the former content is kept for an undo.

        Raises:
            NotNow: The path is not a file. (Opening a pipe would block.)
        """
        if os.path.lexists(self.full(path)) and not self.is_file(path):
            raise NotNow
        self.keep(path)
        Path(self.full(path)).write_bytes(data.encode() if isinstance(data, str) else data)
        self.touch(path)

    def keep(self, path: str) -> None:
        """Store the present content of a file, if it is a file."""
        if self.is_file(path) and os.lstat(self.full(path)).st_size <= _LARGE:
            self.earlier.append((path, self.read(path)))
            del self.earlier[:-_KEPT]

    def rename(self, path: str, to: str) -> None:
        """Rename."""
        os.rename(self.full(path), self.full(to))
        self.touch(path, to)

    def unlink(self, path: str) -> None:
        """Delete a file; its content is kept for an undo."""
        self.keep(path)
        os.unlink(self.full(path))
        self.touch(path)

    def remove_folder(self, path: str) -> None:
        """Delete a folder with all that is below it."""
        shutil.rmtree(self.full(path))
        self.touch(path)
