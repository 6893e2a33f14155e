"""`transcripts.sqlite`: the bytes of transcript files, in compressed pieces.

    files     a transcript file: its root's folder, its path there, and its fingerprint when saved;
              or one that must not be kept, because it contains what `forget` deleted; and since
              when it is gone, if its root deletes what was deleted
    versions  a state of a file; one that only grows stays the same version
    pieces    the parts of a version in their order
    chunks    the bytes of each part, once, whoever has it

A piece is compressed with zstd and named by its digest, which is checked whenever it is read. The
bytes are those of the file, with every secret in it: nothing of this database is searched, logged
or shown, and only the user can read it. What is deleted is overwritten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import zstandard

from anchord.core.os_errors import os_errors_as_unavailable
from anchord.core.sqlite_connection import CheckedConnection, open_sqlite
from anchord.core.sqlite_errors import damaged_error
from anchord.core.types import Fingerprint
from anchord.errors import NewerStateError, StoreDamagedError
from anchord.sources.conversations.kept.pieces import (
    MOST_BYTES,
    digest_of,
)
from anchord.sources.conversations.kept.versions import (
    KeptVersion,
)

_SCHEMA_VERSION = 2
JOURNAL_BYTES = 16 << 20
"""After a large transcript the log is cut to this."""
_LOCK_TIMEOUT_MS = 1_500
"""The writer waits no longer for another program: meanwhile it indexes nothing."""
_SCHEMA_SQL = """
CREATE TABLE files(
    id INTEGER PRIMARY KEY, folder BLOB NOT NULL, path BLOB NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL, device INTEGER NOT NULL, refused INTEGER NOT NULL DEFAULT 0,
    gone_ns INTEGER NOT NULL DEFAULT 0,
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
    start INTEGER NOT NULL, chunk INTEGER NOT NULL REFERENCES chunks(id),
    PRIMARY KEY(version, place)) WITHOUT ROWID;
