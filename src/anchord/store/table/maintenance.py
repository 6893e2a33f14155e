"""The life of a table on disk: compaction, clones, replacement, recovery, erasing deleted text.

Facts this relies on (measured, lance 13):
- Every commit adds a fragment and a manifest, and everything slows down with their number.
  Compaction goes through pylance, because `table.optimize()` rewrites the whole table each time.
- Lance never changes a file once it is written, so a clone can share files by hard links. A table's
  folder can be renamed: a reader's handle then reads what has taken its place.
- Lance does not flush a local commit to the disk. After a power loss the newest manifest can be
  empty; once it is moved away, the version before it opens. Deleting old versions of a damaged
  table would delete the sound ones, so the newest version is read whole and flushed first.
- Deleted rows stay in data files, and their words in the full-text index, until both are rewritten.

The writer runs these functions, between two commits. Only local tables can be cloned, replaced and
recovered.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lancedb

from anchord.errors import StoreError
from anchord.store.table.compaction import (
    TARGET_FRAGMENT_ROWS,
    CompactionRequest,
    PylanceDataset,
    compact_table,
    update_vector_index,
)
from anchord.store.table.connection import TableReadError
from anchord.store.table.event_loop import run_sync
from anchord.store.table.lance_errors import (
    LANCE_ERRORS,
    describe,
    first_line,
    panics_as_errors,
    raise_if_unavailable,
)
from anchord.store.table.schema import create_or_replace_indices
from anchord.store.table.table import NEXT_TABLE_NAME, TABLE_NAME, LanceStore
from anchord.store.table.version_files import delete_damaged_versions

COMPACT_AFTER_COMMITS = 48
"""Compact after this many commits even while there is more to write.

Compaction takes 0.25 s: spread over the commits, a commit costs least at 45 to 100 commits,
whatever the size of the table. But each search reads every fragment that they left, which takes 3
ms more at 48 fragments and 8 ms more at 64.
"""

MANY_UNINDEXED_ROWS = 200
"""A search by words reads each row that no index covers: 2,000 take 28 ms in place of 3."""
MANY_DELETED_ROWS = 10_000
"""A search by meaning looks up each row that was deleted and is in the files still: with 90,000 of
them beside 98,000 others it takes 26 ms of CPU in place of 5, until they are rewritten."""
_MANY_OF = 4
"""So many have to be this part of the others, too: compaction rewrites both."""
_MIN_VERSION_AGE = timedelta(minutes=10)
_MANY_VERSIONS = 100
_KEPT_OF_MANY = timedelta(seconds=5)
"""The minimum age of a version that is deleted when there are 100 or more.

