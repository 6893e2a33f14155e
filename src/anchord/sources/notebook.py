"""Jupyter notebooks (nbformat 3 and 4) -> markdown: a cell of text as it is, a cell of code as a fence; outputs are left out.

Outputs are what a run makes of the cells, and change with every run. The lines of the markdown are mapped to those of the file,
for that is what an editor opens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anchord.sources.clean import clean

_FENCES = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Notebook:
    """Markdown, the line of the file (1-based) for each of its lines, and the lines (0-based) at which its cells begin."""

    text: str
    source_lines: tuple[int, ...]
    cells: tuple[int, ...]


def read_notebook(text: str) -> Notebook | None:
    """Return a notebook's cells as markdown, None where the text is no notebook."""
    try:
        book = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = list(_cells(book)) if isinstance(book, dict) else None
    if not found and not (isinstance(book, dict) and isinstance(book.get("cells"), list)):
        return None
    language = _language(book)
    lines: list[str] = []
    numbers: list[int] = []
    starts: list[int] = []
    place = _Place(text)
    for cell in found or ():
        rows = _rows(cell.get("source", cell.get("input")), place)
        if not any(line.strip() for line, _ in rows):
            continue
        if cell.get("cell_type") == "code":
            longest = max((len(run) for run in _FENCES.findall("\n".join(line for line, _ in rows))), default=2)
            fence = "`" * max(3, longest + 1)
            rows = [(fence + language, rows[0][1]), *rows, (fence, rows[-1][1])]
        if lines:
            lines.append("")
            numbers.append(numbers[-1])
        starts.append(len(lines))
        lines += [line for line, _ in rows]
        numbers += [number for _, number in rows]
    return Notebook("\n".join(lines), tuple(numbers), tuple(starts))


def _cells(book: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cells; version 3 has them in worksheets."""
    sheets = book.get("worksheets")
    holders = [book, *(sheets if isinstance(sheets, list) else [])]
    for holder in holders:
        cells = holder.get("cells") if isinstance(holder, dict) else None
        yield from (cell for cell in (cells if isinstance(cells, list) else []) if isinstance(cell, dict))


def _language(book: dict[str, Any]) -> str:
    metadata = book.get("metadata")
    infos = [metadata.get(key) for key in ("language_info", "kernelspec")] if isinstance(metadata, dict) else []
    names = [info.get(key) for info in infos if isinstance(info, dict) for key in ("name", "language")]
    name = next((name for name in names if isinstance(name, str) and re.fullmatch(r"[\w+#.-]{1,30}", name)), "python")
    return re.sub(r"\d+$", "", name)  # A kernel is called python3, its language python.


class _Place:
    """Finds the line of the file that a piece stands on: the next one that holds it as JSON writes it."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line, self._ascii = text, 0, 1, False

    def next(self, piece: str) -> int:
        """Return the line of a piece, that of the piece before where it is written in some other way."""
        found = self._text.find(json.dumps(piece, ensure_ascii=self._ascii), self._at)
        if found < 0 and not piece.isascii():  # A file is written in one of the two ways from end to end.
            self._ascii = not self._ascii
            found = self._text.find(json.dumps(piece, ensure_ascii=self._ascii), self._at)
        if found >= 0:
            self._line += self._text.count("\n", self._at, found)
            self._at = found
        return self._line


def _rows(source: object, place: _Place) -> list[tuple[str, int]]:
    """Return a cell's lines with those of the file; its source is one text, or pieces of one that mostly end with lines."""
    pieces = [piece for piece in (source if isinstance(source, list) else [source]) if isinstance(piece, str)]
    rows = [("", 1)]
    for piece in pieces:
        number = place.next(piece)
        first, *more = clean(piece).split("\n")
        rows[-1] = (rows[-1][0] + first, rows[-1][1] if rows[-1][0] else number)
        rows += [(line, number) for line in more]
    return rows[:-1] if len(rows) > 1 and not rows[-1][0] else rows
