"""Which exchanges surround another one in its session, and what the session is called."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from anchord.core.sqlite_connection import CheckedConnection
from anchord.core.types import RootedPath
from anchord.sources.conversations.exchange_document import decode_texts

_OPENING_EXCHANGES = 5
_PLACE_SQL = (
    "SELECT s.id, e.number, e.id, s.title, s.project FROM exchanges e "
    "JOIN sessions s ON s.id=e.session WHERE e.root=? AND e.path=? AND NOT e.superseded"
)
_OTHERS_SQL = "SELECT path FROM exchanges WHERE session=? AND NOT superseded"
_BEFORE_SQL = f"{_OTHERS_SQL} AND (number, id) < (?, ?) ORDER BY number DESC, id DESC LIMIT ?"
_AFTER_SQL = f"{_OTHERS_SQL} AND (number, id) > (?, ?) ORDER BY number, id LIMIT ?"
_FIRST_SQL = f"{_OTHERS_SQL} ORDER BY number, id LIMIT {_OPENING_EXCHANGES}"


@dataclass(frozen=True, slots=True)
class SessionStretch:
    """An exchange with those around it in its session."""

    title: str
    """The session's title; "" without one."""
    project: str
    opening: tuple[RootedPath, ...]
    """The session's first exchanges."""
    exchanges: tuple[RootedPath, ...]
    """In the order of the session, without superseded ones."""


class SessionOrder:
    """Reads the order of sessions from the archive."""

    def __init__(self, db: CheckedConnection) -> None:
        """Use an open archive's connection."""
        self._db = db

    def stretch_around(self, origin: RootedPath, distance: int) -> SessionStretch | None:
        """Return an exchange's surroundings; None if it is superseded or does not exist.

        Args:
            origin: The exchange.
            distance: How many exchanges before it and after it to return, at most.
        """
        row = self._db.execute(_PLACE_SQL, (origin.root, origin.path)).fetchone()
        if row is None:
            return None
        session, number, exchange_id, title, project = row
        here = (session, number, exchange_id, distance)
        before = [path for (path,) in self._db.execute(_BEFORE_SQL, here)]
        after = [path for (path,) in self._db.execute(_AFTER_SQL, here)]
        opening = [path for (path,) in self._db.execute(_FIRST_SQL, (session,))]
        paths = (*reversed(before), origin.path, *after)
        return SessionStretch(
            title=title,
            project=project,
            opening=tuple(RootedPath(origin.root, path) for path in opening),
            exchanges=tuple(RootedPath(origin.root, path) for path in paths),
        )

    def question_of(self, origin: RootedPath) -> str:
        """Return the question of an exchange; "" if it has none, or cannot be read."""
        row = self._db.execute(
            "SELECT content FROM exchanges WHERE root=? AND path=?", (origin.root, origin.path)
        ).fetchone()
        try:
            return decode_texts(zlib.decompress(row[0])).question.strip("\n") if row else ""
        except (zlib.error, ValueError, KeyError, TypeError):
            return ""
