"""Spans of characters -> pieces of a layout, so that `emit` writes the chunks of every strategy in the same way."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from anchord.chunkers.cut import Piece
from anchord.chunkers.layout import Layout, Sizing
from anchord.chunkers.splits import Span

_BLANKS = re.compile(r"\s*")


def place(text: str, layout: Layout, spans: Sequence[Span], sizing: Sizing, *, titled: bool) -> tuple[Layout, list[Piece]]:
    """Return a layout whose atoms end where the spans do, and a piece for each span that is not blank.

    Each piece is its own anchor: what stands above it never changes its id. `titled`: the nearest heading is embedded with it.
    """
    starts = [0, *accumulate(len(line) + 1 for line in layout.lines)]
    places = [_place(start, end, starts, layout.lines) for start, end in _trimmed(text, spans)]
    columns: dict[int, set[int]] = defaultdict(set)
    for (first, first_column), (last, last_column) in places:
        columns[first].add(first_column)
        columns[last].add(last_column)
    refined = _refined(layout, columns, sizing)
    atoms = {place: atom for atom, place in enumerate(zip(refined.line, refined.start, strict=True))}
    ends = {place: atom + 1 for atom, place in enumerate(zip(refined.line, refined.end, strict=True))}
    pieces = [Piece(atoms[a], ends[b], a[0], 0 if titled else a[0]) for a, b in places]
    return refined, pieces


def _trimmed(text: str, spans: Sequence[Span]) -> list[Span]:
    """Drop the blanks around spans, but for the indentation of a first line; and spans that only repeat what was before."""
    trimmed: list[Span] = []
    reached = 0
    for start, end in spans:
        first = _BLANKS.match(text, start, end)
        begin = first.end() if first else start
        last = end
        while last > begin and text[last - 1].isspace():
            last -= 1
        if last > max(begin, reached):
            trimmed.append((_indented(text, start, begin), last))
            reached = last
    return trimmed


def _indented(text: str, start: int, begin: int) -> int:
    """Return the start of the line of `begin`, where nothing but its indentation stands between, and the span has it."""
    line = text.rfind("\n", 0, begin) + 1
    return line if line >= start else begin


def _place(start: int, end: int, starts: Sequence[int], lines: Sequence[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (line, column) of both ends; what is left of the last line after it is taken with it where it is blank."""
    first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
    column, line = end - starts[last], lines[last]
    return (first, start - starts[first]), (last, column if line[column:].strip() else len(line))


def _refined(layout: Layout, columns: dict[int, set[int]], sizing: Sizing) -> Layout:
    weights, counts = sizing.weigh(layout.lines)
    line, start, end, weight, tokens = [], [], [], [], []
    for number, text in enumerate(layout.lines):
        bounds = sorted({0, len(text), *columns.get(number, ())})
        for a, b in pairwise(bounds if len(bounds) > 1 else [0, 0]):
            line.append(number)
            start.append(a)
            end.append(b)
            weight.append(weights[number])
            tokens.append(counts[number])
    return replace(layout, line=line, start=start, end=end, weight=weight, tokens=tokens, strength=[0] * len(line))
