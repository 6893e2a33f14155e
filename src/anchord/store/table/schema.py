"""The columns and the indices of the table of chunks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa
from lancedb.index import FTS, Bitmap, BTree
from pyarrow import compute

from anchord.core.diff import row_hash
from anchord.core.ids import (
    DUE_MARK,
    row_checksum,
    without_due_mark,
)
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import NO_VECTORS, Row, Vector
from anchord.store.table.arrow_vectors import (
    VECTOR_NUMBER_TYPE,
    ArrowBatch,
    arrow_of_vectors,
    iter_vectors,
)
from anchord.store.table.vector_columns import (
    Dimensions,
    dimension_by_tag,
    vector_column,
    vector_columns,
)
from anchord.store.table.versions import (
    MODEL_METADATA_KEY,
    SCHEMA_VERSION,
    SEVERAL_MODELS_VERSION,
    VERSION_METADATA_KEY,
)

LanceTable = Any
"""An asynchronous LanceDB table; lancedb ships no types."""
ArrowTable = Any
"""A `pyarrow.Table`; pyarrow ships no types."""

_CONVERSATION_TEXT_COLUMNS = (
    "session",
    "exchange_id",
    "at",
    "until",
    "project",
    "model",
    "tools",
    "files",
    "branch",
)
TEXT_COLUMNS = (
    "id",
    "doc_id",
    "path",
    "root",
    "kind",
    "room",
    "content_hash",
    "vector_key",
    "header_path",
    "text",
    "search_text",
    "chunk_type",
    "language",
    "source",
    *_CONVERSATION_TEXT_COLUMNS,
)
_PART_COLUMNS = ("part_index", "total_parts")
CONVERSATION_ONLY_COLUMNS = frozenset((*_CONVERSATION_TEXT_COLUMNS, *_PART_COLUMNS, "source"))
"""Empty in the rows of files."""
NUMBER_COLUMNS = ("level", "token_count", *_PART_COLUMNS)
ROW_COLUMNS = (*TEXT_COLUMNS, *NUMBER_COLUMNS)
DISPLAY_COLUMNS = (
    "id",
    "kind",
    "room",
    "header_path",
    "content_hash",
    "text",
    "chunk_type",
    "language",
    "level",
    "token_count",
    "source",
)
"""What a search result shows of a row besides its file.

No more than that: reading one column of a dozen rows takes a tenth of the time of the search.
"""
CONVERSATION_COLUMNS = ("id", *_CONVERSATION_TEXT_COLUMNS, *_PART_COLUMNS)
"""What a search result shows besides `DISPLAY_COLUMNS` of an exchange."""
_EMPTY_ROW: dict[str, Any] = dict.fromkeys(TEXT_COLUMNS, "") | dict.fromkeys(NUMBER_COLUMNS, 0)
_STORED_TEXT_COLUMNS = (*TEXT_COLUMNS, "row_hash")

_TOKENIZER = "icu/split"
"""Cuts Chinese, Japanese and Thai by a dictionary that is part of LanceDB, all else as "simple"."""
_STOP_WORDS = (
    "a about after again against ain all am an and are aren as at be been being below between "
    "both but by can couldn d did didn do does doesn doing don down each few for from further "
    "had hadn has hasn have haven having he her here herself him himself his how i if in into "
    "is isn it itself just ll m me mightn more most mustn my myself needn no nor not now o of "
    "off on or other our out over own re s same shan she should shouldn so some such t than "
    "that the their them then there these they this those through to too under until up ve "
    "was wasn we were weren what when where which while who whom will with won wouldn y you "
    "your yourself"
)
"""LanceDB's own list for English. With this tokenizer it takes those of all languages by default,
and leaves out "bin", "dog" and "non" of an English text."""
_MAX_INDEXED_WORD = 40
_WORD = re.compile(r"\w+", re.ASCII)
_CHECKSUM_TYPE = pa.int64()
_METADATA_TYPE = pa.struct([("source", pa.string()), ("header_path", pa.string())])
_FIELDS_BEFORE_VECTOR = [
    *(pa.field(name, pa.string(), nullable=False) for name in _STORED_TEXT_COLUMNS),
    *(pa.field(name, pa.int32(), nullable=False) for name in NUMBER_COLUMNS),
]
_FIELDS_AFTER_VECTOR = [
    pa.field("metadata", _METADATA_TYPE),
    pa.field("checksum", _CHECKSUM_TYPE, nullable=False),
]


def table_schema(dimensions: Dimensions, model: str) -> pa.Schema:
    """Return the Arrow schema of a new table.

    Args:
        dimensions: Numbers in a vector, of each model.
        model: The main model, noted in the schema's metadata.
    """
    by_tag = dimension_by_tag(dimensions)
    fields = list(_FIELDS_BEFORE_VECTOR)
    for tag, size in by_tag.items():
        vector_type = pa.list_(VECTOR_NUMBER_TYPE, size)
        fields.append(pa.field(vector_column(tag), vector_type))
    fields += _FIELDS_AFTER_VECTOR
    version = str(SEVERAL_MODELS_VERSION if len(by_tag) > 1 else SCHEMA_VERSION)
    metadata = {VERSION_METADATA_KEY: version, MODEL_METADATA_KEY: model}
    return pa.schema(fields, metadata=metadata)


def unknown_columns(arrow_schema: pa.Schema) -> set[str]:
    """Return the columns of a table that no version of anchord writes: their names are damaged."""
    fields = (*_FIELDS_BEFORE_VECTOR, *_FIELDS_AFTER_VECTOR)
    known_names = {field.name for field in fields}
    known_names.update(vector_columns(arrow_schema.names))
    return set(arrow_schema.names) - known_names


def row_from_columns(columns: Mapping[str, Any]) -> Row:
    """Return a row from column values; columns that were not read are "" or 0."""
    values = dict(_EMPTY_ROW)
    for name in ROW_COLUMNS:
        if name in columns:
            values[name] = columns[name]
    values["vector_key"] = without_due_mark(values["vector_key"])
    return Row(**values)


def checksummed_columns(arrow_schema: pa.Schema) -> list[str]:
    """Return the columns that a row's checksum covers besides its vector; the first is `id`."""
    present = arrow_schema.names
    return [name for name in _STORED_TEXT_COLUMNS if name in present]


