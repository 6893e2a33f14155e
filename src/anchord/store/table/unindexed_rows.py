"""What the writer remembers of its own commits, so that it need not scan unindexed fragments.

Until the next compaction each commit leaves a fragment that no index covers, and a query compares
every row of each such fragment: 0.2 ms more for each commit since. The writer that wrote all of
these rows itself can query the indices alone and add the rows it remembers. It also remembers the
addresses that its last look-up found, so that the delete of the same commit needs no search by id.

Measured with 10,000 rows and 48 commits that each change one chunk of another file, as CPU time of
the last 24 commits: 23 ms a commit; 33 ms without the rows; 29 ms without the addresses, as a
delete then takes twice as long. A chunk that is edited again and again gains from the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from anchord.core.types import NO_VECTORS, Row, Vector
from anchord.store.table.schema import stored_vector_of

_MAX_ROWS = 1_000
"""Rows of 1.5 KB each; a first index writes more than this between two compactions."""


class UnindexedRows:
    """The rows that some index does not cover yet: all of them, or unknown. For the writer."""

    def __init__(self) -> None:
        """Begin with everything unknown."""
        self.rows: dict[str, tuple[str, Vector]] | None = None
        """Row id -> (vector key, vector) of every row that an index lacks; None means unknown."""
        self._addresses: dict[str, int] = {}

    def mark_all_indexed(self) -> None:
        """Record that the indices cover every row of the table."""
        self.rows = {}

    def record_written(
        self,
        rows: Iterable[Row],
        vectors: Mapping[str, Vector],
        due: Mapping[str, Vector] = NO_VECTORS,
    ) -> None:
        """Record rows that were written; beyond 1,000 rows everything becomes unknown.

        Args:
            rows: The rows.
            vectors: Vector key -> vector, for at least the keys of these rows.
            due: Vector key -> provisional vector, b"" for none, of rows that lack their own.
        """
        written = {row.id: stored_vector_of(row, vectors, due) for row in rows}
        for row_id in written:
            self._addresses.pop(row_id, None)
        if self.rows is None:
            return
        self.rows.update(written)
        if len(self.rows) > _MAX_ROWS:
            self.rows = None

    def record_deleted(self, ids: Iterable[str]) -> None:
        """Record that rows were deleted, and forget all addresses: they last one commit."""
        self._addresses = {}
        if self.rows is not None:
            for row_id in ids:
                self.rows.pop(row_id, None)

    def record_addresses(
        self, rows: Iterable[tuple[str, str, int, Vector]]
    ) -> dict[str, tuple[str, Vector]]:
        """Record the addresses of rows that a look-up found, replacing those of the last look-up.

        Args:
            rows: (row id, vector key, address, vector) of each row found. If `self.rows` is known,
                the look-up may have left out the rows without an index.

        Returns:
            Row id -> (vector key, vector) of these rows and of all remembered ones.
        """
        self._addresses = {}
        found: dict[str, tuple[str, Vector]] = {}
        addresses: dict[str, int] = {}
        # An id with a second row, found or remembered, has no address: a delete must meet both.
        ambiguous = set(self.rows or ())
        for row_id, key, address, vector in rows:
            found[row_id] = key, vector
            if addresses.setdefault(row_id, address) != address:
                ambiguous.add(row_id)
        self._addresses = {
            row_id: address for row_id, address in addresses.items() if row_id not in ambiguous
        }
        return found | (self.rows or {})

    def addresses_of(self, ids: Sequence[str]) -> list[int] | None:
        """Return the addresses of rows, in the order of their ids.

        None if the last look-up did not find one of them, or found it twice.
        """
        if not self._addresses.keys() >= set(ids):
            return None
        return [self._addresses[row_id] for row_id in ids]
