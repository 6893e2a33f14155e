"""What is told goes into the archive: by which carrier, since when, and what becomes of it when nobody tells it any more."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from anchord.adapters.archive import Archive, decoded, key_of
from anchord.conversation import Exchange, Head
from anchord.core.identity import digest
from anchord.errors import StoreError
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
    """A carrier as it tells, by its number here."""

    root: str
    source: str
    carrier: int
    unique: bool = False
    """Whether an exchange of the same id in another session is the same one: it was copied. Its path names no session then."""


class ArchiveWriter(Archive):
    """The archive in the hands of the writer's thread, which alone changes it."""

    def __init__(self, file: Path) -> None:
        """Open or create the file."""
        super().__init__(file)
        self.again: dict[Origin, None] = {}
        """Carriers that are to be read again, since `changing` began."""
        self.gone: dict[Origin, None] = {}
        """Exchanges that went since then."""
        self.renamed: dict[Origin, None] = {}
        """Exchanges whose session is called something else since then."""

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Make all changes inside at once, or none.

        Raises:
            StoreError: they cannot be written.
        """
        self._db.execute("BEGIN IMMEDIATE")
        self.again, self.gone, self.renamed = {}, {}, {}
        try:
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise StoreError(f"the archive of conversations cannot be written: {error}", "see the free space") from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._db.in_transaction:  # SQLite does so by itself when the disk is full.
            self._db.execute("ROLLBACK")

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
        """Return the number of a session here; one that is not known yet is called what its head says."""
        key = (root, source, head.session)
        row = self._db.execute("SELECT id FROM sessions WHERE root=? AND source=? AND name=?", key).fetchone()
        if row is not None:
            return int(row[0])
        made = self._db.execute(
            "INSERT INTO sessions(root, source, name, title, project, parent) VALUES(?,?,?,?,?,?)",
            (*key, head.title, head.project, head.parent),
        )
        return int(made.lastrowid or 0)

    def head(self, carrier: int, session: int) -> Head:
        """Return what a carrier told of a session; nothing, as long as it did not."""
        row = self._db.execute(
            "SELECT s.name, h.title, h.project, h.parent, h.updated FROM sessions s "
            "LEFT JOIN heads h ON h.session=s.id AND h.carrier=? WHERE s.id=?",
            (carrier, session),
        ).fetchone()
        return Head(*(each or "" for each in row))

    def tell_heads(self, carrier: int, heads: Mapping[int, Head], *, whole: bool) -> None:
        """Keep what a carrier tells of sessions, by number; `whole`: it tells of no others any more."""
        let_go = self._sessions_of(carrier) - heads.keys() if whole else set[int]()
        self._db.executemany("DELETE FROM heads WHERE carrier=? AND session=?", [(carrier, session) for session in let_go])
        self._db.executemany(
            "INSERT OR REPLACE INTO heads(carrier, session, updated, title, project, parent) VALUES(?,?,?,?,?,?)",
            [(carrier, session, head.updated, head.title, head.project, head.parent) for session, head in heads.items()],
        )
        self._name(heads.keys() | let_go)

    def _sessions_of(self, carrier: int) -> set[int]:
        return {session for (session,) in self._db.execute("SELECT session FROM heads WHERE carrier=?", (carrier,))}

    def _name(self, sessions: Iterable[int]) -> None:
        """Call sessions what is told of them now, in whichever order that was read; a new name makes all exchanges new.

        What nobody tells any more stays where an exchange stays as well that has no source.
        """
        for session in sorted(sessions):
            row = self._db.execute("SELECT title, project FROM sessions WHERE id=?", (session,)).fetchone()
            told = self._db.execute(
                "SELECT h.title, h.project FROM heads h JOIN carriers c ON c.id=h.carrier WHERE h.session=? "
                "ORDER BY h.updated DESC, c.mtime_ns DESC, c.path DESC",
                (session,),
            ).fetchall()
            if row is None or not told:
                continue
            sourceless = "SELECT 1 FROM exchanges WHERE session=? AND carrier IS NULL LIMIT 1"
            stays = self._db.execute(sourceless, (session,)).fetchone() is not None
            title, project = (
                next(filter(None, each), was if stays else "") for each, was in zip(zip(*told, strict=True), row, strict=True)
            )
            if (title, project) != row:
                self._db.execute("UPDATE sessions SET title=?, project=? WHERE id=?", (title, project, session))
                self._db.execute("UPDATE exchanges SET version=?, due=1 WHERE session=?", (self._next_version(), session))
                exchanges = self._db.execute("SELECT root, path FROM exchanges WHERE session=?", (session,))
                self.renamed |= {Origin(*each): None for each in exchanges}

    def tell(self, by: Teller, session: int, exchange: Exchange, redacted: str = "") -> int:
        """Keep an exchange as a carrier tells it; return its number here. `redacted`: JSON counts of its secrets, by kind.

        What is kept does not depend on the order in which carriers are read: of several forms the one with the latest last word
        counts, of those the one written last; and one that nobody tells any more only gives way to a later one.
        """
        content = dump(exchange)
        summed = digest(content)
        path = path_of(by.source, "" if by.unique else exchange.session, exchange.id)
        row = self._db.execute(
            "SELECT id, session, digest, carrier, until, superseded, number FROM exchanges WHERE root=? AND path=?",
            (by.root, path),
        ).fetchone()
        if row is None:
            made = self._db.execute(
                "INSERT INTO exchanges(session, root, path, name, number, superseded, until, digest, redacted, content, "
                "version, due, carrier) VALUES(?,?,?,?,?,?,?,?,?,?,?,1,?)",
                (session, by.root, path, exchange.id, exchange.number, exchange.superseded, exchange.until, summed, redacted,
                 zlib.compress(content, _LEVEL), self._next_version(), by.carrier),
            )  # fmt: skip
            found = int(made.lastrowid or 0)
            self._note_telling(by, found, summed, exchange.until)
            return found
        of, was, teller, until, superseded, number = row[1:]
        found = int(row[0])
        self._note_telling(by, found, summed, exchange.until)
        best = self._best(found)
        if best is None or best[0] == by.carrier or was not in (best[1], summed):
            mine = teller is not None or exchange.until >= until
            if mine and (was != summed or superseded != exchange.superseded):
                self._db.execute(
                    "UPDATE exchanges SET digest=?, redacted=?, content=?, superseded=?, until=?, version=?, due=1 WHERE id=?",
                    (summed, redacted, zlib.compress(content, _LEVEL), exchange.superseded, exchange.until,
                     self._next_version(), found),
                )  # fmt: skip
            if mine and (teller != by.carrier or number != exchange.number):
                self._db.execute("UPDATE exchanges SET carrier=?, number=? WHERE id=?", (by.carrier, exchange.number, found))
        if best is not None and best[0] != by.carrier and was != best[1]:
            self._read_again(best[0])
        if of != session and by.unique:
            self._move(found, of, session)
        return found

    def _note_telling(self, by: Teller, exchange: int, summed: str, until: str) -> None:
        self._db.execute(
            "INSERT INTO tellings(carrier, exchange, digest, until) VALUES(?,?,?,?) ON CONFLICT(carrier, exchange) DO UPDATE "
            "SET digest=excluded.digest, until=excluded.until WHERE digest != excluded.digest",
            (by.carrier, exchange, summed, until),
        )

    def _best(self, exchange: int) -> tuple[int, str] | None:
        """Return the carrier whose form of an exchange counts, and its digest."""
        row = self._db.execute(
            "SELECT c.id, t.digest FROM tellings t JOIN carriers c ON c.id=t.carrier WHERE t.exchange=? "
            "ORDER BY t.until DESC, c.mtime_ns DESC, t.digest DESC, c.id DESC LIMIT 1",
            (exchange,),
        ).fetchone()
        return (int(row[0]), str(row[1])) if row else None

    def _read_again(self, carrier: int) -> None:
        """Have a carrier read whole, for what it tells counts and is not what is kept."""
        self._db.execute("UPDATE carriers SET reader='' WHERE id=?", (carrier,))
        root, path = self._db.execute("SELECT root, path FROM carriers WHERE id=?", (carrier,)).fetchone()
        self.again[Origin(root, decoded(path))] = None

    def _move(self, exchange: int, of: int, session: int) -> None:
        """Give a copied exchange to the session whose name comes first, whichever was read first."""
        names = [self._db.execute("SELECT name FROM sessions WHERE id=?", (each,)).fetchone()[0] for each in (of, session)]
        if names[1] < names[0]:
            values = (session, self._next_version(), exchange)
            self._db.execute("UPDATE exchanges SET session=?, version=?, due=1 WHERE id=?", values)

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

    def untell(self, carrier: int, exchanges: Sequence[int], *, keep: bool) -> None:
        """Note that a carrier tells these no more; one that nobody tells goes, or with `keep` stays without a source."""
        for exchange in exchanges:
            self._db.execute("DELETE FROM tellings WHERE carrier=? AND exchange=?", (carrier, exchange))
            row = self._db.execute("SELECT carrier, digest, root, path FROM exchanges WHERE id=?", (exchange,)).fetchone()
            if row is None or row[0] != carrier:
                continue
            best = self._best(exchange)
            if best is not None:
                self._db.execute("UPDATE exchanges SET carrier=? WHERE id=?", (best[0], exchange))
                if best[1] != row[1]:
                    self._read_again(best[0])
            elif keep:
                self._db.execute("UPDATE exchanges SET carrier=NULL WHERE id=?", (exchange,))
            else:
                self._db.execute("DELETE FROM exchanges WHERE id=?", (exchange,))
                self.gone[Origin(row[2], row[3])] = None

    def leave(self, origin: Origin, *, keep: bool) -> None:
        """Note that a carrier is gone, as `untell` does for all that it told."""
        noted = self.carrier(origin)
        if noted is not None:
            self.untell(noted.id, sorted(self.told_by(noted.id)), keep=keep)
            sessions = self._sessions_of(noted.id)
            self._db.execute("DELETE FROM carriers WHERE id=?", (noted.id,))
            self._name(sessions)

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
                sessions = self._sessions_of(noted.id)
                self._db.execute("DELETE FROM carriers WHERE id=?", (noted.id,))
                self._name(sessions)
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
