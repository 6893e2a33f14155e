"""Writes the table to files that other programs read: Parquet and JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
from pyarrow import parquet

from anchord.core.quoting import escape_json
from anchord.core.types import ChunkLocation
from anchord.store.table.schema import ArrowBatch
from anchord.store.table.table import LanceStore

LocationLookup = Callable[[Sequence[str]], Mapping[str, ChunkLocation]]
_OMITTED_COLUMNS = ("metadata", "checksum", "search_text")
"""Columns that only the table itself, or other readers of it, need."""


def export_parquet(
    store: LanceStore, locations_of: LocationLookup, output: BinaryIO, *, include_vectors: bool
) -> Iterator[int]:
    """Write every row, with its line numbers, as Parquet. Nothing is written until it is iterated.

    Args:
        store: The table.
        locations_of: Chunk ids -> their places in their files; rows of other ids get no lines.
        output: The file to write to; it stays open.
        include_vectors: Whether to write the vectors.

    Yields:
        How many rows are written so far, after each batch.

    Raises:
        StoreError: The table cannot be read.
    """
    writer: Any = None
    written = 0
    try:
        for batch in _batches(store, locations_of, include_vectors=include_vectors):
            writer = writer or parquet.ParquetWriter(output, batch.schema)
            writer.write_batch(batch)
            written += batch.num_rows
            yield written
    finally:
        if writer:
            writer.close()


def export_jsonl(
    store: LanceStore, locations_of: LocationLookup, output: BinaryIO, *, include_vectors: bool
) -> Iterator[int]:
    """Write every row as one JSON object a line; otherwise as `export_parquet`."""
    written = 0
    for batch in _batches(store, locations_of, include_vectors=include_vectors):
        output.writelines(_json_line(row) for row in batch.to_pylist())
        written += batch.num_rows
        yield written


def _json_line(row: dict[str, Any]) -> bytes:
    line = escape_json(msgspec.json.encode(row).decode())
    return f"{line}\n".encode()


def _batches(
    store: LanceStore, locations_of: LocationLookup, *, include_vectors: bool
) -> Iterator[ArrowBatch]:
    """Yield all rows with their lines.

    An empty table yields one batch without rows, so that its file has columns and can be read.
    """
    omitted = _OMITTED_COLUMNS if include_vectors else (*_OMITTED_COLUMNS, "vector")
    columns = [name for name in store.columns if name not in omitted]
    for batch in store.scan(columns):
        chunk_ids = batch["id"].to_pylist()
        locations = locations_of(chunk_ids)
        first_lines = []
        last_lines = []
        for chunk_id in chunk_ids:
            location = locations.get(chunk_id)
            first_lines.append(location.start_line if location else None)
            last_lines.append(location.end_line if location else None)
        with_first = batch.append_column("start_line", pa.array(first_lines, pa.int32()))
        yield with_first.append_column("end_line", pa.array(last_lines, pa.int32()))
