"""What the user asked for by commands and no configuration file holds.

That is the folders that were passed to a command as PATH, and the paths to forget. Nothing else can
restore it, so it has a file of its own, which is replaced as a whole and synced to disk, and a copy
beside it: without the paths to forget, what a user deleted would be indexed again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from anchord.core.os_errors import from_os_error
from anchord.core.regular_files import read_regular_file
from anchord.core.types import Root
from anchord.errors import NewerStateError, StoreDamagedError

STATE_VERSION = 1


class _RememberedRoot(msgspec.Struct, frozen=True):
    name: str
    path: bytes
    kind: str = "project"


class UnfinishedForget(msgspec.Struct, frozen=True, kw_only=True):
    """What a `forget` that did not end has begun to delete."""

    path: bytes
    files: int
    exchanges: int


class CliState(msgspec.Struct, frozen=True):
    """The content of the file. Paths are bytes as the operating system gives them.

    Instances are immutable: each `with_` or `without_` method returns a changed copy.
    """

    version: int = STATE_VERSION
    given: tuple[_RememberedRoot, ...] = ()
    """Roots that were passed to a command."""
    forgotten: tuple[bytes, ...] = ()
    """Absolute paths of files and folders that are never indexed."""
    unfinished_forget: UnfinishedForget | None = None

    @property
    def given_roots(self) -> list[Root]:
        """The roots that were passed to a command, sorted by name."""
        roots = [
            Root(
                name=remembered.name,
                path=os.fsdecode(remembered.path),
                kind=remembered.kind,
                is_configured=False,
            )
            for remembered in self.given
        ]
        return sorted(roots, key=lambda root: root.name)

    @property
    def forgotten_paths(self) -> tuple[str, ...]:
        """The absolute paths that are never indexed."""
        return tuple(os.fsdecode(path) for path in self.forgotten)

    def with_root(self, root: Root) -> CliState:
        """Add a root, replacing the one of the same name."""
        added = _RememberedRoot(root.name, os.fsencode(root.path), root.kind)
        others = (remembered for remembered in self.given if remembered.name != root.name)
        return msgspec.structs.replace(self, given=(*others, added))

    def without_root(self, name: str) -> CliState:
        """Return a copy without the root of this name; an equal copy if there is none."""
        others = tuple(remembered for remembered in self.given if remembered.name != name)
        return msgspec.structs.replace(self, given=others)

    def with_forgotten_path(self, path: str) -> CliState:
        """Return a copy with one more absolute path that is never to be indexed."""
        forgotten = {*self.forgotten, os.fsencode(path)}
        return msgspec.structs.replace(self, forgotten=tuple(sorted(forgotten)))

    def without_forgotten_path(self, path: str) -> CliState:
        """Remove a path from the forgotten ones. An unknown path is no error."""
        encoded = os.fsencode(path)
        others = tuple(forgotten for forgotten in self.forgotten if forgotten != encoded)
        return msgspec.structs.replace(self, forgotten=others)

    def with_unfinished_forget(self, forget: UnfinishedForget | None) -> CliState:
        """Return a copy with what a `forget` has begun to delete; None when it has ended."""
        return msgspec.structs.replace(self, unfinished_forget=forget)

    def with_moved_paths(self, move: Callable[[str], str]) -> CliState:
        """Return a copy with every absolute path replaced by what `move` returns for it."""

        def moved(path: bytes) -> bytes:
            moved_path = move(os.fsdecode(path))
            return os.fsencode(moved_path)

        given = tuple(msgspec.structs.replace(root, path=moved(root.path)) for root in self.given)
        return msgspec.structs.replace(
            self, given=given, forgotten=tuple(moved(path) for path in self.forgotten)
        )


def load_cli_state(file: Path) -> CliState:
    """Read the state, from its copy if the file is missing or damaged. Without both it is empty.

    What either of them forgets stays forgotten: an older file may have taken the newer one's place.

    Raises:
        StoreDamagedError: The file is unreadable or not what was written, and so is the copy.
        NewerStateError: A newer anchord wrote it.
    """
    try:
        state = _decode(file)
    except FileNotFoundError:
        return _decode_copy(file) or CliState()
    except (OSError, ValueError) as error:
        if copy := _decode_copy(file):
            return copy
        if isinstance(error, OSError) and (unavailable := from_os_error(error, str(file))):
            raise unavailable from error
        raise StoreDamagedError(
            f"{file} cannot be read: {error}",
            "delete it, then pass the folders to `anchord start` again",
        ) from error
    if state.version > STATE_VERSION:
        raise NewerStateError.for_schema_version(str(file), state.version)
    copy = _decode_copy(file)
    forgotten = {*state.forgotten, *(copy.forgotten if copy else ())}
    return msgspec.structs.replace(state, forgotten=tuple(sorted(forgotten)))


def is_cli_state_whole(file: Path) -> bool:
    """Return whether the file and its copy hold the same."""
    try:
        return _decode(file) == _decode(_copy_of(file))
    except (OSError, ValueError):
        return not file.exists() and not _copy_of(file).exists()


def _copy_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}-copy{file.suffix}")


def _decode(file: Path) -> CliState:
    content = read_regular_file(file)
    if b'"version"' not in content:
        raise ValueError("it is not what was written")
    return msgspec.json.decode(content, type=CliState)


def _decode_copy(file: Path) -> CliState | None:
    try:
        return _decode(_copy_of(file))
    except (OSError, ValueError):
        return None


def save_cli_state(file: Path, state: CliState) -> None:
    """Replace the file, then its copy.

    After a crash each holds the old state or the new one, never a mixture.

    Raises:
        OSError: The file cannot be written.
    """
    for each in (file, _copy_of(file)):
        _replace(each, state)


def _replace(file: Path, state: CliState) -> None:
    new_file = file.with_name(file.name + ".tmp")
    with new_file.open("wb") as stream:
        stream.write(msgspec.json.encode(state))
        stream.flush()
        os.fsync(stream.fileno())
    new_file.replace(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)  # Makes the rename itself durable.
    finally:
        os.close(folder)
