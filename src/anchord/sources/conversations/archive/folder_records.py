"""Where roots and groups of detached exchanges belong: a copy of it outlives damage to the file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable

RecordedFolder = tuple[str, str, str, str]
"""Key and reason of a group ("" and "" for a root that is indexed), the root's name, its folder."""


class FolderRecords:
    """Reads and restores the folders by which exchanges return to a root."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Use an open archive of the present schema."""
        self._db = db

    def all(self) -> list[RecordedFolder]:
        """Return where roots and groups belong: without it their exchanges return to no root."""
        rows = self._db.execute(
            "SELECT '' AS key, '' AS reason, name, folder FROM roots "
            "UNION ALL SELECT key, reason, root, folder FROM detached ORDER BY key, name"
        )
        return [(key, reason, name, os.fsdecode(folder)) for key, reason, name, folder in rows]

    def move(self, move: Callable[[str], str]) -> None:
        """Replace every folder by what `move` returns for it, in a transaction of the archive."""
        for table, key in (("roots", "name"), ("detached", "key")):
            for name, folder in self._db.execute(f"SELECT {key}, folder FROM {table}").fetchall():
                moved = os.fsencode(move(os.fsdecode(folder)))
                self._db.execute(f"UPDATE {table} SET folder=? WHERE {key}=?", (moved, name))

    def restore(self, recorded: Iterable[RecordedFolder]) -> None:
        """Record again what a damaged file has lost, in a transaction of the archive."""
        for key, reason, name, folder in recorded:
            if key:
                self._db.execute(
                    "UPDATE detached SET reason=?, root=?, folder=? WHERE key=? AND root=''",
                    (reason, name, os.fsencode(folder), key),
                )
            else:
                self._db.execute(
                    "INSERT OR IGNORE INTO roots VALUES(?,?)", (name, os.fsencode(folder))
                )