CREATE INDEX pieces_by_chunk ON pieces(chunk);
"""

_NAME_DIGITS = 8
_HAS_VERSION = "EXISTS(SELECT 1 FROM versions v WHERE v.file=f.id)"
_JSON_STRING = re.compile(rb'"(?=([^"\\]{16,80})")')
"""Strings that are as long as an id."""


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
            with os_errors_as_unavailable(str(file)):
                file.touch(mode=0o600)
        self._db = open_sqlite(file, read_only=read_only)
        try:
            _prepare(self._db, read_only=read_only)
        except BaseException:
            self._db.close()
            raise
        self._inode = _inode(file)

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def require_in_place(self) -> None:
        """Raise if the file was removed or replaced since it was opened.

        What is written to a removed file is lost with the process.

        Raises:
            StoreDamagedError: Another file is at its path, or none.
        """
        if _inode(self._file) != self._inode:
            raise StoreDamagedError(f"{self._file} was removed or replaced while anchord ran")

    # What is kept

    def find(self, place: Place) -> list[Place]:
        """Return the kept files at a place, and those below it if it is a folder."""
        folder, path = place.encoded()
        rows = self._db.execute(
            "SELECT folder, path FROM files f WHERE folder=? AND (path=? OR (path>=? AND path<?)) "
            f"AND {_HAS_VERSION} ORDER BY path",
            (folder, path, path + b"/", path + b"0"),
        )
        return [place_from(*row) for row in rows]

    def find_by_path(self, path: str) -> list[Place]:
        """Return the kept files with a path in whichever folder: of a home that was restored."""
        rows = self._db.execute(
            f"SELECT folder, path FROM files f WHERE path=? AND {_HAS_VERSION} ORDER BY folder",
            (os.fsencode(path),),
        )
        return [place_from(*row) for row in rows]

    def find_named(self, name: str) -> list[Place]:
        """Return the kept files of a name in whichever folder."""
        encoded = os.fsencode(name)
        rows = self._db.execute(
            "SELECT folder, path FROM files WHERE path=?1 OR substr(path, -length(?2))=?2",
            (encoded, b"/" + encoded),
        )
        return [place_from(*row) for row in rows]

    def find_below(self, absolute_path: str) -> list[Place]:
        """Return the kept files that are a path or below it."""
        above = absolute_path.rstrip("/") + "/"
        rows = self._db.execute("SELECT folder, path FROM files")
        places = (place_from(*row) for row in rows)
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
        row = self._db.execute(
            "SELECT id FROM files WHERE folder=? AND path=?", place.encoded()
        ).fetchone()
        return self._versions_of(row[0]) if row else []

    def _versions_of(self, file_id: int) -> list[KeptVersion]:
        rows = self._db.execute(
            "SELECT id, size, saved_ns, is_sound FROM versions WHERE file=? ORDER BY saved_ns, id",
            (file_id,),
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

    def name_of(self, version: KeptVersion) -> str:
        """Return the name of a version: eight digits of a digest of its content."""
        rows = self._db.execute(
            "SELECT c.digest FROM pieces p JOIN chunks c ON c.id=p.chunk WHERE p.version=? "
            "ORDER BY p.place",
            (version.id,),
        )
        return digest_of(b"".join(digest for (digest,) in rows)).hex()[:_NAME_DIGITS]

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
            data = self._decompress(digest, content)
            count += len(data)
            yield data
        if count != version.size:
            raise self._damage()

    def contains_any(self, place: Place, ids: AbstractSet[bytes]) -> bool:
        """Return whether a version of a file has one of some ids as a JSON string.

        What is compressed in the file itself is not looked into.

        Args:
            place: The file.
            ids: Ids of 16 to 80 bytes, such as those of messages.

        Raises:
            StoreDamagedError: A piece is not what was stored.
        """
        rows = self._db.execute(
            "SELECT digest, content FROM chunks WHERE id IN (SELECT p.chunk FROM files f "
            "JOIN versions v ON v.file=f.id JOIN pieces p ON p.version=v.id "
            "WHERE f.folder=? AND f.path=?)",
            place.encoded(),
        )
        return any(not ids.isdisjoint(_JSON_STRING.findall(self._decompress(*row))) for row in rows)

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

    def _decompress(self, digest: bytes, content: bytes) -> bytes:
        try:
            data = zstandard.decompress(content, max_output_size=MOST_BYTES)
        except zstandard.ZstdError as error:
            raise self._damage() from error
        if digest_of(data) != digest:
            raise self._damage()
        return data

    def _damage(self) -> StoreDamagedError:
        return damaged_error(str(self._file), "a piece of a transcript")


def _inode(file: Path) -> int:
    """Return the number of a file; 0 if there is none."""
    try:
        return file.stat().st_ino
    except OSError:
        return 0


def _prepare(db: CheckedConnection, *, read_only: bool) -> None:
    if not read_only:
        db.execute(f"PRAGMA busy_timeout={_LOCK_TIMEOUT_MS}")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")  # What a power cut takes is read again.
        db.execute("PRAGMA secure_delete=ON")
        db.execute(f"PRAGMA journal_size_limit={JOURNAL_BYTES}")
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > _SCHEMA_VERSION:
        raise NewerStateError.for_schema_version(db.file, version)
    if version == 0:
        schema = f"{_SCHEMA_SQL} PRAGMA user_version={_SCHEMA_VERSION};"
        if read_only:  # An empty file, for this connection only.
            schema = _SCHEMA_SQL.replace("CREATE TABLE", "CREATE TEMP TABLE")
            schema = schema.replace("CREATE INDEX", "CREATE INDEX temp.")
            schema = schema.replace("temp. ", "temp.")
        db.executescript(f"BEGIN; {schema} COMMIT;")
    elif version == 1 and not read_only:
        column = "gone_ns INTEGER NOT NULL DEFAULT 0"
        db.executescript(
            f"BEGIN; ALTER TABLE files ADD COLUMN {column}; "
            f"PRAGMA user_version={_SCHEMA_VERSION}; COMMIT;"
        )
    elif not read_only:
        db.execute("SELECT v.size FROM files f JOIN versions v ON v.file=f.id LIMIT 1").fetchone()


def place_from(folder: bytes, path: bytes) -> Place:
    """Return a place as it is stored."""
    return Place(os.fsdecode(folder), os.fsdecode(path))
