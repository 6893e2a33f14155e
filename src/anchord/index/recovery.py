"""Open what a crash, a power loss or a failing disk may have damaged.

Nothing is deleted: a damaged file moves to a new folder below `data/damaged/`, and each repair is
reported. Then the file is rebuilt from what is intact: the table from the user's files and the
vector cache, the catalog from the user's files and the table's vectors. `archive_recovery` does the
same for the archive. A file that cannot be used now, because it is locked or the disk is full, is
not moved.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from anchord.config.cli_state import CliState, is_cli_state_whole, load_cli_state, save_cli_state
from anchord.config.paths import Paths
from anchord.core.ports import no_heartbeat
from anchord.errors import (
    DimensionMismatchError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)
from anchord.index.profile import IndexProfile
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.damage import repair_table
from anchord.store.table.pinned_files import unpin_table
from anchord.store.table.table import TABLE_FOLDER, TABLE_NAME, LanceStore

SQLITE_SUFFIXES = ("", "-wal", "-shm")
"""A database and the files that belong to it."""


def open_or_reset_cli_state(paths: Paths, repairs: list[str]) -> CliState:
    """Read the state that commands saved, from its copy if it is damaged.

    If both are damaged, the file is moved aside and the state is empty.

    Args:
        paths: The files and folders of this anchord.
        repairs: A sentence is appended if something was damaged.
    """
    file = paths.cli_state_file
    try:
        return load_cli_state(file)
    except StoreDamagedError:
        damaged_folder = make_damaged_folder(paths)
        shutil.move(file, damaged_folder / file.name)
        repairs.append(
            "the list of folders added by commands and of forgotten files was damaged and is lost: "
            f"add and forget them again (the damaged file is in {damaged_folder})"
        )
        return CliState()


def repair_cli_state(paths: Paths, cli_state: CliState) -> None:
    """Write the state and its copy again if they differ or one is missing.

    Call it once everything is open: an index of a newer version is refused unchanged.
    """
    if not is_cli_state_whole(paths.cli_state_file):
        with suppress(OSError):  # On a full disk the next start tries it again.
            save_cli_state(paths.cli_state_file, cli_state)


def open_or_reset_catalog(paths: Paths, repairs: list[str]) -> SqliteCatalog:
    """Open the catalog; move it aside and start an empty one if it is damaged.

    After an unclean shutdown the whole file is checked, which takes a second for 100,000 files.

    Args:
        paths: The files and folders of this anchord.
        repairs: A sentence is appended if something was damaged.
    """
    if _catalog_damage_marker(paths).exists():
        if not paths.promotion_marker.exists():
            delete_next_catalog(paths)  # It can be a copy of the damaged one.
        return _reset_catalog(paths, repairs, "a page could not be read")
    try:
        catalog = SqliteCatalog(paths.catalog_file)
    except StoreDamagedError as error:
        return _reset_catalog(paths, repairs, error.message)
    if _was_closed_cleanly(catalog) or catalog.is_intact():
        return catalog
    catalog.close()
    return _reset_catalog(paths, repairs, "pages of it are damaged")


def record_catalog_damage(paths: Paths, error: StoreDamagedError) -> bool:
    """Make the next start rebuild the catalog, if it is the catalog that an error is about.

    Without this a start could find it sound: its check compares no index with its table.

    Returns:
        Whether the next start will rebuild it.
    """
    catalogs = (paths.catalog_file, paths.next_catalog_file)
    if not any(str(file) in error.message for file in catalogs):
        return False
    with suppress(OSError):  # A full disk: the next process meets the damage again.
        _catalog_damage_marker(paths).touch()
    return _catalog_damage_marker(paths).exists()


def _catalog_damage_marker(paths: Paths) -> Path:
    return Path(f"{paths.catalog_file}-damaged")


def _was_closed_cleanly(catalog: SqliteCatalog) -> bool:
    try:
        return catalog.get_meta("clean") == "1"
    except StoreDamagedError:
        return False


def open_or_recover_table(
    paths: Paths, uri: str, profile: IndexProfile, repairs: list[str], *, was_clean_shutdown: bool
) -> LanceStore:
    """Open the table; repair a damaged one, or start an empty one.

    Also deletes what a killed writer or backup left. Only for the holder of the writer lock.

    Args:
        paths: The files and folders of this anchord.
        uri: The table's location.
        profile: What the rows are made with.
        repairs: A sentence is appended for each repair.
        was_clean_shutdown: False makes this read the id of every row and the search indices, to
            detect damage.

    Raises:
        StoreUnavailableError: It cannot be used now: no permission, a full disk, and the like.
        StoreError: The table is remote or cannot be read, and cannot be repaired.
    """
    folder = Path(uri)
    if folder.is_dir():
        unpin_table(folder)
        deleted_count = table_maintenance.delete_temporary_files(folder)
        if deleted_count:
            repairs.append(f"deleted {deleted_count} temporary files of a writer that was killed")
    try:
        return _open_readable_table(
            uri,
            profile,
            was_clean_shutdown=was_clean_shutdown,
        )
    except (StoreDamagedError, DimensionMismatchError) as error:
        if not folder.is_dir():
            raise
        repairs.append(_repair_table(paths, folder, error))
        return _open_readable_table(uri, profile, was_clean_shutdown=True)


def begin_promotion(paths: Paths, catalog: SqliteCatalog) -> None:
    """Overwrite the catalog with that of a finished generation, and mark that its table follows.

    From here on `finish_promotion` must run, now or at the next start.

    Raises:
        StoreError: The disk is full. Nothing has changed.
    """
    paths.promotion_marker.touch()
    try:
        catalog.overwrite_from(paths.next_catalog_file)
    except StoreError:
        paths.promotion_marker.unlink()
        raise


def finish_promotion(paths: Paths, uri: str, repairs: list[str]) -> None:
    """Replace the current table with that of a finished generation, and delete the former one.

    Does nothing without the marker of `begin_promotion`. Can be repeated after a crash at any step.

    Args:
        paths: The files and folders of this anchord.
        uri: The folder of the tables.
        repairs: A sentence is appended if something was damaged.
    """
    if not paths.promotion_marker.exists():
        return
    if paths.next_catalog_file.exists():
        with open_or_reset_catalog(paths, repairs) as catalog:
            try:
                catalog.overwrite_from(paths.next_catalog_file)
            except StoreDamagedError as error:
                repairs.append(
                    "the file catalog of a new index was damaged: the former one is kept and "
                    f"brought up to date ({error.message})"
                )
        delete_next_catalog(paths)
    table_maintenance.promote_next_table(Path(uri))
    paths.promotion_marker.unlink()


def delete_next_catalog(paths: Paths) -> None:
    """Delete the catalog of an unfinished or promoted generation, if there is one."""
    for suffix in SQLITE_SUFFIXES:
        Path(f"{paths.next_catalog_file}{suffix}").unlink(missing_ok=True)


def _open_readable_table(
    uri: str, profile: IndexProfile, *, was_clean_shutdown: bool
) -> LanceStore:
    store = LanceStore(
        uri,
        profile.dimensions,
        profile.embedder.model_id,
        table_name=TABLE_NAME,
    )
    if not was_clean_shutdown:
        with _as_error(StoreDamagedError):
            store.all_ids()
        with _as_error(_IndexDamagedError):
            store.read_indices()
    return store


class _IndexDamagedError(StoreDamagedError):
    """The rows are intact, but a search index is not."""


@contextmanager
def _as_error(kind: type[StoreDamagedError]) -> Iterator[None]:
    """Raise another error where the table cannot be read, unless it is only unavailable now."""
    try:
        yield
    except StoreUnavailableError:
        raise
    except StoreError as error:
        raise kind(error.message, error.hint) from error


def _repair_table(
    paths: Paths, folder: Path, error: StoreDamagedError | DimensionMismatchError
) -> str:
    """Drop what cannot be read, or move the table aside where no version opens; say which."""
    damaged_folder = make_damaged_folder(paths)
    if isinstance(error, StoreDamagedError):
        repair = repair_table(
            folder / TABLE_FOLDER,
            (),
            damaged_folder,
            no_heartbeat,
            rebuild_indices=isinstance(error, _IndexDamagedError),
        )
        if repair.is_readable and repair.repairs:
            return "; ".join(repair.repairs)
    table_maintenance.move_table_aside(folder, damaged_folder)
    return (
        f"the table is rebuilt from the files: {error.message} "
        f"(the former table is in {damaged_folder})"
    )


def _reset_catalog(paths: Paths, repairs: list[str], reason: str) -> SqliteCatalog:
    damaged_folder = move_sqlite_aside(paths, paths.catalog_file)
    _catalog_damage_marker(paths).unlink(missing_ok=True)
    repairs.append(
        f"the file catalog was damaged and is rebuilt from the files: {reason} "
        f"(the damaged copy is in {damaged_folder})"
    )
    return SqliteCatalog(paths.catalog_file)


def move_sqlite_aside(paths: Paths, database_file: Path) -> Path:
    """Move a database with its journals to a new folder, and return that folder."""
    damaged_folder = make_damaged_folder(paths)
    for suffix in SQLITE_SUFFIXES:
        file = Path(f"{database_file}{suffix}")
        if file.exists():
            shutil.move(file, damaged_folder / file.name)
    return damaged_folder


def make_damaged_folder(paths: Paths) -> Path:
    """Create a new folder for damaged files, and return it."""
    now = datetime.now(UTC)
    folder = paths.damaged_folder / f"{now:%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
