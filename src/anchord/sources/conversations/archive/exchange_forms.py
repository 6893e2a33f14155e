"""Loads and stores the forms of exchanges: which file contains which, and the one that counts."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from anchord.core.ids import hash_content
from anchord.core.types import RootedPath
from anchord.sources.conversations.archive.merge import (
    Changes,
    KnownExchange,
    Telling,
    ToldExchange,
    needs_texts,
)
from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import (
    ExchangeTexts,
    decode_texts,
    encode_exchange,
    exchange_path,
)
from anchord.sources.conversations.exchanges import POSITIONAL_IDS

_COMPRESSION_LEVEL = 6
_INSERT_EXCHANGE_SQL = """
INSERT INTO exchanges(
    session, root, path, name, number, superseded, until, digest, redacted, content, version, due,
    carrier)
VALUES(?,?,?,?,?,?,?,?,?,?,?,1,?)
"""
_UPSERT_TELLING_SQL = """
INSERT INTO tellings(carrier, exchange, digest, until) VALUES(?,?,?,?)
ON CONFLICT(carrier, exchange) DO UPDATE SET digest=excluded.digest, until=excluded.until
WHERE digest != excluded.digest
"""
_SET_FILE_SQL = """
UPDATE exchanges SET
    last_path=coalesce((SELECT path FROM carriers c WHERE c.id=exchanges.carrier), last_path),
    carrier=? WHERE id=?
"""
_ADOPT_ORPHAN_SQL = """
UPDATE exchanges SET
    number=(SELECT count(*) FROM exchanges e
        WHERE e.session=:session AND e.id!=:id AND e.until<exchanges.until),
    last_path=(SELECT coalesce(c.path, e.last_path) FROM exchanges e
        LEFT JOIN carriers c ON c.id=e.carrier
        WHERE e.session=:session AND e.id!=:id AND coalesce(c.path, e.last_path) IS NOT NULL)
WHERE id=:id
"""
_FIND_SQL = """
SELECT e.id, coalesce(s.name, ''), e.number, e.digest, e.until, e.superseded, e.carrier
FROM exchanges e LEFT JOIN sessions s ON s.id=e.session
"""
_FIND_BY_PATH_SQL = f"{_FIND_SQL} WHERE e.root=? AND e.path=?"
_FIND_BY_ID_SQL = f"{_FIND_SQL} WHERE e.id=?"
_FIND_TOLD_SQL = """
SELECT e.id FROM tellings t JOIN exchanges e ON e.id=t.exchange
WHERE t.carrier=? AND e.root=? AND e.name=?
"""
_TELLINGS_SQL = """
SELECT t.until, c.mtime_ns, t.digest, c.path, c.id FROM tellings t JOIN carriers c ON c.id=t.carrier
WHERE t.exchange=?
"""


@dataclass(frozen=True, slots=True)
class ExchangeSource:
    """The transcript file that an exchange was read from."""

    root: str
    source: str
    """The program that wrote the file, such as `claude-code`."""
    file_id: int
    """The file's id in the archive; 0 for none."""
    has_unique_ids: bool = False
    """Whether exchange ids are unique over all sessions: the same id in another session is a copy.

    The exchange's path then does not contain the session.
    """
    reader_version: str = ""
    """The reader of the file with its version and options; "" if unknown."""


