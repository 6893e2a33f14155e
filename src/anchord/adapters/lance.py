"""The table of chunks. The only user of lancedb, lance (maintenance) and pyarrow.

Facts this rests on (measured, lancedb 0.40 / lance 13):
- A merge by `id` with a BTREE on it costs the same at any size; the same new id twice in one batch, or two writers at once,
  would make duplicates without a word. So ids are made unique here, counts are checked, and there is one writer, by lock.
- Every commit leaves a fragment and a manifest, and everything slows down with their number: `maintain` folds them. It goes
  through pylance because `table.optimize()` rewrites the whole table each time.
- Rows are visible to both searches at once; indices only make them faster.

Text in filters comes from paths and people: `_quoted` is the one place that makes it SQL.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
from lancedb.index import FTS, Bitmap, BTree

from anchord.errors import StoreError
from anchord.model import Filters, Origin, Row, Scored, StoreStats, Vector, printable

TABLE = "chunks"
SCHEMA = 1
_IDS_A_FILTER = 1_000
_SCAN_ROWS = 65_536
_KEPT_VERSIONS = timedelta(minutes=10)
_TEXT_COLUMNS = (
    "id", "doc_id", "path", "root", "kind", "room", "content_hash", "vector_key", "header_path", "text", "search_text"
)  # fmt: skip


def _schema(dimension: int, model: str) -> pa.Schema:
    fields = [pa.field(name, pa.string(), nullable=False) for name in _TEXT_COLUMNS]
    fields.append(pa.field("vector", pa.list_(pa.float32(), dimension)))
    source = pa.struct([pa.field("source", pa.string()), pa.field("header_path", pa.string())])
    fields.append(pa.field("metadata", source))
    return pa.schema(fields, metadata={"anchord.schema": str(SCHEMA), "anchord.model": model})


class LanceStore:
    """The table `chunks` at a LanceDB uri."""

    def __init__(self, uri: str, dimension: int, model: str, *, read_only: bool = False) -> None:
        """Open the table; the writer makes it when it is missing or made for vectors of another size.

        Raises:
            StoreError: the table cannot be opened, or (read-only) is not there.
        """
        self._dimension = dimension
        self._uri = uri
        try:
            self._db = lancedb.connect(uri, read_consistency_interval=timedelta(0))
            self._table = self._opened(model, read_only=read_only)
        except (RuntimeError, OSError, ValueError) as error:
            what = "there is no index yet" if read_only else _first_line(error)
            raise StoreError(f"{uri}: {what}", "run `anchord index` to make it") from error

    def _opened(self, model: str, *, read_only: bool) -> Any:  # noqa: ANN401 - lancedb ships no types
        if TABLE in self._db.list_tables().tables:
            table = self._db.open_table(TABLE)
            if read_only or table.schema.field("vector").type.list_size == self._dimension:
                return table
            self._db.drop_table(TABLE)
        elif read_only:
            raise ValueError(TABLE)
        table = self._db.create_table(TABLE, schema=_schema(self._dimension, model))
        for column in ("id", "path", "vector_key"):
            table.create_index(column, config=BTree())
        for column in ("root", "kind"):
            table.create_index(column, config=Bitmap())
        table.create_index("search_text", config=FTS(with_position=False))
        return table

    # Writing

    def upsert(self, rows: Sequence[Row], vectors: Mapping[str, Vector]) -> None:
        """Write rows by id."""
        unique = list({row.id: row for row in rows}.values())
        if not unique:
            return
        batch = self._batch(unique, vectors)
        merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        try:
            result = merge.execute(batch)
        except (RuntimeError, OSError, ValueError) as error:
            raise StoreError(f"writing rows failed: {_first_line(error)}", "see the free space of the disk") from error
        if result.num_inserted_rows + result.num_updated_rows != len(unique):
            raise StoreError("the table holds duplicate ids", "run `anchord verify --repair`")

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows by id."""
        for some in _slices(ids):
            self._table.delete(_among("id", some))

    def _batch(self, rows: Sequence[Row], vectors: Mapping[str, Vector]) -> pa.Table:
        columns: dict[str, Any] = {name: [printable(getattr(row, name)) for row in rows] for name in _TEXT_COLUMNS}
        numbers = b"".join(vectors[row.vector_key] for row in rows)
        values = pa.Array.from_buffers(pa.float32(), len(numbers) // 4, [None, pa.py_buffer(numbers)])
        columns["vector"] = pa.FixedSizeListArray.from_arrays(values, self._dimension)
        columns["metadata"] = [{"source": printable(row.path), "header_path": row.header_path} for row in rows]
        return pa.table(columns, schema=self._table.schema.remove_metadata())

    # Reading

    def ids_of(self, origin: Origin) -> Sequence[str]:
        """Return the ids of a file's rows."""
        where = f"path = {_quoted(printable(origin.path))} AND root = {_quoted(origin.root)}"
        return [row["id"] for row in self._select(where, ["id"])]

    def ids_of_root(self, root: str) -> Sequence[str]:
        """Return the ids of a root's rows."""
        return [row["id"] for row in self._select(f"root = {_quoted(root)}", ["id"])]

    def vectors(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of those keys that some row has."""
        return {key: vector for _, key, vector in self._vectors("vector_key", keys)}

    def vectors_of(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of rows, by their keys."""
        return {key: vector for _, key, vector in self._vectors("id", ids)}

    def row_vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vector of each row, by its id."""
        return {row: vector for row, _, vector in self._vectors("id", ids)}

    def _vectors(self, column: str, values: Sequence[str]) -> Iterator[tuple[str, str, Vector]]:
        """Yield (id, vector key, vector)."""
        size = 4 * self._dimension
        for some in _slices(values):
            query = self._table.search().where(_among(column, some)).select(["id", "vector_key", "vector"]).limit(None)
            for batch in query.to_arrow().to_batches():
                numbers = batch["vector"].flatten().to_numpy(zero_copy_only=False).astype("<f4").tobytes()
                vectors = (numbers[at : at + size] for at in range(0, len(numbers), size))
                yield from zip(batch["id"].to_pylist(), batch["vector_key"].to_pylist(), vectors, strict=True)

    def nearest(self, vector: Vector, limit: int, filters: Filters) -> Sequence[Scored]:
        """Return the rows with the highest cosine similarity."""
        query = self._table.search(array("f", vector).tolist(), vector_column_name="vector", query_type="vector")
        query = query.distance_type("cosine").bypass_vector_index()
        found = _restricted(query, filters).select([*_TEXT_COLUMNS, "_distance"]).limit(limit).to_list()
        return [Scored(_row(row), 1.0 - row["_distance"], None) for row in found if not math.isnan(row["_distance"])]

    def matching(self, text: str, limit: int, filters: Filters) -> Sequence[Scored]:
        """Return the rows with the highest BM25 score."""
        if not text.strip():
            return []
        query = self._table.search(text, query_type="fts", fts_columns="search_text")
        found = _restricted(query, filters).select([*_TEXT_COLUMNS, "_score"]).limit(limit).to_list()
        return [Scored(_row(row), None, row["_score"]) for row in found]

    def rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows by id."""
        return [_row(row) for some in _slices(ids) for row in self._select(_among("id", some), list(_TEXT_COLUMNS))]

    def ids(self) -> Sequence[str]:
        """Return the id of every row, repeats included."""
        return list(self._table.search().select(["id"]).limit(None).to_arrow()["id"].to_pylist())

    def all_rows(self) -> Iterator[Row]:
        """Yield every row, in no order, without holding the table in memory."""
        for batch in self._table.search().select(list(_TEXT_COLUMNS)).limit(None).to_batches(_SCAN_ROWS):
            yield from map(_row, batch.to_pylist())

    def stats(self) -> StoreStats:
        """Count the table."""
        stats = self._table.stats()
        fragments = int(stats["fragment_stats"]["num_fragments"])
        return StoreStats(self._table.count_rows(), fragments, len(self._table.list_versions()), self._bytes())

    def count(self) -> int:
        """Count the rows."""
        return int(self._table.count_rows())

    def _bytes(self) -> int:
        """Size on disk with old versions; 0 for a store that is not a local folder."""
        folder = Path(self._uri)
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0

    def _select(self, where: str, columns: list[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._table.search().where(where).select(columns).limit(None).to_list()
        return found

    # Upkeep

    def maintain(self) -> None:
        """Fold small fragments, bring the indices up to date, drop versions older than ten minutes. Writer only."""
        import lance  # noqa: PLC0415 - 0.3 s and 80 MB that a process which only searches never needs

        dataset = lance.dataset(f"{self._uri}/{TABLE}.lance")
        dataset.optimize.compact_files(target_rows_per_fragment=65_536)
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
        dataset.cleanup_old_versions(older_than=_KEPT_VERSIONS)
        self._table.checkout_latest()


def _restricted(query: Any, filters: Filters) -> Any:  # noqa: ANN401 - lancedb ships no types
    clauses = []
    if filters.root:
        clauses.append(f"root = {_quoted(filters.root)}")
    if filters.kind:
        clauses.append(f"kind = {_quoted(filters.kind)}")
    if filters.section:
        wanted = " > ".join(part.strip() for part in filters.section.split(">"))
        pattern = f"(?i)(^|> ){re.escape(wanted)}($| >)"
        clauses.append(f"regexp_like(header_path, {_quoted(pattern)})")
    if filters.path_glob:
        clauses.append(f"regexp_like(path, {_quoted(_glob_pattern(filters.path_glob))})")
    return query.where(" AND ".join(clauses), prefilter=True) if clauses else query


def _glob_pattern(glob: str) -> str:
    """`*` stays in a folder, `**` does not; a glob without "/" fits the name in any folder, as in .gitignore."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("/"))
    words = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = "".join(words.get(piece) or re.escape(piece) for piece in pieces)
    return f"^{body}$" if "/" in glob else f"(^|/){body}$"


def _quoted(text: str) -> str:
    """Return a text as a SQL literal: the only character with a meaning inside is the quote."""
    return "'" + text.replace("'", "''") + "'"


def _among(column: str, values: Sequence[str]) -> str:
    return f"{column} IN ({', '.join(map(_quoted, values))})"


def _slices(values: Sequence[str]) -> Iterator[Sequence[str]]:
    unique = list(dict.fromkeys(values))
    for at in range(0, len(unique), _IDS_A_FILTER):
        yield unique[at : at + _IDS_A_FILTER]


def _row(columns: Mapping[str, Any]) -> Row:
    return Row(**{name: columns[name] for name in _TEXT_COLUMNS})


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
