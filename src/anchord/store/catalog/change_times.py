"""When files changed, as the catalog has it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from anchord.core.types import RootedPath
from anchord.store.catalog.columns import key_columns, rooted_path, unpack_fingerprint


def iter_change_times(db: sqlite3.Connection) -> Iterator[tuple[RootedPath, int]]:
    """Yield each file, no exchange, and when it changed before it was last read, in ns."""
    rows = db.execute("SELECT root, path, fingerprint FROM files WHERE substr(path, 1, 1) != x'2f'")
    for root, path, fingerprint in rows:
        yield rooted_path(root, path), unpack_fingerprint(fingerprint).mtime_ns


def change_times_of(db: sqlite3.Connection, origins: Iterable[RootedPath]) -> dict[RootedPath, int]:
    """Return when files changed before they were last read, in ns; without unknown files."""
    times = {}
    for origin in origins:
        row = db.execute(
            "SELECT fingerprint FROM files WHERE root=? AND path=?", key_columns(origin)
        ).fetchone()
        if row:
            times[origin] = unpack_fingerprint(row[0]).mtime_ns
    return times
