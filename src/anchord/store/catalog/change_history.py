"""What the last commits changed, in `state.sqlite`: files by time, and the ids that were replaced.

changes: one row a file and commit.
    `at_ns`              the clock at the commit
    `kept`, `new`, `gone`  chunks of the file that stayed, were written, and were deleted
    `is_edit`            0 where the content is the same: a repair, or another recipe
replaced: one row a chunk id that left the index.
    `new_id`             the chunk of the same file that took its place; '' where none did
    `change`             the commit that did it; gives the file and the time

Both are bounded: the oldest rows are deleted with each commit. A catalog of an older version has
no such tables until a writer opens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from anchord.core.predecessors import find_predecessors
from anchord.core.sqlite_connection import CheckedConnection
from anchord.core.types import ChunkRecord, FileUpdate, RootedPath
from anchord.errors import StoreDamagedError
from anchord.store.catalog.columns import key_columns, rooted_path

MAX_CHANGES = 10_000
MAX_REPLACED = 20_000
CREATE_HISTORY_SQL = """
CREATE TABLE IF NOT EXISTS changes(
    id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, root TEXT NOT NULL, path BLOB NOT NULL,
    kept INTEGER NOT NULL, new INTEGER NOT NULL, gone INTEGER NOT NULL, is_edit INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS replaced(
    id INTEGER PRIMARY KEY, old_id TEXT NOT NULL, new_id TEXT NOT NULL,
    change INTEGER NOT NULL REFERENCES changes(id) ON DELETE CASCADE);
CREATE INDEX IF NOT EXISTS replaced_by_id ON replaced(old_id);
CREATE INDEX IF NOT EXISTS replaced_by_change ON replaced(change);
"""
"""Not a schema version of its own: an older anchord can use a catalog that has these tables."""
_PRUNE_SQL = (
    "DELETE FROM changes WHERE id <= (SELECT max(id) FROM changes) - ?",
    "DELETE FROM replaced WHERE id <= (SELECT max(id) FROM replaced) - ?",
)
RowsByTable: TypeAlias = Mapping[str, Sequence[tuple[str | int | bytes, ...]]]
_Place: TypeAlias = tuple[str, int, int]
"""Id, first and last line of a chunk."""
_COLUMNS = {
    "changes": "id, at_ns, root, path, kept, new, gone, is_edit",
    "replaced": "id, old_id, new_id, change",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """What one commit changed of one file; the numbers count its chunks."""

    at_ns: int
    origin: RootedPath
    kept: int
    new: int
    gone: int


class Replacement(NamedTuple):
    """What became of a chunk id that is not in the index any more."""

    old_id: str
    successor: str
    """The chunk that took its place; "" if its text is gone."""
    origin: RootedPath
    """The file that its text was in last."""


class ChangeHistory:
    """The history of one catalog. `record` and `prune` must run in a transaction."""

    def __init__(self, db: CheckedConnection) -> None:
        """Use a connection of the catalog."""
        self._db = db

    # Writing

    def record(self, file_id: int, update: FileUpdate, now_ns: int) -> None:
        """Record what an update changes. Call it before the update is confirmed.

        Exchanges are recorded only if one of their chunks is replaced: the archive has their times.

        Args:
            file_id: The file's id in the catalog.
            update: The update; its rows are in the table.
            now_ns: The clock.
        """
        diff = update.diff
        is_exchange = update.origin.path.startswith("/")
        if not (diff.removed or update.row_with_vector) and (
            is_exchange or not (diff.changes_table or diff.shifted)
        ):
            return
        digest, applied = self._db.execute(
            "SELECT digest, applied FROM files WHERE id=?", (file_id,)
        ).fetchone()
        record = update.new_record
        is_edit = record is None or record.content_digest != digest
        values = (
            now_ns,
            *key_columns(update.origin),
            diff.kept + diff.shifted,
            len(diff.added) + len(diff.changed),
            len(diff.removed),
            is_edit,
        )
        inserted = self._db.execute(
            "INSERT INTO changes(at_ns, root, path, kept, new, gone, is_edit) "
            "VALUES(?,?,?,?,?,?,?)",
            values,
        )
        former = self._confirmed_places(file_id, applied) if diff.removed else []
        successors = _successors(former, update)
        self._db.executemany(
            "INSERT INTO replaced(old_id, new_id, change) VALUES(?,?,?)",
            [(old_id, new_id, inserted.lastrowid) for old_id, new_id in successors.items()],
        )

    def _confirmed_places(self, file_id: int, applied: int) -> list[_Place]:
        """Return id and lines of the chunks that a file had, in order; an intent is ignored."""
        rows = self._db.execute(
            "SELECT ordinal, chunk_id, start_line, end_line FROM chunks "
            "WHERE file=? AND generation<=? ORDER BY ordinal, generation",
            (file_id, applied),
        )
        # In order of generation: the newest row of an ordinal is the one that stays.
        return list({ordinal: tuple(place) for ordinal, *place in rows}.values())

    def prune(self) -> None:
        """Delete the oldest rows beyond the limits."""
        for statement, limit in zip(_PRUNE_SQL, (MAX_CHANGES, MAX_REPLACED), strict=True):
            self._db.execute(statement, (limit,))

    def forget(self, origins: Iterable[RootedPath]) -> None:
        """Delete what is recorded of files, or of the files in folders, in one transaction."""
        with self._db.transaction():
            for origin in origins:
                root, low = key_columns(origin)
                self._db.execute(
                    "DELETE FROM changes WHERE root=? AND (path=? OR (path>=? AND path<?))",
                    (root, low, low + b"/", low + b"0"),  # "0" is the byte after "/".
                )

    def clear(self) -> None:
        """Delete all that is recorded."""
        self._db.execute("DELETE FROM changes")

    def dump(self) -> RowsByTable:
        """Return all rows by table, for `restore`; nothing where they cannot be read."""
        with suppress(StoreDamagedError):
            if self._exists():
                return {
                    table: self._db.execute(f"SELECT {columns} FROM {table}").fetchall()
                    for table, columns in _COLUMNS.items()
                }
        return {}

    def restore(self, rows_by_table: RowsByTable) -> None:
        """Replace all rows by those that `dump` returned, in one transaction."""
        with self._db.transaction():
            self._db.execute("DELETE FROM changes")
            for table, rows in rows_by_table.items():
                places = ",".join("?" * len(_COLUMNS[table].split(", ")))
                self._db.executemany(f"INSERT INTO {table} VALUES({places})", rows)

    # Reading

    def iter_edits(self, since_ns: int) -> Iterator[RecordedChange]:
        """Yield the changes of files, no exchanges, from a time on, the newest first."""
        if not self._exists():
            return
        rows = self._db.execute(
            "SELECT at_ns, root, path, kept, new, gone FROM changes "
            "WHERE is_edit AND substr(path, 1, 1) != x'2f' AND at_ns>=? ORDER BY id DESC",
            (since_ns,),
        )
        for at_ns, root, path, kept, new, gone in rows:
            yield RecordedChange(
                at_ns=at_ns, origin=rooted_path(root, path), kept=kept, new=new, gone=gone
            )

    def root_names(self) -> list[str]:
        """Return the names of the roots of which changes are recorded."""
        if not self._exists():
            return []
        return [name for (name,) in self._db.execute("SELECT DISTINCT root FROM changes")]

    def begin_ns(self) -> int:
        """Return the time of the oldest recorded change; 0 if nothing was deleted so far."""
        if not self._exists():
            return 0
        oldest_id, at_ns = self._db.execute("SELECT min(id), at_ns FROM changes").fetchone()
        return at_ns if oldest_id and oldest_id > 1 else 0

    def find_replacement(self, prefix: str) -> Replacement | None:
        """Return what became of a chunk whose id starts with some digits.

        Edits are followed until a chunk that the index has.

        Returns:
            None if no replaced id starts so, or several do that ended differently.
        """
        if not prefix or not self._exists():
            return None
        rows = self._db.execute(
            "SELECT DISTINCT old_id FROM replaced WHERE old_id>=? AND old_id<? LIMIT 50",
            (prefix, prefix + "g"),  # "g" sorts after every hexadecimal digit.
        ).fetchall()
        ends = [self._follow(old_id) for (old_id,) in rows]
        successors = {end.successor for end in ends}
        return ends[0] if len(successors) == 1 and (ends[0].successor or len(ends) == 1) else None

    def _follow(self, old_id: str) -> Replacement:
        seen = {old_id}
        current = old_id
        origin = RootedPath("", "")
        while True:
            row = self._db.execute(
                "SELECT new_id, root, path FROM replaced JOIN changes ON changes.id=change "
                "WHERE old_id=? ORDER BY new_id='', replaced.id DESC",
                (current,),
            ).fetchone()
            if row is None:
                return Replacement(old_id, "", origin)
            current, root, path = row
            origin = rooted_path(root, path)
            if current and self._is_indexed(current):
                return Replacement(old_id, current, origin)
            if not current or current in seen:
                return Replacement(old_id, "", origin)
            seen.add(current)

    def _is_indexed(self, chunk_id: str) -> bool:
        found = self._db.execute("SELECT 1 FROM chunks WHERE chunk_id=?", (chunk_id,))
        return found.fetchone() is not None

    def _exists(self) -> bool:
        found = self._db.execute("SELECT 1 FROM sqlite_master WHERE name='replaced'")
        return found.fetchone() is not None


def _successors(former: Sequence[_Place], update: FileUpdate) -> dict[str, str]:
    """Return old id -> new id of the chunks that leave; "" where nothing takes their place."""
    chunks = update.new_record.chunks if update.new_record else ()
    removed = dict.fromkeys(update.diff.removed, "")
    if removed and chunks:
        at_their_place = find_predecessors(*_changed_part(former, chunks))
        removed.update(
            (old_id, at_their_place[old_id]) for old_id in removed if old_id in at_their_place
        )
    moved = {
        update.row_with_vector[chunk.vector_key]: chunk.chunk_id
        for chunk in (chunks if update.row_with_vector else ())
        if chunk.vector_key in update.row_with_vector
    }
    return {**removed, **moved}


def _changed_part(
    former: Sequence[_Place], chunks: Sequence[ChunkRecord]
) -> tuple[Sequence[ChunkRecord], Sequence[ChunkRecord]]:
    """Return the new and the former chunks from one before the first change to one after the last.

    Most of a file stays, and what stays at both ends has no part in what replaces what.
    """
    shorter = min(len(former), len(chunks))
    begin = 0
    while begin < shorter and former[begin][0] == chunks[begin].chunk_id:
        begin += 1
    end = 0
    while end < shorter - begin and former[-1 - end][0] == chunks[-1 - end].chunk_id:
        end += 1
    begin, end = max(begin - 1, 0), max(end - 1, 0)
    part = [
        ChunkRecord(chunk_id=chunk_id, vector_key="", row_hash="", start_line=first, end_line=last)
        for chunk_id, first, last in former[begin : len(former) - end]
    ]
    return chunks[begin : len(chunks) - end], part
