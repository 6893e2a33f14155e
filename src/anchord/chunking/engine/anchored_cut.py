"""Choose where a text is cut: at headings, else at the boundary whose own text hashes lowest.

Packing greedily from the top would move every later cut when one line is inserted. A boundary's own
hash is a choice that edits elsewhere do not change.

- A piece longer than two chunks is cut wherever a boundary is better than all others within 96
  weights on both sides. An edit can only move cuts within that distance: of 1,920 one-line edits of
  100 KB without headings, none changed more than four chunks. Cutting at the lowest hash of the
  whole piece changed up to six.
- A piece of up to two chunks is cut at the lowest hash where both parts fit.
- Only where no such boundary exists are the atoms packed at least cost.

Cuts at headings and hashes are *anchors*: line numbers in chunk ids count from them. Headings also
bound *sections*, and so do hash cuts in a text of more than one and a half chunks. No heading above
the start of its section is embedded with a chunk, so a renamed heading costs three vectors.
`docs/design/chunking.md` has the measurements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from anchord.chunking.engine.cheapest_cuts import find_cheapest_cuts
from anchord.chunking.engine.layout import (
    LAST_RESORT,
    MIN_HEADING_STRENGTH,
    NO_CUT,
    Layout,
    Limits,
)
from anchord.core.ids import boundary_priority

_MIN_SIDE = 64
_REACH = 96
"""Weight on both sides of a boundary within which it must be the best.

Chosen by real edits and by a text of 100 KB without headings.
"""
_MIN_PART = 40
_SECTION_CHUNKS = 1.5
"""Chunks that one heading is embedded with at most.

Cuts within reach of each other are at least 96 weights apart, so this makes three.
"""
_Rank = tuple[int, int]
"""Negative strength and hash of a boundary; the lowest is preferred."""


@dataclass(frozen=True, slots=True)
class AtomRange:
    """Atoms [first_atom, end_atom) that make one chunk. Lines are 0-based."""

    first_atom: int
    end_atom: int
    anchor_line: int
    """The chunk's lines in its id count from this line."""
    section_line: int
    """Headings above this line are not embedded with the chunk."""


