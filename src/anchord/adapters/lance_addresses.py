"""Where rows stand in the table, as searches have just found them: what is shown next is read there, without a search by id.

An address holds until the table is folded or the row is written again. Nothing is lost by an old one: there is no row at it
any more, or one of another id, and then the row is looked for by its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MOST = 4_096


class Addresses:
    """Addresses by row id; those of the last searches."""

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[str, int] = {}

    def note(self, found: Iterable[Mapping[str, Any]]) -> None:
        """Keep where a search found its rows."""
        new = {row["id"]: row["_rowid"] for row in found}
        kept = {} if len(self._known) + len(new) > _MOST else self._known
        self._known = kept | new  # Replaced and not changed: two searches can run at once.

    def of(self, ids: Sequence[str]) -> list[int] | None:
        """Return the addresses of rows; None where that of one is not known."""
        known = self._known
        return [known[each] for each in ids] if known.keys() >= set(ids) else None
