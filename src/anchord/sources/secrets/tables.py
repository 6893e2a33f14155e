"""Finds the secrets in Markdown tables: the head of their column names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.assignments import NameClass, classify_name
from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.values import is_password, is_placeholder, is_random
from anchord.sources.secrets.words import WordPlaces

WORDS = ("pass", "key", "secret", "token")
_ROW = lazy_re(r"[^\n]{1,2000}\n?")
_RULE = lazy_re(r"[ \t]{0,8}\|?[ \t:|-]{3,400}\n")
"""The line between head and rows."""
_MAX_HEAD = 500
_MAX_ROWS = 500
_DECORATION = " \t`*\n"


def find_in_tables(text: str, places: WordPlaces) -> Iterator[Finding]:
    """Yield the passwords and keys in the columns of a Markdown table.

    Args:
        text: The text.
        places: Where `WORDS` stand in it.
    """
    table_end = 0
    for place in places.of_any(WORDS):
        if place < table_end:
            continue
        search_start = max(0, place - _MAX_HEAD)
        line_start = text.rfind("\n", search_start, place) + 1
        if "|" not in text[line_start:place]:
            continue
        head = _ROW.match(text, line_start)
        rule = _RULE.match(text, head.end()) if head else None
        if head is None or rule is None:
            continue
        names = [name.strip(_DECORATION) for name in head[0].split("|")]
        classes = [classify_name(name) for name in names]
        table_end = rule.end()
        for row in _rows(text, table_end, len(classes)):
            yield from _secrets_of_row(row, classes)
            table_end = row.end()


def _rows(text: str, place: int, column_count: int) -> Iterator[re.Match[str]]:
    for _ in range(_MAX_ROWS):
        row = _ROW.match(text, place)
        if row is None or row[0].count("|") < column_count - 1:
            return
        yield row
        place = row.end()


def _secrets_of_row(row: re.Match[str], classes: Sequence[NameClass]) -> Iterator[Finding]:
    start = row.start()
    for cell, name_class in zip(row[0].split("|"), classes, strict=False):
        value = cell.strip(_DECORATION)
        if value and " " not in value and _is_secret(value, name_class):
            first = row.string.index(value, start)
            yield Finding(first, first + len(value), "assigned")
        start += len(cell) + 1


def _is_secret(value: str, name_class: NameClass) -> bool:
    if is_placeholder(value):
        return False
    if name_class is NameClass.PASSWORD:
        return is_password(value, is_quoted=False)
    return name_class is NameClass.SECRET and is_random(value)
