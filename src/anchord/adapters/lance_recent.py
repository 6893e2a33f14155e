"""What the writer knows of its table beyond the indices: the rows that those do not hold yet, and where others were just found.

Until the next fold each commit leaves a fragment that no index covers, and a condition is compared with every row of each: to
find a row or to delete it takes a fifth of a millisecond more for every commit since. The one who wrote them all need not look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from anchord.model import Row, Vector

_MOST = 1_000
"""Rows that are remembered, of 1.5 KB each: a first index writes more between two folds."""


class Recent:
    """Of the rows written since everything was in the indices: all, or nothing."""

    def __init__(self) -> None:
        """Know nothing."""
        self.rows: dict[str, tuple[str, Vector]] | None = None
        """Id -> vector key and vector, of every row that an index lacks; None: not known."""
        self._places: dict[str, int] = {}

    def begin(self) -> None:
        """Know that the indices hold every row."""
        self.rows = {}

    def wrote(self, rows: Iterable[Row], vectors: Mapping[str, Vector]) -> None:
        """Take note of rows that were written."""
        new = {row.id: (row.vector_key, vectors[row.vector_key]) for row in rows}
        for each in new:
            self._places.pop(each, None)
        if self.rows is not None:
            self.rows.update(new)
            self.rows = self.rows if len(self.rows) <= _MOST else None

    def deleted(self, ids: Iterable[str]) -> None:
        """Take note of rows that are gone. Places hold for one commit only."""
        self._places = {}
        if self.rows is not None:
            for each in ids:
                self.rows.pop(each, None)

    def found(self, rows: Iterable[tuple[str, str, int, Vector]]) -> dict[str, tuple[str, Vector]]:
        """Take note of where a look-up found rows (id, vector key, address, vector); return them and those of before."""
        self._places, there = {}, dict[str, tuple[str, Vector]]()
        twice = set[str](self.rows or ())
        for each, key, place, vector in rows:
            there[each] = key, vector
            if self._places.setdefault(each, place) != place:
                twice.add(each)
        for each in twice:
            self._places.pop(each, None)
        return there | (self.rows or {})

    def places(self, ids: Sequence[str]) -> list[int] | None:
        """Return the addresses of rows; None where one is not known, or is not the only one."""
        return [self._places[each] for each in ids] if self._places.keys() >= set(ids) else None
