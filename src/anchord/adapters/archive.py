"""`conversations.sqlite`: every exchange that was ever told, whole, and which carriers tell it.

    carriers   root, path, fingerprint, mark    what was read of a file, and where an append can be read on
    sessions   source, name, title, project     what is known of a conversation
    heads      carrier, session, title, project who tells that of it; as with exchanges the latest counts
    exchanges  session, name, content, version  the words, compressed; read like files, at the path of `sources.archived`
    tellings   carrier, exchange, digest        who tells it: the same session can be in an export, and in last month's as well;
                                                whose last word is the latest counts, whichever was read first

An exchange belongs to its session, not to a file: renamed, compressed or exported again it stays what it was. When the last
carrier of an exchange is gone, it stays here and is marked as missing its source: assistants delete their transcripts.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anchord.errors import NewerStateError, StoreDamagedError
from anchord.model import Absent, Content, Fingerprint, Found, Origin
from anchord.sources.archived import joined, question_of

SCHEMA = 2
_HEADS_SQL = """
CREATE TABLE heads(
    carrier INTEGER NOT NULL REFERENCES carriers(id) ON DELETE CASCADE,
    session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, updated TEXT NOT NULL, title TEXT NOT NULL,
    project TEXT NOT NULL, parent TEXT NOT NULL, PRIMARY KEY(carrier, session)) WITHOUT ROWID;
CREATE INDEX heads_by_session ON heads(session);
"""
_STEPS = {1: _HEADS_SQL}
"""What makes the next version of an older one. Version 2 has the heads: they fill as carriers are read again."""
_SCHEMA_SQL = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE carriers(
    id INTEGER PRIMARY KEY, root TEXT NOT NULL, path BLOB NOT NULL, source TEXT NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, device INTEGER NOT NULL,
    reader TEXT NOT NULL, mark TEXT NOT NULL, unknown TEXT NOT NULL, UNIQUE(root, path));
CREATE TABLE sessions(
    id INTEGER PRIMARY KEY, root TEXT NOT NULL, source TEXT NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL,
    project TEXT NOT NULL, parent TEXT NOT NULL, UNIQUE(root, source, name));
CREATE TABLE exchanges(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, root TEXT NOT NULL,
    path BLOB NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL, superseded INTEGER NOT NULL, until TEXT NOT NULL,
    digest TEXT NOT NULL, redacted TEXT NOT NULL, content BLOB NOT NULL, version INTEGER NOT NULL, due INTEGER NOT NULL,
    carrier INTEGER REFERENCES carriers(id), UNIQUE(root, path));
CREATE INDEX exchanges_by_session ON exchanges(session, number);
CREATE INDEX exchanges_by_carrier ON exchanges(carrier);
CREATE INDEX exchanges_due ON exchanges(root) WHERE due;
CREATE TABLE tellings(
    carrier INTEGER NOT NULL REFERENCES carriers(id) ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchanges(id) ON DELETE CASCADE, digest TEXT NOT NULL,
    until TEXT NOT NULL, PRIMARY KEY(carrier, exchange)) WITHOUT ROWID;
CREATE INDEX tellings_by_exchange ON tellings(exchange);
{_HEADS_SQL}"""


@dataclass(frozen=True, slots=True)
class Noted:
    """What is known of a carrier. `mark` says where its last exchange started, as the reader wrote it; `reader` who read."""

    id: int
    fingerprint: Fingerprint
    source: str
    reader: str
    mark: str
    unknown: str


@dataclass(frozen=True, slots=True)
class Talk:
    """What an exchange is part of. `previous` and `next`: path and question of its neighbours, "" where there is none."""

    source: str
    session: str
    title: str
    project: str
    number: int
    """Its place among those that are found, from 0."""
    exchanges: int
    source_missing: bool
    previous: tuple[str, str]
    next: tuple[str, str]


