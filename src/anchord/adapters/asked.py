"""What the user asked for by a command and no configuration holds: roots given as PATH, and paths to be forgotten.

It can be made anew from nothing else, so it is a file of its own: written whole, synced, and put in place by a rename.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from anchord.errors import NewerStateError, StoreDamagedError
from anchord.model import Root

VERSION = 1


class _Given(msgspec.Struct, frozen=True):
    name: str
    path: bytes
    kind: str = "project"


class Asked(msgspec.Struct, frozen=True):
    """The content of the file; paths are bytes, as the system gives them."""

    version: int = VERSION
    given: tuple[_Given, ...] = ()
    forgotten: tuple[bytes, ...] = ()
    """Absolute paths of files and folders that are never indexed."""

    @property
    def roots(self) -> list[Root]:
        """Return the roots that were given to a command, by name."""
        roots = [Root(given.name, os.fsdecode(given.path), given.kind, configured=False) for given in self.given]
        return sorted(roots, key=lambda root: root.name)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths to be forgotten."""
        return tuple(os.fsdecode(path) for path in self.forgotten)

    def with_root(self, root: Root) -> Asked:
        """Add a root, in place of one of its name."""
        others = tuple(given for given in self.given if given.name != root.name)
        return msgspec.structs.replace(self, given=(*others, _Given(root.name, os.fsencode(root.path), root.kind)))

    def without_root(self, name: str) -> Asked:
        """Take a root out."""
        return msgspec.structs.replace(self, given=tuple(given for given in self.given if given.name != name))

    def with_path(self, path: str) -> Asked:
        """Add a path to be forgotten."""
        return msgspec.structs.replace(self, forgotten=tuple(sorted({*self.forgotten, os.fsencode(path)})))

    def without_path(self, path: str) -> Asked:
        """Let a path be indexed again."""
        return msgspec.structs.replace(self, forgotten=tuple(each for each in self.forgotten if each != os.fsencode(path)))


def load_asked(file: Path) -> Asked:
    """Read the file; there is none at first.

    Raises:
        StoreDamagedError: it is not what was written. NewerStateError: a newer anchord wrote it.
    """
    try:
        asked = msgspec.json.decode(file.read_bytes(), type=Asked)
    except FileNotFoundError:
        return Asked()
    except (OSError, ValueError) as error:
        raise StoreDamagedError(f"{file}: {error}", "delete it, and give the folders to `anchord start` again") from error
    if asked.version > VERSION:
        raise NewerStateError.of(str(file), asked.version)
    return asked


def save_asked(file: Path, asked: Asked) -> None:
    """Write the file so that a crash leaves the old one or the new one."""
    fresh = file.with_name(file.name + ".tmp")
    with fresh.open("wb") as writing:
        writing.write(msgspec.json.encode(asked))
        writing.flush()
        os.fsync(writing.fileno())
    fresh.replace(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
