"""Read access to the archive: exchanges as files, transcript files, sessions, counts."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from anchord.core.ids import hash_content
from anchord.core.sqlite_connection import CheckedConnection, translate_sqlite_errors
from anchord.core.sqlite_errors import damaged_error
from anchord.core.types import Absent, FileContent, Fingerprint, FoundFile, RootedPath
from anchord.sources.conversations.archive.deletions import Deletions
from anchord.sources.conversations.archive.detached import (
    DetachedExchange,
    DetachedExchanges,
    DetachedGroup,
)
from anchord.sources.conversations.archive.folder_records import FolderRecords
from anchord.sources.conversations.archive.path_lookup import FoundInArchive, find_from
from anchord.sources.conversations.archive.schema import add_missing_tables, open_database
from anchord.sources.conversations.archive.session_order import SessionOrder
from anchord.sources.conversations.archive.session_records import SessionRecords
from anchord.sources.conversations.exchange_document import add_session_info, question_line
from anchord.sources.conversations.exchange_redaction import redact_exchange_path

_NO_EXCHANGE = Absent("no such exchange")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptFileRecord:
    """What the archive has recorded of a transcript file."""

    id: int
    fingerprint: Fingerprint
    """The file's fingerprint when it was last read."""
    source: str
    """The program that wrote it, such as `claude-code`; "" before the first complete read."""
    reader_version: str
    """The reader that read it, with its version and options; "" asks for a full read."""
    resume_point: str
    """JSON of `ResumePoint`: where its last exchange starts. "" where reading cannot resume."""
    unknown_counts: str
    """JSON object: kind of a record that was not understood -> how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationContext:
    """The session that an exchange belongs to, and its neighbours in it."""

    source: str
    session: str
    title: str
    project: str
    position: int
    """Its place among the session's exchanges that search can find, from 0."""
    exchange_count: int
    """How many exchanges of the session search can find."""
    source_missing: bool
    """Whether no transcript file contains it any more."""
    previous: tuple[str, str]
    """Path and question of the exchange before it; empty texts if there is none."""
    next: tuple[str, str]
    """Path and question of the exchange after it; empty texts if there is none."""


class ExchangePlace(NamedTuple):
    """Where an exchange is."""

    transcript: str | None
    """The transcript file that it is read from, relative to the root; None if its last is gone."""
    turn: int | None
    """Its number in its conversation, from 1; None if the user abandoned it."""


_PLACE_SQL = """
SELECT c.path, CASE WHEN NOT e.superseded THEN (
    SELECT count(*) FROM exchanges o WHERE o.session=e.session AND NOT o.superseded
    AND (o.number, o.id) <= (e.number, e.id)) END
FROM exchanges e LEFT JOIN carriers c ON c.id=e.carrier WHERE e.root=? AND e.path=?
"""


def find_damage(db: CheckedConnection) -> str:
    """Read everything: SQLite's own check, then the texts of all exchanges (150 MB a second).

    SQLite notices what its indexes contradict, such as a changed bit of a path; zlib notices each
    changed bit of a text.

    Args:
        db: A connection to the archive. To interrupt it ends the search.

    Returns:
        What is damaged; "" if nothing is.

    Raises:
        StoreError: The archive cannot be read.
    """
    report = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if report != "ok":
        return str(report)
    for path, content in db.execute("SELECT path, content FROM exchanges"):
        try:
            zlib.decompress(content)
        except (zlib.error, TypeError):
            return f"the text of {path}"
    return ""


