"""The kept bytes of transcripts in an index: opened, filled, erased.

Damage there stops neither the archive nor the index: the damaged file is set aside, a new one
begins, and the transcripts that still exist are kept again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from anchord.config.paths import Paths
from anchord.config.roots import covers
from anchord.core.types import Root
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError
from anchord.index.recovery import move_sqlite_aside
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.kept.keeper import TranscriptKeeper
from anchord.sources.conversations.kept.store import Place
from anchord.sources.conversations.kept.writer import KeptTranscriptsWriter
from anchord.store.catalog.catalog import SqliteCatalog

_COUNT_KEY = "kept transcripts"
"""How many there are: nothing else knows of those whose files are gone."""
_LEAST_NAME_CHARS = 20
"""A shorter name, such as `session.json`, does not tell one transcript from another."""


def open_kept_transcripts(
    paths: Paths, catalog: SqliteCatalog, repairs: list[str]
) -> KeptTranscriptsWriter | None:
    """Open the kept transcripts; set a damaged file aside and begin a new one.

    Args:
        paths: The files and folders of this anchord.
        catalog: Knows how many transcripts were kept.
        repairs: A sentence is appended if they were lost or cannot be opened.

    Returns:
        None if the file cannot be used now: nothing is kept until the next start.
    """
    file = paths.kept_transcripts_file
    count = int(catalog.get_meta(_COUNT_KEY) or 0)
    was_missing = not file.exists()
    try:
        kept = _open_or_begin_anew(paths, repairs)
    except (StoreError, OSError) as error:
        repairs.append(f"transcripts are not kept until the next start: {error}")
        return None
    if was_missing and count:
        repairs.append(
            f"the file of kept transcripts was missing: it had {count:,} of them. Those that still "
            "exist are kept again; a backup may contain the others (`anchord restore`)"
        )
    return kept


def _open_or_begin_anew(paths: Paths, repairs: list[str]) -> KeptTranscriptsWriter:
    try:
        if not _damage_marker(paths).exists():
            return KeptTranscriptsWriter(paths.kept_transcripts_file)
        reason = "a page or a piece of it could not be read"
    except StoreDamagedError as error:
        reason = error.message
    folder = move_sqlite_aside(paths, paths.kept_transcripts_file)
    _damage_marker(paths).unlink(missing_ok=True)
    repairs.append(
        f"the file of kept transcripts was damaged ({reason}): transcripts that still exist are "
        f"kept again (the damaged copy is in {folder})"
    )
    return KeptTranscriptsWriter(paths.kept_transcripts_file)


def record_kept_damage(paths: Paths, error: StoreDamagedError) -> bool:
    """Make the next start begin a new file, if an error is about the kept transcripts.

    Returns:
        Whether it is.
    """
    if str(paths.kept_transcripts_file) not in error.message:
        return False
    with suppress(OSError):
        _damage_marker(paths).touch()
    return True


def note_kept_count(keeper: TranscriptKeeper, catalog: SqliteCatalog) -> None:
    """Write to the catalog how many transcripts would be lost unseen with their file."""
    totals = keeper.totals()
    count = str(totals.files) if totals else ""
    if count and (catalog.get_meta(_COUNT_KEY) or "0") != count:
        catalog.set_meta(_COUNT_KEY, count)


def queue_unkept(
    keeper: TranscriptKeeper, archive: ArchiveWriter, catalog: SqliteCatalog, roots: Iterable[Root]
) -> None:
    """Queue every transcript that the archive has read: those that are kept cost a look.

    After a `forget`, those that are not kept are read again instead: only a reader notices that one
    contains what was forgotten.
    """
    if keeper.store is None:
        return
    read = [
        origin
        for root in roots
        if root.kind == "conversations" and root.keep_raw
        for origin in archive.transcript_files(root.name)
    ]
    if archive.deletions.all_forgotten():
        unkept = [each for each in read if not keeper.store.is_known(keeper.place_of(each))]
        archive.schedule_full_reads(unkept)
        catalog.mark_for_reread(unkept)
        reread = set(unkept)
        read = [each for each in read if each not in reread]
    keeper.due |= {each: keeper.due.get(each, False) for each in read}


def erase_trashed(keeper: TranscriptKeeper, archive: ArchiveWriter, roots: Iterable[Root]) -> None:
    """Erase transcripts that were deleted in a root with `on_delete = "delete"`, after the trash.

    Those of which the archive still has an exchange, in the trash or elsewhere, stay.
    """
    if keeper.store is None:
        return
    for root in roots:
        if root.kind != "conversations" or root.on_delete != "delete":
            continue
        known = archive.session_records.transcripts()
        gone = [
            place
            for place in keeper.store.find_below(root.path)
            if not os.path.lexists(place.absolute) and known.isdisjoint(_with_folders(place))
        ]
        if gone:
            keeper.store.erase(gone)
            keeper.store.truncate_wal()


def erase_forgotten(keeper: TranscriptKeeper, file: Path, path: str) -> int:
    """Erase what is kept of a file or folder, and of the same transcripts that were moved.

    A transcript elsewhere that exists stays.

    Args:
        keeper: What is kept.
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
    redact_path = keeper.files.redact_path
    keeper.due = {
        origin: has_forgotten
        for origin, has_forgotten in keeper.due.items()
        if origin.root in keeper.roots and not covers(path, keeper.place_of(origin).absolute)
    }
    below = [
        place
        for place in store.find_below("/")
        if covers(path, place.absolute) or covers(path, redact_path(place.absolute))
    ]
    names = {os.path.basename(place.path) for place in below}
    moved = {*store.sharing_with(below)}
    moved.update(*(store.find_named(each) for each in names if len(each) >= _LEAST_NAME_CHARS))
    gone = {place for place in moved if not os.path.lexists(place.absolute)}
    count = store.erase({*below, *gone})
    store.truncate_wal()
    return count


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
    redact_path = keeper.files.redact_path
    forgotten = list(forgotten_paths)
    try:
        places = keeper.store.find_below("/") if forgotten else []
        below = [
            place
            for place in places
            if any(
                covers(path, place.absolute) or covers(path, redact_path(place.absolute))
                for path in forgotten
            )
        ]
        if below:
            keeper.store.erase(below)
            keeper.store.truncate_wal()
    except StoreError as error:
        repairs.append(f"kept transcripts of forgotten files could not be erased: {error.message}")


def _with_folders(place: Place) -> Iterator[str]:
    """Yield the path of a file, and the folders above it: one can be the transcript."""
    path = place.absolute
    while len(path) > len(place.folder):
        yield path
        path = os.path.dirname(path)


def accept_unforgotten(
    keeper: TranscriptKeeper, archive: ArchiveWriter, catalog: SqliteCatalog, roots: Iterable[Root]
) -> None:
    """Let transcripts be kept again that contained what was forgotten and is not any more."""
    if keeper.store:
        keeper.store.accept_refused()
    queue_unkept(keeper, archive, catalog, roots)


def keep_due(keeper: TranscriptKeeper, should_stop: Callable[[], bool]) -> None:
    """Keep the files that are due until `should_stop`; each is tried once.

    Raises:
        StoreDamagedError: The kept transcripts are damaged. Raised once.
    """
    for _ in range(len(keeper.due)):
        if should_stop() or not keeper.keep_next():
            return


def _damage_marker(paths: Paths) -> Path:
    return Path(f"{paths.kept_transcripts_file}-damaged")
