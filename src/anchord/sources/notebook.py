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

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_SIGN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]')
_DEEPEST = 6
"""worksheets, number, cells, number, input, number."""

Path = tuple[str | int, ...]
Numbered = tuple[str, int]
"""A line of text, and the line of the file that it comes from."""


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
    if not isinstance(book, dict) or not any(isinstance(book.get(key), list) for key in ("cells", "worksheets")):
        return None
    language, places = _language(book), _places(text)
    lines: list[str] = []
    numbers: list[int] = []
    starts: list[int] = []
    for path, cell in _cells(book):
        key = "source" if "source" in cell else "input"
        rows = _dressed(_rows(cell.get(key), (*path, key), places), cell, language)
        if not any(line.strip() for line, _ in rows):
            continue
        if lines:
            lines.append("")
            numbers.append(numbers[-1])
        starts.append(len(lines))
        lines += [line for line, _ in rows]
        numbers += [number for _, number in rows]
    return Notebook("\n".join(lines), tuple(numbers), tuple(starts))


def _cells(book: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the cells with their places in the JSON; version 3 has them in worksheets."""
    sheets = book.get("worksheets")
    holders: list[tuple[Path, Any]] = [((), book)]
    holders += [(("worksheets", n), sheet) for n, sheet in enumerate(sheets if isinstance(sheets, list) else [])]
    for path, holder in holders:
        cells = holder.get("cells") if isinstance(holder, dict) else None
        for number, cell in enumerate(cells if isinstance(cells, list) else []):
            if isinstance(cell, dict):
                yield (*path, "cells", number), cell


def _rows(source: object, path: Path, places: dict[Path, int]) -> list[Numbered]:
    """Return a cell's lines with those of the file; its source is one text, or pieces of one that mostly end with lines."""
    whole = source if isinstance(source, list) else [source]
    rows = [("", places.get(path, 1))]
    for index, piece in enumerate(whole):
        if not isinstance(piece, str):
            continue
        number = places.get((*path, index) if isinstance(source, list) else path, rows[-1][1])
        first, *more = clean(piece).split("\n")
        rows[-1] = (rows[-1][0] + first, rows[-1][1] if rows[-1][0] else number)
        rows += [(line, number) for line in more]
    return rows[:-1] if len(rows) > 1 and not rows[-1][0] else rows


def _dressed(rows: list[Numbered], cell: dict[str, Any], language: str) -> list[Numbered]:
    """Put code in a fence, a heading of version 3 behind its signs; close a fence of text that its cell leaves open."""
    if not any(line.strip() for line, _ in rows):
        return rows
    text = "\n".join(line for line, _ in rows)
    if cell.get("cell_type") == "code":
        fence = "`" * max(3, 1 + max((len(run) for run in _FENCE.findall(text)), default=2))
        return [(fence + language, rows[0][1]), *rows, (fence, rows[-1][1])]
    if cell.get("cell_type") == "heading":
        level = cell.get("level")
        signs = "#" * (min(level, 6) if isinstance(level, int) and level > 0 else 1)
        return [(f"{signs} {text.replace(chr(10), ' ')}", rows[0][1])]
    opened = ""
    for run in _FENCE.findall(text):
        opened = "" if opened and run[0] == opened[0] and len(run) >= len(opened) else opened or run
    return [*rows, (opened, rows[-1][1])] if opened else rows


def _places(text: str) -> dict[Path, int]:
    """Return the line of each string that may be a cell's source, by its path in the JSON (which is known to be right)."""
    places: dict[Path, int] = {}
    stack: list[tuple[bool, Any]] = []  # Whether it is an object, and the key or number at hand.
    key = False
    line, reached = 1, 0
    for match in _SIGN.finditer(text):
        sign = match[0]
        if sign[0] == '"':
            if key:
                stack[-1] = (True, sign[1:-1])
            elif len(stack) <= _DEEPEST and {"source", "input"} & {name for _, name in stack[-2:]}:
                line += text.count("\n", reached, match.start())
                reached = match.start()
                places[tuple(name for _, name in stack)] = line
        elif sign in "{[":
            stack.append((sign == "{", 0))
            key = sign == "{"
        elif sign in "}]":
            stack.pop()
            key = False
        elif sign == ",":
            is_object, name = stack[-1]
            stack[-1] = (is_object, name if is_object else name + 1)
            key = is_object
        else:
            key = False
    return places


def _language(book: dict[str, Any]) -> str:
    metadata = book.get("metadata")
    infos = [metadata.get(key) for key in ("language_info", "kernelspec")] if isinstance(metadata, dict) else []
    names = [info.get(key) for info in infos if isinstance(info, dict) for key in ("name", "language")]
    name = next((name for name in names if isinstance(name, str) and re.fullmatch(r"[\w+#.-]{1,30}", name)), "python")
    return re.sub(r"\d+$", "", name)  # A kernel is called python3, its language python.
