"""Writes a kept transcript back, byte for byte, and never over another file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum

from anchord.sources.conversations.kept.store import KeptTranscripts
from anchord.sources.conversations.kept.versions import KeptVersion


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


def write_transcript(pieces: Iterator[bytes], path: str) -> None:
    """Write a new file; it appears complete, or not at all.

    It has the time of now: programs delete transcripts by their age. Folders above it are created.

    Args:
        pieces: Its bytes.
        path: Absolute path.

    Raises:
        FileExistsError: A file is there.
        StoreDamagedError: A kept piece is damaged; nothing was written.
        OSError: It cannot be written.
    """
    folder, name = os.path.split(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    # No program takes this name for a transcript.
    partial = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(4)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(partial, flags, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        _rename_to_new(partial, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def _rename_to_new(partial: str, path: str) -> None:
    """Give a file its name unless another one has it."""
    try:
        os.link(partial, path, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # The file system has no hard links.
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(partial, path)
