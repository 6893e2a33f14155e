"""Reads SQLite databases of other programs. Neither their content nor their schema is trusted.

Opening a file by SQLite runs what its schema says: a table that is read can be a view without end,
a virtual table, or a column that is computed. So only real tables are read, no function is called,
and a query that gives no row for some seconds is interrupted. One call of a function inside a
computed column cannot be interrupted: the process that reads has a deadline of its own.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

Value = str | int | float | bytes | None

MAX_VALUE_BYTES = 1 << 28
"""Of one value: a whole workspace of an editor can be one."""
_BUSY_TIMEOUT_S = 5.0
_ROW_TIMEOUT_S = 15.0
"""Longest time until the next row of a query."""
_STEPS_BETWEEN_CHECKS = 20_000
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 20,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 10,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_PRAGMAS = (
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "mmap_size=0",
    "query_only=ON",
    "temp_store=MEMORY",
)
_WAL_VERSION = b"\2\2"
_WAL_VERSION_OFFSET = 18
_SCHEMA_TABLES = frozenset({"sqlite_master", "pragma_table_info"})
_REAL_TABLES_SQL = (
    "SELECT name FROM sqlite_master "
    "WHERE type = 'table' AND rootpage > 0 AND substr(sql, 1, 13) = 'CREATE TABLE '"
)
"""SQLite stores the statement with just these words at its start; views have no root page."""


class BrokenError(OSError):
    """Compressed data or a program's database is damaged, or is not what such data should be."""


@dataclass(slots=True)
class ForeignDatabase:
    """A database, opened at the first query. It is never written."""

    path: str
    """Absolute path; "" for content that is not a file of its own."""
    _connection: sqlite3.Connection | None = field(default=None, init=False)
    _real_tables: frozenset[str] = field(default=frozenset(), init=False)
    _deadline: float = field(default=0.0, init=False)

    def query(self, sql: str, *values: str | int) -> Iterator[tuple[Value, ...]]:
        """Yield the rows of a query; nothing if a table or column is missing.

        The program that owns the database may have it open. Waits up to 5 s for its lock.

        Args:
            sql: One SELECT statement with `?` for each value.
            *values: Its values.

        Raises:
            BrokenError: The database is damaged or stays locked; what is read is no real table; or
                the next row takes longer than 15 s.
        """
        self._deadline = time.monotonic() + _ROW_TIMEOUT_S
        try:
            for row in self._open().execute(sql, values):
                yield row
                self._deadline = time.monotonic() + _ROW_TIMEOUT_S
        except sqlite3.Error as error:
            # "no such table" and "no such column": another version of the program wrote it.
            if "no such" not in str(error):
                raise BrokenError(str(error)) from error

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            uri = f"file:{quote(self.path)}?mode=ro&{_options(self.path)}"
            connection = sqlite3.connect(
                uri,
                uri=True,
                timeout=_BUSY_TIMEOUT_S,
            )
            self._connection = connection
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            for limit, value in _LIMITS.items():
                connection.setlimit(limit, value)
            connection.set_progress_handler(self._is_overdue, _STEPS_BETWEEN_CHECKS)
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            names = connection.execute(_REAL_TABLES_SQL)
            self._real_tables = frozenset(str(name) for (name,) in names)
            connection.set_authorizer(self._authorize)
        return self._connection

    def _is_overdue(self) -> bool:
        return time.monotonic() > self._deadline

    def _authorize(
        self,
        action: int,
        name: str | None,
        _detail: str | None,
        _file: str | None,
        view: str | None,
    ) -> int:
        """Allow reading real tables and their columns' names; `view` is whose SQL asks."""
        is_allowed = action == sqlite3.SQLITE_SELECT
        if action == sqlite3.SQLITE_READ:
            is_allowed = name in self._real_tables or name in _SCHEMA_TABLES
        elif action == sqlite3.SQLITE_PRAGMA:
            is_allowed = name == "table_info"
        elif action == sqlite3.SQLITE_UPDATE:
            # SQLite asks this to declare `pragma_table_info`. `query_only` refuses a real one.
            is_allowed = name == "sqlite_master"
        return sqlite3.SQLITE_OK if is_allowed and view is None else sqlite3.SQLITE_DENY


def _options(path: str) -> str:
    """Return the options with which SQLite reads a database and writes nothing beside it.

    Of a database with a write-ahead log, SQLite writes the log's index. While its program runs,
    there is an index; it is only read. Without a log, no program has the database open.

    Raises:
        BrokenError: It is inside another file; or a log without an index, as of an incomplete
            copy: SQLite would have to write.
    """
    if not path:
        raise BrokenError("a compressed database is not read: unpack it")
    with open(path, "rb") as file:
        file.seek(_WAL_VERSION_OFFSET)
        has_log = file.read(len(_WAL_VERSION)) == _WAL_VERSION
    if not has_log or os.path.exists(f"{path}-shm"):
        return "readonly_shm=1"
    log = f"{path}-wal"
    if os.path.exists(log) and os.path.getsize(log):
        raise BrokenError("the write-ahead log has no index: copy the file -shm too")
    return "immutable=1"
