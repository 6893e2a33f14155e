"""Plain text and its formats -> lines with cut strengths: sections, paragraphs, list items, rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from anchord.chunkers import layout as at
from anchord.chunkers.layout import Heading, Layout, Sizing, Wrap, lay_out
from anchord.chunkers.marks import Mark, blocks, marks

_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d{1,9}[.)])\s")
_ROWS = ("csv", "tsv")
_DATA = ("json", "yaml", "toml", "ini")
_INDENTED = 4


def lay_out_text(text: str, form: str, sizing: Sizing) -> Layout:
    """Return the atoms of a text; `form` is its format, "" for plain text."""
    lines = text.split("\n")
    if form in _ROWS:
        return _lay_out_rows(lines, sizing)
    found = marks(lines, form)
    weights, _ = sizing.weigh(lines)
    limit = sizing.limits.body
    strengths = _by_data(lines) if form in _DATA else _by_paragraphs(lines, weights, limit)
    held = _hold(blocks(lines, form), strengths, weights, limit)
    _raise_headings(found, strengths, weights)
    headings = [Heading(mark.first, mark.level, mark.title) for mark in found]
    titles = {number for mark in found for number in range(mark.first, mark.last)}
    listed = _ITEM.match if form not in _DATA else lambda _: None
    forms = ["heading" if number in titles else "list" if listed(line) else "" for number, line in enumerate(lines)]
    return replace(lay_out(lines, strengths, sizing, headings, held=held), forms=forms)


def _lay_out_rows(lines: Sequence[str], sizing: Sizing) -> Layout:
    """Each row can begin a chunk; the first row, which names the columns, is repeated where it is short."""
    weights, _ = sizing.weigh(lines[:1])
    wraps = [Wrap(0, len(lines) - 1, lines[0], "", verbatim=True)] if 0 < weights[0] <= sizing.limits.repeated else []
    return replace(lay_out(lines, [at.ROW] * len(lines), sizing, wraps=wraps), forms=["table"] * len(lines))


def _by_paragraphs(lines: Sequence[str], weights: Sequence[int], limit: int) -> list[int]:
    """Paragraphs, then items of lists; a line within a paragraph that fits is a last resort."""
    strengths = []
    for first, last in _runs(lines):
        inner = at.LAST_RESORT if sum(weights[first:last]) <= limit else at.TEXT_LINE
        strengths += [at.ITEM if _ITEM.match(lines[number]) else inner for number in range(first, last)]
        strengths[first] = at.BLOCK
    return strengths


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the lines [first, last) of each paragraph, with the blank lines after it."""
    first = 0
    for number in range(1, len(lines)):
        if not lines[number - 1].strip() and lines[number].strip():
            yield first, number
            first = number
    yield first, len(lines)


def _by_data(lines: Sequence[str]) -> list[int]:
    """The less a line is indented, the better; a closing bracket stays with what it closes."""
    strengths = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        closes = line.lstrip()[:1] in "}])"
        strengths.append(at.TEXT_LINE if closes else at.ITEM if indent <= _INDENTED else at.CODE_LINE)
    return strengths


def _hold(found: Sequence[tuple[int, int]], strengths: list[int], weights: Sequence[int], limit: int) -> set[int]:
    held: set[int] = set()
    for first, last in found:
        if sum(weights[first:last]) <= limit:
            held.update(range(first, last))
            for number in range(first + 1, last):
                strengths[number] = at.LAST_RESORT
    return held


def _raise_headings(found: Sequence[Mark], strengths: list[int], weights: Sequence[int]) -> None:
    for mark in found:
        after = mark.last
        while after < len(strengths) and not weights[after]:
            after += 1
        if after < len(strengths):
            strengths[after] = min(strengths[after], at.LAST_RESORT)
    for mark in found:
        strengths[mark.first] = at.HEADING - 2 * (mark.level - 1)
        strengths[mark.first + 1 : mark.last] = [at.FORBIDDEN] * (mark.last - mark.first - 1)
