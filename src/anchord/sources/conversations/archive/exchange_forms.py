"""The forms of exchanges: which file contains which, and the one that is stored."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from anchord.core.ids import hash_content
from anchord.core.types import RootedPath
from anchord.sources.conversations.archive.deletions import Deletions
from anchord.sources.conversations.archive.form_choice import (
    OfferedForm,
    StoredForm,
    WinningForm,
    choose_form,
)
from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import (
    decode_texts,
    encode_exchange,
    exchange_path,
)

_COMPRESSION_LEVEL = 6
_INSERT_EXCHANGE_SQL = """
INSERT INTO exchanges(
    session, root, path, name, number, superseded, until, digest, redacted, content, version, due,
    carrier)
VALUES(?,?,?,?,?,?,?,?,?,?,?,1,?)
"""
_UPDATE_EXCHANGE_SQL = """
UPDATE exchanges SET digest=?, redacted=?, content=?, superseded=?, until=?, version=?, due=1
WHERE id=?
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
_WINNING_FORM_SQL = """
SELECT c.id, t.digest, t.until FROM tellings t JOIN carriers c ON c.id=t.carrier WHERE t.exchange=?
ORDER BY t.until DESC, c.mtime_ns DESC, t.digest DESC, c.id DESC LIMIT 1
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredExchange:
    """The row of an exchange that the archive holds already."""

    id: int
    session_id: int
    form: StoredForm
    is_superseded: bool
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _EncodedExchange:
    """An exchange in the form in which it is stored."""

    exchange: Exchange
    path: str
    content: bytes
    digest: str
    redaction_counts: str


class ExchangeForms:
    """Writes exchanges and the record of which file contains which form of them.

    Every method must run inside a transaction of the archive.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        next_version: Callable[[], int],
        schedule_full_read: Callable[[int], None],
        delete_copies: Callable[[str, str, str], None],
        copy_aside: Callable[[int], None],
    ) -> None:
        """Use an open archive.

        Args:
            db: The archive's connection.
            next_version: Returns a new, higher version for an exchange that is about to change.
            schedule_full_read: Called with the id of a file that must be read again in full,
                because the form in it wins and is not stored.
            delete_copies: Called with root, path and digest of an exchange that is stored for the
                first time: deletes equal copies that were set aside.
            copy_aside: Called with the id of an exchange whose text is about to be replaced by
                another question: keeps a detached copy.
        """
        self._db = db
        self._next_version = next_version
        self._schedule_full_read = schedule_full_read
        self._delete_copies = delete_copies
        self._copy_aside = copy_aside
        self._deletions = Deletions(db)

    def upsert(
        self,
        source: ExchangeSource,
        session_id: int,
        exchange: Exchange,
        redaction_counts: str,
        *,
        preserve: bool,
    ) -> int | None:
        """Record a file's form of an exchange; store it if it wins, as `choose_form` decides.

        The arguments are those of `ArchiveWriter.upsert_exchange`.

        Returns:
            The exchange's id in the archive; None for one that was forgotten.
        """
        encoded = _encode(source, exchange, redaction_counts)
        stored = self._find_stored(source.root, encoded.path)
        if stored is None and self._deletions.is_forgotten(
            encoded.path, exchange.id, encoded.digest
        ):
            return None
        if stored is None:
            # No other form exists, so this one is stored.
            exchange_id = self._insert_exchange(source, session_id, encoded)
            self._delete_copies(source.root, encoded.path, encoded.digest)
            self._record_telling(source, exchange_id, encoded)
            return exchange_id
        self._record_telling(source, stored.id, encoded)
        is_orphan = stored.form.file_id is None
        if (preserve or is_orphan) and self._keep_lost_text(source, stored, encoded):
            # Invariant: the file lacks the end of the answer. It is kept here as an orphan's is.
            self._set_file(stored.id, None)
        else:
            self._choose_form(source, stored, encoded)
        if source.has_unique_ids and stored.session_id != session_id:
            self._assign_to_first_session(stored, session_id)
        return stored.id

    def insert_orphan(self, origin: RootedPath, session_id: int, exchange: Exchange) -> None:
        """Store an exchange that no transcript file is known to contain.

        It gets the path of the file that contains, or contained, another exchange of its session.
        """
        content = encode_exchange(exchange)
        encoded = _EncodedExchange(
            exchange=exchange,
            path=origin.path,
            content=content,
            digest=hash_content(content),
            redaction_counts="",
        )
        source = ExchangeSource(root=origin.root, source="", file_id=0)
        exchange_id = self._insert_exchange(source, session_id, encoded)
        self._db.execute(_ADOPT_ORPHAN_SQL, {"id": exchange_id, "session": session_id})

    def _find_stored(self, root: str, path: str) -> _StoredExchange | None:
        row = self._db.execute(
            "SELECT id, session, digest, carrier, until, superseded, number "
            "FROM exchanges WHERE root=? AND path=?",
            (root, path),
        ).fetchone()
        if row is None:
            return None
        exchange_id, session_id, digest, file_id, until, is_superseded, number = row
        return _StoredExchange(
            id=int(exchange_id),
            session_id=session_id,
            form=StoredForm(file_id=file_id, digest=digest, until=until),
            is_superseded=bool(is_superseded),
            number=number,
        )

    def _insert_exchange(
        self, source: ExchangeSource, session_id: int, encoded: _EncodedExchange
    ) -> int:
        exchange = encoded.exchange
        inserted = self._db.execute(
            _INSERT_EXCHANGE_SQL,
            (
                session_id,
                source.root,
                encoded.path,
                exchange.id,
                exchange.number,
                exchange.superseded,
                exchange.until,
                encoded.digest,
                encoded.redaction_counts,
                zlib.compress(encoded.content, _COMPRESSION_LEVEL),
                self._next_version(),
                source.file_id or None,
            ),
        )
        return int(inserted.lastrowid or 0)

    def _record_telling(
        self, source: ExchangeSource, exchange_id: int, encoded: _EncodedExchange
    ) -> None:
        """Record which form of an exchange a file contains."""
        values = (source.file_id, exchange_id, encoded.digest, encoded.exchange.until)
        self._db.execute(_UPSERT_TELLING_SQL, values)

    def _keep_lost_text(
        self, source: ExchangeSource, stored: _StoredExchange, offered: _EncodedExchange
    ) -> bool:
        """Keep what a file does not contain of an exchange that it contained, or that no file does.

        A copy of the exchange is set aside if its id names another question now: it was a place in
        the file. Also if no file contains the stored answer, and the offered one is another of the
        same time.

        Returns:
            Whether the stored form stays, because the offered one is only the beginning of it.
        """
        is_orphan = stored.form.file_id is None
        is_same_file = stored.form.file_id == source.file_id
        if not (is_same_file or is_orphan) or stored.form.digest == offered.digest:
            return False
        if is_orphan and offered.exchange.until < stored.form.until:
            return False  # It stays: `choose_form` compares the times.
        row = self._db.execute("SELECT content FROM exchanges WHERE id=?", (stored.id,)).fetchone()
        kept = decode_texts(zlib.decompress(row[0]))
        read = decode_texts(offered.content)
        if read.question != kept.question:
            self._copy_aside(stored.id)
            return False
        is_earlier = offered.exchange.until < stored.form.until
        if _is_beginning(read.answer, kept.answer, is_earlier=is_earlier):
            return True
        is_same_time = offered.exchange.until == stored.form.until
        if is_orphan and is_same_time and not read.answer.startswith(kept.answer):
            self._copy_aside(stored.id)
        return False

    def _choose_form(
        self, source: ExchangeSource, stored: _StoredExchange, encoded: _EncodedExchange
    ) -> None:
        """Store the form that was read, or schedule the winner's file for a full read."""
        offered = OfferedForm(source.file_id, encoded.digest, encoded.exchange.until)
        # Invariant: there is a winner, because the offered form has been recorded just before.
        winner = self._winning_form(stored.id) or WinningForm(*offered)
        choice = choose_form(stored.form, offered, winner)
        if choice.store_offered:
            self._replace_stored(source, stored, encoded)
        if choice.reread_winner:
            self._schedule_full_read(winner.file_id)

    def _replace_stored(
        self, source: ExchangeSource, stored: _StoredExchange, encoded: _EncodedExchange
    ) -> None:
        """Write what differs: the text (the exchange becomes due), the file, the number."""
        exchange = encoded.exchange
        has_new_text = stored.form.digest != encoded.digest
        if has_new_text or stored.is_superseded != exchange.superseded:
            self._db.execute(
                _UPDATE_EXCHANGE_SQL,
                (
                    encoded.digest,
                    encoded.redaction_counts,
                    zlib.compress(encoded.content, _COMPRESSION_LEVEL),
                    exchange.superseded,
                    exchange.until,
                    self._next_version(),
                    stored.id,
                ),
            )
        if stored.form.file_id != source.file_id or stored.number != exchange.number:
            self._db.execute(
                "UPDATE exchanges SET carrier=?, number=? WHERE id=?",
                (source.file_id, exchange.number, stored.id),
            )

    def _winning_form(self, exchange_id: int) -> WinningForm | None:
        """Return the winning form among the files that contain an exchange; None if none does."""
        row = self._db.execute(_WINNING_FORM_SQL, (exchange_id,)).fetchone()
        return WinningForm(*row) if row else None

    def _assign_to_first_session(self, stored: _StoredExchange, session_id: int) -> None:
        """Give a copied exchange to the session whose name sorts first, in any reading order."""
        if self._session_name(session_id) < self._session_name(stored.session_id):
            self._db.execute(
                "UPDATE exchanges SET session=?, version=?, due=1 WHERE id=?",
                (session_id, self._next_version(), stored.id),
            )

    def _session_name(self, session_id: int) -> str:
        row = self._db.execute("SELECT name FROM sessions WHERE id=?", (session_id,)).fetchone()
        return str(row[0])

    def remove_source(self, file_id: int, exchange_id: int) -> bool:
        """Record that a file no longer contains an exchange.

        Schedules a full read of the file whose form wins now, unless that form is stored already.

        Returns:
            Whether the exchange has just become an orphan: no file contains it any more.
        """
        self._db.execute(
            "DELETE FROM tellings WHERE carrier=? AND exchange=?", (file_id, exchange_id)
        )
        row = self._db.execute(
            "SELECT carrier, digest, until FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        if row is None:
            return False
        stored = StoredForm(*row)
        if stored.file_id != file_id:
            # Invariant: the stored form is another file's, or an orphan already. The file that left
            # did not provide it.
            return False
        winner = self._winning_form(exchange_id)
        if winner is None or winner.until < stored.until:
            # Invariant: no file contains the exchange, or only earlier forms of it.
            self._set_file(exchange_id, None)
            return winner is None
        # Invariant: another file contains it in a form as late. If that is another form, the stored
        # one is an orphan's until the winner's text has been read.
        is_same_form = winner.digest == stored.digest
        self._set_file(exchange_id, winner.file_id if is_same_form else None)
        if not is_same_form:
            self._schedule_full_read(winner.file_id)
        return False

    def _set_file(self, exchange_id: int, file_id: int | None) -> None:
        """Set the file that an exchange is read from; None keeps the former file's path."""
        self._db.execute(_SET_FILE_SQL, (file_id, exchange_id))


def _is_beginning(answer: str, whole_answer: str, *, is_earlier: bool) -> bool:
    """Return whether an answer is an earlier state of another one."""
    is_shorter = len(answer) < len(whole_answer)
    return (is_shorter or is_earlier) and whole_answer.startswith(answer)


def path_of(source: ExchangeSource, exchange: Exchange) -> str:
    """Return the path of a file's exchange in its root."""
    session = "" if source.has_unique_ids else exchange.session
    return exchange_path(source.source, session, exchange.id)


def _encode(source: ExchangeSource, exchange: Exchange, redaction_counts: str) -> _EncodedExchange:
    content = encode_exchange(exchange)
    return _EncodedExchange(
        exchange=exchange,
        path=path_of(source, exchange),
        content=content,
        digest=hash_content(content),
        redaction_counts=redaction_counts,
    )
