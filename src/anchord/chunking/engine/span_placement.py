"""Place spans of characters on a layout, so that `build_chunks` builds every strategy's chunks.

The engine's atoms are lines. A span may begin or end inside a line, so lines are cut into atoms
where spans do.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from anchord.chunking.engine.anchored_cut import AtomRange
from anchord.chunking.engine.layout import Layout, Sizing

CharSpan = tuple[int, int]
"""Start and end in characters of a text, the end excluded."""

_LineColumn = tuple[int, int]
"""A line and a column in it, both 0-based."""

_WHITESPACE = re.compile(r"\s*")


def spans_to_atom_ranges(
    text: str,
    layout: Layout,
    spans: Sequence[CharSpan],
    sizing: Sizing,
    *,
    embed_with_heading: bool,
) -> tuple[Layout, list[AtomRange]]:
    """Turn spans of characters into ranges of atoms.

    Args:
        text: The whole text; `layout.lines` joined with line feeds.
        layout: The text's lines and headings. Its atoms are not used.
        spans: Parts of the text in order. They may overlap.
        sizing: Limits and token counter.
        embed_with_heading: Whether the nearest heading is embedded with each chunk.

    Returns:
        A layout whose atoms end where the spans do, and a range for each span that is not blank
        and does not repeat the span before. Each range is its own anchor: what stands above it
        never changes its id.
    """
    line_offsets = [0, *accumulate(len(line) + 1 for line in layout.lines)]
    trimmed = _trim_spans(text, spans)
    ends = [_line_columns(start, end, line_offsets, layout.lines) for start, end in trimmed]
    cut_columns: dict[int, set[int]] = defaultdict(set)
    for (first_line, first_column), (last_line, last_column) in ends:
        cut_columns[first_line].add(first_column)
        cut_columns[last_line].add(last_column)
    cut_layout = _cut_lines(layout, cut_columns, sizing)
    atom_starts = zip(
        cut_layout.atom_lines,
        cut_layout.atom_starts,
        strict=True,
    )
    atom_ends = zip(cut_layout.atom_lines, cut_layout.atom_ends, strict=True)
    atom_at_start = {place: atom for atom, place in enumerate(atom_starts)}
    atom_at_end = {place: atom for atom, place in enumerate(atom_ends)}
    ranges: list[AtomRange] = []
    for start, end in ends:
        first_line = start[0]
        section_line = 0 if embed_with_heading else first_line
        first_atom, end_atom = atom_at_start[start], atom_at_end[end] + 1
        ranges.append(AtomRange(first_atom, end_atom, first_line, section_line))
    return cut_layout, ranges


def _trim_spans(text: str, spans: Sequence[CharSpan]) -> list[CharSpan]:
    """Drop whitespace around spans, except the indentation of a first line.

    Spans that add nothing to the ones before are dropped too.
    """
    trimmed: list[CharSpan] = []
    covered_to = 0
    for start, end in spans:
        leading = _WHITESPACE.match(text, start, end)
        content_start = leading.end() if leading else start
        content_end = end
        while content_end > content_start and text[content_end - 1].isspace():
            content_end -= 1
        if content_end > max(content_start, covered_to):
            trimmed.append((_with_indentation(text, start, content_start), content_end))
            covered_to = content_end
    return trimmed


def _with_indentation(text: str, start: int, content_start: int) -> int:
    """Return the start of the content's line, or of the content if the span begins inside it."""
    line_start = text.rfind("\n", 0, content_start) + 1
    return line_start if line_start >= start else content_start


def _line_columns(
    start: int, end: int, line_offsets: Sequence[int], lines: Sequence[str]
) -> tuple[_LineColumn, _LineColumn]:
    """Return the lines and columns of both ends of a span.

    The rest of the last line belongs to the span where it is blank.
    """
    first_line = bisect_right(line_offsets, start) - 1
    last_line = bisect_right(line_offsets, end - 1) - 1
    first_column = start - line_offsets[first_line]
    last_column = end - line_offsets[last_line]
    line = lines[last_line]
    if not line[last_column:].strip():
        last_column = len(line)
    return (first_line, first_column), (last_line, last_column)


def _cut_lines(layout: Layout, cut_columns: Mapping[int, set[int]], sizing: Sizing) -> Layout:
    """Return a layout with one atom for each line, or several where a line has cuts inside."""
    line_weights, line_tokens = sizing.measure_weights_and_tokens(layout.lines)
    atom_lines: list[int] = []
    atom_starts: list[int] = []
    atom_ends: list[int] = []
    for number, text in enumerate(layout.lines):
        columns = sorted({0, len(text), *cut_columns.get(number, ())})
        if not text:
            columns = [0, 0]
        for start, end in pairwise(columns):
            atom_lines.append(number)
            atom_starts.append(start)
            atom_ends.append(end)
    return replace(
        layout,
        atom_lines=atom_lines,
        atom_starts=atom_starts,
        atom_ends=atom_ends,
        # A part of a line has the line's size: nothing is cut by it any more.
        atom_weights=[line_weights[number] for number in atom_lines],
        atom_tokens=[line_tokens[number] for number in atom_lines],
        cut_strengths=[0] * len(atom_lines),
    )
