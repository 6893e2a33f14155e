"""The line on which a key is set in a TOML text.

The parser reports lines of syntax errors only. For a value that is well-formed but wrong this
module finds the line, with regular expressions and without understanding all of TOML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*([^=#\s][^=#]*?)\s*=")
_PATH_PART = re.compile(r"^([^\[]+)(?:\[(\d+)\])?")
_NOT_IN_AN_ARRAY = -1


class _Entry(NamedTuple):
    """A line that starts a table or sets a key."""

    line: int
    name: str
    """Full name, such as `watch.settle_ms`."""
    table_index: int
    """Number of its table among the `[[tables]]` of one name, from 0."""


def find_key_line(text: str, key: str) -> int:
    """Return the first line that sets a key.

    Args:
        text: A TOML text.
        key: Full name such as `table.key`, or `table[2].key` for the third `[[table]]`.

    Returns:
        A line number from 1. Where the key itself is not found, that of the table around it; 0
        when there is none either. Keys in an inline table have the line of that table.
    """
    parts = [match for part in key.split(".") for match in _PATH_PART.findall(part)]
    name = ".".join(part_name for part_name, _ in parts)
    table_index = next((int(index) for _, index in parts if index), None)
    entries = [entry for entry in _entries(text) if _may_be_in_table(entry, table_index)]
    while name:
        for entry in entries:
            if entry.name == name:
                return entry.line
        name = name.rpartition(".")[0]
    return 0


def _may_be_in_table(entry: _Entry, table_index: int | None) -> bool:
    return table_index is None or entry.table_index in (table_index, _NOT_IN_AN_ARRAY)


def _entries(text: str) -> Iterator[_Entry]:
    table = ""
    table_index = _NOT_IN_AN_ARRAY
    header_counts = Counter[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            brackets, table = header[1], _without_quotes(header[2])
            table_index = header_counts[table] if brackets == "[[" else _NOT_IN_AN_ARRAY
            header_counts[table] += 1
            yield _Entry(number, table, table_index)
        elif key := _KEY.match(line):
            name = _without_quotes(key[1])
            yield _Entry(number, f"{table}.{name}" if table else name, table_index)


def _without_quotes(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))
