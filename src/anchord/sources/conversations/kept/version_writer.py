"""Stores the states of transcripts: what is new in a file, and which of its states stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import zstandard

from anchord.sources.conversations.kept.pieces import (
    Piece,
    contains,
    digest_of,
    has_hole,
    read_pieces,
)
from anchord.sources.conversations.kept.store import KeptTranscripts, Place
from anchord.sources.conversations.kept.versions import (
    KeptVersion,
    may_replace,
    places_to_compare,
    superfluous,
)

_LEVEL = 3


class VersionWriter(KeptTranscripts):
    """The kept transcripts, whose versions can be written. Callers open the transactions."""

    def count_new_bytes(self, place: Place, stream: BinaryIO, size: int) -> int:
        """Return how much of a file is to be stored: all, unless it begins as it was.

        Args:
            place: The file.
            stream: The same, open. Afterwards it is at its beginning.
            size: Its size in bytes.
        """
        row = self._db.execute(
            "SELECT v.size, c.size, c.digest FROM files f JOIN versions v ON v.file=f.id "
            "JOIN pieces p ON p.version=v.id AND p.place=0 JOIN chunks c ON c.id=p.chunk "
            "WHERE f.folder=? AND f.path=? AND v.is_newest",
            place.encoded(),
        ).fetchone()
        known_size, piece_size, digest = row or (0, 0, b"")
        stream.seek(0)
        begins_the_same = known_size <= size and digest_of(stream.read(piece_size)) == digest
        stream.seek(0)
        return size - known_size if begins_the_same else size

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

    def _extend(
        self,
        newest: KeptVersion,
        size: int,
        stream: BinaryIO,
        now_ns: int,
        *,
        is_same_file: bool,
    ) -> bool:
        """Add what was appended to the newest version; False if the file did not only grow."""
        if size <= newest.size or not newest.size:
            return False
        (count,) = self._db.execute(
            "SELECT count(*) FROM pieces WHERE version=?", (newest.id,)
        ).fetchone()
        start, chunk_id = 0, 0
        for place in places_to_compare(count, size, is_same_file=is_same_file):
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
        chunk_ids = self._chunk_ids(version_id)
        # Contents are compared with one version only: both are read for it.
        held = [each for each in former if self._chunk_ids(each) == chunk_ids]
        if former and former[0] not in held and self._is_in(former[0], newer):
            held.append(former[0])
        for former_id in held:
            self._delete_version(former_id)
        for version in superfluous(self._versions_of(file_id)):
            self._delete_version(version.id)

    def _is_in(self, former_id: int, newer: KeptVersion) -> bool:
        """Return whether all of a former version is in the newer one."""
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
