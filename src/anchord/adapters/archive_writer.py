"""What is told goes into the archive: by which carrier, since when, and what becomes of it when nobody tells it any more."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from anchord.adapters.archive import Archive, decoded, key_of
from anchord.conversation import Exchange, Head
from anchord.core.identity import digest
from anchord.model import Fingerprint, Origin
from anchord.sources.archived import dump, path_of

_LEVEL = 6


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


class ArchiveWriter(Archive):
    """The archive in the hands of the writer's thread, which alone changes it."""

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

    # Telling

    def note_carrier(self, origin: Origin, fingerprint: Fingerprint, source: str = "", read: Reading = _UNREAD) -> int:
        """Keep what is known of a carrier now; return its number here."""
        self._db.execute(
            "INSERT INTO carriers(root, path, source, size, mtime_ns, ctime_ns, inode, device, reader, mark, unknown) "
            "VALUES(?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(root, path) DO UPDATE SET source=excluded.source, size=excluded.size, "
            "mtime_ns=excluded.mtime_ns, ctime_ns=excluded.ctime_ns, inode=excluded.inode, device=excluded.device, "
            "reader=excluded.reader, mark=excluded.mark, unknown=excluded.unknown",
            (*key_of(origin), source, fingerprint.size, fingerprint.mtime_ns, fingerprint.ctime_ns, fingerprint.inode,
             fingerprint.device, read.reader, read.mark, read.unknown),
        )  # fmt: skip
        row = self._db.execute("SELECT id FROM carriers WHERE root=? AND path=?", key_of(origin)).fetchone()
        return int(row[0])

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
                    again.append(Origin(others[1], decoded(others[2])))
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
            (origin.root, *key_of(origin)),
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

    def _note(self, key: str, value: str) -> None:
        """Keep a small fact."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, value))

    def _next_version(self) -> int:
        version = int(self.noted("version") or 0) + 1
        self._note("version", str(version))
        return version