class Archive:
    """The exchanges of all conversation roots. Not shared between threads."""

    def __init__(self, file: Path, *, read_only: bool = False) -> None:
        """Open or create the file.

        Raises:
            StoreDamagedError: it is damaged. NewerStateError: a newer anchord wrote it.
        """
        self._file = file
        try:
            uri = f"file:{quote(str(file))}?mode={'ro' if read_only else 'rwc'}"
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30, check_same_thread=False)
            self._db.execute("PRAGMA foreign_keys=ON")
            if not read_only:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=FULL")
                self._db.execute("PRAGMA secure_delete=ON")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and not read_only:
                self._db.executescript(f"BEGIN; {_SCHEMA_SQL} PRAGMA user_version={SCHEMA}; COMMIT;")
            for older in range(version, SCHEMA if version and not read_only else version):
                self._db.executescript(f"BEGIN; {_STEPS[older]} PRAGMA user_version={older + 1}; COMMIT;")
        except sqlite3.DatabaseError as error:
            raise StoreDamagedError(
                f"{file}: {error}", "it is made anew from the conversations that are still there"
            ) from error
        if version > SCHEMA:
            raise NewerStateError.of(str(file), version)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # As files

    def found(self, root: str, prefix: str = "") -> tuple[Found, ...]:
        """Return the exchanges of a root, of a session or of one path, as a walk finds files; those left by an edit are not."""
        where, values = "root=? AND NOT superseded", [root]
        if prefix:
            where += " AND (path=? OR (path>=? AND path<?))"
            values += [prefix, prefix + "/", prefix + "0"]  # "0" is the character after "/".
        rows = self._db.execute(f"SELECT path, length(content), version, id FROM exchanges WHERE {where} ORDER BY path", values)
        return tuple(Found(path, Fingerprint(size, version, 0, number, 0)) for path, size, version, number in rows)

    def fingerprint(self, origin: Origin) -> Fingerprint | Absent:
        """Look at an exchange. Its time is a version: never shortly ago."""
        found = self.found(origin.root, origin.path)
        return found[0].fingerprint if found and found[0].path == origin.path else Absent("no such exchange")

    def read(self, origin: Origin) -> Content | Absent:
        """Read an exchange with what is known of its session."""
        row = self._db.execute(
            "SELECT e.content, length(e.content), e.version, e.id, s.source, s.name, s.title, s.project FROM exchanges e "
            "JOIN sessions s ON s.id=e.session WHERE e.root=? AND e.path=? AND NOT e.superseded",
            (origin.root, origin.path),
        ).fetchone()
        if row is None:
            return Absent("no such exchange")
        content, size, version, number, *session = row
        return Content(joined(zlib.decompress(content), *session), Fingerprint(size, version, 0, number, 0))

    # Carriers and conversations

    def carrier(self, origin: Origin) -> Noted | None:
        """Return what is known of a carrier."""
        row = self._db.execute(
            "SELECT id, size, mtime_ns, ctime_ns, inode, device, source, reader, mark, unknown "
            "FROM carriers WHERE root=? AND path=?",
            key_of(origin),
        ).fetchone()
        return Noted(row[0], Fingerprint(*row[1:6]), *row[6:]) if row else None

    def carriers_of(self, exchanges: Sequence[Origin]) -> dict[Origin, str]:
        """Return the path of the file that tells each; those whose last file is gone are left out."""
        found = {}
        for origin in exchanges:
            row = self._db.execute(
                "SELECT c.path FROM exchanges e JOIN carriers c ON c.id=e.carrier WHERE e.root=? AND e.path=?",
                (origin.root, origin.path),
            ).fetchone()
            if row:
                found[origin] = decoded(row[0])
        return found

    def exchanges_in(self, carrier: Origin) -> tuple[Origin, ...]:
        """Return the exchanges that are read from a file."""
        rows = self._db.execute(
            "SELECT e.path FROM exchanges e JOIN carriers c ON c.id=e.carrier WHERE c.root=? AND c.path=? AND NOT e.superseded",
            key_of(carrier),
        )
        return tuple(Origin(carrier.root, path) for (path,) in rows)

    def conversation(self, origin: Origin) -> Talk | None:
        """Return what an exchange is part of."""
        row = self._db.execute(
            "SELECT s.id, s.source, s.name, s.title, s.project, e.carrier IS NULL FROM exchanges e "
            "JOIN sessions s ON s.id=e.session WHERE e.root=? AND e.path=?",
            (origin.root, origin.path),
        ).fetchone()
        if row is None:
            return None
        session, source, name, title, project, missing = row
        paths = [path for (path,) in self._db.execute(
            "SELECT path FROM exchanges WHERE session=? AND NOT superseded ORDER BY number, id", (session,)
        )]  # fmt: skip
        at = paths.index(origin.path) if origin.path in paths else 0
        before, after = (paths[at - 1] if at else ""), (paths[at + 1] if at + 1 < len(paths) else "")
        around = ((before, self._question(origin.root, before)), (after, self._question(origin.root, after)))
        return Talk(source, name, title, project, at, len(paths), bool(missing), *around)

    def _question(self, root: str, path: str) -> str:
        content = self.read(Origin(root, path)) if path else None
        return question_of(content.data) if isinstance(content, Content) else ""

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return, by root: sessions, exchanges, those without a source, those on branches that were left, secrets by kind."""
        rows = self._db.execute(
            "SELECT root, count(DISTINCT session), count(*), sum(carrier IS NULL), sum(superseded) FROM exchanges GROUP BY root"
        )
        names = ("sessions", "exchanges", "source_missing", "superseded")
        counted: dict[str, dict[str, Any]] = {root: dict(zip(names, figures, strict=True)) for root, *figures in rows}
        for figures in counted.values():
            figures["redacted"] = {}
        for root, kinds in self._db.execute("SELECT root, redacted FROM exchanges WHERE redacted != ''"):
            kept = counted[root]["redacted"]
            for kind, times in json.loads(kinds).items():
                kept[kind] = kept.get(kind, 0) + times
        return counted

    def noted(self, key: str) -> str:
        """Return a small fact, "" when there is none."""
        row = self._db.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return str(row[0]) if row else ""


def key_of(origin: Origin) -> tuple[str, bytes]:
    """Return a carrier's root and path as they are stored: paths are the bytes that the system gave."""
    return origin.root, origin.path.encode("utf-8", "surrogateescape")


def decoded(path: bytes) -> str:
    """Return a stored path."""
    return path.decode("utf-8", "surrogateescape")
