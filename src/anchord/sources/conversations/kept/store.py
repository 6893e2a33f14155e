"""`transcripts.sqlite`: the bytes of transcript files, in compressed pieces.

    files     a transcript file: its root's folder, its path there, and its fingerprint when saved;
              or one that must not be kept, because it contains what `forget` deleted
    versions  a state of a file; one that only grows stays the same version
    pieces    the parts of a version in their order
    chunks    the bytes of each part, once, whoever has it

A piece is compressed with zstd and named by its digest, which is checked whenever it is read. The
bytes are those of the file, with every secret in it: nothing of this database is searched, logged
or shown, and only the user can read it. What is deleted is overwritten.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import zstandard

from anchord.core.sqlite_connection import CheckedConnection, open_sqlite
from anchord.core.sqlite_errors import damaged_error
from anchord.core.types import Fingerprint
from anchord.errors import NewerStateError
from anchord.sources.conversations.kept.pieces import (
    MOST_BYTES,
    Piece,
    contains,
    digest_of,
    has_hole,
    read_pieces,
)
from anchord.sources.conversations.kept.versions import (
    KeptVersion,
    may_replace,
    places_to_compare,
)

_SCHEMA_VERSION = 1
_LEVEL = 3
_SCHEMA_SQL = """
CREATE TABLE files(
    id INTEGER PRIMARY KEY, folder BLOB NOT NULL, path BLOB NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL, device INTEGER NOT NULL, refused INTEGER NOT NULL DEFAULT 0,
    UNIQUE(folder, path));
CREATE INDEX files_by_path ON files(path);
CREATE TABLE versions(
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    size INTEGER NOT NULL, saved_ns INTEGER NOT NULL, is_sound INTEGER NOT NULL,
    is_newest INTEGER NOT NULL);
CREATE INDEX versions_by_file ON versions(file);
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
    is_sound INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE pieces(
    version INTEGER NOT NULL REFERENCES versions(id) ON DELETE CASCADE, place INTEGER NOT NULL,
    chunk INTEGER NOT NULL REFERENCES chunks(id), PRIMARY KEY(version, place)) WITHOUT ROWID;
