"""The table of chunks in LanceDB: reading, writing and searching its rows.

Facts this relies on (measured, lancedb 0.40 / lance 13):
- A merge by `id` with a BTREE on it costs the same at any size, and four times as much as counting
  those ids and appending the rows. The difference grows with each fragment since the last
  compaction. So rows are merged only if one of their ids is in the table already.
- The same new id twice in one batch, or two concurrent writers, create duplicates without an error.
  So ids are made unique here, counts are checked, and the writer lock admits one writer.
- Both searches see a row at once; indices only make them faster.
- LanceDB does not notice a flipped bit in a data file: every row carries a checksum of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from anchord.core.ids import is_due, make_doc_id
from anchord.core.ports import VectorLookup
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import (
    NO_FILTERS,
    NO_VECTORS,
    RootedPath,
    Row,
    ScoredRow,
    SearchFilters,
    StoreStats,
    Vector,
)
from anchord.errors import StoreError
from anchord.store.disk_usage import folder_bytes
from anchord.store.table import due_rows, queries
from anchord.store.table.arrow_vectors import ArrowBatch, iter_vectors
from anchord.store.table.connection import TableConnection
from anchord.store.table.event_loop import run_sync
from anchord.store.table.filters import (
    refuse_unknown_columns,
    sql_condition,
    sql_in_conditions,
    sql_literal,
)
from anchord.store.table.lance_errors import LANCE_ERRORS
from anchord.store.table.row_addresses import RowAddressCache
from anchord.store.table.row_writer import RowWriter
from anchord.store.table.schema import (
    CONVERSATION_COLUMNS,
    CONVERSATION_ONLY_COLUMNS,
    DISPLAY_COLUMNS,
    ROW_COLUMNS,
    ArrowTable,
    LanceTable,
    checksummed_columns,
    corrupt_row_ids,
    row_from_columns,
)
from anchord.store.table.unindexed_rows import UnindexedRows
from anchord.store.table.vector_columns import Dimensions, vector_column, vector_columns
from anchord.store.table.versions import (
    FIRST_CHECKSUM_VERSION,
    FIRST_PROVISIONAL_VECTORS_VERSION,
    FIRST_WITHOUT_VECTORS_VERSION,
)

TABLE_NAME = "chunks"
TABLE_FOLDER = f"{TABLE_NAME}.lance"
NEXT_TABLE_NAME = "next"
"""The table of a new generation, until it replaces `chunks`."""
_SIZE_MAX_AGE_S = 5.0
_AFTER_SLASH = chr(ord("/") + 1)
"""What is in a folder sorts between its name with "/" and its name with this."""


class LanceStore:
    """A table of chunks. Reads are thread-safe; writes need the writer lock and one thread.

    Methods that read raise StoreError when the table cannot be read, and methods that write when it
    cannot be written.
    """

    def __init__(
        self,
        uri: str,
        dimensions: Dimensions,
        model: str,
        *,
        read_only: bool = False,
        table_name: str = TABLE_NAME,
    ) -> None:
        """Open the table; unless `read_only`, create it if it is missing.

        Args:
            uri: A LanceDB uri: a folder, or a remote store such as `s3://...`.
            dimensions: Numbers in a vector. The writer must name all models of the table; with
                `read_only` only the main one counts.
            model: The main model, noted in a table that is created.
            read_only: Never write, and see each version that the writer commits.
            table_name: `TABLE_NAME`, or `NEXT_TABLE_NAME` for the table of a new generation.

        Raises:
            StoreDamagedError: The table exists and cannot be read.
            DimensionMismatchError: Its vectors have another dimension, or are of other further
                models.
            NewerStateError: A newer anchord created it.
            StoreError: The uri cannot be reached; with `read_only` also when there is no table.
        """
        self._table = TableConnection(uri, table_name, dimensions, model, is_writer=not read_only)
        self._is_writer = not read_only
        self._folder = Path(uri)
        self._size_bytes = 0
        self._size_measured_at = float("-inf")
        self.columns: Sequence[str] = list(self._table.schema.names)
        """The names of the table's columns."""
        self._columns = [name for name in ROW_COLUMNS if name in self.columns]
        self.vector_columns: Sequence[str] = vector_columns(self.columns)
        """The columns of vectors; the first is that of the main model."""
        self._checksummed = checksummed_columns(self._table.schema)
        self._addresses = RowAddressCache()
        self._row_writer = RowWriter(self._table)

    # Writing

    @property
    def can_lack_vectors(self) -> bool:
        """Whether rows may be written without vectors: not in a table of an old schema."""
        return self.schema_version >= FIRST_WITHOUT_VECTORS_VERSION

    def as_stored(self, row: Row) -> Row:
        """Return a row as the table holds it: an old schema has no column for some fields."""
        if "chunk_type" in self._columns:
            return row
        return replace(row, chunk_type="", language="", level=0, token_count=0)

    def upsert(
        self,
        rows: Sequence[Row],
        vectors: Mapping[str, Vector],
        absent_ids: Collection[str] = (),
        due: Mapping[str, Vector] = NO_VECTORS,
    ) -> None:
        """Insert rows, or replace the rows of the same ids; both searches see them on return.

        Args:
            rows: The rows. Of several with one id the last one is written.
            vectors: Vector key -> vector, for at least the keys of these rows.
            absent_ids: Ids that the table does not have; their rows are appended without a look-up.
                A wrong id here creates a duplicate row.
            due: Vector key -> provisional vector, b"" for none, of the rows that lack their own;
                see `set_vectors`. A table of an old schema gets no provisional vectors.

        Raises:
            StoreError: Writing failed; the rows may have been written or not.
        """
        if self.schema_version < FIRST_PROVISIONAL_VECTORS_VERSION:
            due = dict.fromkeys(due, b"")
        self._row_writer.upsert(rows, vectors, absent_ids, due)

    def set_vectors(self, keyed_vectors_by_id: Mapping[str, tuple[str, Vector]]) -> None:
        """Give rows that lack their own vector theirs.

        Args:
            keyed_vectors_by_id: Row id -> (vector key, vector). Rows that are gone, have their own
                vector, have another key or do not match their checksum stay as they are.

        Raises:
            StoreError: Writing failed; the vectors may have been written or not.
        """
        self._row_writer.set_vectors(keyed_vectors_by_id)

    def delete_rows(self, ids: Sequence[str]) -> None:
        """Delete rows by id, duplicates included; unknown ids are ignored."""
        self._row_writer.delete_rows(ids)

    # Rows without their own vector

    def due_ids(self) -> Sequence[str]:
        """Return the ids of all rows that lack their own vector."""
        return self._select_ids(due_rows.IS_DUE)

    def due_ids_of_files(self, origins: Sequence[RootedPath]) -> Mapping[RootedPath, Sequence[str]]:
        """Return the ids of each file's rows that lack their own vector."""
        return self._select_ids_of_files(origins, f" AND {due_rows.IS_DUE}")

    def due_ids_among(self, ids: Sequence[str]) -> Sequence[str]:
        """Return which of these rows lack their own vector, in no order."""
        return [row["id"] for row in self._select_by_id(ids, ["id"], f" AND {due_rows.IS_DUE}")]

    def count_due(self) -> int:
        """Count the rows that lack their own vector."""
        return int(self._table.run_query(lambda table: table.count_rows(due_rows.IS_DUE)))

    # Reading

    def ids_of_file(self, origin: RootedPath) -> Sequence[str]:
        """Return the ids of a file's rows, those of an unconfirmed change included."""
        return self.ids_of_files([origin])[origin]

    def ids_of_files(self, origins: Sequence[RootedPath]) -> Mapping[RootedPath, Sequence[str]]:
        """Return the ids of each file's rows; one query for a thousand files."""
        return self._select_ids_of_files(origins)

    def _select_ids_of_files(
        self, origins: Sequence[RootedPath], and_condition: str = ""
    ) -> dict[RootedPath, list[str]]:
        # Two paths can have one stored form (a byte that is not UTF-8, and the four characters that
        # escape it). The document's id tells them apart.
        paths = dict.fromkeys(escape_non_utf8(origin.path) for origin in origins)
        ids_by_document: dict[str, list[str]] = {make_doc_id(origin): [] for origin in origins}
        for condition in sql_in_conditions("path", list(paths)):
            columns = self._table.select(condition + and_condition, ["id", "doc_id"])
            names = (columns["id"].to_pylist(), columns["doc_id"].to_pylist())
            for row_id, document in zip(*names, strict=True):
                if document in ids_by_document:
                    ids_by_document[document].append(row_id)
        return {origin: ids_by_document[make_doc_id(origin)] for origin in origins}

    def ids_of_root(self, root: str, path: str = "") -> Sequence[str]:
        """Return the ids of a root's rows, or of those at or below a path in it."""
        condition = f"root = {sql_literal(root)}"
        if path:
            stored = escape_non_utf8(path)
            begin, end = sql_literal(f"{stored}/"), sql_literal(f"{stored}{_AFTER_SLASH}")
            condition += f" AND (path = {sql_literal(stored)} OR path >= {begin} AND path < {end})"
        return self._select_ids(condition)

    def all_ids(self) -> Sequence[str]:
        """Return the id of every row, duplicates included."""
        return self._select_ids("")

    def _select_ids(self, condition: str) -> list[str]:
        return list(self._table.select(condition, ["id"])["id"].to_pylist())

    def vectors_by_key(self, vector_keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return vector key -> vector; keys that no row has are left out."""
        return {key: vector for _, key, _, vector in self._vectors({"vector_key": vector_keys})}

    def vectors_by_key_of_rows(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return vector key -> vector of some rows; left out are those that lack their own."""
        found = self._vectors({"id": ids})
        return {key: vector for _, key, _, vector in found if not is_due(key)}

    def vectors_by_id(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return row id -> vector; left out are rows that lack their own."""
        found = self._vectors({"id": ids})
        return {row_id: vector for row_id, key, _, vector in found if not is_due(key)}

    def look_up_vectors(self, ids: Sequence[str], vector_keys: Sequence[str]) -> VectorLookup:
        """Return what the table has of some rows and of some vectors, in one query.

        The writer also remembers where the rows are, for the `delete_rows` of the same commit.
        """
        unindexed = self._row_writer.unindexed_rows
        found = unindexed.record_addresses(
            self._vectors(
                {"id": ids, "vector_key": vector_keys}, indexed_only=unindexed.rows is not None
            )
        )
        wanted_keys = set(vector_keys)
        return VectorLookup(
            keyed_vectors_by_id={row_id: found[row_id] for row_id in found.keys() & set(ids)},
            vectors_by_key={key: vector for key, vector in found.values() if key in wanted_keys},
        )

    def _vectors(
        self, values_by_column: Mapping[str, Sequence[str]], *, indexed_only: bool = False
    ) -> Iterator[tuple[str, str, int, Vector]]:
        """Yield (id, vector key, address, vector) of rows that match in some column."""
        names = self.vector_columns
        conditions_by_column = [
            sql_in_conditions(column, values) for column, values in values_by_column.items()
        ]
        for conditions in zip_longest(*conditions_by_column):
            condition = " OR ".join(filter(None, conditions))

            async def query(table: LanceTable, condition: str = condition) -> ArrowTable:
                return await queries.vectors_of(table, condition, names, indexed_only=indexed_only)

            for batch in self._table.run_query(query, check_for_newer=False).to_batches():
                columns = (batch[name].to_pylist() for name in ("id", "vector_key", "_rowid"))
                yield from zip(*columns, iter_vectors(batch), strict=True)

    def search_by_vector(
        self, vector: Vector, limit: int, filters: SearchFilters, model_tag: str = ""
    ) -> Sequence[ScoredRow]:
        """Return up to `limit` rows with the highest cosine similarity, best first.

        Only rows with a vector of one model are found: the further one of `model_tag`, "" for the
        main one. None if the table has no column for it.
        """
        refuse_unknown_columns(filters, self._columns)
        column = vector_column(model_tag)
        if column not in self.vector_columns:
            return []
        found = self._table.run_query(
            lambda table: queries.find_nearest(table, column, vector, limit, filters)
        )
        self._addresses.remember(found)
        return [
            ScoredRow(row["id"], 1.0 - row["_distance"])
            for row in found
            if not math.isnan(row["_distance"])  # A vector of zeros has no direction.
        ]

    def search_by_words(self, text: str, limit: int, filters: SearchFilters) -> Sequence[ScoredRow]:
        """Return up to `limit` rows with the highest BM25 score, in order; none for blank text."""
        if not text.strip():
            return []
        refuse_unknown_columns(filters, self._columns)
        found = self._table.run_query(
            lambda table: queries.find_by_words(table, text, limit, filters)
        )
        self._addresses.remember(found)
        return [ScoredRow(row["id"], row["_score"], row["header_path"]) for row in found]

    def find_ids_containing(
        self, literal: str, limit: int, filters: SearchFilters
    ) -> Sequence[str]:
        """Return the ids of up to `limit` rows that contain a text exactly, in no order."""
        return self._table.run_query(
            lambda table: queries.find_ids_containing(table, literal, limit, filters)
        )

    def get_rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows by id, in no order; unknown ids are left out."""
        return [row_from_columns(columns) for columns in self._select_by_id(ids, self._columns)]

    def get_embedded_rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows of files by id, in no order, without those that lack their own vector.

        The fields that only rows of conversations have are empty.
        """
        names = [name for name in self._columns if name not in CONVERSATION_ONLY_COLUMNS]
        columns = self._select_by_id(ids, names)
        return [row_from_columns(each) for each in columns if not is_due(each["vector_key"])]

    def get_display_rows(
        self, ids: Sequence[str], filters: SearchFilters = NO_FILTERS
    ) -> Sequence[Row]:
        """Return rows by id, in no order, with only the columns that a search result shows.

        The other fields are empty; those of conversations are filled only for exchanges.

        Args:
            ids: The rows' ids; unknown ones are left out.
            filters: Rows that do not match are left out.
        """
        if condition := sql_condition(filters):
            ids = [row["id"] for row in self._select_by_id(ids, ["id"], f" AND {condition}")]
        rows = {row["id"]: row for row in self._read_columns(ids, DISPLAY_COLUMNS)}
        exchange_ids = [row["id"] for row in rows.values() if row.get("source")]
        for row in self._read_columns(exchange_ids, CONVERSATION_COLUMNS):
            rows[row["id"]] |= row
        return [row_from_columns(row) for row in rows.values()]

    def _read_columns(self, ids: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return columns of rows: by address if a recent search found all of them, else by id."""
        names = [name for name in columns if name in self._columns]
        unique = list(dict.fromkeys(ids))
        addresses = self._addresses.addresses_of(unique)
        if addresses:
            with suppress(*LANCE_ERRORS):  # A stale address may lie beyond its fragment.
                query = self._table.handle.take_row_ids(addresses).select(names)
                rows = list(run_sync(query.to_arrow()).to_pylist())
                if len(rows) == len(unique) and {row["id"] for row in rows} == set(unique):
                    return rows
        return self._select_by_id(unique, names)

    def _select_by_id(
        self, ids: Sequence[str], columns: Sequence[str], and_condition: str = ""
    ) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for condition in sql_in_conditions("id", ids):
            rows += self._table.select(condition + and_condition, columns).to_pylist()
        return rows

    def read_indices(self) -> None:
        """Read every file of the search indices; 50 MB for 100,000 rows.

        Raises:
            StoreUnavailableError: They cannot be read now.
            TableReadError: A file is missing or damaged.
        """

        async def read(table: LanceTable) -> None:
            for index in await table.list_indices():
                await table.prewarm_index(index.name)

        self._table.run_query(read)

    def all_row_hashes(self) -> Sequence[tuple[str, str]]:
        """Return (id, row hash) of every row, duplicates included; "" in a table without hashes."""
        if self.schema_version < FIRST_CHECKSUM_VERSION:
            return [(row_id, "") for row_id in self.all_ids()]
        columns = self._table.select("", ["id", "row_hash"])
        ids, row_hashes = columns["id"].to_pylist(), columns["row_hash"].to_pylist()
        return list(zip(ids, row_hashes, strict=True))

    def all_rows(self) -> Iterator[Row]:
        """Yield every row, in no order; a batch at a time is in memory."""
        for batch in self.scan(self._columns):
            yield from map(row_from_columns, batch.to_pylist())

    def find_corrupt_ids(self, ids: Sequence[str]) -> Iterator[str]:
        """Yield the ids of those rows whose bytes do not match their checksum.

        Yields nothing for a table of a schema without checksums.
        """
        if self.schema_version < FIRST_CHECKSUM_VERSION:
            return
        columns = [*self._checksummed, *self.vector_columns, "checksum"]
        for condition in sql_in_conditions("id", ids):
            for batch in self._table.select(condition, columns).to_batches():
                yield from corrupt_row_ids(batch, self._checksummed)

    def scan(self, columns: Sequence[str]) -> Iterator[ArrowBatch]:
        """Yield some columns of every row as Arrow batches, in no order.

        An empty table yields one batch without rows.
        """
        return self._table.scan(columns)

    # Figures and state

    def stats(self) -> StoreStats:
        """Count rows, fragments, versions and bytes; the bytes can be five seconds old."""

        async def count(table: LanceTable) -> StoreStats:
            rows, fragments, deleted_rows = await queries.count_stored_rows(table)
            return StoreStats(
                rows=rows,
                fragments=fragments,
                versions=await self._table.count_versions(table),
                bytes=self._size_on_disk(),
                deleted_rows=deleted_rows,
            )

        return self._table.run_query(count)

    def count_unindexed_rows(self) -> int:
        """Count the rows that an index does not cover yet; every search reads each of them.

        If there are none, the writer remembers the rows that it writes from here on.
        """
        count = self._table.run_query(queries.count_unindexed_rows)
        if self._is_writer and not count:
            self._row_writer.unindexed_rows.mark_all_indexed()
        return count

    def count_rows(self) -> int:
        """Count the rows."""
        return int(self._table.run_query(lambda table: table.count_rows()))

    def refresh(self, *, clear_cache: bool = False) -> None:
        """Open the newest version, after maintenance or after another table took this one's place.

        Args:
            clear_cache: Also drop what LanceDB keeps in memory, as `TableConnection.reopen`
                explains.
        """
        self._table.reopen(clear_cache=clear_cache)
        self._row_writer.unindexed_rows = UnindexedRows()
        with suppress(StoreError):  # If an index cannot be read, unindexed rows stay unknown.
            self.count_unindexed_rows()

    def _size_on_disk(self) -> int:
        """Return the bytes of all versions, measured every 5 s at most; 0 for a remote store."""
        if time.monotonic() - self._size_measured_at > _SIZE_MAX_AGE_S:
            self._size_bytes = folder_bytes(self._folder)
            self._size_measured_at = time.monotonic()
        return self._size_bytes

    @property
    def uri(self) -> str:
        """The LanceDB uri that the table is in."""
        return self._table.uri

    @property
    def dataset_uri(self) -> str:
        """The uri under which pylance opens the table."""
        return self._table.dataset_uri

    @property
    def schema_version(self) -> int:
        """The schema version of this table.

        An older table is read and written as it is until a new generation replaces it.
        """
        return self._table.schema_version
