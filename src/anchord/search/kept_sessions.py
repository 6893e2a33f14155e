"""Finds the kept bytes of a session's transcript."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anchord.errors import StoreError
from anchord.sources.conversations.archive.session_records import SessionRecord
from anchord.sources.conversations.kept.pieces import has_hole
from anchord.sources.conversations.kept.store import KeptTranscripts, Place
from anchord.sources.conversations.kept.versions import KeptVersion, best_version
from anchord.sources.files.file_status import fingerprint_of

_DIGITS_OF_A_TIME = 8
_LOOKED_AT_BYTES = 65_536
"""So much of each end of a file is searched for NUL bytes."""


@dataclass(frozen=True, slots=True)
class KeptState:
    """What is kept of a session's transcript."""

    is_kept: bool = False
    """Whether it can be restored."""
    loss: str = ""
    """"shorter" or "damaged" if the file that is there has less than what is kept; else ""."""


@contextmanager
def open_kept(file: Path) -> Iterator[KeptTranscripts | None]:
    """Open the kept transcripts for reading; None where there are none or they cannot be read."""
    kept = None
    if file.exists():
        try:
            kept = KeptTranscripts(file, read_only=True)
        except StoreError:
            kept = None
    try:
        yield kept
    finally:
        if kept:
            kept.close()


def kept_places(kept: KeptTranscripts, record: SessionRecord) -> list[Place]:
    """Return where the files of a session's transcript were when they were kept.

    In a home that was restored on another machine the root has another folder: then a transcript
    counts whose path in its root is the same, if the path names the session by its id or a time.

    Raises:
        StoreError: They cannot be read.
    """
    if not record.path:
        return []
    exact = kept.find(Place(record.folder, record.path))
    if exact or not _names_one_session(record):
        return exact
    elsewhere = kept.find_by_path(record.path)
    folders = sorted({place.folder for place in elsewhere})
    return [place for place in elsewhere if place.folder == folders[-1]]


def _names_one_session(record: SessionRecord) -> bool:
    name = record.path.rpartition("/")[2]
    return record.name in record.path or sum(map(str.isdigit, name)) >= _DIGITS_OF_A_TIME


def kept_state(kept: KeptTranscripts | None, record: SessionRecord) -> KeptState:
    """Return what is kept of a session's transcript; nothing where that cannot be read."""
    try:
        places = kept_places(kept, record) if kept else []
        if kept is None or len(places) != 1:
            return KeptState(bool(places))
        return KeptState(is_kept=True, loss=find_loss(kept, places[0], record.transcript))
    except StoreError:
        return KeptState()


def find_loss(kept: KeptTranscripts, place: Place, path: str) -> str:
    """Return whether a file has less than what is kept of it.

    Args:
        kept: The kept transcripts.
        place: The place of the file there.
        path: Absolute path of the file.

    Returns:
        "damaged" if a part of it is NUL bytes, "shorter" if it is shorter; "" otherwise, and if it
        is gone or cannot be read.

    Raises:
        StoreError: What is kept cannot be read.
    """
    try:
        status = os.lstat(path)
        versions = kept.versions(place)
        best = best_version(versions)
        if best is None or not stat.S_ISREG(status.st_mode):
            return ""
        is_as_kept = kept.fingerprint(place) == fingerprint_of(status)
        if best.is_sound and _has_hole(path, versions[-1] if is_as_kept else None):
            return "damaged"
    except OSError:
        return ""
    return "shorter" if status.st_size < best.size else ""


def _has_hole(path: str, version: KeptVersion | None) -> bool:
    """Return whether a file is partly NUL bytes; the file is read unless a version is the same."""
    if version is not None:
        return not version.is_sound
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as stream:
        return has_hole(_ends_of(stream))


def _ends_of(stream: BinaryIO) -> bytes:
    head = stream.read(_LOOKED_AT_BYTES)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - _LOOKED_AT_BYTES, len(head)))
    return head + stream.read(_LOOKED_AT_BYTES)