CREATE INDEX pieces_by_chunk ON pieces(chunk);
"""

_HAS_VERSION = "EXISTS(SELECT 1 FROM versions v WHERE v.file=f.id)"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a transcript file is."""

    folder: str
    """Absolute path of its root."""
    path: str
    """Relative to it."""

    @property
    def absolute(self) -> str:
        """The absolute path."""
        return os.path.join(self.folder, self.path)

    def encoded(self) -> tuple[bytes, bytes]:
        """Return folder and path as stored."""
        return os.fsencode(self.folder), os.fsencode(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTotals:
    """What is kept."""

    files: int
    transcript_bytes: int
    """The size of the newest version of every file."""
    disk_bytes: int
    """The size of the database."""


class ChangedMeanwhileError(Exception):
    """A file changed while it was read: it is read again at its next change."""


class KeptTranscripts:
    """The transcripts that are kept. One thread at a time may use it."""

    def __init__(self, file: Path, *, read_only: bool = False) -> None:
        """Open the database; create it unless `read_only`, readable by the user only.

        Raises:
            StoreDamagedError: The file is corrupt.
            StoreUnavailableError: It cannot be opened now.
            NewerStateError: A newer version of anchord wrote it.
        """
        self._file = file
        if not read_only and not file.exists():
            file.touch(mode=0o600)
        self._db = open_sqlite(file, read_only=read_only)
        try:
            _prepare(self._db, read_only=read_only)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    # What is kept

    def find(self, place: Place) -> list[Place]:
        """Return the kept files at a place, and those below it if it is a folder."""
        folder, path = place.encoded()
        rows = self._db.execute(
            "SELECT folder, path FROM files f WHERE folder=? AND (path=? OR (path>=? AND path<?)) "
            f"AND {_HAS_VERSION} ORDER BY path",
            (folder, path, path + b"/", path + b"0"),
        )
        return [_place(*row) for row in rows]

    def find_by_path(self, path: str) -> list[Place]:
        """Return the kept files with a path in whichever folder: of a home that was restored."""
        rows = self._db.execute(
            "SELECT folder, path FROM files WHERE path=? AND NOT refused ORDER BY folder",
            (os.fsencode(path),),
        )
        return [_place(*row) for row in rows]

    def find_named(self, name: str) -> list[Place]:
        """Return the kept files of a name in whichever folder."""
        encoded = os.fsencode(name)
        rows = self._db.execute(
            "SELECT folder, path FROM files WHERE path=?1 OR substr(path, -length(?2))=?2",
            (encoded, b"/" + encoded),
        )
        return [_place(*row) for row in rows]

    def find_below(self, absolute_path: str) -> list[Place]:
        """Return the kept files that are a path or below it."""
        above = absolute_path.rstrip("/") + "/"
        rows = self._db.execute("SELECT folder, path FROM files")
        places = (_place(*row) for row in rows)
        return [each for each in places if f"{each.absolute}/".startswith(above)]

    def fingerprint(self, place: Place) -> Fingerprint | None:
        """Return the fingerprint of a file when it was saved; None if it is not kept."""
        row = self._db.execute(
            "SELECT size, mtime_ns, ctime_ns, inode, device FROM files WHERE folder=? AND path=?",
            place.encoded(),
        ).fetchone()
        return Fingerprint(*row) if row else None

    def versions(self, place: Place) -> list[KeptVersion]:
        """Return the versions of a file, oldest first."""
        rows = self._db.execute(
            "SELECT v.id, v.size, v.saved_ns, v.is_sound FROM versions v JOIN files f "
            "ON f.id=v.file WHERE f.folder=? AND f.path=? ORDER BY v.saved_ns, v.id",
            place.encoded(),
        )
        return [
            KeptVersion(
                id=id_,
                size=size,
                saved_ns=saved_ns,
                is_sound=bool(is_sound),
            )
            for id_, size, saved_ns, is_sound in rows
        ]

    def read(self, version: KeptVersion) -> Iterator[bytes]:
        """Yield the bytes of a version.

        Raises:
            StoreDamagedError: A piece is not what was stored.
        """
        rows = self._db.execute(
            "SELECT c.digest, c.content FROM pieces p JOIN chunks c ON c.id=p.chunk "
            "WHERE p.version=? ORDER BY p.place",
            (version.id,),
        )
        count = 0
        for digest, content in rows:
            try:
                data = zstandard.decompress(content, max_output_size=MOST_BYTES)
            except zstandard.ZstdError as error:
                raise self._damage() from error
            if digest_of(data) != digest:
                raise self._damage()
            count += len(data)
            yield data
        if count != version.size:
            raise self._damage()

    def totals(self) -> KeptTotals:
        """Count what is kept."""
        count, size = self._db.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM versions WHERE is_newest"
        ).fetchone()
        pages = self._db.execute("PRAGMA page_count").fetchone()[0]
        page_bytes = self._db.execute("PRAGMA page_size").fetchone()[0]
        return KeptTotals(
            files=count,
            transcript_bytes=size,
            disk_bytes=pages * page_bytes,
        )

    def _damage(self) -> Exception:
        return damaged_error(str(self._file), "a piece of a transcript")

    # For the writer

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

    def refuse(self, place: Place, fingerprint: Fingerprint) -> None:
        """Erase what is kept of a file, and do not keep it from now on."""
        self.erase([place])
        self._upsert_file(place, fingerprint)
        self._db.execute("UPDATE files SET refused=1 WHERE folder=? AND path=?", place.encoded())
        self.truncate_wal()

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
        count = 0
        with self._db.transaction():
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
            found |= dict.fromkeys(_place(*row) for row in rows)
        return [place for place in found if place not in given]

    def truncate_wal(self) -> None:
        """Truncate the write-ahead log, so that deleted bytes are in no file any more."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

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
        if size <= newest.size:
            return False
        rows = self._db.execute(
            "SELECT c.id, c.digest, c.size FROM pieces p JOIN chunks c ON c.id=p.chunk "
            "WHERE p.version=? ORDER BY p.place",
            (newest.id,),
        ).fetchall()
        starts = [0]
        for _, _, piece_size in rows:
            starts.append(starts[-1] + piece_size)
        for place in places_to_compare(len(rows), size):
            stream.seek(starts[place])
            if digest_of(stream.read(rows[place][2])) != rows[place][1]:
                return False
        last = len(rows) - 1
        stream.seek(starts[last])
        self._db.execute("DELETE FROM pieces WHERE version=? AND place=?", (newest.id, last))
        length, is_sound = self._store_pieces(
            newest.id, last, read_pieces(stream, size - starts[last])
        )
        self._delete_unused(rows[last][0])
        self._db.execute(
            "UPDATE versions SET size=?, saved_ns=?, is_sound=? WHERE id=?",
            (starts[last] + length, now_ns, newest.is_sound and is_sound, newest.id),
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
        length, is_sound = self._store_pieces(version_id, 0, read_pieces(stream, size))
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
        self, version_id: int, place: int, pieces: Iterable[Piece]
    ) -> tuple[int, bool]:
        """Store pieces of a version from a place on; return their length, and if all are sound."""
        compressor = zstandard.ZstdCompressor(level=_LEVEL)
        length, all_sound = 0, True
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
            self._db.execute("INSERT INTO pieces VALUES(?,?,?)", (version_id, number, row[0]))
            length += len(piece.data)
            all_sound = all_sound and bool(row[1])
        return length, all_sound

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


def _prepare(db: CheckedConnection, *, read_only: bool) -> None:
    if not read_only:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")  # What a power cut takes is read again.
        db.execute("PRAGMA secure_delete=ON")
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > _SCHEMA_VERSION:
        raise NewerStateError.for_schema_version(db.file, version)
    if version == 0:
        schema = _SCHEMA_SQL
        if read_only:  # An empty file, for this connection only.
            schema = schema.replace("CREATE TABLE", "CREATE TEMP TABLE")
            schema = schema.replace("CREATE INDEX", "CREATE INDEX temp.")
            schema = schema.replace("temp. ", "temp.")
        db.executescript(f"BEGIN; {schema} COMMIT;")
        if not read_only:
            db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")
    elif not read_only:
        db.execute("SELECT v.size FROM files f JOIN versions v ON v.file=f.id LIMIT 1").fetchone()


def _require_unchanged(stream: BinaryIO, fingerprint: Fingerprint) -> None:
    """Return if a file is as it was, or has only grown."""
    status = os.fstat(stream.fileno())
    is_same = status.st_size == fingerprint.size and status.st_mtime_ns == fingerprint.mtime_ns
    has_grown = status.st_size > fingerprint.size
    if not stat.S_ISREG(status.st_mode) or not (is_same or has_grown):
        raise ChangedMeanwhileError


def _place(folder: bytes, path: bytes) -> Place:
    return Place(os.fsdecode(folder), os.fsdecode(path))
