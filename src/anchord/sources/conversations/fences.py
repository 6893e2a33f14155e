"""Code fences of Markdown, for the formats that are written in it: what stands in one is quoted and marks nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MARK = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")


def fence_mark(line: str) -> tuple[str, str] | None:
    """Return the mark of a line that may open or close a fence, and what follows it, None for any other line."""
    found = _MARK.match(line) if "```" in line or "~~~" in line else None
    return (found[1], found[2]) if found else None


def opens(mark: tuple[str, str]) -> bool:
    """Whether a mark can open a fence: one with a backtick behind it is code in a line."""
    return mark[0][0] == "~" or "`" not in mark[1]


def closes(mark: tuple[str, str], opening: str) -> bool:
    """Whether a mark ends the fence that another one opened."""
    return mark[0][0] == opening[0] and len(mark[0]) >= len(opening) and not mark[1].strip()


def fenced(lines: Sequence[str]) -> frozenset[int]:
    """Return the lines that are in fences, their marks too. One without an end is none: answers are broken off in them."""
    marks = [(number, mark) for number, line in enumerate(lines) if (mark := fence_mark(line))]
    inside, at = set[int](), 0
    endless: dict[str, int] = {}  # Of each kind the shortest mark that has no end any more, so that none is looked for twice.
    while at < len(marks):
        number, mark = marks[at]
        at += 1
        if not opens(mark) or len(mark[0]) >= endless.get(mark[0][0], len(mark[0]) + 1):
            continue
        end = next((place for place in range(at, len(marks)) if closes(marks[place][1], mark[0])), None)
        if end is None:
            endless[mark[0][0]] = len(mark[0])
        else:
            inside.update(range(number, marks[end][0] + 1))
            at = end + 1
    return frozenset(inside)
