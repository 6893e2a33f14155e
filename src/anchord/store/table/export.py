"""Writes the records of all chunks to files that other programs read: Parquet and JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, cast

import msgspec
import pyarrow as pa
from msgspec import inspect
from pyarrow import parquet

from anchord.core.quoting import escape_json
from anchord.core.types import Row
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.store.table.arrow_vectors import ArrowBatch, own_vectors
from anchord.store.table.schema import ROW_COLUMNS, row_from_columns
from anchord.store.table.table import LanceStore

DescribeRows = Callable[[Sequence[Row]], Sequence[ChunkAnswer]]
_ARROW_TYPES: dict[type[inspect.Type], Any] = {
    inspect.StrType: pa.string(),
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.BoolType: pa.bool_(),
    inspect.VarTupleType: pa.list_(pa.string()),
}


def export_parquet(
    store: LanceStore, describe: DescribeRows, output: BinaryIO, *, include_vectors: bool
) -> Iterator[int]:
    """Write the record of every row as Parquet. Nothing is written until it is iterated.

    Args:
        store: The table.
        describe: Returns the records of rows, in their order.
        output: The file to write to; it stays open.
        include_vectors: Whether to write the vectors; null for a row that lacks its own.

    Yields:
        How many rows are written so far, after each batch.

    Raises:
        StoreError: The table cannot be read.
    """
    schema = _record_schema()
    writer: Any = None
    written = 0
    try:
        for batch in _scan(store, include_vectors=include_vectors):
            records = [record.as_json() for record in _records(batch, describe)]
            described = pa.RecordBatch.from_pylist(records, schema)
            if include_vectors:
                described = described.append_column("vector", own_vectors(batch))
            writer = writer or parquet.ParquetWriter(output, described.schema)
            writer.write_batch(described)
            written += batch.num_rows
            yield written
    finally:
        if writer:
            writer.close()


def export_jsonl(
    store: LanceStore, describe: DescribeRows, output: BinaryIO, *, include_vectors: bool
) -> Iterator[int]:
    """Write the record of every row as one JSON object a line; otherwise as `export_parquet`."""
    written = 0
    for batch in _scan(store, include_vectors=include_vectors):
        records = _records(batch, describe)
        if include_vectors:
            vectors = own_vectors(batch).to_pylist()
            pairs = zip(records, vectors, strict=True)
            output.writelines(_json_line(each.as_json() | {"vector": v}) for each, v in pairs)
        else:
            output.writelines(map(_json_line, records))
        written += batch.num_rows
        yield written


def _json_line(record: object) -> bytes:
    line = escape_json(msgspec.json.encode(record).decode())
    return f"{line}\n".encode()


def _scan(store: LanceStore, *, include_vectors: bool) -> Iterator[ArrowBatch]:
    """Yield all rows, with the columns that a record is made of.

    An empty table yields one batch without rows, so that its file has columns and can be read.
    """
    wanted = {*ROW_COLUMNS, *store.vector_columns} if include_vectors else set(ROW_COLUMNS)
    wanted.discard("search_text")
    return store.scan([name for name in store.columns if name in wanted])


def _records(batch: ArrowBatch, describe: DescribeRows) -> Sequence[ChunkAnswer]:
    columns = [name for name in batch.schema.names if name in ROW_COLUMNS]
    return describe([row_from_columns(row) for row in batch.select(columns).to_pylist()])


def _record_schema() -> pa.Schema:
    """Return the columns of the record, so that also an empty file has all of them."""
    record = cast("inspect.StructType", inspect.type_info(ChunkAnswer))
    return pa.schema([(field.encode_name, _arrow_type(field.type)) for field in record.fields])


def _arrow_type(kind: inspect.Type) -> Any:  # noqa: ANN401 - pyarrow ships no types
    if isinstance(kind, inspect.UnionType):
        (kind,) = (each for each in kind.types if not isinstance(each, inspect.NoneType))
    return _ARROW_TYPES[type(kind)]