Every commit lists all versions, and each version all fragments and index parts: in a long rush of
saves they would slow commits down and take more room than the rows. A reader whose version was
deleted opens the newest; after a power loss the newest is whole.
"""
_FEW_FRAGMENTS = 8
"""Besides the full ones."""
_AFTER_REPAIR = "`anchord index` repairs the table, and ends what `forget` began"
_FORMER_TABLE_NAME = "former"
_VERSION_HINT = "latest_version_hint.json"


def slows_searches(store: LanceStore) -> bool:
    """Return whether so much is uncompacted that each search takes milliseconds more.

    Raises:
        StoreError: The table cannot be read.
    """
    return store.count_unindexed_rows() >= MANY_UNINDEXED_ROWS or has_many_deleted_rows(store)


def has_many_deleted_rows(store: LanceStore) -> bool:
    """Return whether a large part of the rows in the table's files are deleted ones.

    Raises:
        StoreError: The table cannot be read.
    """
    stats = store.stats()
    return max(MANY_DELETED_ROWS, stats.rows // _MANY_OF) <= stats.deleted_rows


def is_scattered(store: LanceStore) -> bool:
    """Return whether the rows are in so many fragments that merging them all makes searches faster.

    With 98,000 rows in 11 fragments, a search by meaning and words takes a fifth more CPU than with
    one; merging them takes three seconds.

    Raises:
        StoreError: The table cannot be read.
    """
    stats = store.stats()
    return stats.fragments > _FEW_FRAGMENTS + stats.rows // TARGET_FRAGMENT_ROWS


def maintain(
    store: LanceStore,
    *,
    merge_indices: bool = False,
    merge_all: bool = False,
    drop_old_versions: bool = True,
    compact: Callable[[CompactionRequest], list[str]] = compact_table,
) -> list[str]:
    """Merge small fragments, update the indices, delete old versions, refresh the store. Blocks.

    A step that fails does not stop the others; but no version is deleted if the newest cannot be
    read.

    Args:
        store: The table, opened by the writer.
        merge_indices: Merge the newest parts of the indices into one. Without it each call leaves
            the indices with one part more.
        merge_all: Merge all their parts, and all fragments too.
        drop_old_versions: Delete versions older than ten minutes. Without it only a table with 100
            or more versions loses those older than five seconds: looking for versions to delete
            takes a third of a compaction.
        compact: Runs the compaction: in this process, or a `CompactionWorker`.

    Returns:
        A message for each step that failed.

    Raises:
        StoreError: The table cannot be opened again afterwards.
    """
    try:
        version_count = store.stats().versions
    except (StoreError, *LANCE_ERRORS) as error:
        return [f"the table cannot be read: {describe(str(store.dataset_uri), error)}"]
    min_age = _min_age_to_delete(version_count, drop_old_versions=drop_old_versions)
    request = CompactionRequest(
        dataset=store.dataset_uri,
        merge=merge_indices,
        merge_all=merge_all,
        kept_s=None if min_age is None else min_age.total_seconds(),
    )
    problems = compact(request)
    # After a merge the caches hold index parts that no longer exist.
    store.refresh(clear_cache=merge_indices)
    return problems


def _min_age_to_delete(version_count: int, *, drop_old_versions: bool) -> timedelta | None:
    """Return from which age on versions are deleted; None deletes none."""
    if version_count >= _MANY_VERSIONS:
        return _KEPT_OF_MANY
    return _MIN_VERSION_AGE if drop_old_versions else None


def erase_deleted_rows(store: LanceStore) -> int:
    """Remove deleted rows from the disk: rewrite their files and indices, delete old versions.

    Blocks for as long as rewriting the table takes. On success no file from before is left, except
    data files whose every row is still in use.

    Returns:
        How many files were deleted.

    Raises:
        StoreUnavailableError: The disk is full, and the like.
        TableReadError: A file of the table is damaged.
        StoreError: A file that may hold deleted text is still there. No row is lost.
    """
    import lance  # noqa: PLC0415 - 0.4 s and 80 MB, and rarely needed

    if len(store.all_ids()) != store.count_rows():
        raise TableReadError("the table cannot be read as a whole", _AFTER_REPAIR)
    table = Path(store.dataset_uri)
    files_before = _files(table)
    try:
        dataset = lance.dataset(store.dataset_uri)
        files_in_use = _files_without_deletions(dataset, table)
        dataset.optimize.compact_files(
            target_rows_per_fragment=TARGET_FRAGMENT_ROWS,
            materialize_deletions=True,
            materialize_deletions_threshold=0.0,
        )
        run_sync(rebuild_indices(table))
        update_vector_index(lance.dataset(store.dataset_uri), rebuild=True)
        delete_damaged_versions(table)
        lance.dataset(store.dataset_uri).cleanup_old_versions(
            older_than=timedelta(0), delete_unverified=True
        )
    except LANCE_ERRORS as error:
        raise_if_unavailable(f"the table in {table}", error)
        raise TableReadError(
            f"the index could not be rewritten without the deleted texts: {first_line(error)}",
            _AFTER_REPAIR,
        ) from error
    store.refresh()
    files_after = _files(table)
    remaining = (files_before & files_after) - files_in_use
    if remaining:
        raise StoreError(
            f"{len(remaining)} files that may hold deleted text are still there",
            "try again when no other program reads the table",
        )
    return len(files_before - files_after)


def _files_without_deletions(dataset: PylanceDataset, table: Path) -> set[Path]:
    """Return the data files of fragments without a deleted row; compaction may keep them."""
    files: set[Path] = set()
    for fragment in dataset.get_fragments():
        if not fragment.num_deletions:
            files.update(table / "data" / file.path for file in fragment.data_files())
    return files


async def rebuild_indices(table: Path) -> None:
    """Build the scalar and full-text indices of the table in a folder again, from its rows."""
    database = await lancedb.connect_async(str(table.parent))
    await create_or_replace_indices(await database.open_table(table.stem))


def delete_temporary_files(folder: Path) -> int:
    """Delete what a killed writer left half written in anchord's tables; needs the writer lock.

    Other files of the folder stay: with `[store] uri` it can be one that the user has chosen.

    Returns:
        How many files were deleted.

    Raises:
        OSError: A file cannot be deleted.
    """
    tables = (TABLE_NAME, NEXT_TABLE_NAME, _FORMER_TABLE_NAME)
    deleted = 0
    for table in tables:
        for inside, _, names in os.walk(_table_folder(folder, table)):
            for name in names:
                if name.startswith(".tmp") or name.endswith(".tmp"):
                    Path(inside, name).unlink(missing_ok=True)
                    deleted += 1
    return deleted


def move_table_aside(folder: Path, destination: Path, table_name: str = TABLE_NAME) -> None:
    """Move a table into another folder, created if needed; nothing happens if there is no table."""
    table = _table_folder(folder, table_name)
    if table.exists():
        destination.mkdir(parents=True, exist_ok=True)
        shutil.move(table, destination / table.name)


def clone_to_next_table(folder: Path) -> bool:
    """Create the next table as a copy of the present one that shares its files by hard links.

    An earlier next table is deleted first.

    Args:
        folder: The folder that holds both tables.

    Returns:
        Whether there is a clone: False without a present table, or on a file system without hard
        links.
    """
    present = _table_folder(folder, TABLE_NAME)
    delete_next_table(folder)
    if not present.is_dir():
        return False
    try:
        shutil.copytree(
            present,
            _table_folder(folder, NEXT_TABLE_NAME),
            copy_function=os.link,
        )
    except (OSError, shutil.Error):
        delete_next_table(folder)
        return False
    return True


def delete_next_table(folder: Path) -> None:
    """Delete the next table, if there is one. Never raises."""
    shutil.rmtree(_table_folder(folder, NEXT_TABLE_NAME), ignore_errors=True)


def promote_next_table(folder: Path) -> None:
    """Replace the present table with the next one, and delete the present one.

    After a crash at any step, calling it again completes it. Without a next table only the remains
    of an earlier call are deleted.

    Raises:
        OSError: A folder cannot be renamed.
    """
    present = _table_folder(folder, TABLE_NAME)
    following = _table_folder(folder, NEXT_TABLE_NAME)
    former = _table_folder(folder, _FORMER_TABLE_NAME)
    if following.is_dir():
        if present.is_dir():
            shutil.rmtree(former, ignore_errors=True)
            present.rename(former)
        # Invariant: the present table, if there was one, is at `former`, and its name is free.
        following.rename(present)
    shutil.rmtree(former, ignore_errors=True)


def _table_folder(folder: Path, table_name: str) -> Path:
    return folder / f"{table_name}.lance"


def _files(table: Path) -> set[Path]:
    """Return the files of a table, but for the version hint, which has one name in all versions."""
    return {path for path in table.rglob("*") if path.is_file() and path.name != _VERSION_HINT}


def can_be_read(folder: Path, table_name: str) -> bool:
    """Whether a table opens and the id of every row can be read."""
    try:
        with panics_as_errors():
            table = lancedb.connect(str(folder)).open_table(table_name)
            table.search().select(["id"]).limit(None).to_arrow()
    except LANCE_ERRORS:
        return False
    return True