class Archive:
    """Read access to the exchanges of all conversation roots. One thread at a time may use it."""

    def __init__(self, file: Path, *, read_only: bool = False) -> None:
        """Open the archive; create or migrate the file unless `read_only`.

        Args:
            file: The database file.
            read_only: Write nothing, not even a migration.

        Raises:
            StoreDamagedError: The file is corrupt.
            StoreUnavailableError: It cannot be opened now; with `read_only` also if it is missing.
            NewerStateError: A newer version of anchord wrote the file.
        """
        self._db = open_database(file, read_only=read_only)
        if read_only:
            add_missing_tables(self._db)
        self.detached = DetachedExchanges(self._db)
        self.folder_records = FolderRecords(self._db)
        self.deletions = Deletions(self._db)
        self.sessions = SessionOrder(self._db)
        self.session_records = SessionRecords(self._db)
        self._is_checked = False

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def copy_to(self, file: Path) -> None:
        """Copy the database as it is now into a new file; its own file may be deleted by now.

        Args:
            file: Must not exist; its folder must.

        Raises:
            StoreError: The database cannot be read, or the copy cannot be written.
        """
        with translate_sqlite_errors(file.name), closing(sqlite3.connect(file)) as copy:
            self._db.backup(copy)

    def is_intact(self) -> bool:
        """Read the whole file and return whether SQLite finds its pages sound.

        Raises:
            StoreUnavailableError: It cannot be read now.
        """
        return self._db.is_intact()

    def check_everything(self) -> None:
        """Read everything.

        Raises:
            StoreDamagedError: Something in the archive is damaged.
            StoreUnavailableError: It cannot be read now.
        """
        damage = find_damage(self._db)
        if damage:
            raise damaged_error(self._db.file, damage)

    # Exchanges as files

    def list_exchanges(self, root: str, prefix: str = "") -> tuple[FoundFile, ...]:
        """List exchanges in the form in which a walk lists files, sorted by path.

        Exchanges on a branch that the user abandoned (by editing a question) are left out.

        Args:
            root: Name of the root.
            prefix: Path of one exchange or of a session; "" lists the whole root.

        Returns:
            The exchanges. A fingerprint's `mtime_ns` is the exchange's version, its `inode` the id.
        """
        where, values = "root=? AND NOT superseded", [root]
        if prefix:
            where += " AND (path=? OR (path>=? AND path<?))"
            values += [prefix, prefix + "/", prefix + "0"]  # "0" is the character after "/".
        rows = self._db.execute(
            f"SELECT path, length(content), version, id FROM exchanges WHERE {where} ORDER BY path",
            values,
        )
        return tuple(
            FoundFile(path, _exchange_fingerprint(size, version, exchange_id))
            for path, size, version, exchange_id in rows
        )

    def fingerprint(self, origin: RootedPath) -> Fingerprint | Absent:
        """Return an exchange's fingerprint. Its `mtime_ns` is a version number, not a time."""
        found = self.list_exchanges(origin.root, origin.path)
        # They are sorted, so the exchange itself comes before any path below its own.
        if not found or found[0].path != origin.path:
            return _NO_EXCHANGE
        return found[0].fingerprint

    def read(self, origin: RootedPath) -> FileContent | Absent:
        """Read an exchange as JSON, with its session's source, name, title and project added.

        Raises:
            StoreDamagedError: The archive is damaged, perhaps only this exchange's text.
        """
        row = self._db.execute(
            "SELECT e.content, length(e.content), e.version, e.id, "
            "s.source, s.name, s.title, s.project "
            "FROM exchanges e JOIN sessions s ON s.id=e.session "
            "WHERE e.root=? AND e.path=? AND NOT e.superseded",
            (origin.root, origin.path),
        ).fetchone()
        if row is None:
            return _NO_EXCHANGE
        content, size, version, exchange_id, source, session, title, project = row
        try:
            data = add_session_info(zlib.decompress(content), source, session, title, project)
        except (zlib.error, ValueError, TypeError) as error:
            raise damaged_error(self._db.file, f"the text of {origin.path}") from error
        return FileContent(data, _exchange_fingerprint(size, version, exchange_id))

    def is_lost(self, origin: RootedPath) -> bool:
        """Return whether the archive has lost an exchange: it did not delete or rename it.

        It is lost then: a damaged page, or an older file in the archive's place. Exchanges without
        an id of their own count as lost also after `forget`.

        Raises:
            StoreDamagedError: The archive is damaged; the first lost exchange has it checked.
        """
        is_missing = self.deletions.is_lost(origin) and not self.is_renamed(origin)
        is_lost = is_missing and not self.is_forgotten(origin.path, "")
        if is_lost and not self._is_checked:
            # It may be there under a damaged path: then nothing is lost, and a salvage finds it.
            self.check_everything()
            self._is_checked = True
        return is_lost

    def is_renamed(self, origin: RootedPath) -> bool:
        """Return whether an exchange is stored under the path that it has without secrets."""
        path = redact_exchange_path(origin.path)
        return path != origin.path and not self.deletions.is_lost(RootedPath(origin.root, path))

    def is_forgotten(self, path: str, digest: str) -> bool:
        """Return whether `forget` has deleted an exchange, given its path and its form's digest."""
        name = unquote(path.rpartition("/")[2])
        return self.deletions.is_forgotten(path, name, digest)

    # Transcript files and sessions

    def find_transcript_file(self, origin: RootedPath) -> TranscriptFileRecord | None:
        """Return the record of a transcript file; None if it was never read."""
        row = self._db.execute(
            "SELECT id, size, mtime_ns, ctime_ns, inode, device, source, reader, mark, unknown "
            "FROM carriers WHERE root=? AND path=?",
            stored_key(origin),
        ).fetchone()
        if row is None:
            return None
        file_id, *fingerprint, source, reader_version, resume_point, unknown_counts = row
        return TranscriptFileRecord(
            id=file_id,
            fingerprint=Fingerprint(*fingerprint),
            source=source,
            reader_version=reader_version,
            resume_point=resume_point,
            unknown_counts=unknown_counts,
        )

    def transcript_files(self, root: str) -> list[RootedPath]:
        """Return the transcript files of a root that were read, sorted by path."""
        rows = self._db.execute("SELECT path FROM carriers WHERE root=? ORDER BY path", (root,))
        return [RootedPath(root, decode_path(path)) for (path,) in rows]

    def orphans_by_last_file(self, root: str) -> dict[RootedPath, list[str]]:
        """Return the exchanges of a root that no file contains, by the last file that did."""
        rows = self._db.execute(
            "SELECT last_path, path FROM exchanges WHERE carrier IS NULL AND root=? "
            "AND length(last_path) ORDER BY last_path, path",
            (root,),
        )
        orphans: dict[RootedPath, list[str]] = {}
        for file_path, path in rows:
            orphans.setdefault(RootedPath(root, decode_path(file_path)), []).append(path)
        return orphans

    def forms_in(self, transcript_file: RootedPath) -> dict[str, str]:
        """Return the path of each exchange that a file contains, and the digest of its form there.

        The digest is "" where the stored text is not what was stored.

        Raises:
            StoreDamagedError: The archive is damaged.
        """
        rows = self._db.execute(
            "SELECT e.path, t.digest, e.digest, e.content FROM tellings t "
            "JOIN carriers c ON c.id=t.carrier JOIN exchanges e ON e.id=t.exchange "
            "WHERE c.root=? AND c.path=? AND e.root=c.root",
            stored_key(transcript_file),
        )
        return {
            # A stored digest is "" until its file is read again: that equals no sound text.
            path: digest if stored_digest and _digest_of(content) == stored_digest else ""
            for path, digest, stored_digest, content in rows
        }

    def exchange_ids_at(self, root: str, file_id: int, paths: Iterable[str]) -> set[int]:
        """Return the ids of those exchanges at some paths of a root that a file contains.

        Args:
            root: The file's root.
            file_id: The file's id in the archive.
            paths: Paths of exchanges. Unknown ones are ignored.
        """
        rows = (
            self._db.execute(
                "SELECT e.id FROM exchanges e JOIN tellings t ON t.exchange=e.id "
                "WHERE e.root=? AND e.path=? AND t.carrier=?",
                (root, path, file_id),
            ).fetchone()
            for path in paths
        )
        return {row[0] for row in rows if row}

    def exchange_places(self, exchanges: Sequence[RootedPath]) -> dict[RootedPath, ExchangePlace]:
        """Return where exchanges are; those that do not exist are left out."""
        places = {}
        for origin in exchanges:
            row = self._db.execute(_PLACE_SQL, (origin.root, origin.path)).fetchone()
            if row:
                path = None if row[0] is None else decode_path(row[0])
                places[origin] = ExchangePlace(path, row[1])
        return places

    def exchanges_in(self, transcript_file: RootedPath) -> tuple[RootedPath, ...]:
        """Return the exchanges that are read from a transcript file, without superseded ones."""
        rows = self._db.execute(
            "SELECT e.path FROM exchanges e JOIN carriers c ON c.id=e.carrier "
            "WHERE c.root=? AND c.path=? AND NOT e.superseded",
            stored_key(transcript_file),
        )
        return tuple(RootedPath(transcript_file.root, path) for (path,) in rows)

    def conversation_context(self, origin: RootedPath) -> ConversationContext | None:
        """Return the session and the neighbours of an exchange; None if it does not exist."""
        row = self._db.execute(
            "SELECT s.id, s.source, s.name, s.title, s.project, e.carrier IS NULL FROM exchanges e "
            "JOIN sessions s ON s.id=e.session WHERE e.root=? AND e.path=?",
            (origin.root, origin.path),
        ).fetchone()
        if row is None:
            return None
        session_id, source, session, title, project, source_missing = row
        paths = self._findable_paths(session_id)
        # A superseded exchange is not among them: it is shown at the session's start.
        position = paths.index(origin.path) if origin.path in paths else 0
        previous = paths[position - 1] if position > 0 else ""
        following = paths[position + 1] if position + 1 < len(paths) else ""
        return ConversationContext(
            source=source,
            session=session,
            title=title,
            project=project,
            position=position,
            exchange_count=len(paths),
            source_missing=bool(source_missing),
            previous=(previous, self._question(origin.root, previous)),
            next=(following, self._question(origin.root, following)),
        )

    def _findable_paths(self, session_id: int) -> list[str]:
        """Return the paths of a session's exchanges in their order, without superseded ones."""
        rows = self._db.execute(
            "SELECT path FROM exchanges WHERE session=? AND NOT superseded ORDER BY number, id",
            (session_id,),
        )
        return [path for (path,) in rows]

    def _question(self, root: str, path: str) -> str:
        if not path:
            return ""
        content = self.read(RootedPath(root, path))
        return question_line(content.data) if isinstance(content, FileContent) else ""

    def counts_by_root(self) -> dict[str, dict[str, Any]]:
        """Count sessions and exchanges by root name.

        Returns:
            Root name -> counts: `sessions`, `exchanges`, `source_missing` (no transcript file
            contains them any more), `superseded` (on an abandoned branch), and `redacted` (kind of
            secret -> how many). Roots without exchanges are left out.
        """
        counts: dict[str, dict[str, Any]] = {}
        rows = self._db.execute(
            "SELECT root, count(DISTINCT session), count(*), sum(carrier IS NULL), sum(superseded) "
            "FROM exchanges WHERE root NOT IN (SELECT key FROM detached) GROUP BY root"
        )
        for root, sessions, exchanges, source_missing, superseded in rows:
            counts[root] = {
                "sessions": sessions,
                "exchanges": exchanges,
                "source_missing": source_missing,
                "superseded": superseded,
                "redacted": {},
            }
        redactions = self._db.execute(
            "SELECT root, redacted FROM exchanges WHERE redacted != '' "
            "AND root NOT IN (SELECT key FROM detached)"
        )
        for root, counts_json in redactions:
            total = counts[root]["redacted"]
            for kind, count in json.loads(counts_json).items():
                total[kind] = total.get(kind, 0) + count
        return counts

    def exchange_ids_of(self, file_id: int) -> set[int]:
        """Return the ids of the exchanges that a file contains."""
        # Another program, or a damaged page, can have deleted exchanges without their tellings.
        where = "carrier=? AND exchange IN (SELECT id FROM exchanges)"
        rows = self._db.execute(f"SELECT exchange FROM tellings WHERE {where}", (file_id,))
        return {exchange_id for (exchange_id,) in rows}

    def origin_of(self, exchange_id: int) -> RootedPath:
        """Return root and path of an exchange."""
        root, path = self._db.execute(
            "SELECT root, path FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        return RootedPath(root, path)

    # Detached exchanges

    def detached_groups(self) -> list[DetachedGroup]:
        """Return the groups of exchanges that were taken out of the index and kept."""
        return self.detached.groups()

    def detached_exchanges(self) -> Iterator[DetachedExchange]:
        """Yield every detached exchange with its text, in the order of sessions."""
        return self.detached.exchanges()

    def find_from(self, path: str) -> FoundInArchive:
        """Find the records of the transcript files at or below a path, and their exchanges.

        Detached exchanges are included.

        Args:
            path: Absolute path; the file or folder need not exist any more.

        Returns:
            Ids and paths, by which they can be deleted; empty lists if nothing matches.
        """
        return find_from(self._db, path)

    def get_meta(self, key: str) -> str:
        """Return a stored key's value, "" if the key is not set."""
        row = self._db.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return str(row[0]) if row else ""


def _exchange_fingerprint(size: int, version: int, exchange_id: int) -> Fingerprint:
    return Fingerprint(size=size, mtime_ns=version, ctime_ns=0, inode=exchange_id, device=0)


def _digest_of(content: bytes) -> str:
    """Return the digest of a stored exchange; "" if it cannot be decompressed."""
    try:
        return hash_content(zlib.decompress(content))
    except (zlib.error, TypeError):
        return ""


def stored_key(origin: RootedPath) -> tuple[str, bytes]:
    """Return a transcript file's root and path as SQL values; the path is in the system's bytes."""
    return origin.root, origin.path.encode("utf-8", "surrogateescape")


def decode_path(path: bytes) -> str:
    """Turn a stored path back into text; undecodable bytes become surrogates."""
    return path.decode("utf-8", "surrogateescape")