def rows_to_arrow(
    rows: Sequence[Row],
    vectors: Mapping[str, Vector],
    arrow_schema: pa.Schema,
    due: Mapping[str, Vector] = NO_VECTORS,
) -> pa.Table:
    """Return rows as an Arrow table, with their vectors, hashes and checksums.

    Args:
        rows: The rows.
        vectors: Vector key -> vector, for at least the keys of these rows.
        arrow_schema: The schema of the table they are written to; it may be an older one.
        due: Vector key -> provisional vector, b"" for none, of rows that lack their own: they get
            it, and a marked key.
    """
    columns = _value_columns(rows)
    keyed_vectors = [stored_vector_of(row, vectors, due) for row in rows]
    columns["vector_key"] = [key for key, _ in keyed_vectors]
    vectors_of_rows = [vector for _, vector in keyed_vectors]
    columns |= arrow_of_vectors(keyed_vectors, arrow_schema)
    checksummed_names = checksummed_columns(arrow_schema)
    checksummed = _select(columns, checksummed_names)
    checksummed_values = checksummed.values()
    columns["checksum"] = _checksum_column(checksummed_values, vectors_of_rows)
    columns_of_table = _select(columns, arrow_schema.names)
    schema = arrow_schema.remove_metadata()
    return pa.table(columns_of_table, schema=schema)


def stored_vector_of(
    row: Row, vectors: Mapping[str, Vector], due: Mapping[str, Vector]
) -> tuple[str, Vector]:
    """Return the vector key and the vector that are stored of a row; b"" means no vector."""
    if row.vector_key in due:
        return DUE_MARK + row.vector_key, due[row.vector_key]
    return row.vector_key, vectors[row.vector_key]


def vectors_to_arrow(
    tables: Sequence[ArrowTable],
    keyed_vectors_by_id: Mapping[str, tuple[str, Vector]],
    arrow_schema: pa.Schema,
) -> pa.Table:
    """Return rows that lack their own vector as they are once they have it.

    Args:
        tables: Such rows, with all columns of the table; at least one table.
        keyed_vectors_by_id: Row id -> (vector key, vector), for all of these rows.
        arrow_schema: The schema of the table.

    Returns:
        The rows. Those that have another key are left out, and so are those that do not match their
        checksum: a new checksum would hide the damage.
    """
    rows = pa.concat_tables(tables)
    names = checksummed_columns(arrow_schema)
    corrupt: set[str] = set()
    for batch in rows.to_batches():
        corrupt.update(corrupt_row_ids(batch, names))
    is_chosen: list[bool] = []
    stored_keys = rows["vector_key"].to_pylist()
    for row_id, stored_key in zip(rows["id"].to_pylist(), stored_keys, strict=True):
        key, _ = keyed_vectors_by_id[row_id]
        is_chosen.append(row_id not in corrupt and stored_key == DUE_MARK + key)
    chosen = rows.filter(pa.array(is_chosen, pa.bool_()))
    columns = {name: chosen[name] for name in arrow_schema.names}
    keyed_vectors = [keyed_vectors_by_id[row_id] for row_id in chosen["id"].to_pylist()]
    vectors = [vector for _, vector in keyed_vectors]
    columns["vector_key"] = [key for key, _ in keyed_vectors]
    columns |= arrow_of_vectors(keyed_vectors, arrow_schema)
    texts = {name: chosen[name].to_pylist() for name in names}
    texts["vector_key"] = columns["vector_key"]
    columns["checksum"] = _checksum_column(texts.values(), vectors)
    return pa.table(columns, schema=arrow_schema.remove_metadata())


