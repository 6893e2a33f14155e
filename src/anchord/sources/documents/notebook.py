"""Converts Jupyter notebooks (nbformat 3 and 4) to Markdown.

A text cell stays as it is, a code cell becomes a fenced block. Outputs are left out: they are the
result of a run, and change with every run. Each line of the Markdown is mapped to its line in the
file, because an editor opens the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anchord.core.lazy_re import lazy_re
from anchord.sources.documents.normalize import normalize_text

_FENCE = lazy_re(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_JSON_SYMBOL = lazy_re(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]')
_LANGUAGE_NAME = lazy_re(r"[\w+#.-]{1,30}")
_SOURCE_KEYS = frozenset({"source", "input"})
_MAX_SOURCE_DEPTH = 6
"""Of a piece of a cell's source: worksheets, number, cells, number, input, number."""

JsonPath = tuple[str | int, ...]
"""Keys and list indexes from the top of a JSON text down to a value."""
NumberedLine = tuple[str, int]
"""A line of text, and its line in the file (1-based)."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook as Markdown."""

    markdown: str
    source_lines: tuple[int, ...]
    """The line of the file (1-based) for each line of the Markdown."""
    cell_start_lines: tuple[int, ...]
    """The line of the Markdown (0-based) at which each cell starts."""


def parse_notebook(text: str) -> Notebook | None:
    """Convert a notebook to Markdown; empty cells are left out. Never raises.

    Args:
        text: The notebook's JSON, with LF line ends.

    Returns:
        The notebook, or None if the text is no JSON with a list of cells or worksheets.
    """
    book = _load_notebook(text)
    if book is None:
        return None
    language = _language(book)
    line_by_path = _source_string_lines(text)
    lines: list[str] = []
    numbers: list[int] = []
    starts: list[int] = []
    for path, cell in _cells(book):
        rows = _cell_lines(path, cell, line_by_path)
        if _is_blank(rows):
            continue
        if lines:  # A blank line between two cells.
            lines.append("")
            last_number = numbers[-1]
            numbers.append(last_number)
        start = len(lines)
        starts.append(start)
        for line, number in _as_markdown(rows, cell, language):
            lines.append(line)
            numbers.append(number)
    markdown = "\n".join(lines)
    return Notebook(markdown, tuple(numbers), tuple(starts))


def _load_notebook(text: str) -> dict[str, Any] | None:
    try:
        book = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(book, dict):
        return None
    for key in ("cells", "worksheets"):
        value = book.get(key)
        if isinstance(value, list):
            return book
    return None


def _cells(book: dict[str, Any]) -> Iterator[tuple[JsonPath, dict[str, Any]]]:
    """Yield the cells with their paths in the JSON. nbformat 3 has them in worksheets."""
    yield from _cells_in(book, ())
    sheets = book.get("worksheets")
    if not isinstance(sheets, list):
        return
    for number, sheet in enumerate(sheets):
        path = ("worksheets", number)
        yield from _cells_in(sheet, path)


def _cells_in(holder: object, path: JsonPath) -> Iterator[tuple[JsonPath, dict[str, Any]]]:
    if not isinstance(holder, dict):
        return
    cells = holder.get("cells")
    if not isinstance(cells, list):
        return
    for number, cell in enumerate(cells):
        if isinstance(cell, dict):
            cell_path = (*path, "cells", number)
            yield cell_path, cell


def _cell_lines(
    path: JsonPath, cell: dict[str, Any], line_by_path: dict[JsonPath, int]
) -> list[NumberedLine]:
    key = "source" if "source" in cell else "input"
    source = cell.get(key)
    source_path = (*path, key)
    return _source_lines(source, source_path, line_by_path)


def _is_blank(rows: list[NumberedLine]) -> bool:
    return not any(line.strip() for line, _ in rows)


def _source_lines(
    source: object, path: JsonPath, line_by_path: dict[JsonPath, int]
) -> list[NumberedLine]:
    """Return a cell's lines with their lines in the file.

    A cell's source is one string, or a list of pieces. Most pieces end with a line end, but a line
    can also consist of several pieces: it then gets the number of the first that is not empty.
    """
    first_number = line_by_path.get(path, 1)
    rows = [("", first_number)]
    for piece_path, piece in _pieces(source, path):
        if not isinstance(piece, str):
            continue
        started, started_number = rows.pop()
        number = line_by_path.get(piece_path, started_number)
        piece_lines = normalize_text(piece).split("\n")
        joined_number = started_number if started else number
        joined_line = started + piece_lines[0]
        rows.append((joined_line, joined_number))
        rows += [(line, number) for line in piece_lines[1:]]
    last_line, _ = rows[-1]
    ends_with_line_end = not last_line and len(rows) > 1
    if ends_with_line_end:
        rows.pop()
    return rows


