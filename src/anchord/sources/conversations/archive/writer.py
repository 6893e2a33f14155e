"""Write access to the archive: transcript files, sessions, exchanges, and their deletion."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from anchord.core.types import NO_FINGERPRINT, Fingerprint, RootedPath
from anchord.sources.conversations.archive.deletions import ForgottenExchange
from anchord.sources.conversations.archive.detached import (
    DETACHED_KEY_PREFIX,
    DetachReason,
)
from anchord.sources.conversations.archive.exchange_forms import ExchangeForms, ExchangeSource, tell
from anchord.sources.conversations.archive.excluded_files import ExcludedFiles
from anchord.sources.conversations.archive.merge import (
    Abandoned,
    Changes,
    Gone,
    KnownExchange,
    Told,
    is_repeated,
    merge,
)
from anchord.sources.conversations.archive.path_lookup import find_from
from anchord.sources.conversations.archive.reader import Archive, decode_path, stored_key
from anchord.sources.conversations.archive.repeated_ids import RepeatedIds
from anchord.sources.conversations.archive.session_titles import SessionTitles
from anchord.sources.conversations.archive.stored_redaction import StoredRedaction
from anchord.sources.conversations.events import Exchange, SessionInfo

_UPSERT_FILE_SQL = """
INSERT INTO carriers(
    root, path, source, size, mtime_ns, ctime_ns, inode, device, reader, mark, unknown)
