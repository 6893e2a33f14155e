"""Lists the sessions of the archive with where their transcripts are or were."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from anchord.core.dates import format_utc
from anchord.core.sqlite_connection import CheckedConnection
from anchord.core.sqlite_errors import damaged_error

_LIST_SQL = """
SELECT s.id, s.source, s.name, s.title, s.project, s.parent,
    coalesce(d.root, s.root), coalesce(d.reason, ''), coalesce(d.folder, r.folder, x''),
    max(e.until), sum(NOT e.superseded), max(e.carrier IS NOT NULL),
    coalesce(max(CASE WHEN instr(c.path, s.name) THEN c.path END), max(c.path)),
    max(e.last_path), max(c.mtime_ns)
FROM exchanges e JOIN sessions s ON s.id=e.session LEFT JOIN detached d ON d.key=e.root
LEFT JOIN roots r ON r.name=e.root LEFT JOIN carriers c ON c.id=e.carrier
{where} GROUP BY s.id
"""

_TRANSCRIPTS_SQL = """
WITH folders AS (SELECT name, folder FROM roots UNION ALL SELECT key, folder FROM detached)
SELECT f.folder, e.last_path FROM exchanges e JOIN folders f ON f.name=e.root
UNION SELECT f.folder, c.path FROM carriers c JOIN folders f ON f.name=c.root
"""


_READ_SQL = """
SELECT c.id, c.source, coalesce(d.root, c.root), coalesce(d.folder, r.folder), c.path
FROM carriers c LEFT JOIN detached d ON d.key=c.root LEFT JOIN roots r ON r.name=c.root
"""


class ReadTranscript(NamedTuple):
    """A transcript file that was read, and that the archive has not seen deleted."""

    id: int
    """In the archive."""
    source: str
    """The program that wrote it."""
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session as the archive knows it."""

    id: int
    """In the archive."""
    source: str
    """The program that wrote it, such as `claude-code`."""
    name: str
    """Its id as the program names it."""
    title: str
    project: str
    parent: str
    root: str
    detached_because: str
    """Why it is kept and not indexed, as in `DetachReason`; "" for one that is indexed."""
    folder: str
    """The root's folder; "" if it was never recorded."""
    path: str
    """The transcript file relative to it, also if it is gone; "" if unknown."""
    last_at: str
    """ISO 8601 in UTC, or ""."""
    exchange_count: int
    has_file: bool
    """Whether the archive knows a transcript file that contains it."""

    @property
    def transcript(self) -> str:
        """Absolute path of the transcript file or folder; "" if unknown."""
        return os.path.join(self.folder, self.path) if self.folder and self.path else ""


class SessionRecords:
    """Reads the sessions of an archive."""

    def __init__(self, db: CheckedConnection) -> None:
        """Use an open archive's connection."""
        self._db = db

    def all(self) -> list[SessionRecord]:
        """Return every session once, in no order.

        Of a session that is in several roots, or of which a part was detached, the one that is
        indexed and whose transcript exists is returned.

        Raises:
            StoreError: The archive cannot be read.
        """
        best: dict[tuple[str, str], SessionRecord] = {}
        for row in self._db.execute(_LIST_SQL.format(where="")):
            record = _make_record(row)
            known = best.get((record.source, record.name))
            if known is None or _rank(known) < _rank(record):
                best[record.source, record.name] = record
        return list(best.values())

    def projects(self) -> list[str]:
        """Return every project that a session is about, as transcripts name it."""
        rows = self._db.execute("SELECT DISTINCT project FROM sessions WHERE project != ''")
        return [project for (project,) in rows]

    def transcripts(self) -> set[str]:
        """Return the absolute path of every transcript that contains an exchange, or did last."""
        rows = self._db.execute(_TRANSCRIPTS_SQL)
        return {
            os.path.join(os.fsdecode(folder), os.fsdecode(path))
            for folder, path in rows
            if folder and path
        }

    def read_transcripts(self) -> dict[str, ReadTranscript]:
        """Return the transcript files and folders that were read, by their absolute paths."""
        return {
            os.path.join(os.fsdecode(folder), os.fsdecode(path)): ReadTranscript(id_, source, root)
            for id_, source, root, folder, path in self._db.execute(_READ_SQL)
            if folder and path
        }

    def session_in(self, transcript_id: int) -> str:
        """Return the name of a session with an exchange in a transcript file; "" without one."""
        row = self._db.execute(
            "SELECT min(s.name) FROM tellings t JOIN exchanges e ON e.id=t.exchange "
            "JOIN sessions s ON s.id=e.session WHERE t.carrier=?",
            (transcript_id,),
        ).fetchone()
        return str(row[0] or "")

    def find_by_exchange(self, name_or_path: str) -> SessionRecord | None:
        """Return the session of an exchange, given its id or its path in the index."""
        where = "WHERE s.id IN (SELECT session FROM exchanges WHERE path=? OR name=?)"
        rows = self._db.execute(_LIST_SQL.format(where=where), (name_or_path, name_or_path))
        return max(map(_make_record, rows), key=_rank, default=None)

    def exchanges_of(self, session_id: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield path and stored fields of a session's exchanges, without superseded ones.

        Raises:
            StoreDamagedError: A text is damaged.
        """
        rows = self._db.execute(
            "SELECT path, content FROM exchanges WHERE session=? AND NOT superseded "
            "ORDER BY number, id",
            (session_id,),
        )
        for path, content in rows:
            try:
                fields = json.loads(zlib.decompress(content))
            except (zlib.error, ValueError, TypeError) as error:
                raise damaged_error(self._db.file, f"the text of {path}") from error
            yield path, fields


def _make_record(row: tuple[Any, ...]) -> SessionRecord:
    (id_, source, name, title, project, parent, root, reason, folder) = row[:9]
    (until, count, has_file, path, last_path, mtime_ns) = row[9:]
    return SessionRecord(
        id=id_,
        source=source,
        name=name,
        title=title,
        project=project,
        parent=parent,
        root=root,
        detached_because=reason,
        folder=os.fsdecode(folder),
        path=os.fsdecode(path or last_path or b""),
        last_at=until or (format_utc(mtime_ns) if mtime_ns else ""),
        exchange_count=count,
        has_file=bool(has_file),
    )


def _rank(record: SessionRecord) -> tuple[bool, bool, int, str]:
    is_indexed = not record.detached_because
    return is_indexed, record.has_file, record.exchange_count, record.last_at
