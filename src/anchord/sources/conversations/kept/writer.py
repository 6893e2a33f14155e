"""Stores transcripts, and erases them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

from anchord.core.sqlite_errors import damaged_error
from anchord.core.types import NO_FINGERPRINT, Fingerprint
from anchord.errors import StoreError, StoreUnavailableError
from anchord.sources.conversations.kept.store import JOURNAL_BYTES, Place, place_from
from anchord.sources.conversations.kept.version_writer import VersionWriter

_RESERVED_BYTES = 64 << 20
"""So much of the disk is left to the index."""


class ChangedMeanwhileError(Exception):
    """A file changed while it was read: it is read again at its next change."""


class KeptTranscriptsWriter(VersionWriter):
    """The kept transcripts as the writer thread uses them."""

    def save(self, place: Place, fingerprint: Fingerprint, stream: BinaryIO, now_ns: int) -> None:
        """Store the present state of a file, as one transaction; costs what is new in it.

        Args:
            place: The file.
            fingerprint: Its fingerprint. So many bytes are read as its size says.
            stream: The file, open at its beginning.
            now_ns: The time, in nanoseconds since the epoch.

        Raises:
            ChangedMeanwhileError: The file was changed while it was read; nothing was stored.
            StoreError: It cannot be stored.
            OSError: The file cannot be read.
        """
        try:
            with self._malformed_as_damage(), self._db.transaction():
                self._save(place, fingerprint, stream, now_ns)
                _require_unchanged(stream, fingerprint)
        except StoreError:
            self._release_journal()
            raise

    def require_space(self, new_bytes: int) -> None:
        """Return if so many bytes can be saved, in the log and in the database, and space is left.

        Raises:
            StoreUnavailableError: The disk is nearly full.
        """
        free = shutil.disk_usage(self._file.parent).free
        if free < 2 * max(new_bytes, 0) + _RESERVED_BYTES:
            raise StoreUnavailableError(
                f"the disk of {self._file} is nearly full: {free >> 20:,} MB are free, and "
                f"{max(new_bytes, 0) >> 20:,} MB of a transcript are to be kept",
                "free some space; then try again",
            )

    def note(self, place: Place, fingerprint: Fingerprint) -> None:
        """Record that a file was looked at and is of a kind that is not kept."""
        self._upsert_file(place, fingerprint)

    def refuse(self, places: Sequence[Place]) -> None:
        """Erase what is kept of files, and do not keep them from now on: one transaction.

        The bytes stay in the write-ahead log until `truncate_wal`.
        """
        with self._db.transaction():
            self._erase(places)
            for place in places:
                file_id = self._upsert_file(place, NO_FINGERPRINT)
                self._db.execute("UPDATE files SET refused=1 WHERE id=?", (file_id,))

    def is_known(self, place: Place) -> bool:
        """Return whether a file, or one below it, is kept or refused."""
        folder, path = place.encoded()
        row = self._db.execute(
            "SELECT 1 FROM files WHERE folder=? AND (path=? OR (path>=? AND path<?)) LIMIT 1",
            (folder, path, path + b"/", path + b"0"),
        ).fetchone()
        return row is not None

    def is_refused(self, place: Place) -> bool:
        """Return whether a file must not be kept."""
        row = self._db.execute(
            "SELECT refused FROM files WHERE folder=? AND path=?", place.encoded()
        ).fetchone()
        return bool(row and row[0])

    def accept_refused(self) -> None:
        """Let every refused file be kept again, if it is read again and contains nothing such."""
        self._db.execute("DELETE FROM files WHERE refused")

    def erase(self, places: Iterable[Place]) -> int:
        """Delete files with all of their versions, as one transaction; return how many."""
        with self._db.transaction():
            return self._erase(places)

    def note_gone(self, is_there: Mapping[Place, bool], now_ns: int) -> dict[Place, int]:
        """Note which files are gone.

        Args:
            is_there: File -> whether it exists now.
            now_ns: The time, in nanoseconds since the epoch.

        Returns:
            File that is gone -> since when, as far as was noted, in nanoseconds since the epoch.
        """
        gone_since = {}
        with self._malformed_as_damage(), self._db.transaction():
            for place, exists in is_there.items():
                (noted,) = self._db.execute(
                    "SELECT gone_ns FROM files WHERE folder=? AND path=?", place.encoded()
                ).fetchone()
                since_ns = 0 if exists else noted or now_ns
                if since_ns != noted:
                    self._db.execute(
                        "UPDATE files SET gone_ns=? WHERE folder=? AND path=?",
                        (since_ns, *place.encoded()),
                    )
                if since_ns:
                    gone_since[place] = since_ns
        return gone_since

    def sharing_with(self, places: Iterable[Place]) -> list[Place]:
        """Return the other files that have a piece in common with some files."""
        given = set(places)
        found: dict[Place, None] = {}
        for place in given:
            rows = self._db.execute(
                "SELECT DISTINCT o.folder, o.path FROM files f "
                "JOIN versions v ON v.file=f.id JOIN pieces p ON p.version=v.id "
                "JOIN pieces q ON q.chunk=p.chunk JOIN versions w ON w.id=q.version "
                "JOIN files o ON o.id=w.file WHERE f.folder=? AND f.path=? AND o.id!=f.id",
                place.encoded(),
            )
            found |= dict.fromkeys(place_from(*row) for row in rows)
        return [place for place in found if place not in given]

    def truncate_wal(self) -> None:
        """Truncate the write-ahead log, so that deleted bytes are in no file any more.

        Raises:
            StoreUnavailableError: A reader needs the log, such as a backup.
            StoreError: It cannot be truncated.
        """
        (is_busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise StoreUnavailableError(
                f"another program reads {self._file}: deleted bytes are still in its log",
                "wait until it has ended, such as a backup; then try again",
            )

    def _save(self, place: Place, fingerprint: Fingerprint, stream: BinaryIO, now_ns: int) -> None:
        known = self.fingerprint(place)
        is_same_file = known is not None and known[3:] == fingerprint[3:]  # Inode and device.
        file_id = self._upsert_file(place, fingerprint)
        newest = self._newest(file_id)
        has_grown = newest is not None and self._extend(
            newest,
            fingerprint.size,
            stream,
            now_ns,
            is_same_file=is_same_file,
        )
        if not has_grown:
            stream.seek(0)
            self._add(file_id, fingerprint.size, stream, now_ns)

    def _release_journal(self) -> None:
        """Give back the space of a large log after a failure: the disk may be full."""
        with suppress(OSError, StoreError):
            if os.path.getsize(f"{self._file}-wal") > JOURNAL_BYTES:
                self.truncate_wal()

    @contextmanager
    def _malformed_as_damage(self) -> Iterator[None]:
        """Raise StoreDamagedError if a row is missing or is not as it was written."""
        try:
            yield
        except (TypeError, ValueError) as error:
            raise damaged_error(str(self._file), "its records contradict each other") from error

    def _erase(self, places: Iterable[Place]) -> int:
        count = 0
        for place in places:
            cursor = self._db.execute(
                "SELECT v.id FROM versions v JOIN files f ON f.id=v.file "
                "WHERE f.folder=? AND f.path=?",
                place.encoded(),
            )
            for (version_id,) in cursor.fetchall():
                self._delete_version(version_id)
            count += self._db.execute(
                "DELETE FROM files WHERE folder=? AND path=?", place.encoded()
            ).rowcount
        return count

    def _upsert_file(self, place: Place, fingerprint: Fingerprint) -> int:
        self._db.execute(
            "INSERT INTO files(folder, path, size, mtime_ns, ctime_ns, inode, device) "
            "VALUES(?,?,?,?,?,?,?) ON CONFLICT(folder, path) DO UPDATE SET size=excluded.size, "
            "mtime_ns=excluded.mtime_ns, ctime_ns=excluded.ctime_ns, inode=excluded.inode, "
            "device=excluded.device, gone_ns=0",
            (*place.encoded(), *fingerprint),
        )
        row = self._db.execute(
            "SELECT id FROM files WHERE folder=? AND path=?", place.encoded()
        ).fetchone()
        return int(row[0])


def _require_unchanged(stream: BinaryIO, fingerprint: Fingerprint) -> None:
    """Return if a file is as it was, or has only grown."""
    status = os.fstat(stream.fileno())
    is_same = status.st_size == fingerprint.size and status.st_mtime_ns == fingerprint.mtime_ns
    has_grown = status.st_size > fingerprint.size
    if not stat.S_ISREG(status.st_mode) or not (is_same or has_grown):
        raise ChangedMeanwhileError
