"""Titles and projects of sessions, chosen from what each transcript file says of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping

from anchord.core.types import RootedPath
from anchord.sources.conversations.events import SessionInfo

_NEWEST_CLAIMS_SQL = """
SELECT h.title, h.project FROM heads h JOIN carriers c ON c.id=h.carrier WHERE h.session=?
ORDER BY h.updated DESC, c.mtime_ns DESC, c.path DESC
"""


class SessionTitles:
    """Keeps what each file says of each session (table `heads`), and derives the titles from it.

    Every method must run inside a transaction of the archive.
    """

    def __init__(self, db: sqlite3.Connection, next_version: Callable[[], int]) -> None:
        """Use an open archive.

        Args:
            db: The archive's connection.
            next_version: Returns a new, higher version for exchanges that are about to change.
        """
        self._db = db
        self._next_version = next_version

    def sessions_of(self, file_id: int) -> set[int]:
        """Return the ids of the sessions that a file says something of."""
        rows = self._db.execute("SELECT session FROM heads WHERE carrier=?", (file_id,))
        return {session_id for (session_id,) in rows}

    def drop(self, file_id: int, session_ids: Collection[int]) -> None:
        """Delete what a file says of these sessions; the sessions' titles stay until `refresh`."""
        self._db.executemany(
            "DELETE FROM heads WHERE carrier=? AND session=?",
            [(file_id, session_id) for session_id in session_ids],
        )

    def save(self, file_id: int, info_by_session_id: Mapping[int, SessionInfo]) -> None:
        """Store what a file says of sessions; the sessions' titles stay until `refresh`."""
        self._db.executemany(
            "INSERT OR REPLACE INTO heads(carrier, session, updated, title, project, parent) "
            "VALUES(?,?,?,?,?,?)",
            [
                (file_id, session_id, info.updated, info.title, info.project, info.parent)
                for session_id, info in info_by_session_id.items()
            ],
        )

    def refresh(self, session_ids: Iterable[int]) -> list[RootedPath]:
        """Set titles and projects to what the files say now, in whichever order they were read.

        A new title or project gives all exchanges of the session a new version and marks them due:
            a title is part of what
        is embedded.

        Returns:
            The exchanges of the sessions that changed.
        """
        changed: list[RootedPath] = []
        for session_id in sorted(session_ids):
            if self._refresh_one(session_id):
                changed += self._mark_changed(session_id)
        return changed

    def _refresh_one(self, session_id: int) -> bool:
        stored = self._db.execute(
            "SELECT title, project FROM sessions WHERE id=?", (session_id,)
        ).fetchone()
        claims = self._db.execute(_NEWEST_CLAIMS_SQL, (session_id,)).fetchall()
        if stored is None or not claims:
            return False  # No file says anything of it any more: it keeps its title.
        # An orphan's title can come from a file that is gone. Only without orphans may a title
        # become empty.
        title, project = stored if self._has_orphans(session_id) else ("", "")
        title = next((claimed for claimed, _ in claims if claimed), title)
        project = next((claimed for _, claimed in claims if claimed), project)
        if (title, project) == stored:
            return False
        self._db.execute(
            "UPDATE sessions SET title=?, project=? WHERE id=?", (title, project, session_id)
        )
        return True

    def _has_orphans(self, session_id: int) -> bool:
        """Return whether the session has an exchange whose last file is gone."""
        row = self._db.execute(
            "SELECT 1 FROM exchanges WHERE session=? AND carrier IS NULL LIMIT 1", (session_id,)
        ).fetchone()
        return row is not None

    def _mark_changed(self, session_id: int) -> list[RootedPath]:
        self._db.execute(
            "UPDATE exchanges SET version=?, due=1 WHERE session=?",
            (self._next_version(), session_id),
        )
        rows = self._db.execute("SELECT root, path FROM exchanges WHERE session=?", (session_id,))
        return [RootedPath(root, path) for root, path in rows]
