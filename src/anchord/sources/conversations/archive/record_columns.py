"""Columns of the archive's tables, and which of them a record of a damaged page fits."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from anchord.sources.conversations.archive.page_records import FoundRecord, Value

_TYPES = {"INTEGER": int, "TEXT": str, "BLOB": bytes}
EMPTY_VALUES: dict[str, Value] = {"INTEGER": 0, "TEXT": "", "BLOB": b""}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of the archive."""

    name: str
    type: str
    is_optional: bool
    is_rowid: bool


def fit_columns(columns: Sequence[Column], others: Sequence[Column]) -> bool:
    """Whether a row of one table could be taken for a row of the other.

    Rows of tables with a rowid are told apart by the number of columns alone: those may be damaged.
    """
    if columns[0].is_rowid != others[0].is_rowid:
        return False
    shared = range(_least_columns(columns), len(columns) + 1)
    counts_of_others = range(_least_columns(others), len(others) + 1)
    counts = [count for count in counts_of_others if count in shared]
    has_rowid = columns[0].is_rowid
    return any(
        has_rowid
        or [each.type for each in columns[:count]] == [each.type for each in others[:count]]
        for count in counts
    )


def _least_columns(columns: Sequence[Column]) -> int:
    """Return how many columns a row has at least: those at the end may have been added later."""
    least = len(columns)
    while columns[least - 1].is_optional:
        least -= 1
    return least


def table_columns(db: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    """Return the columns of a table."""
    rows = db.execute(f"PRAGMA table_info({table})").fetchall()
    has_rowid = [kind for _, _, kind, *_, key in rows if key] == ["INTEGER"]
    return tuple(
        Column(name, kind, not notnull or default is not None, bool(key) and has_rowid)
        for _, name, kind, notnull, default, key in rows
    )


def fit_record(record: FoundRecord, columns: Sequence[Column]) -> int:
    """Return how well a record fits a table: columns of the declared type; -1 if it does not fit.

    A row of a table with a rowid may have damaged columns.
    """
    count, has_rowid = len(record.values), columns[0].is_rowid
    if not _least_columns(columns) <= count <= len(columns) or has_rowid != (
        record.rowid is not None
    ):
        return -1
    exact = sum(
        isinstance(value, _TYPES[column.type])
        for value, column in zip(record.values, columns, strict=False)
    )
    return exact if has_rowid or exact == count else -1


def to_row(record: FoundRecord, columns: Sequence[Column]) -> dict[str, Value]:
    """Return a record's columns by name; a value of a wrong type becomes an empty one."""
    row: dict[str, Value] = {}
    for value, column in zip(record.values, columns, strict=False):
        if column.is_rowid:
            row[column.name] = record.rowid
        elif isinstance(value, _TYPES[column.type]) or (column.type == "BLOB" and value):
            row[column.name] = value
        else:
            row[column.name] = None if column.is_optional else EMPTY_VALUES[column.type]
    return row
