"""Lay out plain text and its formats: sections, paragraphs, list items, keys, rows of data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from anchord.chunking.engine.layout import (
    BLOCK,
    CODE_LINE,
    LAST_RESORT,
    LIST_ITEM,
    NO_CUT,
    TABLE_ROW,
    TEXT_LINE,
    BlockWrap,
    Heading,
    Layout,
    Sizing,
    build_layout,
    heading_strength,
    weaken_cut_before_text,
)
from anchord.chunking.formats.text_headings import (
    TextHeading,
    find_delimited_blocks,
    find_text_headings,
)

_LIST_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d{1,9}[.)])\s")
_ROW_FORMATS = ("csv", "tsv")
_DATA_FORMATS = ("json", "yaml", "toml", "ini")
_MAX_OUTER_INDENT = 4


def build_text_layout(text: str, text_format: str, sizing: Sizing) -> Layout:
    """Lay out a text.

    Args:
        text: The document, with LF line ends.
        text_format: Its format as `Document.language` names it, "rst" for example; "" is plain.
        sizing: Limits and token counter.

    Returns:
        The layout, with a type for each line.
    """
    lines = text.split("\n")
    if text_format in _ROW_FORMATS:
        return _build_row_layout(lines, sizing)
    is_data = text_format in _DATA_FORMATS
    weights, _ = sizing.measure_weights_and_tokens(lines)
    limit = sizing.limits.body
    strengths = _data_strengths(lines) if is_data else _paragraph_strengths(lines, weights, limit)
    blocks = find_delimited_blocks(lines, text_format)
    unsplit_lines = _weaken_cuts_in_fitting_blocks(
        blocks,
        strengths,
        weights,
        limit,
    )
    headings = find_text_headings(lines, text_format)
    _set_heading_strengths(headings, strengths, weights)
    layout = build_layout(
        lines,
        strengths,
        sizing,
        [Heading(heading.first_line, heading.level, heading.title) for heading in headings],
        unsplit_lines=unsplit_lines,
    )
    return replace(layout, line_types=_line_types(lines, headings, has_lists=not is_data))


def _build_row_layout(lines: Sequence[str], sizing: Sizing) -> Layout:
    """Lay out rows: each can begin a chunk, and chunks repeat a short first row of column names."""
    (header_weight,), _ = sizing.measure_weights_and_tokens(lines[:1])
    wraps: list[BlockWrap] = []
    if 0 < header_weight <= sizing.limits.repeated:
        wrap = BlockWrap(
            first_line=0,
            last_line=len(lines) - 1,
            opening=lines[0],
            closing="",
            is_verbatim=True,
        )
        wraps.append(wrap)
    layout = build_layout(
        lines,
        [TABLE_ROW] * len(lines),
        sizing,
        wraps=wraps,
    )
    return replace(layout, line_types=["table"] * len(lines))


def _line_types(
    lines: Sequence[str], headings: Sequence[TextHeading], *, has_lists: bool
) -> list[str]:
    types = [""] * len(lines)
    if has_lists:
        types = ["list" if _LIST_ITEM.match(line) else "" for line in lines]
    for heading in headings:
        for number in range(heading.first_line, heading.end_line):
            types[number] = "heading"
    return types


def _paragraph_strengths(lines: Sequence[str], weights: Sequence[int], limit: int) -> list[int]:
    """Return the strengths of a text of paragraphs and lists.

    A paragraph is stronger than a list item, and an item than a line. In a paragraph that fits in a
    chunk, a line is a last resort.
    """
    strengths: list[int] = []
    for first, end in _paragraphs(lines):
        fits = sum(weights[first:end]) <= limit
        line_strength = LAST_RESORT if fits else TEXT_LINE
        strengths += [
            LIST_ITEM if _LIST_ITEM.match(line) else line_strength for line in lines[first:end]
        ]
        strengths[first] = BLOCK
    return strengths


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the lines [first, end) of each paragraph, with the blank lines after it."""
    first = 0
    for number in range(1, len(lines)):
        follows_blank = not lines[number - 1].strip()
        if follows_blank and lines[number].strip():
            yield first, number
            first = number
    yield first, len(lines)


def _data_strengths(lines: Sequence[str]) -> list[int]:
    """Return the strengths of a data file: the less a line is indented, the better a cut before it.

    A closing bracket stays with what it closes.
    """
    strengths: list[int] = []
    for line in lines:
        text = line.lstrip()
        indent = len(line) - len(text)
        if text[:1] in "}])":
            # Invariant: an empty line ends here too, and `build_layout` sets it to NO_CUT.
            strengths.append(TEXT_LINE)
        elif indent <= _MAX_OUTER_INDENT:
            strengths.append(LIST_ITEM)
        else:
            strengths.append(CODE_LINE)
    return strengths


def _weaken_cuts_in_fitting_blocks(
    blocks: Sequence[tuple[int, int]], strengths: list[int], weights: Sequence[int], limit: int
) -> set[int]:
    """Make cuts a last resort inside the blocks that fit in a chunk; return their lines."""
    fitting_lines: set[int] = set()
    for first, end in blocks:
        if sum(weights[first:end]) > limit:
            continue
        fitting_lines.update(range(first, end))
        for number in range(first + 1, end):
            strengths[number] = LAST_RESORT
    return fitting_lines


def _set_heading_strengths(
    headings: Sequence[TextHeading], strengths: list[int], weights: Sequence[int]
) -> None:
    # All cuts after headings first: the text of one heading can start with the next.
    for heading in headings:
        weaken_cut_before_text(heading.end_line, strengths, weights)
    for heading in headings:
        inner_lines = heading.end_line - heading.first_line - 1
        strengths[heading.first_line] = heading_strength(heading.level)
        strengths[heading.first_line + 1 : heading.end_line] = [NO_CUT] * inner_lines