class ExchangeForms:
    """Loads what is known of exchanges, and stores the changes that `merge` decides on.

    Every method must run inside a transaction of the archive.
    """

    def __init__(self, db: sqlite3.Connection, next_version: Callable[[], int]) -> None:
        """Use an open archive.

        Args:
            db: The archive's connection.
            next_version: Returns a new, higher version for an exchange that is about to change.
        """
        self._db = db
        self._next_version = next_version

    def find(self, source: ExchangeSource, session: str, name: str) -> KnownExchange | None:
        """Return what is known of an exchange, without its texts; None if it is new.

        The arguments are those of `path_of`.
        """
        known = self._find(_FIND_BY_PATH_SQL, (source.root, path_of(source, session, name)))
        if known is None or any(each.file_id == source.file_id for each in known.tellings):
            return known
        # Another session has an exchange with the same id: that of this file has its own path.
        own = self._db.execute(_FIND_TOLD_SQL, (source.file_id, source.root, name)).fetchone()
        return self._find(_FIND_BY_ID_SQL, own) if own else known

    def find_gone(self, file_id: int, exchange_id: int) -> KnownExchange | None:
        """Record that a file no longer contains an exchange; return what `merge` needs then.

        Returns:
            None if the exchange was deleted.
        """
        key = (file_id, exchange_id)
        self._db.execute("DELETE FROM tellings WHERE carrier=? AND exchange=?", key)
        return self._find(_FIND_BY_ID_SQL, (exchange_id,))

    def find_told(self, root: str, told: ToldExchange) -> KnownExchange | None:
        """Record which form of an exchange a file contains; return what `merge` needs then.

        Args:
            root: The root.
            told: The exchange in the file.

        Returns:
            None if the exchange is new: nothing is recorded then.
        """
        known = self._find(_FIND_BY_PATH_SQL, (root, told.path), told)
        if known is None or not needs_texts(known, told):
            return known
        return replace(known, texts=self.texts_of(known.id))

    def _find(
        self, sql: str, values: tuple[str | int, ...], told: ToldExchange | None = None
    ) -> KnownExchange | None:
        row = self._db.execute(sql, values).fetchone()
        if row is None:
            return None
        known = KnownExchange(*row)
        if told is not None:
            self._record_telling(told, known.id)
        tellings = self._db.execute(_TELLINGS_SQL, (known.id,))
        return replace(known, tellings=tuple(Telling(*each) for each in tellings))

    def _record_telling(self, told: ToldExchange, exchange_id: int) -> None:
        """Record which form of an exchange a file contains."""
        values = (told.file_id, exchange_id, told.digest, told.exchange.until)
        self._db.execute(_UPSERT_TELLING_SQL, values)

    def is_named_by_place(self, exchange_id: int) -> bool:
        """Return whether the id of an exchange comes from its place in a file."""
        row = self._db.execute("SELECT name FROM exchanges WHERE id=?", (exchange_id,)).fetchone()
        return str(row[0]).startswith(POSITIONAL_IDS)

    def texts_of(self, exchange_id: int) -> ExchangeTexts:
        """Return the stored texts of an exchange."""
        row = self._db.execute(
            "SELECT content FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        return decode_texts(zlib.decompress(row[0]))

    def insert(self, root: str, told: ToldExchange) -> int:
        """Store a new exchange, and that its file contains it; return its id in the archive."""
        exchange = told.exchange
        inserted = self._db.execute(
            _INSERT_EXCHANGE_SQL,
            (
                told.session_id,
                root,
                told.path,
                exchange.id,
                exchange.number,
                exchange.superseded,
                exchange.until,
                told.digest,
                told.redaction_counts,
                zlib.compress(told.content, _COMPRESSION_LEVEL),
                self._next_version(),
                told.file_id or None,
            ),
        )
        exchange_id = int(inserted.lastrowid or 0)
        if told.file_id:
            self._record_telling(told, exchange_id)
        return exchange_id

    def insert_orphan(self, origin: RootedPath, session_id: int, exchange: Exchange) -> None:
        """Store an exchange that no transcript file is known to contain.

        It gets the path of the file that contains, or contained, another exchange of its session.
        """
        source = ExchangeSource(root=origin.root, source="", file_id=0)
        told = replace(tell(source, session_id, exchange), path=origin.path)
        exchange_id = self.insert(origin.root, told)
        self._db.execute(_ADOPT_ORPHAN_SQL, {"id": exchange_id, "session": session_id})

    def apply(self, known: KnownExchange, changes: Changes) -> None:
        """Write what differs. An exchange becomes due with its text, branch or session."""
        form = changes.form
        is_superseded = changes.is_superseded
        if form and (form.digest != known.digest or is_superseded != known.is_superseded):
            self._update(
                known,
                digest=form.digest,
                redacted=form.redaction_counts,
                content=zlib.compress(form.content, _COMPRESSION_LEVEL),
                superseded=is_superseded,
                until=form.exchange.until,
            )
        elif is_superseded != known.is_superseded:
            self._update(known, superseded=is_superseded)
        if changes.session_id is not None:
            self._update(known, session=changes.session_id)
        number = form.exchange.number if form else known.number
        if form and (changes.file_id, number) != (known.file_id, known.number):
            self._db.execute(
                "UPDATE exchanges SET carrier=?, number=? WHERE id=?",
                (changes.file_id, number, known.id),
            )
        elif changes.file_id != known.file_id:
            self._db.execute(_SET_FILE_SQL, (changes.file_id, known.id))

    def _update(self, known: KnownExchange, **values: str | bytes | int) -> None:
        """Set columns of an exchange, which becomes due."""
        columns = ", ".join(f"{name}=?" for name in values)
        self._db.execute(
            f"UPDATE exchanges SET {columns}, version=?, due=1 WHERE id=?",
            (*values.values(), self._next_version(), known.id),
        )


def tell(
    source: ExchangeSource,
    session_id: int,
    exchange: Exchange,
    redaction_counts: str = "",
    *,
    preserve: bool = False,
) -> ToldExchange:
    """Return an exchange as `merge` takes it, from the arguments of `upsert_exchange`."""
    content = encode_exchange(exchange)
    return ToldExchange(
        file_id=source.file_id,
        session_id=session_id,
        path=path_of(source, exchange.session, exchange.id),
        exchange=exchange,
        content=content,
        digest=hash_content(content),
        redaction_counts=redaction_counts,
        has_unique_ids=source.has_unique_ids,
        preserve=preserve,
    )


def path_of(source: ExchangeSource, session: str, exchange_id: str) -> str:
    """Return the path of a file's exchange in its root.

    Args:
        source: The file.
        session: The session's id as the source names it.
        exchange_id: The exchange's id as the source names it.
    """
    return exchange_path(source.source, "" if source.has_unique_ids else session, exchange_id)
