"""Repair the table of an opened index, and compare it with the catalog."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from anchord.core.types import RootedPath
from anchord.index.session import IndexWriter
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.connection import TableReadError
from anchord.store.table.damage import repair_table, salvage_vectors
from anchord.store.table.table import TABLE_NAME
from anchord.store.table.uri import is_local

T = TypeVar("T")


def repair_index_table(
    writer: IndexWriter, altered_files: Collection[str], *, rebuild_indices: bool = False
) -> list[str]:
    """Read the whole table; drop or rebuild what is lost or damaged, and open it again. Blocks.

    Afterwards rows may be missing: call `audit_index` and index the files that it returns. It
    reads about 100,000 chunks (300 MB) a second. Does nothing for a remote table.

    Args:
        writer: The index.
        altered_files: Files of the table that are known to be missing or changed, relative to its
            folder.
        rebuild_indices: Build the search indices again, whatever state they are in.

    Returns:
        A sentence for each thing that was damaged.

    Raises:
        StoreError: The table cannot be repaired.
    """
    if not is_local(writer.store.dataset_uri):
        return []
    table = Path(writer.store.dataset_uri)
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    damaged_folder = writer.paths.damaged_folder / moment
    repair = repair_table(
        table,
        altered_files,
        damaged_folder,
        writer.heartbeat.beat,
        rebuild_indices=rebuild_indices,
    )
    repairs = list(repair.repairs)
    if not repair.is_readable:
        table_maintenance.move_table_aside(table.parent, damaged_folder)
        repairs.append("no version of the table could be read: it is rebuilt from the files")
    writer.store.refresh(clear_cache=True)
    if repair.corrupt_ids:
        located = writer.catalog.locate_chunks(repair.corrupt_ids)
        files = list(dict.fromkeys(location.origin for location in located.values()))
        writer.indexer.delete_damaged_rows((), files, repair.corrupt_ids)
        repairs.append(f"{len(repair.corrupt_ids)} chunks had changed on disk: written again")
    return repairs


def retry_after_repair(writer: IndexWriter, job: Callable[[], T]) -> T:
    """Run a function; if the table's rows cannot be read, repair the table and run it again.

    Nobody knows which file is damaged, so the search indices are built again too. What was repaired
    is added to `writer.repairs`.

    Args:
        writer: The index.
        job: What reads the table. It may be run twice.

    Returns:
        What the function returns.

    Raises:
        StoreError: The table cannot be repaired. Besides, whatever the function raises.
    """
    try:
        return job()
    except TableReadError:
        writer.repairs += repair_index_table(
            writer,
            (),
            rebuild_indices=True,
        )
        for _ in writer.indexer.index(audit_index(writer)):
            pass  # Indexing is lazy: each step commits a batch.
    return job()


def retry_at_start(writer: IndexWriter, job: Callable[[], T]) -> T:
    """Do the same while an index is opened: nothing is indexed yet.

    Rows of any file may be missing afterwards: the table is compared with the catalog before
    anything is called up to date.
    """
    try:
        return job()
    except TableReadError:
        writer.repairs += repair_index_table(
            writer,
            (),
            rebuild_indices=True,
        )
        writer.was_clean_shutdown = False
    return job()


def audit_index(writer: IndexWriter) -> Sequence[RootedPath]:
    """Compare the ids and hashes of all rows with the catalog; delete stray rows.

    If rows or vectors are missing, the vectors are looked for in the table's files that no row
    refers to any more, and go to the vector cache: texts that were embedded are not embedded again.

    Returns:
        The files to index again; they are marked in the catalog.

    Raises:
        StoreError: The table or the catalog cannot be read or changed.
    """
    files = writer.indexer.delete_stray_rows()
    is_incomplete = bool(files or writer.store.count_due())
    if is_incomplete and is_local(writer.store.dataset_uri):
        _salvage_vectors(writer)
    return files


def _salvage_vectors(writer: IndexWriter) -> None:
    """Put the vectors of rows that the table lacks into the vector cache, if a file has them."""
    known_keys: set[str] = set()
    for batch in writer.store.scan(["vector_key"]):
        known_keys.update(batch["vector_key"].to_pylist())
    moved_aside = writer.paths.damaged_folder.glob(f"*/{TABLE_NAME}.lance/data")
    found = salvage_vectors(
        Path(writer.store.dataset_uri), list(moved_aside), lambda key: key not in known_keys
    )
    for vectors in found:
        writer.heartbeat.beat()
        writer.vector_cache.put(vectors, time.time_ns())
        known_keys.update(vectors)
