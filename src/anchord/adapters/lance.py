"""The table of chunks: what is asked of it. `lance_table` opens it, `lance_schema` has its columns and indices.

Facts this rests on (measured, lancedb 0.40 / lance 13):
- A merge by `id` with a BTREE on it costs the same at any size, and four times what it costs to count those ids and to append
  the rows; with each unfolded fragment the difference grows. So rows are merged only where some of them are there already.
- The same new id twice in one batch, or two writers at once, would make duplicates without a word. So ids are made unique here,
  counts are checked, and there is one writer, by lock.
- Rows are visible to both searches at once; indices only make them faster.
- A bit that flips in a data file is not noticed by LanceDB: every row carries a checksum of its own.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lancedb.query import MatchQuery

from anchord.adapters.lance_addresses import Addresses
from anchord.adapters.lance_filters import among, beginning, condition, quoted
from anchord.adapters.lance_fold import TROUBLE, words
from anchord.adapters.lance_recent import Recent
from anchord.adapters.lance_schema import (
    HASHED,
    ROW_COLUMNS,
    SAID_COLUMNS,
    SHOWN_COLUMNS,
    batch_of,
    differing,
    row_of,
    summed,
    vectors_in,
)
from anchord.adapters.lance_table import OpenTable
from anchord.adapters.limits import folder_bytes
from anchord.adapters.waited import waited
from anchord.description import doc_id
from anchord.errors import StoreError
from anchord.model import Filters, Origin, Row, Scored, StoreStats, Vector, printable
from anchord.ports import LookedUp

TABLE = "chunks"
NEXT = "next"
"""A table that is being built to take the place of `chunks`."""
_SIZE_S = 5.0
_PROBES = 20
_BEGINNING_ROWS = 500


class LanceStore:
    """A table of chunks at a LanceDB uri: `chunks`, or one that is being built to take its place."""

    def __init__(self, uri: str, dimension: int, model: str, *, read_only: bool = False, table: str = TABLE) -> None:
        """Open the table; the writer makes it when it is missing.

        Raises:
            StoreDamagedError: it is there and cannot be read. OtherFormError: its vectors are of another size.
                NewerStateError: a newer anchord made it. StoreError: (read-only) it is not there.
        """
        self._table = OpenTable(uri, table, dimension, model, writes=not read_only)
        self._writes = not read_only
        self._folder = Path(uri)
        self._measured: tuple[float, int] = (float("-inf"), 0)
        names = self._table.schema.names
        self._columns = [name for name in ROW_COLUMNS if name in names]
        self._summed = summed(self._table.schema)
        self._addresses = Addresses()
        self._recent = Recent()

    # Writing

    def upsert(self, rows: Sequence[Row], vectors: Mapping[str, Vector], absent: Collection[str] = ()) -> None:
        """Write rows by id; those that are said to be absent are not looked for."""
        unique = list({row.id: row for row in rows}.values())
        if not unique:
            return
        batch = batch_of(unique, vectors, self._table.schema)
        if not self._holds_any([row.id for row in unique if row.id not in absent]):
            with self._writing():
                waited(self._table.handle.add(batch))
            self._recent.wrote(unique, vectors)
            return
        merge = self._table.handle.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        with self._writing():
            result = waited(merge.execute(batch))
        self._recent.wrote(unique, vectors)
        if result.num_inserted_rows + result.num_updated_rows != len(unique):
            self.delete([row.id for row in unique])  # Some id stood there twice: all of them go, and come once.
            with self._writing():
                waited(self._table.handle.add(batch))
            self._recent.wrote(unique, vectors)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        recent, self._recent = self._recent, Recent()  # What became of a write that fails is not known.
        try:
            yield
        except TROUBLE as error:
            raise StoreError(f"writing rows failed: {words(error)}", "see the free space of the disk") from error
        self._recent = recent

    def _holds_any(self, ids: Sequence[str]) -> bool:
        async def ask(table: Any) -> bool:  # noqa: ANN401 - lancedb ships no types
            for where in among("id", ids):
                if await table.count_rows(where):
                    return True
            return False

        return self._table.read(ask, newest=False)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows by id."""
        unique, conditions = set(ids), among("id", ids)
        # An address spares the search for the id; should it not be true any more, nothing is deleted there, and ids are sought.
        places = self._recent.places(ids) if len(conditions) == 1 else None
        if not places or self._deleted(f"_rowid IN ({', '.join(map(str, places))}) AND {conditions[0]}") != len(unique):
            for where in conditions:
                self._deleted(where)
        self._recent.deleted(unique)

    def _deleted(self, where: str) -> int:
        with self._writing():
            return int(waited(self._table.handle.delete(where)).num_deleted_rows)

    # Reading

    def ids_of(self, origin: Origin) -> Sequence[str]:
        """Return the ids of a file's rows."""
        # Two names can print alike (a byte that is no UTF-8, and its four characters): the document's id tells them apart.
        where = f"path = {quoted(printable(origin.path))} AND doc_id = {quoted(doc_id(origin))}"
        return list(self._table.select(where, ["id"])["id"].to_pylist())

    def ids_of_root(self, root: str) -> Sequence[str]:
        """Return the ids of a root's rows."""
        return list(self._table.select(f"root = {quoted(root)}", ["id"])["id"].to_pylist())

    def vectors(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of those keys that some row has."""
        return {key: vector for _, key, _, vector in self._vectors({"vector_key": keys})}

    def vectors_of(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of rows, by their keys."""
        return {key: vector for _, key, _, vector in self._vectors({"id": ids})}

    def look_up(self, ids: Sequence[str], keys: Sequence[str]) -> LookedUp:
        """Return what the table has of rows and of vectors."""
        found = self._vectors({"id": ids, "vector_key": keys}, indexed=self._recent.rows is not None)
        there, wanted = self._recent.found(found), set(keys)
        rows = {row: there[row] for row in there.keys() & set(ids)}
        return LookedUp(rows, {key: vector for key, vector in there.values() if key in wanted})

    def row_vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vector of each row, by its id."""
        return {row: vector for row, _, _, vector in self._vectors({"id": ids})}

    def _vectors(self, wanted: Mapping[str, Sequence[str]], *, indexed: bool = False) -> Iterator[tuple[str, str, int, Vector]]:
        """Yield (id, vector key, address, vector) of the rows that have one of these values in one of these columns."""
        for together in zip_longest(*(among(column, values) for column, values in wanted.items())):
            where = " OR ".join(filter(None, together))

            async def ask(table: Any, where: str = where) -> Any:  # noqa: ANN401 - lancedb ships no types
                query = table.query().select(["id", "vector_key", "vector"]).where(where).with_row_id()
                return await (query.fast_search() if indexed else query).to_arrow()

            for batch in self._table.read(ask, newest=False).to_batches():
                columns = (batch[name].to_pylist() for name in ("id", "vector_key", "_rowid"))
                yield from zip(*columns, vectors_in(batch), strict=True)

    def nearest(self, vector: Vector, limit: int, filters: Filters) -> Sequence[Scored]:
        """Return the rows with the highest cosine similarity."""
        numbers, where = array("f", vector).tolist(), condition(filters)

        async def ask(table: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - likewise
            query = table.query().nearest_to(numbers).column("vector").distance_type("cosine")
            # The index looks at a part of the rows, and may find fewer than there are where a filter lets few of them through.
            query = query.where(where).bypass_vector_index() if where else query.nprobes(_PROBES).refine_factor(2)
            return list(await query.select(["id", "_distance"]).with_row_id().limit(limit).to_list())

        found = self._table.read(ask)
        self._addresses.note(found)
        return [Scored(row["id"], 1.0 - row["_distance"]) for row in found if not math.isnan(row["_distance"])]

    def matching(self, text: str, limit: int, filters: Filters) -> Sequence[Scored]:
        """Return the rows with the highest BM25 score."""
        where = condition(filters)

        async def ask(table: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - likewise
            terms = " ".join([text, *await self._beginning(table, filters)])
            query = table.query().nearest_to_text(MatchQuery(terms, "search_text"))  # A bare text in quotes would be a phrase.
            query = query.where(where) if where else query
            return list(await query.select(["id", "header_path", "_score"]).with_row_id().limit(limit).to_list())

        found = self._table.read(ask) if text.strip() else []
        self._addresses.note(found)
        return [Scored(row["id"], row["_score"], row["header_path"]) for row in found]

    async def _beginning(self, table: Any, filters: Filters) -> set[str]:  # noqa: ANN401 - likewise
        """Return words that begin as is asked for: the index of words knows whole ones only."""
        if not filters.prefixes:
            return set()
        query = table.query().where(condition(filters)).select(["search_text"]).limit(_BEGINNING_ROWS)
        return beginning((await query.to_arrow())["search_text"].to_pylist(), filters.prefixes)

    def holding(self, literal: str, limit: int, filters: Filters) -> Sequence[str]:
        """Return the ids of rows that hold a text letter by letter."""
        where = " AND ".join(filter(None, [condition(filters), f"contains(search_text, {quoted(literal)})"]))

        async def ask(table: Any) -> list[str]:  # noqa: ANN401 - likewise
            found = await table.query().where(where).select(["id"]).limit(limit).to_arrow()
            return list(found["id"].to_pylist())

        return self._table.read(ask)

    def rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows by id."""
        found = (self._table.select(where, self._columns) for where in among("id", ids))
        return [row_of(row) for table in found for row in table.to_pylist()]

    def shown(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows by id for somebody to read: what only the index needs is left empty."""
        rows = {row["id"]: row for row in self._found(ids, SHOWN_COLUMNS)}
        said = [row["id"] for row in rows.values() if row.get("source")]
        for row in self._found(said, SAID_COLUMNS):
            rows[row["id"]] |= row
        return list(map(row_of, rows.values()))

    def _found(self, ids: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return some columns of rows; those that a search has just found are read where they stand, which takes a third."""
        names, unique = [name for name in columns if name in self._columns], list(dict.fromkeys(ids))
        addresses = self._addresses.of(unique)
        if addresses:
            with suppress(*TROUBLE):
                rows = waited(self._table.handle.take_row_ids(addresses).select(names).to_arrow()).to_pylist()
                if {row["id"] for row in rows} == set(unique) and len(rows) == len(unique):
                    return list(rows)
        return [row for where in among("id", unique) for row in self._table.select(where, names).to_pylist()]

    def ids(self) -> Sequence[str]:
        """Return the id of every row, repeats included."""
        return list(self._table.select("", ["id"])["id"].to_pylist())

    def hashes(self) -> Sequence[tuple[str, str]]:
        """Return id and hash of every row, repeats included."""
        if self.form < HASHED:
            return [(chunk_id, "") for chunk_id in self.ids()]
        found = self._table.select("", ["id", "row_hash"])
        return list(zip(found["id"].to_pylist(), found["row_hash"].to_pylist(), strict=True))

    def all_rows(self) -> Iterator[Row]:
        """Yield every row, in no order, without holding the table in memory."""
        for batch in self.batches(self._columns):
            yield from map(row_of, batch.to_pylist())

    def spoiled(self, ids: Sequence[str]) -> Iterator[str]:
        """Yield the ids of those rows whose bytes are not those that were written."""
        if self.form < HASHED:
            return
        columns = (*self._summed, "vector", "checksum")
        found = (self._table.select(where, list(columns)).to_batches() for where in among("id", ids))
        for batch in (batch for batches in found for batch in batches):
            yield from differing(batch, self._summed)

    def stats(self) -> StoreStats:
        """Count the table."""

        async def ask(table: Any) -> tuple[int, int, int]:  # noqa: ANN401 - likewise
            fragments = int((await table.stats())["fragment_stats"]["num_fragments"])
            return int(await table.count_rows()), fragments, await self._table.versions(table)

        return StoreStats(*self._table.read(ask), self._size())

    def unindexed(self) -> int:
        """Count the rows that an index does not have yet: every search reads each of them.

        Where there are none, the writer knows from here on which ones there are: those that it writes.
        """

        async def ask(table: Any) -> int:  # noqa: ANN401 - lancedb ships no types
            told = [await table.index_stats(f"{column}_idx") for column in ("id", "vector_key")]
            return max(each.num_unindexed_rows for each in told) if all(told) else int(await table.count_rows())

        lacking = self._table.read(ask)
        if self._writes and not lacking:
            self._recent.begin()
        return lacking

    def count(self) -> int:
        """Count the rows."""
        return int(self._table.read(lambda table: table.count_rows()))

    def refresh(self, *, anew: bool = False) -> None:
        """See what was changed by other means: upkeep, or another table in this one's place; `anew`: as `OpenTable.reopen`."""
        self._table.reopen(anew=anew)
        self._recent = Recent()
        with suppress(StoreError):  # Where an index cannot be read, nothing is taken as known.
            self.unindexed()

    def _size(self) -> int:
        """Return the size on disk with old versions, measured at most every few seconds; 0 where it is not a local folder."""
        measured, size = self._measured
        if time.monotonic() - measured > _SIZE_S:
            size = folder_bytes(self._folder)
            self._measured = (time.monotonic(), size)
        return size

    @property
    def dataset(self) -> str:
        """Where upkeep finds the table."""
        return self._table.dataset

    @property
    def form(self) -> int:
        """The schema of the table; an older one is read and written as it is until a new generation replaces it."""
        return self._table.form

    @property
    def columns(self) -> Sequence[str]:
        """The names of the table's columns."""
        return list(self._table.schema.names)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield every row as Arrow's batches, in no order; of an empty table one without rows."""
        return self._table.batches(columns)
