"""Writes a kept transcript back, byte for byte, and never over another file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum

from anchord.sources.conversations.kept.store import KeptTranscripts
from anchord.sources.conversations.kept.versions import KeptVersion

_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Existing(StrEnum):
    """What is at the place where a transcript is to be written."""

    NOTHING = "nothing"
    SAME = "the same"
    LONGER = "the same and more"
    """It begins with all of the kept bytes: the session went on."""
    OTHER = "another file"


def compare_with_file(kept: KeptTranscripts, version: KeptVersion, path: str) -> Existing:
    """Return what is at a path.

    Args:
        kept: The kept transcripts.
        version: What would be written there.
        path: Absolute path.

    Raises:
        StoreDamagedError: A kept piece is damaged.
        OSError: The file cannot be read.
    """
    if not os.path.lexists(path):
        return Existing.NOTHING
    if os.path.islink(path) or not os.path.isfile(path):
        return Existing.OTHER
    with open(path, "rb") as stream:
        for data in kept.read(version):
            if stream.read(len(data)) != data:
                return Existing.OTHER
        return Existing.LONGER if stream.read(1) else Existing.SAME


def write_transcript(pieces: Iterable[bytes], top_folder: str, path: str) -> None:
    """Write a new file; it appears complete, or not at all.

    It has the time of now: programs delete transcripts by their age. Folders below the top folder
    are created. No symbolic link there, or in the top folder's place, is followed.

    Args:
        pieces: Its bytes.
        top_folder: Absolute path of a folder that exists.
        path: Path relative to it, with "/".

    Raises:
        FileExistsError: A file is there.
        StoreDamagedError: A kept piece is damaged; nothing was written.
        OSError: It cannot be written, or is behind a symbolic link.
    """
    *folders, name = path.split("/")
    folder = _open_folder(top_folder, folders)
    # No program takes this name for a transcript.
    partial = f".{name[:100]}.{secrets.token_hex(4)}.tmp"
    try:
        descriptor = os.open(partial, _NEW_FILE_FLAGS, 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as stream:
                stream.writelines(pieces)
                stream.flush()
                os.fsync(stream.fileno())
            _rename_to_new(partial, name, folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial, dir_fd=folder)
    finally:
        os.close(folder)


def _open_folder(top_folder: str, names: Iterable[str]) -> int:
    """Return the descriptor of a folder, which is made if it is missing; follow no link."""
    descriptor = os.open(top_folder, _FOLDER_FLAGS)
    for name in names:
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=descriptor)
            below = os.open(name, _FOLDER_FLAGS, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _rename_to_new(partial: str, name: str, folder: int) -> None:
    """Give a file in a folder its name unless another one has it."""
    try:
        os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # The file system has no hard links.
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            raise FileExistsError(name) from None
        os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=folder)


def find_link(top_folder: str, path: str) -> str:
    """Return the first symbolic link on the way to a file: the top folder, or a folder below it.

    Args:
        top_folder: Absolute path.
        path: The file's path relative to it, with "/".

    Returns:
        Absolute path of the link; "" if there is none.
    """
    way = [top_folder]
    for name in path.split("/")[:-1]:
        way.append(os.path.join(way[-1], name))
    return next(filter(os.path.islink, way), "")
