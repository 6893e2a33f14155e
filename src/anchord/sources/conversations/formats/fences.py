"""Code fences of Markdown. A line in a fence is quoted text: it never marks a turn or a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from anchord.core.lazy_re import lazy_re

_FENCE = lazy_re(r"[ \t]*(`{3,}|~{3,})(.*)")


class FenceMark(NamedTuple):
    """A line that may open or close a fence."""

    marker: str
    """Three or more backticks or tildes."""
    rest: str
    """What follows the marker: a language, or nothing."""


def parse_fence(line: str) -> FenceMark | None:
    """Return the fence mark that a line consists of, None for any other line."""
    # Most lines have neither marker, and the search for a substring is cheaper than the expression.
    if "```" not in line and "~~~" not in line:
        return None
    match = _FENCE.match(line)
    return FenceMark(match[1], match[2]) if match else None


def can_open_fence(fence: FenceMark) -> bool:
    """Return whether a mark can open a fence: backticks followed by a backtick are inline code."""
    return fence.marker[0] == "~" or "`" not in fence.rest


def closes_fence(fence: FenceMark, opening: str) -> bool:
    """Return whether a mark closes the fence that the marker `opening` opened.

    It must use the same character at least as often, and nothing may follow it.
    """
    same_character = fence.marker[0] == opening[0]
    return same_character and len(fence.marker) >= len(opening) and not fence.rest.strip()


def open_fence_after(line: str, open_marker: str) -> str:
    """Return the marker of the fence that is open after a line.

    Args:
        line: the line to read.
        open_marker: the marker of the fence that is open before it; "" for none.

    Returns:
        The marker of the fence that is open after the line; "" for none.
    """
    mark = parse_fence(line)
    if mark is None:
        return open_marker
    if open_marker:
        return "" if closes_fence(mark, open_marker) else open_marker
    return mark.marker if can_open_fence(mark) else ""


def fenced_line_numbers(lines: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the lines in fences, counted from 0, the fences' own lines included.

    A fence that nothing closes is ignored: answers are often cut off inside one.
    """
    marks = [(number, mark) for number, line in enumerate(lines) if (mark := parse_fence(line))]
    fenced = set[int]()
    # Per character, the length of the shortest marker known to have no closing mark below it. A
    # longer marker further down has none either, so the search runs once a length and not once a
    # marker.
    shortest_unclosed: dict[str, int] = {}
    index = 0
    while index < len(marks):
        first_line, opening = marks[index]
        index += 1
        character, length = opening.marker[0], len(opening.marker)
        if length >= shortest_unclosed.get(character, length + 1) or not can_open_fence(opening):
            continue
        closing = _find_closing(marks, index, opening.marker)
        if closing is None:
            shortest_unclosed[character] = length
            continue
        fenced.update(range(first_line, marks[closing][0] + 1))
        index = closing + 1
    return frozenset(fenced)


def _find_closing(
    marks: Sequence[tuple[int, FenceMark]], start: int, opening_marker: str
) -> int | None:
    """Return the index of the first mark from `start` on that closes a fence, None if none does."""
    for index in range(start, len(marks)):
        if closes_fence(marks[index][1], opening_marker):
            return index
    return None
