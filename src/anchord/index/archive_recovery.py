"""Open the archive of conversations, and save what is readable if it is damaged.

An assistant may have deleted the transcripts, so this file can be the only copy of what they said.
It is never reset: a copy of the damaged file is set aside, its readable exchanges go to a new file,
and the transcript files that still exist are read again. An archive that cannot be used now
(locked, no permission, a full disk) is left as it is.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from anchord.config.paths import Paths
from anchord.core.change_detection import TRANSCRIPT_DIGEST
from anchord.core.quoting import quote_names
from anchord.core.types import RootedPath
from anchord.errors import StoreDamagedError, StoreUnavailableError
from anchord.index.kept_transcripts import record_kept_damage
from anchord.index.recovery import (
    SQLITE_SUFFIXES,
    make_damaged_folder,
    record_catalog_damage,
)
from anchord.sources.conversations.archive.page_records import find_damage_before_open
from anchord.sources.conversations.archive.salvage import SalvageResult, salvage_archive
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.store.catalog.catalog import SqliteCatalog

LOST_EXCHANGES_FILE = "lost-exchanges.txt"
"""In the folder of a damaged copy: one line for each exchange that could not be read."""
_FORGOTTEN_KEY = "forgotten exchanges"
_DETACHED_KEY = "detached exchanges"
"""How many exchanges the archive keeps that are not indexed: nothing else knows of them."""
_FOLDERS_KEY = "archive folders"
_COPY_BYTES = 4096
"""So little is lost of a copy where the disk cannot read."""

P = ParamSpec("P")
T = TypeVar("T")


def open_or_salvage_archive(
    paths: Paths, catalog: SqliteCatalog, repairs: list[str]
) -> ArchiveWriter:
    """Open the archive; if it is damaged, replace it by a new one with all that is readable.

    After an unclean shutdown the whole file is checked first: seconds for a gigabyte.

    Args:
        paths: The files and folders of this anchord.
        catalog: Its transcript files are marked to be read again after a salvage.
        repairs: A sentence is appended if the archive was damaged.

    Raises:
        StoreUnavailableError: The archive cannot be used now, or there is no space to save it.
        NewerStateError: A newer anchord wrote it.
    """
    _finish_replacement(paths)
    is_missing = not paths.archive_file.exists() or not paths.archive_file.stat().st_size
    reason = _find_damage(paths, was_clean_shutdown=catalog.get_meta("clean") == "1")
    if isinstance(reason, ArchiveWriter):
        if is_missing and _mark_for_reread(catalog):
            repairs.append(
                "the archive of conversations was missing: transcripts that still exist are read "
                "again"
            )
        if is_missing and (count := int(catalog.get_meta(_DETACHED_KEY) or 0)):
            repairs.append(
                f"the archive of conversations was missing: {count:,} exchanges that were kept and "
                "not indexed were in it. A backup may contain them (`anchord restore`)"
            )
        if is_missing:
            _restore_forgotten(reason, catalog)
        save_forgotten(reason, catalog)
        return reason
    damaged_folder = make_damaged_folder(paths)
    try:
        result = _write_salvaged(paths, damaged_folder)
    except OSError as error:
        shutil.rmtree(damaged_folder, ignore_errors=True)  # The archive itself is still in place.
        raise StoreUnavailableError(
            f"{paths.archive_file} is damaged and cannot be saved now: {error.strerror}",
            f"free space on the disk, about three times the size of {paths.archive_file.name}",
        ) from error
    except StoreUnavailableError:
        shutil.rmtree(damaged_folder, ignore_errors=True)
        raise
    _finish_replacement(paths)
    repairs.append(_describe(result, reason, damaged_folder))
    # What was saved can differ from what the index has, such as a session's title.
    _mark_for_reread(catalog, with_exchanges=True)
    with ExitStack() as undo:
        archive = ArchiveWriter(paths.archive_file)
        undo.callback(archive.close)
        _restore_forgotten(archive, catalog)
        _restore_folders(archive, catalog)
        undo.pop_all()
        return archive


def save_forgotten(archive: ArchiveWriter, catalog: SqliteCatalog) -> None:
    """Copy to the catalog what `forget` has deleted: a damaged archive may lose it.

    Without it, forgotten exchanges would return from other files that contain them.
    """
    forgotten = json.dumps(archive.deletions.all_forgotten())
    if (catalog.get_meta(_FORGOTTEN_KEY) or "[]") != forgotten:
        catalog.set_meta(_FORGOTTEN_KEY, forgotten)


def note_archive_state(archive: ArchiveWriter, catalog: SqliteCatalog) -> None:
    """Write to the catalog what would be lost unseen with the archive, or with a page of it.

    That is how many exchanges are detached, and the folders by which exchanges return to a root.
    """
    count = sum(group.exchange_count for group in archive.detached_groups())
    folders = archive.folder_records.all()
    for key, value in ((_DETACHED_KEY, count), (_FOLDERS_KEY, folders)):
        text = json.dumps(value)
        if catalog.get_meta(key) != text:
            catalog.set_meta(key, text)


def _restore_folders(archive: ArchiveWriter, catalog: SqliteCatalog) -> None:
    with archive.transaction():
        archive.folder_records.restore(json.loads(catalog.get_meta(_FOLDERS_KEY) or "[]"))


def _restore_forgotten(archive: ArchiveWriter, catalog: SqliteCatalog) -> None:
    saved = json.loads(catalog.get_meta(_FORGOTTEN_KEY) or "[]")
    archive.restore_forgotten([(asked, path, digest) for asked, path, digest in saved])


def record_archive_damage(paths: Paths, error: StoreDamagedError) -> bool:
    """Make the next start salvage the archive, if it is the archive that an error is about.

    Without this a start would only open the file, which reads few of its pages.

    Returns:
        Whether the next start will salvage it.
    """
    if str(paths.archive_file) not in error.message:
        return False
    with suppress(OSError):  # On a full disk the check after an unclean stop finds it.
        _damage_marker(paths).touch()
    return _damage_marker(paths).exists()


def record_damage(paths: Paths, error: StoreDamagedError) -> bool:
    """Make the next start mend a database, if an error is about one of ours.

    Returns:
        Whether the next start will do that.
    """
    return (
        record_archive_damage(paths, error)
        or record_catalog_damage(paths, error)
        or record_kept_damage(paths, error)
    )


def retry_after_damage(
    open_index: Callable[Concatenate[Paths, P], T],
) -> Callable[Concatenate[Paths, P], T]:
    """Let a function that opens the index do it again if it meets damage in a database.

    Opening the archive and the catalog reads few of their pages; taking over the configured roots
    reads more. The second time the archive is salvaged, or the catalog rebuilt.
    """

    @functools.wraps(open_index)
    def open_or_retry(paths: Paths, /, *args: P.args, **named: P.kwargs) -> T:
        try:
            return open_index(paths, *args, **named)
        except StoreDamagedError as error:
            if not record_damage(paths, error):
                raise
        return open_index(paths, *args, **named)

    return open_or_retry


def _find_damage(paths: Paths, *, was_clean_shutdown: bool) -> ArchiveWriter | str:
    """Return the opened archive, or why it counts as damaged."""
    if _damage_marker(paths).exists():
        return "a page could not be read"
    if damage := find_damage_before_open(paths.archive_file):
        return damage
    with ExitStack() as undo:
        try:
            archive = ArchiveWriter(paths.archive_file)
        except StoreDamagedError as error:
            return error.message
        undo.callback(archive.close)
        if was_clean_shutdown or archive.is_intact():
            undo.pop_all()
            return archive
        return "pages of it are damaged"


def _write_salvaged(paths: Paths, damaged_folder: Path) -> SalvageResult:
    """Copy the archive aside and write what is readable of it to a complete new file."""
    (damaged_folder / paths.archive_file.name).touch()  # It may be missing beside its WAL.
    for suffix in SQLITE_SUFFIXES:
        file = Path(f"{paths.archive_file}{suffix}")
        if file.exists():
            _copy_readable(file, damaged_folder / file.name)
    unfinished = Path(f"{paths.archive_file}-salvaging")
    for suffix in (*SQLITE_SUFFIXES, "-journal"):
        Path(f"{unfinished}{suffix}").unlink(missing_ok=True)
    result = salvage_archive(damaged_folder / paths.archive_file.name, unfinished)
    if result.lost:
        lines = [f"{origin.root}{origin.path}\n" for origin in result.lost]
        (damaged_folder / LOST_EXCHANGES_FILE).write_text("".join(lines), "utf-8", "replace")
    # From here on the new file takes over, now or at the next start.
    unfinished.rename(_salvaged_file(paths))
    return result


def _finish_replacement(paths: Paths) -> None:
    """Put a complete salvaged file in the archive's place. Can be repeated after a crash."""
    salvaged = _salvaged_file(paths)
    if salvaged.exists():
        # The old journals first: SQLite would apply them to the new file.
        for suffix in SQLITE_SUFFIXES[1:]:
            Path(f"{paths.archive_file}{suffix}").unlink(missing_ok=True)
        salvaged.replace(paths.archive_file)
        _damage_marker(paths).unlink(missing_ok=True)


