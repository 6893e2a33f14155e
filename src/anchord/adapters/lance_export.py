"""The table -> files that other programs read: Parquet, and JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
from pyarrow import parquet

from anchord.adapters.lance import LanceStore
from anchord.model import Spot

SpotsOf = Callable[[Sequence[str]], Mapping[str, Spot]]
_LEFT_OUT = ("metadata", "checksum", "search_text")
"""What is there for other readers of the table, or for the table itself."""


def export_parquet(store: LanceStore, spots_of: SpotsOf, into: BinaryIO, *, vectors: bool) -> Iterator[int]:
    """Write every row with its lines; yield how many are written so far."""
    writer: Any = None
    done = 0
    try:
        for batch in _batches(store, spots_of, vectors=vectors):
            writer = writer or parquet.ParquetWriter(into, batch.schema)
            writer.write_batch(batch)
            done += batch.num_rows
            yield done
    finally:
        if writer:
            writer.close()


def export_jsonl(store: LanceStore, spots_of: SpotsOf, into: BinaryIO, *, vectors: bool) -> Iterator[int]:
    """Do so as one JSON object a line."""
    done = 0
    for batch in _batches(store, spots_of, vectors=vectors):
        into.write(b"".join(msgspec.json.encode(row) + b"\n" for row in batch.to_pylist()))
        done += batch.num_rows
        yield done


def _batches(store: LanceStore, spots_of: SpotsOf, *, vectors: bool) -> Iterator[Any]:
    """Yield all rows; the columns of one without rows too, so that an empty index gives a file that can be read."""
    left_out = _LEFT_OUT if vectors else (*_LEFT_OUT, "vector")
    columns = [name for name in store.columns if name not in left_out]
    for batch in store.batches(columns):
        spots = spots_of(batch["id"].to_pylist())
        for name in ("start_line", "end_line"):
            lines = [getattr(spots[chunk], name) if chunk in spots else None for chunk in batch["id"].to_pylist()]
            batch = batch.append_column(name, pa.array(lines, pa.int32()))  # noqa: PLW2901 - a batch is never changed in place
        yield batch
