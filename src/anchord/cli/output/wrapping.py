"""Lines cut and wrapped to a number of columns; a wide character has two and is never split."""

from __future__ import annotations

import re
from collections.abc import Iterator

from anchord.core.quoting import sanitize_line

ELLIPSIS = "…"
_TAB_WIDTH = 4
_WORD = re.compile(r"\s*\S+|\s+$")
"""A word with the spaces before it."""


def cell_width(text: str) -> int:
    """Return how many columns a text without control characters takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def chop(line: str, width: int) -> list[str]:
    """Cut a line into pieces of so many columns; at least one piece."""
    printable = _printable(line)
    if printable.isascii():
        starts = range(0, len(printable), max(width, 1))
        return [printable[start : start + max(width, 1)] for start in starts] or [""]
    from rich.cells import chop_cells

    return chop_cells(printable, max(width, 2)) or [""]


def truncate(line: str, width: int) -> str:
    """Return a line of at most so many columns; an ellipsis marks where it is cut."""
    if cell_width(line) <= width:
        return line
    return chop(line, width - 1)[0] + ELLIPSIS


def wrap(line: str, width: int) -> Iterator[str]:
    """Break a line between words, and a word that is wider than the line within it.

    The pieces after the first have the indentation of the line, up to half of the width. At least
    one piece.
    """
    printable = _printable(line).rstrip()
    indent = printable[: len(printable) - len(printable.lstrip())][: width // 2]
    current = ""
    for match in _WORD.finditer(printable):
        word = match[0]
        if cell_width(current + word) <= width:
            current += word
            continue
        if current.strip():
            yield current
            current = ""
            word = indent + word.lstrip()
        *full, current = chop(word, width)
        yield from full
    yield current


def _printable(line: str) -> str:
    return sanitize_line(line).expandtabs(_TAB_WIDTH)
