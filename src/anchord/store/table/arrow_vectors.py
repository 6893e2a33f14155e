"""Vectors as Arrow columns, one for each model, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import compute

from anchord.core.ids import is_due, model_tag_of
from anchord.core.types import Vector
from anchord.store.table.vector_columns import tag_of_column, vector_column, vector_columns

ArrowBatch = Any
"""A `pyarrow.RecordBatch`; pyarrow ships no types."""
ArrowColumn = Any
"""A `pyarrow.Array`."""

FLOAT32_BYTES = 4
VECTOR_NUMBER_TYPE = pa.float32()


def dimensions_of(arrow_schema: pa.Schema) -> dict[str, int]:
    """Return tag -> numbers in a vector, for each model of a table; "" is the main one."""
    return {
        tag_of_column(name): _dimension(arrow_schema, name)
        for name in vector_columns(arrow_schema.names)
    }


def arrow_of_vectors(
    keyed_vectors: Sequence[tuple[str, Vector]], arrow_schema: pa.Schema
) -> dict[str, pa.Array]:
    """Return the columns of vectors: each vector is in that of its key's model.

    Args:
        keyed_vectors: (vector key, vector) of each row, in order; b"" becomes null.
        arrow_schema: The schema of the table.
    """
    columns = vector_columns(arrow_schema.names)
    if len(columns) == 1:
        vectors = [vector for _, vector in keyed_vectors]
        return {columns[0]: _vector_column(vectors, _dimension(arrow_schema, columns[0]))}
    names = [vector_column(model_tag_of(key)) for key, _ in keyed_vectors]
    own_columns = {}
    for column in columns:
        vectors = [
            vector if name == column else b""
            for name, (_, vector) in zip(names, keyed_vectors, strict=True)
        ]
        own_columns[column] = _vector_column(vectors, _dimension(arrow_schema, column))
    return own_columns


def _vector_column(vectors: Sequence[Vector], dimension: int) -> pa.Array:
    """Return vectors as a column without copying number by number: Vector is Arrow's own form.

    b"" becomes null.
    """
    zeros = bytes(FLOAT32_BYTES * dimension)
    is_null = [not vector for vector in vectors]
    data = b"".join(vector or zeros for vector in vectors)
    byte_count = len(data)
    number_count = byte_count // FLOAT32_BYTES
    no_nulls = None
    values = pa.py_buffer(data)
    buffers = [no_nulls, values]
    numbers = pa.Array.from_buffers(VECTOR_NUMBER_TYPE, number_count, buffers)
    mask = pa.array(is_null, pa.bool_()) if any(is_null) else None
    return pa.FixedSizeListArray.from_arrays(numbers, dimension, mask=mask)


def own_vectors(batch: ArrowBatch) -> ArrowColumn:
    """Return the vectors of a batch with all columns of vectors and `vector_key`.

    Null for a row that lacks its own, also if it has a provisional one. With several models the
    vectors may have several lengths, so that their type is that of a list of any length.
    """
    columns = [batch[name] for name in vector_columns(batch.schema.names)]
    vectors = columns[0]
    if len(columns) > 1:
        any_length = pa.list_(VECTOR_NUMBER_TYPE)
        vectors = compute.coalesce(*(column.cast(any_length) for column in columns))
    are_due = [is_due(key) for key in batch["vector_key"].to_pylist()]
    return compute.if_else(pa.array(are_due, pa.bool_()), None, vectors)


def iter_vectors(batch: ArrowBatch) -> Iterator[Vector]:
    """Yield the vector of each row of a batch, in order; b"" for a row without one.

    The batch has all columns of vectors. One of them has the vector of a row.
    """
    first, *further = (
        _iter_column(batch[name], _dimension(batch.schema, name))
        for name in vector_columns(batch.schema.names)
    )
    if not further:
        return first
    return (b"".join(vectors) for vectors in zip(first, *further, strict=True))


def _iter_column(column: ArrowColumn, dimension: int) -> Iterator[Vector]:
    data = _column_bytes(column)
    vector_bytes = FLOAT32_BYTES * dimension
    start = 0
    for has_vector in column.is_valid().to_pylist():
        if not has_vector:
            yield b""
            continue
        end = start + vector_bytes
        yield data[start:end]
        start = end


def _column_bytes(column: ArrowColumn) -> bytes:
    """Return the numbers of a column of vectors, one after the other, without those of nulls."""
    numbers = column.flatten()
    numpy_array = numbers.to_numpy(zero_copy_only=False)
    little_endian = numpy_array.astype("<f4")
    data: bytes = little_endian.tobytes()
    return data


def _dimension(arrow_schema: pa.Schema, column: str) -> int:
    vector_type = arrow_schema.field(column).type
    return int(vector_type.list_size)
