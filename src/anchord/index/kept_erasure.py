"""Erases kept bytes of transcripts: what was forgotten, and what was in the trash for 30 days."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from anchord.config.roots import covers
from anchord.core.types import Root
from anchord.errors import StoreError, StoreUnavailableError
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.trash import TRASH_DAYS
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.kept.keeper import TranscriptKeeper
from anchord.sources.conversations.kept.store import Place
from anchord.sources.conversations.kept.writer import KeptTranscriptsWriter

_LEAST_NAME_CHARS = 20
"""A shorter name, such as `session.json`, does not tell one transcript from another."""
_ID_CHARS = range(16, 81)
"""A shorter id, such as a number, is in other transcripts as well."""
_TRASH_NS = TRASH_DAYS * 24 * 3600 * 10**9


def erase_trashed(
    keeper: TranscriptKeeper, archive: ArchiveWriter, roots: Iterable[Root], repairs: list[str]
) -> None:
    """Erase transcripts that were deleted in a root with `on_delete = "delete"`, after the trash.

    That is after 30 days in which they were gone. Those of which the archive still has an exchange,
    in the trash or elsewhere, stay, and those of a root whose folder is not there.

    Args:
        keeper: What is kept.
        archive: The archive. Do not call this if it has just lost exchanges.
        roots: All roots.
        repairs: A sentence is appended if something cannot be erased.
    """
    store = keeper.store
    trashing = [
        root
        for root in roots
        if root.kind == "conversations" and root.on_delete == "delete" and os.path.isdir(root.path)
    ]
    if store is None or not trashing:
        return
    known = archive.session_records.transcripts()
    now_ns = keeper.clock()
    try:
        for root in trashing:
            there = {
                place: os.path.lexists(place.absolute) for place in store.find_below(root.path)
            }
            gone_since = store.note_gone(there, now_ns)
            expired = [
                place
                for place, since_ns in gone_since.items()
                if now_ns - since_ns >= _TRASH_NS and known.isdisjoint(_names_of(keeper, place))
            ]
            if expired:
                store.erase(expired)
                store.truncate_wal()
    except StoreError as error:
        repairs.append(f"kept transcripts that were deleted could not be erased: {error.message}")


def erase_forgotten(keeper: TranscriptKeeper, archive: Archive, file: Path, path: str) -> int:
    """Erase what is kept of a file or folder, and of transcripts that are gone and contain it.

    These share a piece or a long name with it, or have the id of one of its messages: the
    transcript was moved, or this one resumes it. All kept bytes of files that are gone are read for
    that. A transcript elsewhere that exists stays.

    Args:
        keeper: What is kept.
        archive: Has the exchanges that come from the path, still.
        file: The database of kept transcripts.
        path: Absolute path of the file or folder.

    Returns:
        How many transcripts were erased.

    Raises:
        StoreUnavailableError: The database exists and could not be opened at this start, or a
            reader of it, such as a backup, has not ended: deleted bytes are still in its log.
        StoreError: They cannot be erased.
    """
    store = keeper.store
    if store is None:
        if file.exists():
            raise StoreUnavailableError(
                f"{file} could not be opened at the start: kept transcripts cannot be erased",
                "`anchord status` says why; solve that, `anchord restart`, and forget again",
            )
        return 0
    keeper.due = {
        origin: has_forgotten
        for origin, has_forgotten in keeper.due.items()
        if origin.root in keeper.roots and not covers(path, keeper.place_of(origin).absolute)
    }
    below = _places_of(keeper, store, [path])
    moved = _moved_from(store, below)
    others = set(store.find_below("/")).difference(below, moved)
    resumed = _with_messages_of(store, archive, path, others)
    count = store.erase({*below, *moved, *resumed})
    store.truncate_wal()
    return count


def _places_of(
    keeper: TranscriptKeeper, store: KeptTranscriptsWriter, paths: Sequence[str]
) -> list[Place]:
    """Return what is kept at or below some paths; a name with a secret is redacted there or not."""
    redact_path = keeper.files.redact_path
    return [
        place
        for place in store.find_below("/")
        if any(
            covers(path, place.absolute) or covers(path, redact_path(place.absolute))
            for path in paths
        )
    ]


def _moved_from(store: KeptTranscriptsWriter, places: Sequence[Place]) -> set[Place]:
    """Return transcripts that are gone and share a piece or a long name with some others."""
    names = {os.path.basename(place.path) for place in places}
    moved = {*store.sharing_with(places)}
    moved.update(*(store.find_named(each) for each in names if len(each) >= _LEAST_NAME_CHARS))
    return {place for place in moved if _is_gone(place)}


def _with_messages_of(
    store: KeptTranscriptsWriter, archive: Archive, path: str, places: Iterable[Place]
) -> set[Place]:
    """Return those of some transcripts that are gone and contain a message that is below a path."""
    message_ids = archive.find_from(path).message_ids()
    ids = {os.fsencode(each) for each in message_ids if len(each) in _ID_CHARS}
    if not ids:
        return set()
    return {place for place in places if _is_gone(place) and store.contains_any(place, ids)}


def _is_gone(place: Place) -> bool:
    return not os.path.lexists(place.absolute)


def erase_forgotten_at_start(
    keeper: TranscriptKeeper, forgotten_paths: Iterable[str], repairs: list[str]
) -> None:
    """Erase what is kept below forgotten paths: a file that was away or restored may have it.

    Args:
        keeper: What is kept.
        forgotten_paths: Absolute paths of files and folders.
        repairs: A sentence is appended if it cannot be erased.
    """
    if keeper.store is None:
        return
    forgotten = list(forgotten_paths)
    try:
        if forgotten and (below := _places_of(keeper, keeper.store, forgotten)):
            keeper.store.erase(below)
            keeper.store.truncate_wal()
    except StoreError as error:
        repairs.append(f"kept transcripts of forgotten files could not be erased: {error.message}")


def _names_of(keeper: TranscriptKeeper, place: Place) -> Iterator[str]:
    """Yield how the archive may know a file: by its path, or by a folder above it.

    A name that contains a secret is redacted there.
    """
    path = place.absolute
    while len(path) > len(place.folder):
        yield path
        yield keeper.files.redact_path(path)
        path = os.path.dirname(path)
