"""The columns and the indices of the table of chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from lancedb.index import FTS, Bitmap, BTree

from anchord.core.diff import row_hash
from anchord.core.identity import row_checksum
from anchord.model import Row, Vector, printable

SCHEMA = 3
TEXT_COLUMNS = (
    "id", "doc_id", "path", "root", "kind", "room", "content_hash", "vector_key", "header_path", "text", "search_text",
    "source", "session", "exchange_id", "at", "until", "project", "model", "tools", "files", "branch",
)  # fmt: skip
NUMBER_COLUMNS = ("part_index", "total_parts")
ROW_COLUMNS = (*TEXT_COLUMNS, *NUMBER_COLUMNS)
HASHED = 2
"""The first schema whose rows have a hash and a checksum."""
SHOWN_COLUMNS = ("id", "kind", "room", "header_path", "content_hash", "text", "source")
"""What is shown of any row besides its file: each column read of a dozen rows takes as long as a tenth of finding them."""
SAID_COLUMNS = ("id", "session", "exchange_id", "at", "until", "project", "model", "tools", "files", "branch", *NUMBER_COLUMNS)
"""What is shown besides of what was said in conversations."""
_EMPTY: dict[str, Any] = dict.fromkeys(TEXT_COLUMNS, "") | dict.fromkeys(NUMBER_COLUMNS, 0)


def schema(dimension: int, model: str) -> pa.Schema:
    """Return the columns of a table for vectors of that size, which that model made."""
    fields = [pa.field(name, pa.string(), nullable=False) for name in (*TEXT_COLUMNS, "row_hash")]
    fields += [pa.field(name, pa.int32(), nullable=False) for name in NUMBER_COLUMNS]
    fields.append(pa.field("vector", pa.list_(pa.float32(), dimension)))
    source = pa.struct([pa.field("source", pa.string()), pa.field("header_path", pa.string())])
    fields.append(pa.field("metadata", source))
    fields.append(pa.field("checksum", pa.int64(), nullable=False))
    return pa.schema(fields, metadata={"anchord.schema": str(SCHEMA), "anchord.model": model})


def row_of(columns: Mapping[str, Any]) -> Row:
    """Return a row; what was not read of it is empty."""
    return Row(**_EMPTY | {name: columns[name] for name in ROW_COLUMNS if name in columns})


def summed(form: pa.Schema) -> list[str]:
    """Return what a row's checksum covers, besides its vector."""
    return [name for name in (*TEXT_COLUMNS, "row_hash") if name in form.names]


def batch_of(rows: Sequence[Row], vectors: Mapping[str, Vector], form: pa.Schema) -> pa.Table:
    """Return rows in the columns of a table, with their vectors and checksums."""
    columns: dict[str, Any] = {name: [printable(getattr(row, name)) for row in rows] for name in TEXT_COLUMNS}
    columns.update({name: [getattr(row, name) for row in rows] for name in NUMBER_COLUMNS})
    columns["row_hash"] = [row_hash(row) for row in rows]
    fields = zip(*(columns[name] for name in summed(form)), strict=True)
    sums = [row_checksum(texts, vectors[row.vector_key]) for texts, row in zip(fields, rows, strict=True)]
    numbers = b"".join(vectors[row.vector_key] for row in rows)
    values = pa.Array.from_buffers(pa.float32(), len(numbers) // 4, [None, pa.py_buffer(numbers)])
    columns["vector"] = pa.FixedSizeListArray.from_arrays(values, form.field("vector").type.list_size)
    columns["metadata"] = [{"source": printable(row.path), "header_path": row.header_path} for row in rows]
    columns["checksum"] = pa.array(sums, pa.int64())
    return pa.table({name: columns[name] for name in form.names}, schema=form.remove_metadata())


def vectors_in(batch: Any) -> Iterator[Vector]:  # noqa: ANN401 - pyarrow ships no types
    """Return the vector of each row of a batch."""
    numbers = batch["vector"].flatten().to_numpy(zero_copy_only=False).astype("<f4").tobytes()
    size = 4 * batch.schema.field("vector").type.list_size
    return (numbers[at : at + size] for at in range(0, len(numbers), size))


def differing(batch: Any, names: Sequence[str]) -> Iterator[str]:  # noqa: ANN401 - likewise
    """Yield the ids of those rows of a batch that do not give their checksum; `names`: what it covers, the id first."""
    texts = zip(*(batch[name].to_pylist() for name in names), strict=True)
    for fields, vector, wanted in zip(texts, vectors_in(batch), batch["checksum"].to_pylist(), strict=True):
        if row_checksum(fields, vector) != wanted:
            yield fields[0]


async def create_indices(table: Any) -> None:  # noqa: ANN401 - lancedb ships no types
    """Make the table's indices, anew where there are some."""
    for column in ("id", "path", "vector_key"):
        await table.create_index(column, config=BTree(), replace=True)
    for column in ("root", "kind"):
        await table.create_index(column, config=Bitmap(), replace=True)
    await table.create_index("search_text", config=FTS(with_position=False), replace=True)
