"""Finds the kept bytes of a session's transcript."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anchord.errors import StoreError
from anchord.sources.conversations.archive.session_records import SessionRecord
from anchord.sources.conversations.kept.store import KeptTranscripts, Place

_DIGITS_OF_A_TIME = 8


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


def is_kept(kept: KeptTranscripts | None, record: SessionRecord) -> bool:
    """Return whether a session's transcript can be restored; False where that cannot be read."""
    try:
        return kept is not None and bool(kept_places(kept, record))
    except StoreError:
        return False