def split_layout(
    layout: Layout, limits: Limits, required_cuts: Sequence[int] = ()
) -> list[AtomRange]:
    """Cut a layout into ranges of atoms.

    Args:
        layout: The text.
        limits: Sizes of chunks.
        required_cuts: Atoms, in ascending order and without 0, before which there is always a cut.

    Returns:
        Ranges in order; together they cover every atom. None for a layout without atoms.
    """
    atom_count = len(layout.atom_lines)
    if not atom_count:
        return []
    cuts = _Cutter(layout, limits).cut(required_cuts)
    cut_atoms = sorted(cuts.atoms)
    edges = [*cut_atoms, atom_count]
    ranges: list[AtomRange] = []
    anchor_line, section_line = 0, 0
    for first, end in pairwise(edges):
        # Invariant: a range that is no anchor counts from the last anchor above it.
        if first in cuts.anchors:
            anchor_line = layout.atom_lines[first]
        if first in cuts.sections:
            section_line = layout.atom_lines[first]
        atom_range = AtomRange(first, end, anchor_line, section_line)
        ranges.append(atom_range)
    return ranges


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Atoms before which a text is cut."""

    atoms: list[int]
    """All cuts, in no order."""
    anchors: set[int] = field(default_factory=set)
    """Those that line numbers count from."""
    sections: set[int] = field(default_factory=set)
    """Those at which a section starts."""


class _Cutter:
    """The prefix sums, boundaries and hash cache of one text."""

    def __init__(self, layout: Layout, limits: Limits) -> None:
        self._layout = layout
        self._strengths = layout.cut_strengths
        self._limit = limits.body
        self._min_chars = limits.min_chars
        self._char_sums = self._sum_chars()
        self._weight_sums = [0, *accumulate(layout.atom_weights)]
        self._boundaries: list[int] = []
        self._headings: list[int] = []
        self._find_boundaries()
        self._priorities: dict[int, int] = {}

    def _sum_chars(self) -> list[int]:
        """Return prefix sums of the characters of atoms, with one more for each line end."""
        starts = self._layout.atom_starts
        ends = self._layout.atom_ends
        total = 0
        sums = [total]
        for start, end in zip(starts, ends, strict=True):
            length = end - start
            total += length + 1
            sums.append(total)
        return sums

    def _find_boundaries(self) -> None:
        """Record the atoms before which a cut is possible, and which of them are headings."""
        boundaries = self._boundaries
        headings = self._headings
        for atom, strength in enumerate(self._strengths):
            if strength <= NO_CUT:
                continue
            boundaries.append(atom)
            if strength >= MIN_HEADING_STRENGTH:
                headings.append(atom)

    def cut(self, required_cuts: Sequence[int]) -> _Cuts:
        """Cut the whole text, first at the required cuts, until every piece fits in a chunk."""
        atoms = [0, *required_cuts]
        atom_count = len(self._layout.atom_lines)
        edges = [*atoms, atom_count]
        pieces = list(pairwise(edges))
        anchors_at_start = set(atoms)
        sections_at_start = set(atoms)
        cuts = _Cuts(atoms, anchors_at_start, sections_at_start)
        while pieces:
            first, end = pieces.pop()
            anchors = self._anchors_in(first, end, cuts)
            if anchors:
                # Each part is cut again: it may be too long, or have headings of its own.
                cuts.atoms.extend(anchors)
                cuts.anchors.update(anchors)
                part_edges = [first, *anchors, end]
                pieces += pairwise(part_edges)
                continue
            weight = self._weight(first, end)
            if weight > self._limit:
                # Packed cuts depend on what stands before them, so they are no anchors.
                packed_cuts = self._pack(first, end)
                cuts.atoms.extend(packed_cuts)
        return cuts

    def _anchors_in(self, first: int, end: int, cuts: _Cuts) -> list[int]:
        """Return the next cuts at headings or hashes, sorted; record which start a section."""
        anchors = self._section_anchors(first, end)
        if anchors:
            section_starts = self._section_starts(first, anchors, end)
            cuts.sections.update(section_starts)
            return anchors
        excess = self._weight(first, end) - self._limit
        if excess <= 0:
            return []
        # At most two chunks: one cut is enough where both parts fit. The section goes on.
        min_side = max(_MIN_PART, excess)
        return self._hash_cut(first, end, min_side)

    def _section_anchors(self, first: int, end: int) -> list[int]:
        """Return the cuts that can start a section: a heading, or hashes in a long piece."""
        anchors = self._heading_cut(first, end)
        if anchors:
            return anchors
        longest_for_one_cut = 2 * self._limit
        if self._weight(first, end) <= longest_for_one_cut:
            return []
        anchors = self._best_within_reach(first, end)
        if anchors:
            return anchors
        return self._hash_cut(first, end, _MIN_SIDE)

    def _weight(self, first: int, end: int) -> int:
        return self._weight_sums[end] - self._weight_sums[first]

    def _priority(self, atom: int) -> int:
        """Return the hash of the text after a boundary; the lowest is preferred."""
        priority = self._priorities.get(atom)
        if priority is None:
            text = self._layout.atom_text(atom)
            priority = boundary_priority(text)
            self._priorities[atom] = priority
        return priority

    def _section_starts(self, first: int, cuts: Sequence[int], end: int) -> list[int]:
        """Return the cuts that end the section that `first` is in.

        A heading always does; another cut only where the section would grow over 1.5 chunks.
        """
        max_weight = _SECTION_CHUNKS * self._limit
        starts: list[int] = []
        section_start = first
        edges = [*cuts, end]
        for cut, next_cut in pairwise(edges):
            is_heading = self._strengths[cut] >= MIN_HEADING_STRENGTH
            weight = self._weight(section_start, next_cut)
            if is_heading or weight > max_weight:
                starts.append(cut)
                section_start = cut
        return starts

    def _heading_cut(self, first: int, end: int) -> list[int]:
        """Return the best heading with enough text on both of its sides, if there is one."""
        headings = _between(self._headings, first, end)
        if not headings:
            return []
        weight = self._weight(first, end)
        fits = weight <= self._limit
        min_chars = self._min_chars
        allowed: list[int] = []
        if fits and min_chars:
            char_sums = self._char_sums
            for atom in headings:
                side_chars = _smaller_side(char_sums, atom, first, end)
                if side_chars >= min_chars:
                    allowed.append(atom)
            return self._best(allowed, first, end)
        weight_sums = self._weight_sums
        min_weight_for = self._layout.min_side_weights.min_weight_for
        for atom in headings:
            strength = self._strengths[atom]
            min_weight = min_weight_for(strength, fits_in_chunk=fits)
            side_weight = _smaller_side(weight_sums, atom, first, end)
            if side_weight >= min_weight:
                allowed.append(atom)
        return self._best(allowed, first, end)

    def _allowed_boundaries(self, first: int, end: int, min_side: int) -> list[int]:
        """Return the boundaries that leave `min_side` on both sides and are no last resort."""
        strengths = self._strengths
        sums = self._weight_sums
        min_sum = sums[first] + min_side
        max_sum = sums[end] - min_side
        inner = _between(self._boundaries, first, end)
        return [
            atom
            for atom in inner
            if strengths[atom] > LAST_RESORT and min_sum <= sums[atom] <= max_sum
        ]

    def _hash_cut(self, first: int, end: int, min_side: int) -> list[int]:
        allowed = self._allowed_boundaries(first, end, min_side)
        return self._best(allowed, first, end)

    def _best_within_reach(self, first: int, end: int) -> list[int]:
        """Return the boundaries that are better than all others within reach on both sides.

        No edit farther away moves them. Of equal boundaries none is returned: otherwise 20,000
        equal list items would be peeled off one after the other.
        """
        allowed = self._allowed_boundaries(first, end, _MIN_SIDE)
        sums = self._weight_sums
        strengths = self._strengths
        positions: list[int] = []
        ranks: list[_Rank] = []
        for atom in allowed:
            position = sums[atom]
            positions.append(position)
            strength = strengths[atom]
            priority = self._priority(atom)
            rank = (-strength, priority)
            ranks.append(rank)
        best: list[int] = []
        for number, atom in enumerate(allowed):
            position = positions[number]
            reach_start = position - _REACH
            reach_end = position + _REACH
            near_start = bisect_right(positions, reach_start)
            near_end = bisect_left(positions, reach_end)
            if _is_lowest(ranks, number, near_start, near_end):
                best.append(atom)
        return best

    def _best(self, atoms: Sequence[int], first: int, end: int) -> list[int]:
        """Return at most one boundary: the strongest, then the lowest hash, then nearest to middle.

        The last rule also bounds the work: 20,000 identical list items are halved, not peeled.
        """
        if not atoms:
            return []
        strengths = self._strengths
        sums = self._weight_sums
        strongest = 0
        candidates: list[int] = []
        for atom in atoms:
            strength = strengths[atom]
            if strength > strongest:
                strongest = strength
                candidates = []
            if strength == strongest:
                candidates.append(atom)
        start_sum = sums[first]
        end_sum = sums[end]
        middle = (start_sum + end_sum) / 2

        def rank(atom: int) -> tuple[int, float, int]:
            offset = sums[atom] - middle
            return self._priority(atom), abs(offset), atom

        best = min(candidates, key=rank)
        return [best]

    def _pack(self, first: int, end: int) -> list[int]:
        """Cut a piece at least cost."""
        sums = self._weight_sums
        strengths = self._strengths
        inner = _between(self._boundaries, first, end)
        start_position = sums[first]
        positions = [start_position]
        inner_strengths: list[int] = []
        for atom in inner:
            position = sums[atom]
            positions.append(position)
            strength = strengths[atom]
            inner_strengths.append(strength)
        end_position = sums[end]
        positions.append(end_position)
        cuts = find_cheapest_cuts(positions, inner_strengths, self._limit)
        # Stop 0 is the start of the piece.
        return [inner[cut - 1] for cut in cuts]


def _between(atoms: Sequence[int], first: int, end: int) -> Sequence[int]:
    """Return the atoms that are greater than `first` and less than `end`."""
    start = bisect_right(atoms, first)
    stop = bisect_left(atoms, end)
    return atoms[start:stop]


def _is_lowest(ranks: Sequence[_Rank], number: int, start: int, end: int) -> bool:
    """Return whether a rank is lower than all others from `start` to `end`; equal ones are not."""
    rank = ranks[number]
    for other in range(start, number):
        if ranks[other] <= rank:
            return False
    next_number = number + 1
    return all(rank < ranks[other] for other in range(next_number, end))


def _smaller_side(sums: Sequence[int], atom: int, first: int, end: int) -> int:
    """Return the smaller of the two sides of a cut."""
    middle = sums[atom]
    before = middle - sums[first]
    after = sums[end] - middle
    return min(before, after)
