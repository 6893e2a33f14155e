"""`conversations.sqlite`: every exchange that was ever told, whole, and which carriers tell it.

    carriers   root, path, fingerprint, mark    what was read of a file, and where an append can be read on
    sessions   source, name, title, project     what is known of a conversation
    exchanges  session, name, content, version  the words, compressed; read like files, at the path of `sources.archived`
    tellings   carrier, exchange, digest        who tells it: the same session can be in an export, and in last month's as well

An exchange belongs to its session, not to a file: renamed, compressed or exported again it stays what it was. When the last
carrier of an exchange is gone, it stays here and is marked as missing its source: assistants delete their transcripts.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anchord.conversation import Exchange, Head
from anchord.core.identity import digest
from anchord.errors import StoreDamagedError, StoreError
from anchord.model import Absent, Content, Fingerprint, Found, Origin
from anchord.sources.archived import dump, joined, path_of, question_of

SCHEMA = 1
_LEVEL = 6
_SCHEMA_SQL = """
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
    carrier INTEGER REFERENCES carriers(id), told_ns INTEGER NOT NULL, UNIQUE(root, path));
CREATE INDEX exchanges_by_session ON exchanges(session, number);
CREATE INDEX exchanges_by_carrier ON exchanges(carrier);
CREATE INDEX exchanges_by_name ON exchanges(root, name);
CREATE INDEX exchanges_due ON exchanges(root) WHERE due;
CREATE TABLE tellings(
    carrier INTEGER NOT NULL REFERENCES carriers(id) ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchanges(id) ON DELETE CASCADE, digest TEXT NOT NULL,
    PRIMARY KEY(carrier, exchange)) WITHOUT ROWID;