def _copy_readable(source: Path, target: Path) -> None:
    """Copy a file; what the disk cannot read becomes zeros."""
    with source.open("rb") as reader, target.open("wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        for offset in range(0, size, _COPY_BYTES):
            wanted = min(_COPY_BYTES, size - offset)
            try:
                data = os.pread(reader.fileno(), wanted, offset)
            except OSError:
                data = b""
            writer.write(data.ljust(wanted, b"\0"))
        writer.flush()
        os.fsync(writer.fileno())


def _describe(result: SalvageResult, reason: str, damaged_folder: Path) -> str:
    saved, lost = result.saved_count, len(result.lost)
    counts = f"of {saved + lost:,} exchanges {saved:,} were saved"
    if lost:
        names = quote_names(f"{each.root}{each.path}" for each in result.lost)
        counts += f"; {lost:,} could not be read: {names}"
    return (
        f"the archive of conversations was damaged ({reason}): {counts}. Transcripts that still "
        f"exist are read again (the damaged copy is in {damaged_folder})"
    )


def _mark_for_reread(catalog: SqliteCatalog, *, with_exchanges: bool = False) -> int:
    """Make the next walk read all transcript files again, and all exchanges; return how many."""
    count = 0
    for root in catalog.root_names():
        marked = [
            RootedPath(root, path)
            for path, record in catalog.list_records(root, "").items()
            if record.content_digest == TRANSCRIPT_DIGEST
            or (with_exchanges and is_exchange_path(path))
        ]
        catalog.mark_for_reread(marked)
        count += len(marked)
    return count


def _salvaged_file(paths: Paths) -> Path:
    return Path(f"{paths.archive_file}-salvaged")


def _damage_marker(paths: Paths) -> Path:
    return Path(f"{paths.archive_file}-damaged")
