"""Copies what is readable of a damaged `transcripts.sqlite` to a new one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from anchord.core.sqlite_connection import CheckedConnection, open_sqlite
from anchord.core.types import NO_FINGERPRINT, Fingerprint
from anchord.errors import StoreDamagedError
from anchord.sources.conversations.kept.pieces import MOST_BYTES, Piece, digest_of
from anchord.sources.conversations.kept.store import KeptTranscripts, Place, place_from
from anchord.sources.conversations.kept.versions import KeptVersion
from anchord.sources.conversations.kept.writer import KeptTranscriptsWriter

_FILES_SQL = "SELECT id, folder, path, refused, size, mtime_ns, ctime_ns, inode, device FROM files"
_VERSIONS_SQL = "SELECT id, size, saved_ns, is_sound, file FROM versions"
_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class KeptSalvage:
    """What a salvage saved."""

    saved: int
    """Versions of transcripts."""
    lost: int
    """Versions that are known and cannot be read."""


def find_damaged_piece(connection: CheckedConnection) -> str:
    """Read a whole database; return what is damaged in it, "" if nothing is."""
    if not connection.is_intact(thorough=True):
        return "its pages do not fit together"
    for digest, content in connection.execute("SELECT digest, content FROM chunks"):
        try:
            is_whole = digest_of(zstandard.decompress(content, MOST_BYTES)) == digest
        except (zstandard.ZstdError, TypeError):
            is_whole = False
        if not is_whole:
            return "a piece of a transcript"
    return ""


def salvage_kept(damaged_file: Path, new_file: Path) -> KeptSalvage:
    """Write every version whose pieces are all readable to a new database.

    A file of which a version is lost is kept again if it still exists.

    Args:
        damaged_file: The database; it is only read.
        new_file: Must not exist. It is closed when this returns.

    Raises:
        StoreUnavailableError: The new file cannot be written, or the damaged one cannot be used
            now.
    """
    with closing(_Target(new_file)) as target:
        try:
            connection = open_sqlite(damaged_file, read_only=True)
            with closing(connection):
                files = _rows(connection, _FILES_SQL)
                versions = _rows(connection, _VERSIONS_SQL)
            source = KeptTranscripts(damaged_file, read_only=True)
        except StoreDamagedError:  # It is no database.
            return KeptSalvage(0, 0)
        with closing(source):
            return _copy(source, target, files, versions)


def _copy(
    source: KeptTranscripts, target: _Target, files: Sequence[_Row], versions: Sequence[_Row]
) -> KeptSalvage:
    versions_by_file: dict[int, list[_Row]] = defaultdict(list)
    for *row, file_id in versions:
        versions_by_file[file_id].append(tuple(row))
    saved = 0
    for file_id, folder, path, refused, *fingerprint in files:
        rows = versions_by_file[file_id]
        try:
            place = place_from(folder, path)
            count = 0 if refused else sum(_copy_version(source, target, place, row) for row in rows)
            is_whole = bool(refused) or (bool(rows) and count == len(rows))
            known = Fingerprint(*fingerprint) if is_whole else NO_FINGERPRINT
            target.add_file(place, known, is_refused=bool(refused))
        except (StoreDamagedError, TypeError, ValueError):
            continue
        saved += count
    return KeptSalvage(saved, len(versions) - saved)


def _copy_version(
    source: KeptTranscripts, target: _Target, place: Place, row: Sequence[Any]
) -> bool:
    try:
        version = KeptVersion(
            id=row[0],
            size=row[1],
            saved_ns=row[2],
            is_sound=bool(row[3]),
        )
        target.add_version(place, version, source.read(version))
    except (StoreDamagedError, TypeError, ValueError):
        return False
    return True


def _rows(connection: CheckedConnection, sql: str) -> list[_Row]:
    """Return the rows before the first damaged page of a table, and those after the last one."""
    found: dict[int, _Row] = {}
    for order in ("id", "id DESC"):
        try:
            for row in connection.execute(f"{sql} ORDER BY {order}"):
                found[row[0]] = row
        except StoreDamagedError:
            continue
        break
    return [found[each] for each in sorted(found)]


class _Target(KeptTranscriptsWriter):
    """The new database."""

    def add_file(self, place: Place, fingerprint: Fingerprint, *, is_refused: bool) -> None:
        """Add a file, or complete it after its versions."""
        with self._db.transaction():
            file_id = self._upsert_file(place, fingerprint)
            self._db.execute("UPDATE files SET refused=? WHERE id=?", (is_refused, file_id))

    def add_version(self, place: Place, version: KeptVersion, data: Iterable[bytes]) -> None:
        """Add a version of a file, after the older ones, as one transaction."""
        with self._db.transaction():
            file_id = self._upsert_file(place, NO_FINGERPRINT)
            self._db.execute("UPDATE versions SET is_newest=0 WHERE file=?", (file_id,))
            cursor = self._db.execute(
                "INSERT INTO versions(file, size, saved_ns, is_sound, is_newest) VALUES(?,?,?,?,1)",
                (file_id, version.size, version.saved_ns, version.is_sound),
            )
            pieces = (Piece(digest_of(each), each) for each in data)
            self._store_pieces(int(cursor.lastrowid or 0), 0, 0, pieces)