VALUES(?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(root, path) DO UPDATE SET
    source=excluded.source, size=excluded.size, mtime_ns=excluded.mtime_ns,
    ctime_ns=excluded.ctime_ns, inode=excluded.inode, device=excluded.device,
    reader=excluded.reader, mark=excluded.mark, unknown=excluded.unknown
"""


@dataclass(frozen=True, slots=True)
class ReadState:
    """How a transcript file was read."""

    reader_version: str
    """The reader with its version and options; "" asks for a full read next time."""
    resume_point: str
    """JSON of `ResumePoint`; "" where reading cannot resume."""
    unknown_counts: str
    """JSON object: kind of a record that was not understood -> how many."""


_UNREAD = ReadState("", "", "{}")


class ArchiveWriter(Archive):
    """The archive as the writer thread uses it. No other thread or process may change it."""

    def __init__(self, file: Path) -> None:
        """Open the archive; create or migrate the file.

        Raises:
            StoreDamagedError: The file is corrupt.
            NewerStateError: A newer version of anchord wrote the file.
        """
        super().__init__(file)
        with ExitStack() as undo:
            undo.callback(self.close)
            self.detached.restore_lost_groups()
            undo.pop_all()
        self._titles = SessionTitles(self._db, self._next_version)
        self._forms = ExchangeForms(self._db, self._next_version)
        self._repeated_ids = RepeatedIds(self._db, self._next_version)
        self.excluded_files = ExcludedFiles(self._db, self.detached, self._next_version)
        """The files that `exclude_transcript_file` detached."""
        # Dictionaries are used as sets that keep their order.
        self.files_to_reread: dict[RootedPath, None] = {}
        """Transcript files that must be read again, since the last `transaction` began."""
        self.removed_exchanges: dict[RootedPath, None] = {}
        """Exchanges that left their root since the last `transaction` began."""
        self.retitled_exchanges: dict[RootedPath, None] = {}
        """Exchanges that were given another path, or whose session was retitled, since the last
        `transaction` began."""
        self.replaced_copies: list[int] = []
        """Ids of detached copies that were made since the last `transaction` began."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the changes inside the `with` block as one transaction; an exception rolls it back.

        Empties `files_to_reread`, `removed_exchanges` and `retitled_exchanges` first. Not
        re-entrant.

        Raises:
            StoreError: The changes cannot be written, for instance because the disk is full.
        """
        with self._db.transaction():
            self.files_to_reread, self.removed_exchanges, self.retitled_exchanges = {}, {}, {}
            self.replaced_copies = []
            yield

    # Transcript files

    def upsert_transcript_file(
        self,
        origin: RootedPath,
        fingerprint: Fingerprint,
        source: str = "",
        read_state: ReadState = _UNREAD,
    ) -> int:
        """Insert or replace the record of a transcript file.

        Args:
            origin: The file.
            fingerprint: Its fingerprint before it was read.
            source: The program that wrote it; "" while it is not read yet.
            read_state: How it was read. The default makes the next look read it in full.

        Returns:
            The file's id in the archive. It stays the same for the same path.
        """
        values = (
            source,
            *fingerprint,
            read_state.reader_version,
            read_state.resume_point,
            read_state.unknown_counts,
        )
        self._db.execute(_UPSERT_FILE_SQL, (*stored_key(origin), *values))
        row = self._db.execute(
            "SELECT id FROM carriers WHERE root=? AND path=?", stored_key(origin)
        ).fetchone()
        return int(row[0])

    def remove_transcript_file(
        self, origin: RootedPath, now_ns: int, orphans_go_to: DetachReason | None
    ) -> None:
        """Delete a file's record, and remove it as a source of all its exchanges.

        Does nothing for a file that was never read.

        Args:
            origin: The file.
            now_ns: The time, in nanoseconds since the epoch.
            orphans_go_to: Where exchanges that no other file contains are moved; None leaves them
                in the root.
        """
        record = self.find_transcript_file(origin)
        if record is None:
            return
        exchange_ids = sorted(self.exchange_ids_of(record.id))
        self.remove_source(record.id, exchange_ids, now_ns, orphans_go_to)
        self._delete_file_record(record.id)

    def exclude_transcript_file(self, origin: RootedPath, now_ns: int) -> None:
        """Detach a file that the rules exclude, with the exchanges that no other file contains.

        The file may be deleted. Does nothing for one that was never read.
        """
        record = self.find_transcript_file(origin)
        file_id = record.id if record else self.upsert_transcript_file(origin, NO_FINGERPRINT)
        sessions = self._titles.sessions_of(file_id)
        detached = self.excluded_files.detach(file_id, now_ns)
        shared = self.exchange_ids_of(file_id) - detached.keys()
        self.removed_exchanges |= dict.fromkeys(detached.values())
        self.remove_source(file_id, sorted(shared), now_ns, None)
        self.detached.delete_empty_groups()
        self._refresh_titles(sessions)

    def schedule_full_reads(self, transcript_files: Iterable[RootedPath]) -> None:
        """Make the next look at some files read all of them, and store again what differs.

        Runs in a transaction of its own. Files that were never read are ignored.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            for origin in transcript_files:
                record = self.find_transcript_file(origin)
                if record is None:
                    continue
                self._schedule_full_read(record.id)
                for path in (path for path, digest in self.forms_in(origin).items() if not digest):
                    self._db.execute(
                        "UPDATE exchanges SET digest='' WHERE root=? AND path=?",
                        (origin.root, path),
                    )

    def _delete_file_record(self, file_id: int) -> None:
        sessions = self._titles.sessions_of(file_id)
        self._db.execute("DELETE FROM carriers WHERE id=?", (file_id,))
        self._refresh_titles(sessions)

    def _schedule_full_read(self, file_id: int) -> None:
        """Make the next look at a file read all of it: the form there wins and is not stored."""
        self._db.execute("UPDATE carriers SET reader='' WHERE id=?", (file_id,))
        root, path = self._db.execute(
            "SELECT root, path FROM carriers WHERE id=?", (file_id,)
        ).fetchone()
        self.files_to_reread[RootedPath(root, decode_path(path))] = None

    # Sessions

    def get_or_create_session(self, root: str, source: str, session_info: SessionInfo) -> int:
        """Return a session's id in the archive; insert the session if it is new.

        The title and project of a session that exists already are left as they are.
        """
        key = (root, source, session_info.session)
        row = self._db.execute(
            "SELECT id FROM sessions WHERE root=? AND source=? AND name=?", key
        ).fetchone()
        if row is not None:
            return int(row[0])
        inserted = self._db.execute(
            "INSERT INTO sessions(root, source, name, title, project, parent) VALUES(?,?,?,?,?,?)",
            (*key, session_info.title, session_info.project, session_info.parent),
        )
        return int(inserted.lastrowid or 0)

    def get_session_info(self, file_id: int, session_id: int) -> SessionInfo:
        """Return what a file says of a session; fields of which it says nothing are ""."""
        row = self._db.execute(
            "SELECT s.name, h.title, h.project, h.parent, h.updated FROM sessions s "
            "LEFT JOIN heads h ON h.session=s.id AND h.carrier=? WHERE s.id=?",
            (file_id, session_id),
        ).fetchone()
        session, title, project, parent, updated = (value or "" for value in row)
        return SessionInfo(
            session=session, title=title, project=project, parent=parent, updated=updated
        )

    def save_session_info(
        self, file_id: int, info_by_session_id: Mapping[int, SessionInfo], *, is_full_read: bool
    ) -> None:
        """Store what a file says of sessions, and update the sessions' titles and projects.

        Exchanges of sessions with a new title or project become due, and are added to
        `retitled_exchanges`.

        Args:
            file_id: The file's id in the archive.
            info_by_session_id: Session id -> what the file says of it.
            is_full_read: The file says nothing of any other session: what it said before is
                deleted.
        """
        dropped: set[int] = set()
        if is_full_read:
            dropped = self._titles.sessions_of(file_id) - info_by_session_id.keys()
        self._titles.drop(file_id, dropped)
        self._titles.save(file_id, info_by_session_id)
        self._refresh_titles(info_by_session_id.keys() | dropped)

    def _refresh_titles(self, session_ids: Collection[int]) -> None:
        self.retitled_exchanges |= dict.fromkeys(self._titles.refresh(session_ids))

    # Exchanges

    def upsert_exchange(
        self,
        source: ExchangeSource,
        session_id: int,
        exchange: Exchange,
        redaction_counts: str = "",
        *,
        preserve: bool = False,
    ) -> int | None:
        """Record that a file contains an exchange; store its text if this form wins.

        What is stored does not depend on the order in which files are read (see `merge`). If
        another file's form wins and is not stored, that file is scheduled for a full read and added
        to `files_to_reread`.

        Args:
            source: The file.
            session_id: The exchange's session in this file.
            exchange: The exchange, redacted.
            redaction_counts: JSON object: kind of a redacted secret -> how many; "" for none.
            preserve: Keep what the file no longer contains: a stored answer if the offered one is
                only its beginning, and a detached copy of another question under the same id.

        Returns:
            The exchange's id in the archive; None for one that was forgotten, which is not stored.
        """
        told = tell(source, session_id, exchange, redaction_counts, preserve=preserve)
        told, moved = self._repeated_ids.place(source, told)
        self.retitled_exchanges |= dict.fromkeys(moved)
        known = self._forms.find_told(source.root, told)
        if known is not None:
            self._merge(known, told)
            return known.id
        if self.deletions.is_forgotten(told.path, exchange.id, told.digest):
            return None
        # No other form exists, so this one is stored.
        exchange_id = self._forms.insert(source.root, told)
        self.detached.delete_copies(source.root, told.path, told.digest)
        return exchange_id

    def _merge(self, known: KnownExchange, told: Told) -> Changes:
        changes = merge(known, told)
        if changes.copies_aside:
            copy_id = self.detached.copy_aside(known.id, DetachReason.READER)
            self.replaced_copies.append(copy_id)
        self._forms.apply(known, changes)
        if changes.reread_file_id is not None:
            self._schedule_full_read(changes.reread_file_id)
        return changes

    def restore_exchange(
        self, origin: RootedPath, source: str, session_info: SessionInfo, exchange: Exchange
    ) -> None:
        """Store an exchange that the archive has lost, as one that no transcript file contains.

        Runs in a transaction of its own.

        Args:
            origin: Root and path of the exchange.
            source: The program that wrote its transcript.
            session_info: Its session; used only if the archive has lost that too.
            exchange: The exchange.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            session_id = self.get_or_create_session(origin.root, source, session_info)
            self._forms.insert_orphan(origin, session_id, exchange)

    def mark_superseded(self, source: ExchangeSource, session: str, exchange_name: str) -> None:
        """Record that a file has an exchange on a branch that was left: it may leave the index.

        Args:
            source: The file.
            session: The session's id as the source names it.
            exchange_name: The exchange's id as the source names it. Unknown ones are ignored.
        """
        known = self._forms.find(source, session, exchange_name)
        if known is not None:
            self._merge(known, Abandoned(source.file_id))

    def remove_source(
        self,
        file_id: int,
        exchange_ids: Sequence[int],
        now_ns: int,
        orphans_go_to: DetachReason | None,
    ) -> None:
        """Record that a file no longer contains these exchanges. Nothing is deleted.

        If another file contains an exchange in a form that is not stored, that file is added to
        `files_to_reread`. Exchanges that leave their root are added to `removed_exchanges`.

        Args:
            file_id: The file's id in the archive.
            exchange_ids: The exchanges' ids in the archive.
            now_ns: The time, in nanoseconds since the epoch.
            orphans_go_to: Where exchanges that no other file contains are moved; None leaves them
                in the root, without a file.
        """
        for exchange_id in exchange_ids:
            known = self._forms.find_gone(file_id, exchange_id)
            is_left = known is not None and self._merge(known, Gone(file_id)).is_left
            if is_left and orphans_go_to is not None:
                self.removed_exchanges[self.origin_of(exchange_id)] = None
                self.detached.set_aside(exchange_id, orphans_go_to, now_ns)

    def drop_repeated_exchanges(self, file_id: int, missing_ids: Collection[int]) -> set[int]:
        """Delete exchanges that a file contains at another place now, after it was read.

        Only exchanges that are named after a place in the file are deleted, and detached copies
        that were made since the transaction began.

        Args:
            file_id: The file's id in the archive.
            missing_ids: Exchanges that the file contained before it was read.

        Returns:
            Those of `missing_ids` that were not deleted.
        """
        contained = self.exchange_ids_of(file_id)
        present = list(map(self._forms.texts_of, contained - set(missing_ids)))
        named_by_place = [each for each in missing_ids if self._forms.is_named_by_place(each)]
        repeated = [
            each
            for each in (*named_by_place, *self.replaced_copies)
            if is_repeated(self._forms.texts_of(each), present)
        ]
        for exchange_id in repeated:
            origin = self.origin_of(exchange_id)
            if not origin.root.startswith(DETACHED_KEY_PREFIX):
                self.removed_exchanges[origin] = None
            self.deletions.delete(exchange_id, origin)
        self.detached.delete_empty_groups()
        return set(missing_ids) - set(repeated)

    # What the index has not taken over yet

    def exchanges_due(self, transcript_file: RootedPath) -> list[RootedPath]:
        """Return a file's exchanges that changed since `mark_indexed`, in session order."""
        rows = self._db.execute(
            "SELECT e.path FROM exchanges e JOIN tellings t ON t.exchange=e.id "
            "JOIN carriers c ON c.id=t.carrier "
            "WHERE e.due AND e.root=? AND c.root=? AND c.path=? ORDER BY e.session, e.number",
            (transcript_file.root, *stored_key(transcript_file)),
        )
        return [RootedPath(transcript_file.root, path) for (path,) in rows]

    def mark_indexed(self, exchanges: Sequence[RootedPath]) -> None:
        """Clear exchanges' due flag. It is only a shortcut: a walk finds changes as well."""
        keys = [(origin.root, origin.path) for origin in exchanges]
        self._db.executemany("UPDATE exchanges SET due=0 WHERE root=? AND path=?", keys)
        self.deletions.mark_indexed(keys)

    # Roots

    def attach_root(self, name: str, folder: str) -> int:
        """Record a root's folder, and give it the exchanges back that were detached with it.

        Runs in a transaction of its own.

        Returns:
            How many exchanges came back.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            self.detached.record_root(name, folder)
            self.excluded_files.follow_root(name, folder)
            return self.detached.attach_root(name, folder, self._next_version, os.path.isdir)

    def detach_root(self, name: str, now_ns: int) -> None:
        """Take a root's exchanges out of the index. They stay, and return with the root.

        Runs in a transaction of its own.

        Args:
            name: The root. Without exchanges, what the archive holds of it is deleted.
            now_ns: The time, in nanoseconds since the epoch.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            self.detached.detach_root(name, now_ns)

    def trash_orphans(self, name: str, now_ns: int) -> None:
        """Move the exchanges of a root that no transcript file contains to the trash.

        Runs in a transaction of its own.

        Args:
            name: The root.
            now_ns: The time, in nanoseconds since the epoch.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            self.detached.trash_orphans(name, now_ns)

    def return_trash(self, name: str) -> None:
        """Give a root the exchanges back that are in its trash. Runs in a transaction of its own.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            self.detached.return_trash(name, self._next_version)

    def empty_trash(self, now_ns: int) -> int:
        """Delete exchanges that have been in the trash for 30 days; return how many.

        Runs in a transaction of its own.

        Args:
            now_ns: The time, in nanoseconds since the epoch.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            return self.detached.empty_trash(now_ns)

    # Deletion

    def erase(self, path: str) -> list[RootedPath]:
        """Delete all exchanges that come from a file or folder, detached ones included.

        Other files that contain some of them are added to `files_to_reread`: a full read of these
        stores the exchanges again, as those files contain them. All others stay deleted, in
        whichever file they appear. Runs in a transaction of its own. `mark_indexed` must follow
        when their rows are deleted, and `truncate_wal` to remove the bytes from disk.

        Args:
            path: Absolute path; the file or folder need not exist any more.

        Returns:
            The transcript files of roots, and all exchanges of roots whose rows must be deleted:
            also those that a call before this one deleted, if it did not get as far as their rows.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            found = find_from(self._db, path)
            files = [
                RootedPath(root, decode_path(stored_path)) for _, root, stored_path in found.files
            ]
            for file_id in found.other_files:
                self._schedule_full_read(file_id)
            for exchange_id, root, exchange_path in found.exchanges:
                if exchange_id not in found.shared:
                    self.deletions.forget(path, exchange_id)
                self.deletions.delete(exchange_id, RootedPath(root, exchange_path))
            for file_id, _, _ in found.files:
                self._delete_file_record(file_id)
            self._db.execute("DELETE FROM sessions WHERE id NOT IN (SELECT session FROM exchanges)")
            self.detached.delete_empty_groups()
        of_roots = [file for file in files if not file.root.startswith(DETACHED_KEY_PREFIX)]
        return [*of_roots, *self.deletions.not_yet_indexed()]

    def restore_forgotten(self, forgotten: Sequence[ForgottenExchange]) -> None:
        """Keep these exchanges out, too. Runs in a transaction of its own."""
        with self.transaction():
            self.deletions.restore_forgotten(forgotten)

    def unforget(self, path: str) -> list[RootedPath]:
        """Let the exchanges in again that `erase` deleted.

        Runs in a transaction of its own.

        Args:
            path: The path that was given to `erase`.

        Returns:
            All transcript files of roots if something was forgotten: any may contain it. They are
            due to be read in full.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self.transaction():
            if not self.deletions.unforget(path):
                return []
            self._db.execute("UPDATE carriers SET reader=''")
            names = [name for (name,) in self._db.execute("SELECT name FROM roots")]
        return [file for name in names for file in self.transcript_files(name)]

    def redact_stored(self, rules: str, redact_path: Callable[[str], str] = str) -> int:
        """Replace secrets in what is stored, if other rules did it last (`StoredRedaction.run`).

        Args:
            rules: The name of the rules with their version.
            redact_path: Returns the path by which a file is known.
        """
        return StoredRedaction(self._db, self._next_version, redact_path).run(rules)

    def truncate_wal(self) -> None:
        """Truncate the write-ahead log, so that deleted text is in no file any more."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _next_version(self) -> int:
        """Return a version for a change: higher than every version before it."""
        version = int(self.get_meta("version") or 0) + 1
        self._db.execute("INSERT OR REPLACE INTO meta VALUES('version',?)", (str(version),))
        return version
