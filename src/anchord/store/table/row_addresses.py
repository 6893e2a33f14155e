"""Lance addresses of the rows that searches found, so that showing them needs no search by id.

Measured with 10,000 rows: reading 12 hits takes 4 ms by address and 5 ms by id, and 13 and 44 ms on
a busy machine. An address holds until compaction moves the row or the row is written again. A stale
one does no harm: there is no row at it, or one of another id, and the caller then looks the row up
by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MAX_ADDRESSES = 4_096


class RowAddressCache:
    """Row id -> Lance row address, for readers. Thread-safe."""

    def __init__(self) -> None:
        """Create an empty cache."""
        self._addresses: dict[str, int] = {}

    def remember(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Store the addresses of rows that a search found.

        Beyond 4,096 addresses all earlier ones are dropped.

        Args:
            rows: Each with `id` and `_rowid`.
        """
        found = {row["id"]: row["_rowid"] for row in rows}
        earlier = self._addresses
        if len(earlier) + len(found) > _MAX_ADDRESSES:
            earlier = {}
        self._addresses = earlier | found  # Replaced, not changed: searches run concurrently.

    def addresses_of(self, ids: Sequence[str]) -> list[int] | None:
        """Return the addresses of rows, in the order of their ids; None if any is unknown."""
        addresses = self._addresses
        if not addresses.keys() >= set(ids):
            return None
        return [addresses[row_id] for row_id in ids]
