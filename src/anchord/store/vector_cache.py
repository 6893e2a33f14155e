"""Vectors of rows that left the table, in a SQLite file that may be deleted at any time.

With it an undo, a move in two steps, or a branch switch and back embeds nothing. A vector is kept
for seven days, within 200,000 vectors.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from anchord.core.ids import without_model_tag
from anchord.core.sqlite_connection import CheckedConnection, open_sqlite, primary_result_code
from anchord.core.types import Vector
from anchord.errors import StoreDamagedError, StoreError

MAX_AGE_NS = 7 * 24 * 3600 * 1_000_000_000
_MAX_VECTORS = 200_000
_MAX_SQL_VARIABLES = 500
_LOG_PAGES = 128
_PAGE_BYTES = 4_096
_NEW_FILE_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_ERROR)
"""SQLITE_ERROR: a statement does not fit the tables."""
_DELETE_OLD_SQL = "DELETE FROM vectors WHERE gone_ns < ?"
_DELETE_EXCESS_SQL = """
DELETE FROM vectors WHERE rowid IN
    (SELECT rowid FROM vectors ORDER BY gone_ns DESC, rowid DESC LIMIT -1 OFFSET ?)
"""


class SqliteVectorCache:
    """Vector key -> vector, with the time when its row left the table.

    Keys are stored without the tag of a further model: a main model that becomes a further one, or
    the reverse, finds its vectors.

    A damaged file is deleted and an empty one created, also on a full disk: others need the space
    more. On any other failure of SQLite, such as a lock of another program, `get` finds nothing and
    `put` stores nothing; `delete`, `clear` and `checkpoint_wal` raise StoreError, because what they
    were to delete is still there.
    """

    def __init__(self, file: Path) -> None:
        """Open the file; create it if it is missing, replace it if it is damaged.

        Raises:
            StoreError: The file cannot be opened or created.
        """
        self._file = file
        self._db = self._open_or_recreate()

    def get(self, vector_keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return vector key -> vector for the keys that are cached."""
        found: dict[str, Vector] = {}
        wanted = {without_model_tag(key): key for key in vector_keys}
        hashes = list(wanted)
        with suppress(StoreError), self._recreating_on_damage():
            for start in range(0, len(hashes), _MAX_SQL_VARIABLES):
                some_keys = hashes[start : start + _MAX_SQL_VARIABLES]
                placeholders = ",".join("?" * len(some_keys))
                statement = f"SELECT key, vector FROM vectors WHERE key IN ({placeholders})"
                rows = self._db.execute(statement, some_keys)
                found.update((wanted[key], vector) for key, vector in rows)
            return found
        return {}

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Add vectors, and delete those older than seven days and the oldest beyond 200,000.

        Args:
            vectors: Vector key -> vector.
            now_ns: Nanoseconds of the wall clock; the time when the rows left the table.
        """
        values = [(without_model_tag(key), vector, now_ns) for key, vector in vectors.items()]
        with suppress(StoreError), self._recreating_on_damage(), self._db.transaction():
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES(?,?,?)", values)
            self._db.execute(_DELETE_OLD_SQL, (now_ns - MAX_AGE_NS,))
            self._db.execute(_DELETE_EXCESS_SQL, (_MAX_VECTORS,))

    def delete(self, vector_keys: Sequence[str]) -> None:
        """Delete vectors that turned out to be wrong; unknown keys are ignored."""
        with self._recreating_on_damage():
            hashes = [(without_model_tag(key),) for key in vector_keys]
            self._db.executemany("DELETE FROM vectors WHERE key=?", hashes)

    def clear(self) -> None:
        """Delete all vectors."""
        with self._recreating_on_damage():
            self._db.execute("DELETE FROM vectors")

    def checkpoint_wal(self) -> None:
        """Move the WAL into the file and truncate it, so that no deleted vector is left on disk."""
        with self._recreating_on_damage():
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _recreating_on_damage(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            if not _calls_for_new_file(error):
                raise
            self._db.close()
            self._db = self._recreate()

    def _open_or_recreate(self) -> CheckedConnection:
        try:
            return _open_database(self._file)
        except StoreError as error:
            if not _calls_for_new_file(error):
                raise
            return self._recreate()

    def _recreate(self) -> CheckedConnection:
        try:
            for suffix in ("", "-wal", "-shm"):
                self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._file}: {error}") from error
        return _open_database(self._file)


def _calls_for_new_file(error: StoreError) -> bool:
    """Whether the file is of no use now: damaged, of other tables, or too large for the disk."""
    return isinstance(error, StoreDamagedError) or primary_result_code(error) in _NEW_FILE_CODES


def _open_database(file: Path) -> CheckedConnection:
    db = open_sqlite(file, read_only=False)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")  # After a power loss the last vectors may be gone.
        # Vectors of a slow model come and go by the thousand: the log is kept small.
        db.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        db.execute(f"PRAGMA journal_size_limit={_LOG_PAGES * _PAGE_BYTES}")
        db.execute("PRAGMA secure_delete=ON")  # Deleted vectors are overwritten with zeros.
        db.execute(
            "CREATE TABLE IF NOT EXISTS vectors"
            "(key TEXT PRIMARY KEY, vector BLOB NOT NULL, gone_ns INTEGER NOT NULL)"
        )
        db.execute("CREATE INDEX IF NOT EXISTS vectors_by_time ON vectors(gone_ns)")
    except StoreError:
        db.close()
        raise
    return db
