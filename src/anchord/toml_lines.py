"""Where a key stands in a TOML text: parsers tell it of what they cannot read, and not of what is wrong with what they read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*([^=#\s][^=#]*?)\s*=")
_INDEX = re.compile(r"^([^\[]+)(?:\[(\d+)\])?")


def line_of(text: str, place: str) -> int:
    """Return the number of the first line that sets a key, counted from 1; 0 where it cannot be told.

    `place` is `table.key`, or `table[2].key` for the third of several tables of one name. A table is looked for where there is
    no such key. Keys in inline tables are found by the line of the whole.
    """
    path = [(name, index) for part in place.split(".") for name, index in _INDEX.findall(part)]
    wanted = ".".join(name for name, _ in path)
    index = next((int(index) for _, index in path if index), None)
    found = [(number, full) for number, full, at in _lines(text) if index is None or at in (index, -1)]
    while wanted:
        for number, full in found:
            if full == wanted:
                return number
        wanted = wanted.rpartition(".")[0]
    return 0


def _lines(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield (line, full name, which of the tables of one name, or -1) of every header and key."""
    table, at, seen = "", -1, Counter[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            table = _plain(header[2])
            seen[table] += 1
            at = seen[table] - 1 if header[1] == "[[" else -1
            yield number, table, at
        elif key := _KEY.match(line):
            yield number, f"{table}.{_plain(key[1])}" if table else _plain(key[1]), at


def _plain(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))
