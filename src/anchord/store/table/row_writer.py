"""Writes rows: appended where no id is in the table, else merged by id, and deleted by id."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from anchord.core.types import Row, Vector
from anchord.errors import StoreError
from anchord.store.table import queries
from anchord.store.table.connection import TableConnection
from anchord.store.table.due_rows import arrow_of_new_vectors
from anchord.store.table.event_loop import run_sync
from anchord.store.table.filters import sql_in_conditions
from anchord.store.table.lance_errors import LANCE_ERRORS, first_line, raise_if_unavailable
from anchord.store.table.schema import ArrowTable, rows_to_arrow
from anchord.store.table.unindexed_rows import UnindexedRows
from anchord.store.table.vector_columns import vector_columns


class RowWriter:
    """Writes to one table, and remembers what the indices do not cover yet. For one thread."""

    def __init__(self, table: TableConnection) -> None:
        """Write to an open table."""
        self.unindexed_rows = UnindexedRows()
        """The rows that were written since the last compaction."""
        self._table = table

    def upsert(
        self,
        rows: Sequence[Row],
        vectors: Mapping[str, Vector],
        absent_ids: Collection[str],
        due: Mapping[str, Vector],
    ) -> None:
        """Insert or replace rows, as `LanceStore.upsert`.

        Raises:
            StoreError: Writing failed; the rows may have been written or not.
        """
        unique = list({row.id: row for row in rows}.values())
        if not unique:
            return
        batch = rows_to_arrow(unique, vectors, self._table.schema, due)
        maybe_present = [row.id for row in unique if row.id not in absent_ids]
        if not self._any_id_exists(maybe_present):
            self._append(batch)
            self.unindexed_rows.record_written(unique, vectors, due)
            return
        written = self._merge(batch)
        self.unindexed_rows.record_written(unique, vectors, due)
        if written != len(unique):
            # Some id had duplicate rows, and the merge replaced each of them: delete all, append
            # one.
            self.delete_rows([row.id for row in unique])
            self._append(batch)
            self.unindexed_rows.record_written(unique, vectors, due)

    def set_vectors(self, keyed_vectors_by_id: Mapping[str, tuple[str, Vector]]) -> None:
        """Give rows that lack their own vector theirs, as `LanceStore.set_vectors`.

        Whole rows are written again. Lance could write the columns of the vectors alone, but then
        it writes them for every row of the fragment, and drops the fragment from all their indices:
        37 % more CPU and 26 % more bytes (docs/design/stores.md).

        Raises:
            StoreError: Writing failed; the vectors may have been written or not.
        """
        batch = arrow_of_new_vectors(self._table, keyed_vectors_by_id)
        if batch is None:
            return
        merge = self._table.handle.merge_insert("id").when_matched_update_all()
        with self._writing():
            run_sync(merge.execute(batch, on_bad_vectors=_on_bad_vectors(batch)))
        # They may be more than it remembers, and their old addresses are gone.
        self.unindexed_rows = UnindexedRows()

    def delete_rows(self, ids: Sequence[str]) -> None:
        """Delete rows by id, duplicates included; unknown ids are ignored.

        Raises:
            StoreError: Deleting failed; the rows may have been deleted or not.
        """
        if not self._delete_by_address(ids):
            for condition in sql_in_conditions("id", ids):
                self._delete_where(condition)
        self.unindexed_rows.record_deleted(set(ids))

    def _append(self, batch: ArrowTable) -> None:
        with self._writing():
            run_sync(self._table.handle.add(batch))

    def _merge(self, batch: ArrowTable) -> int:
        """Insert or replace rows by id; return how many rows were written."""
        merge = (
            self._table.handle.merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
        )
        with self._writing():
            result = run_sync(merge.execute(batch, on_bad_vectors=_on_bad_vectors(batch)))
        return int(result.num_inserted_rows + result.num_updated_rows)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Translate the errors of a write. After a failed one the unindexed rows are unknown."""
        unindexed_rows = self.unindexed_rows
        self.unindexed_rows = UnindexedRows()
        try:
            yield
        except LANCE_ERRORS as error:
            raise_if_unavailable(self._table.place, error)
            raise StoreError(
                f"writing rows failed: {first_line(error)}", "check the free space of the disk"
            ) from error
        self.unindexed_rows = unindexed_rows

    def _any_id_exists(self, ids: Sequence[str]) -> bool:
        return self._table.run_query(
            lambda table: queries.any_id_exists(table, ids), check_for_newer=False
        )

    def _delete_by_address(self, ids: Sequence[str]) -> bool:
        """Delete rows at the addresses of the last look-up, which spares a search for their ids.

        Returns:
            Whether every row was deleted. At a stale address nothing is, as the id must match too.
        """
        conditions = sql_in_conditions("id", ids)
        if len(conditions) != 1:
            return False
        addresses = self.unindexed_rows.addresses_of(ids)
        if not addresses:
            return False
        literals = ", ".join(map(str, addresses))
        deleted = self._delete_where(f"_rowid IN ({literals}) AND {conditions[0]}")
        return deleted == len(set(ids))

    def _delete_where(self, condition: str) -> int:
        with self._writing():
            result = run_sync(self._table.handle.delete(condition))
        return int(result.num_deleted_rows)


def _on_bad_vectors(batch: ArrowTable) -> str:
    """Return how to merge: LanceDB refuses a null vector unless it may make one of a bad vector."""
    columns = vector_columns(batch.schema.names)
    return "null" if any(batch[name].null_count for name in columns) else "error"