def _pieces(source: object, path: JsonPath) -> Iterator[tuple[JsonPath, object]]:
    """Yield the pieces of a cell's source with their paths in the JSON."""
    if not isinstance(source, list):
        yield path, source
        return
    for index, piece in enumerate(source):
        piece_path = (*path, index)
        yield piece_path, piece


def _as_markdown(
    rows: list[NumberedLine], cell: dict[str, Any], language: str
) -> list[NumberedLine]:
    """Return a cell's lines as Markdown, by the type of the cell."""
    cell_type = cell.get("cell_type")
    text = "\n".join(line for line, _ in rows)
    if cell_type == "code":
        return _fenced(rows, text, language)
    if cell_type == "heading":  # Of nbformat 3.
        level = _heading_level(cell)
        marker = "#" * level
        title = text.replace("\n", " ")
        _, first_number = rows[0]
        heading = f"{marker} {title}"
        return [(heading, first_number)]
    open_fence = _unclosed_fence(text)
    if not open_fence:
        return rows
    # It would swallow the cells that follow.
    _, last_number = rows[-1]
    return [*rows, (open_fence, last_number)]


def _fenced(rows: list[NumberedLine], text: str, language: str) -> list[NumberedLine]:
    fences_inside = _FENCE.findall(text)
    longest_inside = max(map(len, fences_inside), default=2)
    length = max(3, longest_inside + 1)
    fence = "`" * length
    _, first_number = rows[0]
    _, last_number = rows[-1]
    opening = (fence + language, first_number)
    closing = (fence, last_number)
    return [opening, *rows, closing]


def _heading_level(cell: dict[str, Any]) -> int:
    level = cell.get("level")
    if not isinstance(level, int) or level <= 0:
        return 1
    return min(level, 6)


def _unclosed_fence(text: str) -> str:
    """Return the fence that a text opens and does not close; "" if there is none."""
    opened = ""
    for run in _FENCE.findall(text):
        if not opened:
            opened = run
            continue
        is_same_character = run[0] == opened[0]
        if is_same_character and len(run) >= len(opened):
            opened = ""
    return opened


def _source_string_lines(text: str) -> dict[JsonPath, int]:
    """Map each string that can be a cell's source to its line (1-based), by its path in the JSON.

    Args:
        text: Valid JSON. The standard parser does not report positions.
    """
    line_by_path: dict[JsonPath, int] = {}
    # For each open object or list: whether it is an object, and the present key or index.
    stack: list[tuple[bool, Any]] = []
    is_key = False
    line = 1
    counted_to = 0
    for match in _JSON_SYMBOL.finditer(text):
        symbol = match[0]
        if symbol[0] == '"':
            if is_key:
                name = symbol[1:-1]
                stack[-1] = (True, name)
            elif _may_be_source(stack):
                start = match.start()
                line += text.count("\n", counted_to, start)
                counted_to = start
                path = tuple(name for _, name in stack)
                line_by_path[path] = line
        elif symbol in "{[":
            is_key = symbol == "{"
            stack.append((is_key, 0))
        elif symbol in "}]":
            stack.pop()
            is_key = False
        elif symbol == ",":
            is_key, name = stack[-1]
            if not is_key:  # A list: its next index.
                stack[-1] = (False, name + 1)
        else:  # A colon: the value follows.
            is_key = False
    return line_by_path


def _may_be_source(stack: list[tuple[bool, Any]]) -> bool:
    """Return whether the string at this place is a cell's source, or a piece of one."""
    if len(stack) > _MAX_SOURCE_DEPTH:
        return False
    innermost = stack[-2:]
    return any(name in _SOURCE_KEYS for _, name in innermost)


def _language(book: dict[str, Any]) -> str:
    """Return the language of the code cells, without a version: `python` for `python3`."""
    for name in _claimed_languages(book):
        if not isinstance(name, str):
            continue
        if _LANGUAGE_NAME.fullmatch(name):
            return re.sub(r"\d+$", "", name)
    return "python"


def _claimed_languages(book: dict[str, Any]) -> Iterator[object]:
    """Yield what the notebook's metadata calls its language, the best source first."""
    metadata = book.get("metadata")
    if not isinstance(metadata, dict):
        return
    for key in ("language_info", "kernelspec"):
        info = metadata.get(key)
        if isinstance(info, dict):
            yield info.get("name")
            yield info.get("language")