CREATE INDEX tellings_by_exchange ON tellings(exchange);
"""


@dataclass(frozen=True, slots=True)
class Noted:
    """What is known of a carrier. `mark` says where its last exchange started, as the reader wrote it; `reader` who read."""

    id: int
    fingerprint: Fingerprint
    source: str
    reader: str
    mark: str


@dataclass(frozen=True, slots=True)
class Reading:
    """How a carrier was read: by which reader, where it can be read on, and JSON counts of what was not understood."""

    reader: str
    mark: str
    unknown: str


_UNREAD = Reading("", "", "{}")


@dataclass(frozen=True, slots=True)
class Teller:
    """A carrier as it tells: by its number here, and the time when it was written."""

    root: str
    source: str
    carrier: int
    told_ns: int
    unique: bool = False
    """Whether an exchange of the same id in another session is the same one: it was copied."""


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
            StoreDamagedError: it is damaged. StoreError: it was written by a newer version, or (read-only) is not there.
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
        except sqlite3.DatabaseError as error:
            raise StoreDamagedError(
                f"{file}: {error}", "it is made anew from the conversations that are still there"
            ) from error
        if version > SCHEMA:
            raise StoreError(f"{file} was written by a newer anchord (schema {version})", "update anchord")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Make all changes inside at once, or none."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

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

    # Carriers

    def carrier(self, origin: Origin) -> Noted | None:
        """Return what is known of a carrier."""
        row = self._db.execute(
            "SELECT id, size, mtime_ns, ctime_ns, inode, device, source, reader, mark FROM carriers WHERE root=? AND path=?",
            _key(origin),
        ).fetchone()
        return Noted(row[0], Fingerprint(*row[1:6]), *row[6:]) if row else None

    def note_carrier(self, origin: Origin, fingerprint: Fingerprint, source: str = "", read: Reading = _UNREAD) -> int:
        """Keep what is known of a carrier now; return its number here."""
        self._db.execute(
            "INSERT INTO carriers(root, path, source, size, mtime_ns, ctime_ns, inode, device, reader, mark, unknown) "
            "VALUES(?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(root, path) DO UPDATE SET source=excluded.source, size=excluded.size, "
            "mtime_ns=excluded.mtime_ns, ctime_ns=excluded.ctime_ns, inode=excluded.inode, device=excluded.device, "
            "reader=excluded.reader, mark=excluded.mark, unknown=excluded.unknown",
            (*_key(origin), source, fingerprint.size, fingerprint.mtime_ns, fingerprint.ctime_ns, fingerprint.inode,
             fingerprint.device, read.reader, read.mark, read.unknown),
        )  # fmt: skip
        row = self._db.execute("SELECT id FROM carriers WHERE root=? AND path=?", _key(origin)).fetchone()
        return int(row[0])

    # Telling

    def session(self, root: str, source: str, head: Head) -> int:
        """Keep what is told of a session; a new title or project makes all of its exchanges new."""
        key = (root, source, head.session)
        row = self._db.execute("SELECT id, title, project FROM sessions WHERE root=? AND source=? AND name=?", key).fetchone()
        if row is None:
            made = self._db.execute(
                "INSERT INTO sessions(root, source, name, title, project, parent) VALUES(?,?,?,?,?,?)",
                (*key, head.title, head.project, head.parent),
            )
            return int(made.lastrowid or 0)
        number, title, project = row
        wanted = (head.title or title, head.project or project)
        if wanted != (title, project):
            self._db.execute("UPDATE sessions SET title=?, project=? WHERE id=?", (*wanted, number))
            self._db.execute("UPDATE exchanges SET version=?, due=1 WHERE session=?", (self._next_version(), number))
        return int(number)

    def tell(self, by: Teller, session: int, exchange: Exchange, redacted: str = "") -> int:
        """Keep an exchange as a carrier tells it; return its number here. `redacted`: JSON counts of its secrets, by kind.

        Of two carriers that tell it differently, the one with the later last word counts, or else the one written later.
        """
        content = dump(exchange)
        summed = digest(content)
        path = (self._copied(by, exchange.id) if by.unique else "") or path_of(by.source, exchange.session, exchange.id)
        row = self._db.execute(
            "SELECT id, digest, carrier, until, told_ns, superseded, number FROM exchanges WHERE root=? AND path=?",
            (by.root, path),
        ).fetchone()
        if row is None:
            made = self._db.execute(
                "INSERT INTO exchanges(session, root, path, name, number, superseded, until, digest, redacted, content, "
                "version, due, carrier, told_ns) VALUES(?,?,?,?,?,?,?,?,?,?,?,1,?,?)",
                (session, by.root, path, exchange.id, exchange.number, exchange.superseded, exchange.until, summed, redacted,
                 zlib.compress(content, _LEVEL), self._next_version(), by.carrier, by.told_ns),
            )  # fmt: skip
            found = int(made.lastrowid or 0)
        else:
            found, was, teller, until, before_ns, superseded, number = row
            mine = teller in (None, by.carrier) or (exchange.until, by.told_ns) >= (until, before_ns)
            differs = was != summed or superseded != exchange.superseded
            if mine and differs:
                self._db.execute(
                    "UPDATE exchanges SET digest=?, redacted=?, content=?, superseded=?, until=?, version=?, due=1 WHERE id=?",
                    (summed, redacted, zlib.compress(content, _LEVEL), exchange.superseded, exchange.until,
                     self._next_version(), found),
                )  # fmt: skip
            if mine and (differs or teller is None or (teller == by.carrier and number != exchange.number)):
                self._db.execute(
                    "UPDATE exchanges SET carrier=?, told_ns=?, number=? WHERE id=?",
                    (by.carrier, by.told_ns, exchange.number, found),
                )
        self._db.execute(
            "INSERT INTO tellings(carrier, exchange, digest) VALUES(?,?,?) ON CONFLICT(carrier, exchange) DO UPDATE SET "
            "digest=excluded.digest WHERE digest != excluded.digest",
            (by.carrier, found, summed),
        )
        return found

    def _copied(self, by: Teller, name: str) -> str:
        """Return the path of an exchange of this id in whichever session it stood first."""
        row = self._db.execute(
            "SELECT e.path FROM exchanges e JOIN sessions s ON s.id=e.session WHERE e.root=? AND e.name=? AND s.source=? "
            "ORDER BY e.id LIMIT 1",
            (by.root, name, by.source),
        ).fetchone()
        return str(row[0]) if row else ""

    def supersede(self, session: int, names: frozenset[str]) -> None:
        """Leave these exchanges of a session out of the index: they are on a branch that was left."""
        for name in names:
            self._db.execute(
                "UPDATE exchanges SET superseded=1, version=?, due=1 WHERE session=? AND name=? AND NOT superseded",
                (self._next_version(), session, name),
            )

    def told_by(self, carrier: int, session: int | None = None, since: int = 0) -> set[int]:
        """Return the exchanges that a carrier tells, or those of a session from some number on."""
        where, values = "carrier=?", [carrier]
        if session is not None:
            where += " AND exchange IN (SELECT id FROM exchanges WHERE session=? AND number>=?)"
            values += [session, since]
        return {exchange for (exchange,) in self._db.execute(f"SELECT exchange FROM tellings WHERE {where}", values)}

    def untell(self, carrier: int, exchanges: Sequence[int], *, keep: bool) -> tuple[list[Origin], list[Origin]]:
        """Note that a carrier tells these no more; one that nobody tells goes, or with `keep` stays without a source.

        Returns the carriers to be read again, as they tell another form of it, and the exchanges that went.
        """
        again, gone = list[Origin](), list[Origin]()
        for exchange in exchanges:
            self._db.execute("DELETE FROM tellings WHERE carrier=? AND exchange=?", (carrier, exchange))
            row = self._db.execute("SELECT carrier, digest FROM exchanges WHERE id=?", (exchange,)).fetchone()
            if row is None or row[0] != carrier:
                continue
            others = self._db.execute(
                "SELECT c.id, c.root, c.path, t.digest, c.mtime_ns FROM tellings t JOIN carriers c ON c.id=t.carrier "
                "WHERE t.exchange=? ORDER BY t.digest != ?, c.mtime_ns DESC",
                (exchange, row[1]),
            ).fetchone()
            if others is not None:
                self._db.execute("UPDATE exchanges SET carrier=?, told_ns=? WHERE id=?", (others[0], others[4], exchange))
                if others[3] != row[1]:
                    self._db.execute("UPDATE carriers SET reader='' WHERE id=?", (others[0],))
                    again.append(Origin(others[1], _decoded(others[2])))
            elif keep:
                self._db.execute("UPDATE exchanges SET carrier=NULL WHERE id=?", (exchange,))
            else:
                path = self._db.execute("SELECT root, path FROM exchanges WHERE id=?", (exchange,)).fetchone()
                self._db.execute("DELETE FROM exchanges WHERE id=?", (exchange,))
                gone.append(Origin(*path))
        return again, gone

    def leave(self, origin: Origin, *, keep: bool) -> tuple[list[Origin], list[Origin]]:
        """Note that a carrier is gone. Returns what `untell` does."""
        noted = self.carrier(origin)
        if noted is None:
            return [], []
        told = self.untell(noted.id, sorted(self.told_by(noted.id)), keep=keep)
        self._db.execute("DELETE FROM carriers WHERE id=?", (noted.id,))
        return told

    def due(self, origin: Origin) -> list[Origin]:
        """Return the exchanges that a carrier tells and that changed since they were last called done."""
        rows = self._db.execute(
            "SELECT e.path FROM exchanges e JOIN tellings t ON t.exchange=e.id JOIN carriers c ON c.id=t.carrier "
            "WHERE e.due AND e.root=? AND c.root=? AND c.path=? ORDER BY e.session, e.number",
            (origin.root, *_key(origin)),
        )
        return [Origin(origin.root, path) for (path,) in rows]

    def done(self, origins: Sequence[Origin]) -> None:
        """Note that changes of exchanges have been taken in; only a hint, for a walk finds them as well."""
        paths = [(origin.root, origin.path) for origin in origins]
        self._db.executemany("UPDATE exchanges SET due=0 WHERE root=? AND path=?", paths)

    def forget(self, carriers: Sequence[Origin]) -> list[Origin]:
        """Drop files and all that they tell, whoever else tells it as well; return the exchanges that went."""
        gone: list[Origin] = []
        with self.changing():
            for origin in carriers:
                noted = self.carrier(origin)
                if noted is None:
                    continue
                told = [(number,) for number in sorted(self.told_by(noted.id))]
                for number in told:
                    row = self._db.execute("SELECT root, path FROM exchanges WHERE id=?", number).fetchone()
                    gone.append(Origin(*row))
                self._db.executemany("DELETE FROM exchanges WHERE id=?", told)
                self._db.execute("DELETE FROM carriers WHERE id=?", (noted.id,))
            self._db.execute("DELETE FROM sessions WHERE id NOT IN (SELECT session FROM exchanges)")
        return gone

    def flush(self) -> None:
        """Leave nothing of what was dropped in the files."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def drop_root(self, root: str) -> None:
        """Forget all conversations of a root."""
        with self.changing():
            self._db.execute("DELETE FROM exchanges WHERE root=?", (root,))
            self._db.execute("DELETE FROM sessions WHERE root=?", (root,))
            self._db.execute("DELETE FROM carriers WHERE root=?", (root,))

    def carriers_of(self, exchanges: Sequence[Origin]) -> dict[Origin, str]:
        """Return the path of the file that tells each; those whose last file is gone are left out."""
        found = {}
        for origin in exchanges:
            row = self._db.execute(
                "SELECT c.path FROM exchanges e JOIN carriers c ON c.id=e.carrier WHERE e.root=? AND e.path=?",
                (origin.root, origin.path),
            ).fetchone()
            if row:
                found[origin] = _decoded(row[0])
        return found

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

    def note(self, key: str, value: str) -> None:
        """Keep a small fact."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, value))

    def noted(self, key: str) -> str:
        """Return a small fact, "" when there is none."""
        row = self._db.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def _next_version(self) -> int:
        version = int(self.noted("version") or 0) + 1
        self.note("version", str(version))
        return version


def _key(origin: Origin) -> tuple[str, bytes]:
    return origin.root, origin.path.encode("utf-8", "surrogateescape")


def _decoded(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
