"""Stores transcripts: what is new in a file, and which of its states stay."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import zstandard

from anchord.core.types import NO_FINGERPRINT, Fingerprint
from anchord.sources.conversations.kept.pieces import (
    Piece,
    contains,
    digest_of,
    has_hole,
    read_pieces,
)
from anchord.sources.conversations.kept.store import KeptTranscripts, Place, place_from
from anchord.sources.conversations.kept.versions import (
    KeptVersion,
    may_replace,
    places_to_compare,
)

_LEVEL = 3


class ChangedMeanwhileError(Exception):
    """A file changed while it was read: it is read again at its next change."""


class KeptTranscriptsWriter(KeptTranscripts):
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
        with self._db.transaction():
            file_id = self._upsert_file(place, fingerprint)
            newest = self._newest(file_id)
            if newest is None or not self._extend(newest, fingerprint.size, stream, now_ns):
                stream.seek(0)
                self._add(file_id, fingerprint.size, stream, now_ns)
            _require_unchanged(stream, fingerprint)

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
        """Truncate the write-ahead log, so that deleted bytes are in no file any more."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

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
            "device=excluded.device",
            (*place.encoded(), *fingerprint),
        )
        row = self._db.execute(
            "SELECT id FROM files WHERE folder=? AND path=?", place.encoded()
        ).fetchone()
        return int(row[0])

    def _newest(self, file_id: int) -> KeptVersion | None:
        row = self._db.execute(
            "SELECT id, size, saved_ns, is_sound FROM versions WHERE file=? AND is_newest",
            (file_id,),
        ).fetchone()
        if row is None:
            return None
        id_, size, saved_ns, is_sound = row
        return KeptVersion(
            id=id_,
            size=size,
            saved_ns=saved_ns,
            is_sound=bool(is_sound),
        )

    def _extend(self, newest: KeptVersion, size: int, stream: BinaryIO, now_ns: int) -> bool:
        """Add what was appended to the newest version; False if the file did not only grow."""
        if size <= newest.size or not newest.size:
            return False
        (count,) = self._db.execute(
            "SELECT count(*) FROM pieces WHERE version=?", (newest.id,)
        ).fetchone()
        start, chunk_id = 0, 0
        for place in places_to_compare(count, size):
            start, chunk_id, piece_size, digest = self._db.execute(
                "SELECT p.start, c.id, c.size, c.digest FROM pieces p "
                "JOIN chunks c ON c.id=p.chunk WHERE p.version=? AND p.place=?",
                (newest.id, place),
            ).fetchone()
            stream.seek(start)
            if digest_of(stream.read(piece_size)) != digest:
                return False
        # The last piece was the last of these: it goes on, and may be cut elsewhere.
        last = count - 1
        stream.seek(start)
        self._db.execute("DELETE FROM pieces WHERE version=? AND place=?", (newest.id, last))
        new_pieces = read_pieces(stream, size - start)
        end, is_sound = self._store_pieces(newest.id, last, start, new_pieces)
        self._delete_unused(chunk_id)
        self._db.execute(
            "UPDATE versions SET size=?, saved_ns=?, is_sound=? WHERE id=?",
            (end, now_ns, newest.is_sound and is_sound, newest.id),
        )
        return True

    def _add(self, file_id: int, size: int, stream: BinaryIO, now_ns: int) -> None:
        """Store a file as a new version, unless it is an earlier one; drop those that it holds."""
        former = [
            version_id
            for (version_id,) in self._db.execute(
                "SELECT id FROM versions WHERE file=? ORDER BY is_newest DESC, id DESC", (file_id,)
            )
        ]
        self._db.execute("UPDATE versions SET is_newest=0 WHERE file=?", (file_id,))
        cursor = self._db.execute(
            "INSERT INTO versions(file, size, saved_ns, is_sound, is_newest) VALUES(?,0,?,1,1)",
            (file_id, now_ns),
        )
        version_id = int(cursor.lastrowid or 0)
        length, is_sound = self._store_pieces(version_id, 0, 0, read_pieces(stream, size))
        self._db.execute(
            "UPDATE versions SET size=?, is_sound=? WHERE id=?", (length, is_sound, version_id)
        )
        newer = KeptVersion(
            id=version_id,
            size=length,
            saved_ns=now_ns,
            is_sound=is_sound,
        )
        for former_id in former:
            if self._is_held(former_id, newer):
                self._delete_version(former_id)

    def _is_held(self, former_id: int, newer: KeptVersion) -> bool:
        """Return whether a former version is the newer one, or is all in it."""
        if self._chunk_ids(former_id) == self._chunk_ids(newer.id):
            return True
        size, saved_ns, is_sound = self._db.execute(
            "SELECT size, saved_ns, is_sound FROM versions WHERE id=?", (former_id,)
        ).fetchone()
        former = KeptVersion(
            id=former_id,
            size=size,
            saved_ns=saved_ns,
            is_sound=bool(is_sound),
        )
        if not may_replace(former, newer):
            return False
        return contains(b"".join(self.read(newer)), b"".join(self.read(former)))

    def _store_pieces(
        self, version_id: int, place: int, start: int, pieces: Iterable[Piece]
    ) -> tuple[int, bool]:
        """Store pieces of a version from a place on; return where they end, and if all are sound.

        Args:
            version_id: The version.
            place: The number of the first of them.
            start: Where it begins in the file.
            pieces: The pieces.
        """
        compressor = zstandard.ZstdCompressor(level=_LEVEL)
        all_sound = True
        for number, piece in enumerate(pieces, place):
            row = self._db.execute(
                "SELECT id, is_sound FROM chunks WHERE digest=?", (piece.digest,)
            ).fetchone()
            if row is None:
                is_sound = not has_hole(piece.data)
                cursor = self._db.execute(
                    "INSERT INTO chunks(digest, size, is_sound, content) VALUES(?,?,?,?)",
                    (piece.digest, len(piece.data), is_sound, compressor.compress(piece.data)),
                )
                row = cursor.lastrowid, is_sound
            self._db.execute(
                "INSERT INTO pieces VALUES(?,?,?,?)", (version_id, number, start, row[0])
            )
            start += len(piece.data)
            all_sound = all_sound and bool(row[1])
        return start, all_sound

    def _chunk_ids(self, version_id: int) -> list[int]:
        rows = self._db.execute(
            "SELECT chunk FROM pieces WHERE version=? ORDER BY place", (version_id,)
        )
        return [chunk_id for (chunk_id,) in rows]

    def _delete_version(self, version_id: int) -> None:
        chunk_ids = self._chunk_ids(version_id)
        self._db.execute("DELETE FROM versions WHERE id=?", (version_id,))
        for chunk_id in dict.fromkeys(chunk_ids):
            self._delete_unused(chunk_id)

    def _delete_unused(self, chunk_id: int) -> None:
        self._db.execute(
            "DELETE FROM chunks WHERE id=?1 AND NOT EXISTS(SELECT 1 FROM pieces WHERE chunk=?1)",
            (chunk_id,),
        )


def _require_unchanged(stream: BinaryIO, fingerprint: Fingerprint) -> None:
    """Return if a file is as it was, or has only grown."""
    status = os.fstat(stream.fileno())
    is_same = status.st_size == fingerprint.size and status.st_mtime_ns == fingerprint.mtime_ns
    has_grown = status.st_size > fingerprint.size
    if not stat.S_ISREG(status.st_mode) or not (is_same or has_grown):
        raise ChangedMeanwhileError
