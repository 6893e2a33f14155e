"""Where a text is cut: at headings, else at the boundary whose own text hashes lowest (CHUNKER.md, step 5).

Why not pack greedily from the top? Because then one inserted line moves every later cut. A boundary's own hash is a choice
that edits elsewhere do not touch. What is longer than two chunks is cut wherever a boundary is better than all others within
reach: an edit can only move cuts in reach of it (in 1,920 one-line edits of 100 KB without headings four chunks at most; the
lowest hash of the whole piece first, as CHUNKER.md has it, moved up to six). A piece of up to two chunks is cut at one hash
where both parts fit; only where no such boundary exists are its parts packed.

Cuts by headings or hashes are *anchors*: line numbers in chunk ids count from them. Headings also bound *sections*, and so do
hash cuts in what is longer than one and a half chunks: no heading above them is embedded, so a renamed one costs three vectors.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from anchord.chunkers.layout import BLOCK, FORBIDDEN, ITEM, LAST_RESORT, LOWEST_HEADING, ROW, TEXT_LINE, Layout, Limits
from anchord.core.identity import boundary_key

_MIN_SIDE = 64
_REACH = 96
"""Weight on both sides of a boundary within which it must be the best; chosen by real edits and 100 KB without headings."""
_MIN_PART = 40
_SECTION = 1.5
"""Chunks that a heading is embedded with at most; cuts in reach of each other are at least 96 apart, so that makes three."""
_OVER_LIMIT = 100.0


@dataclass(frozen=True, slots=True)
class Piece:
    """Atoms [first, last) that make one chunk. Lines are 0-based.

    The chunk's lines are counted from `anchor_line`; headings above `section_line` are not embedded with it.
    """

    first: int
    last: int
    anchor_line: int
    section_line: int


def cut(layout: Layout, limits: Limits, borders: Sequence[int] = ()) -> list[Piece]:
    """Cut a layout into pieces that cover every atom, in order; always before the atoms `borders`, which are sorted."""
    return _Cutter(layout, limits).pieces(borders)


class _Cutter:
    """The prefix sums and key cache of one text."""

    def __init__(self, layout: Layout, limits: Limits) -> None:
        self._layout = layout
        self._limit = limits.body
        self._min_chars = limits.min_chars
        self._chars = [0, *accumulate(end - start + 1 for start, end in zip(layout.start, layout.end, strict=True))]
        self._sums = [0, *accumulate(layout.weight)]
        self._boundaries = [i for i, how in enumerate(layout.strength) if how > FORBIDDEN]
        self._headings = [i for i in self._boundaries if layout.strength[i] >= LOWEST_HEADING]
        self._keys: dict[int, int] = {}

    def pieces(self, borders: Sequence[int]) -> list[Piece]:
        total = len(self._layout.line)
        cuts, anchors, sections = self._cuts(borders, total) if total else ([], set(), set())
        pieces, anchor, section = [], 0, 0
        for first, last in pairwise([*cuts, total]):
            line = self._layout.line[first]
            anchor = line if first in anchors and first else anchor
            section = line if first in sections and first else section
            pieces.append(Piece(first, last, anchor, section))
        return pieces

    def _cuts(self, borders: Sequence[int], total: int) -> tuple[list[int], set[int], set[int]]:
        """Return where pieces begin, sorted, and which of these are anchors, and starts of sections."""
        cuts = [0, *borders]
        work, anchors, sections = list(pairwise([*cuts, total])), set(cuts), set(cuts)
        while work:
            first, last = work.pop()
            weight = self._weight(first, last)
            found = self._heading_cut(first, last)
            if not found and weight > 2 * self._limit:
                found = self._near_best(first, last) or self._hash_cut(first, last, _MIN_SIDE)
            if found:
                sections.update(self._section_starts(first, found, last))
            elif weight > self._limit:
                found = self._hash_cut(first, last, max(_MIN_PART, weight - self._limit))
            if found:
                anchors.update(found)
                cuts += found
                work += pairwise([first, *found, last])
            elif weight > self._limit:
                cuts += self._packed(first, last)
        return sorted(cuts), anchors, sections

    def _weight(self, first: int, last: int) -> int:
        return self._sums[last] - self._sums[first]

    def _key(self, at: int) -> int:
        key = self._keys.get(at)
        if key is None:
            key = self._keys[at] = boundary_key(self._layout.atom(at))
        return key

    def _section_starts(self, first: int, cuts: Sequence[int], last: int) -> list[int]:
        """Return the cuts where a section ends that began at `first`: headings, and what would take it too far."""
        starts = []
        for cut_at, after in pairwise([*cuts, last]):
            if self._layout.strength[cut_at] >= LOWEST_HEADING or self._weight(first, after) > _SECTION * self._limit:
                starts.append(cut_at)
                first = cut_at
        return starts

    def _heading_cut(self, first: int, last: int) -> list[int]:
        layout, fits = self._layout, self._weight(first, last) <= self._limit
        inner = self._between(self._headings, first, last)
        if fits and self._min_chars:
            able = [i for i in inner if _side(self._chars, i, first, last) >= self._min_chars]
        else:
            able = [i for i in inner if _side(self._sums, i, first, last) >= layout.sides.least(layout.strength[i], fits=fits)]
        return self._best(able, first, last)

    def _able(self, first: int, last: int, side: int) -> list[int]:
        inner = self._between(self._boundaries, first, last)
        return [i for i in inner if self._layout.strength[i] > LAST_RESORT and _side(self._sums, i, first, last) >= side]

    def _hash_cut(self, first: int, last: int, side: int) -> list[int]:
        return self._best(self._able(first, last, side), first, last)

    def _near_best(self, first: int, last: int) -> list[int]:
        """Return the boundaries that are better than all others within reach on both sides: no edit farther away moves them.

        Of equal ones none is: 20,000 equal list items would be peeled off one after the other.
        """
        able = self._able(first, last, _MIN_SIDE)
        places = [self._sums[i] for i in able]
        ranks = [(-self._layout.strength[i], self._key(i)) for i in able]
        found = []
        for number, place in enumerate(places):
            near = range(bisect_right(places, place - _REACH), bisect_left(places, place + _REACH))
            if all(ranks[number] < ranks[other] for other in near if other != number):
                found.append(able[number])
        return found

    def _between(self, boundaries: Sequence[int], first: int, last: int) -> Sequence[int]:
        return boundaries[bisect_right(boundaries, first) : bisect_left(boundaries, last)]

    def _best(self, inner: Sequence[int], first: int, last: int) -> list[int]:
        """Of some boundaries at most one: the strongest class, the lowest key, the nearest to the middle.

        The last rule also bounds the work: 20,000 identical list items are halved instead of peeled.
        """
        if not inner:
            return []
        strongest = max(self._layout.strength[i] for i in inner)
        middle = (self._sums[first] + self._sums[last]) / 2
        able = [i for i in inner if self._layout.strength[i] == strongest]
        return [min(able, key=lambda i: (self._key(i), abs(self._sums[i] - middle), i))]

    def _packed(self, first: int, last: int) -> list[int]:
        """Cut a piece at least cost, by dynamic programming over its boundaries."""
        stops = [first, *self._between(self._boundaries, first, last), last]
        sums = [self._sums[i] for i in stops]
        penalties = [0.0, *(_penalty(self._layout.strength[i]) for i in stops[1:-1]), 0.0]
        limit, half = self._limit, self._limit / 2
        best, back = [0.0], [0]
        for j in range(1, len(stops)):
            least, origin = float("inf"), j - 1
            for i in range(j - 1, -1, -1):
                weight = sums[j] - sums[i]
                if weight > limit and i < j - 1:
                    break
                cost = best[i] + 1 + penalties[j] + (_OVER_LIMIT if weight > limit else 0.0)
                if weight < half:
                    cost += ((half - weight) / half) ** 2
                if cost < least:
                    least, origin = cost, i
            best.append(least)
            back.append(origin)
        cuts, j = [], back[-1]
        while j:
            cuts.append(stops[j])
            j = back[j]
        return cuts


def _side(sums: Sequence[int], at: int, first: int, last: int) -> int:
    """Return the lesser of the two sides of a cut."""
    return min(sums[at] - sums[first], sums[last] - sums[at])


def _penalty(strength: int) -> float:
    """What a cut of this strength costs, in chunks."""
    if strength >= LOWEST_HEADING:
        return 0.0
    for least, penalty in ((BLOCK, 0.15), (ITEM, 0.3), (ROW, 0.5), (TEXT_LINE, 0.7), (LAST_RESORT + 1, 0.9)):
        if strength >= least:
            return penalty
    return 3.0