def _select(columns: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    selected = {}
    for name in names:
        column = columns[name]
        selected[name] = column
    return selected


def _value_columns(rows: Sequence[Row]) -> dict[str, Any]:
    """Return all columns but the vectors and the checksums."""
    columns: dict[str, Any] = {}
    for name in TEXT_COLUMNS:
        texts = _iter_values(rows, name)
        valid_texts = map(escape_non_utf8, texts)
        columns[name] = list(valid_texts)
    for name in NUMBER_COLUMNS:
        numbers = _iter_values(rows, name)
        columns[name] = list(numbers)
    hashes = map(row_hash, rows)
    columns["row_hash"] = list(hashes)
    metadata = map(_metadata, rows)
    columns["metadata"] = list(metadata)
    return columns


def _iter_values(rows: Sequence[Row], column: str) -> Iterator[Any]:
    get_value = attrgetter(column)
    return map(get_value, rows)


def _metadata(row: Row) -> dict[str, str]:
    source = escape_non_utf8(row.path)
    return {"source": source, "header_path": row.header_path}


def _iter_checksums(columns: Iterable[Sequence[str]], vectors: Iterable[Vector]) -> Iterator[int]:
    """Yield the checksum of each row, from its texts, column by column, and its vector."""
    texts_of_rows = zip(*columns, strict=True)
    rows = zip(texts_of_rows, vectors, strict=True)
    for texts, vector in rows:
        yield row_checksum(texts, vector)


def _checksum_column(columns: Iterable[Sequence[str]], vectors: Sequence[Vector]) -> pa.Array:
    checksums = _iter_checksums(columns, vectors)
    return pa.array(checksums, _CHECKSUM_TYPE)


def has_indexed_words(text: str) -> bool:
    """Return whether the full-text index surely finds each row that contains a text.

    It leaves out stop words and long words, and cuts other scripts in other ways.
    """
    words = _WORD.findall(text.lower())
    is_indexed = all(len(word) <= _MAX_INDEXED_WORD for word in words) and text.isascii()
    return is_indexed and not set(words) <= set(_STOP_WORDS.split())


def ids_containing(rows: ArrowTable, column: str, literal: str) -> list[str]:
    """Return the ids of those rows whose column contains a text exactly, in their order."""
    contains = compute.match_substring(rows[column], literal)
    return list(rows["id"].filter(contains).to_pylist())


def corrupt_row_ids(batch: ArrowBatch, checksummed: Sequence[str]) -> Iterator[str]:
    """Yield the ids of those rows of a batch whose bytes do not match their checksum.

    Args:
        batch: Rows with the columns `checksummed`, all columns of vectors, and `checksum`.
        checksummed: The columns that the checksum covers; the first is `id`.
    """
    columns = [batch[name].to_pylist() for name in checksummed]
    vectors = iter_vectors(batch)
    actual_checksums = _iter_checksums(columns, vectors)
    checksum_column = batch["checksum"]
    stored_checksums = checksum_column.to_pylist()
    ids = columns[0]
    rows = zip(ids, actual_checksums, stored_checksums, strict=True)
    for row_id, actual, stored in rows:
        if actual != stored:
            yield row_id


async def create_or_replace_indices(table: LanceTable) -> None:
    """Build the table's scalar and full-text indices, replacing those that exist."""
    ordered = BTree()
    for column in ("id", "path", "vector_key"):
        await _replace_index(table, column, ordered)
    by_value = Bitmap()
    for column in ("root", "kind"):
        await _replace_index(table, column, by_value)
    full_text = FTS(
        with_position=False,
        base_tokenizer=_TOKENIZER,
        custom_stop_words=_STOP_WORDS.split(),
    )
    await _replace_index(table, "search_text", full_text)


async def _replace_index(table: LanceTable, column: str, index: BTree | Bitmap | FTS) -> None:
    await table.create_index(column, config=index, replace=True)
