"""Vectors of rows that left the table, in a SQLite file of their own that may be deleted at any time.

An undo, a move in two steps, a branch switch and back then embed nothing. Kept for a week, within a size.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from anchord.errors import StoreError
from anchord.model import Vector

KEPT_NS = 7 * 24 * 3600 * 1_000_000_000
_MAX_VECTORS = 200_000
_VARIABLES = 500


class VanishedVectors:
    """Vector key -> vector, with the time when it left the table."""

    def __init__(self, file: Path) -> None:
        """Open the file, or start it anew when it is damaged."""
        self._file = file
        try:
            self._db = _opened(file)
        except sqlite3.Error:
            self._start_anew()

    def get(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return what is kept of these keys."""
        try:
            return self._kept(keys)
        except sqlite3.Error:
            self._start_anew()
            return {}

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Keep vectors, and let go of those that are too old or too many."""
        try:
            self._keep(vectors, now_ns)
        except sqlite3.Error:
            self._start_anew()

    def drop(self, keys: Sequence[str]) -> None:
        """Forget vectors that turned out to be wrong."""
        try:
            self._db.executemany("DELETE FROM vectors WHERE key=?", [(key,) for key in keys])
        except sqlite3.Error:
            self._start_anew()

    def clear(self) -> None:
        """Forget all of them."""
        try:
            self._db.execute("DELETE FROM vectors")
        except sqlite3.Error:
            self._start_anew()

    def flush(self) -> None:
        """Leave nothing of what was dropped in the file."""
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            self._start_anew()

    def _kept(self, keys: Sequence[str]) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        for at in range(0, len(keys), _VARIABLES):
            some = keys[at : at + _VARIABLES]
            marks = ",".join("?" * len(some))
            found.update(self._db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some))
        return found

    def _keep(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        with closing(self._db.cursor()) as cursor:
            cursor.execute("BEGIN")
            cursor.executemany("INSERT OR REPLACE INTO vectors VALUES(?,?,?)", [(k, v, now_ns) for k, v in vectors.items()])
            cursor.execute("DELETE FROM vectors WHERE gone_ns < ?", (now_ns - KEPT_NS,))
            cursor.execute(
                "DELETE FROM vectors WHERE rowid IN "
                "(SELECT rowid FROM vectors ORDER BY gone_ns DESC, rowid DESC LIMIT -1 OFFSET ?)",
                (_MAX_VECTORS,),
            )
            cursor.execute("COMMIT")

    def _start_anew(self) -> None:
        """Delete the file: it is only a cache, and on a full disk others need the room more."""
        if hasattr(self, "_db"):
            self._db.close()
        try:
            for suffix in ("", "-wal", "-shm"):
                self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
            self._db = _opened(self._file)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._file}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _opened(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, isolation_level=None, timeout=30, check_same_thread=False)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute("PRAGMA secure_delete=ON")
    db.execute("CREATE TABLE IF NOT EXISTS vectors(key TEXT PRIMARY KEY, vector BLOB NOT NULL, gone_ns INTEGER NOT NULL)")
    db.execute("CREATE INDEX IF NOT EXISTS vectors_by_time ON vectors(gone_ns)")
    return db
