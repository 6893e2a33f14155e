"""Transcripts made of an input's body: a file, a folder of members, or a database of rows.

The path selects the kind: one that ends in "/" is a folder, one in `.vscdb` or `.db` a database, whose body has a line
`["table", value, ...]` for each row.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from tools.fuzz.inputs import members

from anchord.sources.conversations.containers import SingleTranscriptFile, TranscriptFolder
from anchord.sources.conversations.events import TranscriptFile

MAGIC = b"SQLite format 3\0"
_TABLES = {
    "cursorDiskKV": "key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB",
    "ItemTable": "key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB",
    "project": "id TEXT PRIMARY KEY, worktree TEXT",
    "session": "id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT, "
    "time_updated INTEGER",
    "message": "id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT",
    "part": "id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT",
}

Row = tuple[str | int | float | bytes | None, ...]


@dataclass(frozen=True, slots=True)
class _Database(SingleTranscriptFile):
    """A carrier over a connection in memory."""

    connection: sqlite3.Connection | None = None

    def query(self, sql: str, *values: str | int) -> Iterator[Row]:
        """Ask the database."""
        assert self.connection is not None
        try:
            yield from self.connection.execute(sql, values)
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise


@contextmanager
def carrier_of(path: str, body: bytes) -> Iterator[tuple[TranscriptFile, bytes]]:
    """Return a transcript, and the bytes by which its format is recognised."""
    if path.endswith("/"):
        held = members(body)
        yield (
            TranscriptFolder(path.rstrip("/"), list(held), lambda name: io.BytesIO(held[name])),
            b"",
        )
    elif path.endswith((".vscdb", ".db")):
        with closing(database(body)) as connection:
            schema = "\n".join(
                str(sql) for (sql,) in connection.execute("SELECT sql FROM sqlite_master")
            )
            yield _Database(path, io.BytesIO, connection=connection), MAGIC + schema.encode()
    else:
        yield SingleTranscriptFile(path, lambda: io.BytesIO(body)), body[: 1 << 16]


def database(body: bytes) -> sqlite3.Connection:
    """Return a database in memory with the rows of a body."""
    connection = sqlite3.connect(":memory:")
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    rows = [row for row in map(_row, body.split(b"\n")) if row]
    for name in dict.fromkeys(row[0] for row in rows):
        connection.execute(f"CREATE TABLE {name}({_TABLES[name]})")
    for name, *values in rows:
        wanted = _TABLES[name].count(",") + 1
        cells = [_cell(value) for value in [*values, *[None] * wanted][:wanted]]
        connection.execute(
            f"INSERT OR IGNORE INTO {name} VALUES ({', '.join('?' * wanted)})", cells
        )
    return connection


def _row(line: bytes) -> list[Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return (
        row
        if isinstance(row, list) and row and isinstance(row[0], str) and row[0] in _TABLES
        else None
    )


def _cell(value: object) -> object:
    """Return a value as SQLite keeps it: objects as JSON, and a whole number that is too large as a text."""
    if isinstance(value, dict | list | str) or (
        isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    ):
        text = value if isinstance(value, str) else json.dumps(value)
        return text.encode("utf-8", "replace").decode()
    return value
