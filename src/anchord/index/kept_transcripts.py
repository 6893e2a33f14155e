"""The kept bytes of transcripts in an index: opened and filled.

Damage there stops neither the archive nor the index: what is readable goes to a new file, the
damaged one is set aside, and the transcripts that still exist are kept again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from anchord.config.paths import Paths
from anchord.core.types import Root
from anchord.errors import StoreDamagedError, StoreError
from anchord.index.recovery import SQLITE_SUFFIXES, move_sqlite_aside
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.kept.keeper import TranscriptKeeper
from anchord.sources.conversations.kept.salvage import salvage_kept
from anchord.sources.conversations.kept.writer import KeptTranscriptsWriter
from anchord.store.catalog.catalog import SqliteCatalog

_COUNT_KEY = "kept transcripts"
"""How many there are: nothing else knows of those whose files are gone."""


def open_kept_transcripts(
    paths: Paths, catalog: SqliteCatalog, repairs: list[str]
) -> KeptTranscriptsWriter | None:
    """Open the kept transcripts; replace a damaged file by a new one with all that is readable.

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
        kept = _open_or_salvage(paths, repairs)
    except (StoreError, OSError) as error:
        repairs.append(f"transcripts are not kept until the next start: {error}")
        return None
    if was_missing and count:
        repairs.append(
            f"the file of kept transcripts was missing: it had {count:,} of them. Those that still "
            "exist are kept again; a backup may contain the others (`anchord restore`)"
        )
    return kept


def _open_or_salvage(paths: Paths, repairs: list[str]) -> KeptTranscriptsWriter:
    file = paths.kept_transcripts_file
    try:
        _finish_salvage(paths)
        if not _damage_marker(paths).exists():
            return KeptTranscriptsWriter(file)
        reason = "a page or a piece of it could not be read"
    except StoreDamagedError as error:
        reason = error.message
    if file.exists():
        _delete_unfinished(paths)
        try:
            result = salvage_kept(file, _unfinished_file(paths))
        except StoreError:
            _delete_unfinished(paths)  # The disk may be full.
            raise
        folder = move_sqlite_aside(paths, file)
        lost = f", {result.lost:,} could not be read" if result.lost else ""
        repairs.append(
            f"the file of kept transcripts was damaged ({reason}): {result.saved:,} were saved"
            f"{lost}. Those that still exist are kept again (the damaged copy is in {folder})"
        )
    _finish_salvage(paths)
    _damage_marker(paths).unlink(missing_ok=True)
    return KeptTranscriptsWriter(file)


def _finish_salvage(paths: Paths) -> None:
    """Put a salvaged file in the place of the damaged one, which was moved away."""
    if _unfinished_file(paths).exists() and not paths.kept_transcripts_file.exists():
        _unfinished_file(paths).rename(paths.kept_transcripts_file)
        _damage_marker(paths).unlink(missing_ok=True)


def record_kept_damage(paths: Paths, error: StoreDamagedError) -> bool:
    """Make the next start salvage the file, if an error is about the kept transcripts.

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


def _delete_unfinished(paths: Paths) -> None:
    for suffix in SQLITE_SUFFIXES:
        Path(f"{_unfinished_file(paths)}{suffix}").unlink(missing_ok=True)


def _unfinished_file(paths: Paths) -> Path:
    return Path(f"{paths.kept_transcripts_file}-salvaging")
