"""`state.sqlite`: what is known of each file. The tables are described in `schema.py`.

WAL with synchronous=FULL: once `save_intents` or `confirm_updates` returns, a power loss does not
undo it. One connection writes; any number of read-only connections beside it see whole
transactions.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Self

from anchord.core.sqlite_connection import quote_for_uri, translate_sqlite_errors
from anchord.core.sqlite_errors import damaged_error
from anchord.core.types import (
    NO_FINGERPRINT,
    ChunkLocation,
    ChunkPlace,
    FileFailure,
    FileRecord,
    FileUpdate,
    Fingerprint,
    Problem,
    RootedPath,
)
from anchord.store.catalog.change_history import ChangeHistory
from anchord.store.catalog.change_times import change_times_of, iter_change_times
from anchord.store.catalog.chunk_lists import ChunkLists, truncate_at_end_marker
from anchord.store.catalog.columns import (
    FINGERPRINT_FORMAT,
    PATH_ENCODING,
    RECORD_COLUMNS,
    key_columns,
    pack_fingerprint,
    record_from_columns,
    rooted_path,
)
from anchord.store.catalog.database import migrate, open_connection
from anchord.store.catalog.file_lists import (
    ListedFile,
    counts_by_root,
    left_out_by_root,
    list_indexed_files,
    recipe_counts_by_root,
)

_MAX_SQL_VARIABLES = 500
_CONFIRM_SQL = """
UPDATE files SET fingerprint=:fingerprint, read_ns=:read_ns, digest=:digest, recipe=:recipe,
    wanted=wanted+1, applied=wanted+1,
    since_ns=CASE WHEN problem IS :problem THEN since_ns ELSE :since_ns END,
    problem=:problem, partial=:partial, reason=:reason
WHERE id=:id
"""


class SqliteCatalog:
    """The catalog in one SQLite file. For one thread at a time: each thread opens its own.

    Every method that reads or writes raises StoreError when SQLite refuses (a full disk,
    permissions), StoreUnavailableError if waiting may help, and StoreDamagedError when the file is
    corrupt.
    """

    def __init__(
        self, file: Path, *, read_only: bool = False, records_changes: bool = True
    ) -> None:
        """Open the file.

        Args:
            file: `state.sqlite`; created if missing, unless `read_only`.
            read_only: Open for reading only, beside a writer.
            records_changes: Whether confirmed updates go to `history`.

        Raises:
            StoreDamagedError: The file is corrupt, or its schema is too old to migrate.
            NewerStateError: A newer anchord wrote the file.
            StoreError: The file cannot be written; with `read_only` also when it does not exist.
        """
        self._db = open_connection(file, read_only=read_only)
        self._lists = ChunkLists(self._db)
        self._records_changes = records_changes
        self.history = ChangeHistory(self._db)
        """What the last commits changed."""

    def __enter__(self) -> Self:
        """Return the catalog, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def migrate_schema(self) -> None:
        """Migrate an older file to the present schema in one transaction.

        The writer calls it only once every other store of the home has opened: a home that a newer
        anchord wrote stays untouched. Until then only `get_meta` and `set_meta` are used.
        """
        migrate(self._db)

    def is_intact(self) -> bool:
        """Read the whole file and return whether SQLite finds it sound; 1 s for 100,000 files.

        Raises:
            StoreUnavailableError: It cannot be read now.
        """
        return self._db.is_intact()

    def copy_to(self, file: Path) -> None:
        """Write a snapshot of the whole catalog to another file, replacing what that file holds.

        Raises:
            StoreError: The other file cannot be written.
        """
        with translate_sqlite_errors(file), closing(sqlite3.connect(file)) as copy:
            self._db.backup(copy)

    def overwrite_from(self, source_file: Path) -> None:
        """Replace everything in this catalog with another catalog's content, in one transaction.

        Renaming the other file over this one would not do: SQLite finds the WAL by the file's name,
        so a connection opened before could read one file with the WAL of the other.

        The history of this catalog stays: the other one has none.

        Raises:
            StoreError: The other file does not exist or cannot be read.
        """
        history = self.history.dump()
        uri = f"file:{quote_for_uri(source_file)}?mode=rw"
        with (
            translate_sqlite_errors(source_file),
            closing(sqlite3.connect(uri, uri=True)) as source,
        ):
            source.backup(self._db)
        migrate(self._db)
        self.history.restore(history)

    def checkpoint_wal(self) -> None:
        """Move the WAL into the file and truncate it, so that no old page is left on disk."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _wrong_types_as_damage(self) -> Iterator[None]:
        """Raise StoreDamagedError for columns that are not of their type: SQLite checks none."""
        try:
            yield
        except (TypeError, AttributeError, struct.error) as error:
            raise damaged_error(self._db.file, "a value has another type") from error

    # Reading

    def get_record(self, origin: RootedPath) -> FileRecord | None:
        """Return a file's record, with its chunks if it is confirmed; None for an unknown file."""
        row = self._db.execute(
            f"SELECT {RECORD_COLUMNS}, id FROM files WHERE root=? AND path=?", key_columns(origin)
        ).fetchone()
        if row is None:
            return None
        *columns, file_id = row
        with self._wrong_types_as_damage():
            record = record_from_columns(columns)
            if not record.is_confirmed:
                return record
            listed = self._lists.read_chunks(file_id).values()
            return record._replace(chunks=tuple(chunk for _, chunk in listed))

    def last_reason(self, origin: RootedPath) -> str:
        """Return why a file was last written to the index; "" for an unknown file."""
        row = self._db.execute(
            "SELECT reason FROM files WHERE root=? AND path=?", key_columns(origin)
        ).fetchone()
        return str(row[0]) if row else ""

    def list_records(self, root: str, prefix: str) -> Mapping[str, FileRecord]:
        """Return the records, without chunks, of the files of a root.

        Args:
            root: The root's name.
            prefix: Only the file at this path, or the files below this folder; "" means all.

        Returns:
            Path in the root -> record.
        """
        condition = "root=?"
        values: list[str | bytes] = [root]
        if prefix:
            low = os.fsencode(prefix)
            condition += " AND (path=? OR (path>=? AND path<?))"
            values += [low, low + b"/", low + b"0"]  # "0" is the byte after "/".
        statement = f"SELECT path, {RECORD_COLUMNS} FROM files WHERE {condition}"
        rows = self._db.execute(statement, values)
        # `record_from_columns` inlined: each start runs this for every file, and calls dominate it.
        unpack, new = FINGERPRINT_FORMAT.unpack, tuple.__new__
        with self._wrong_types_as_damage():
            return {
                path.decode(PATH_ENCODING, "surrogateescape"): new(
                    FileRecord,
                    (
                        new(Fingerprint, unpack(packed)),
                        read_ns,
                        digest,
                        recipe,
                        bool(is_confirmed),
                        (),
                        problem and Problem(problem, bool(is_partial)),
                    ),
                )
                for path, packed, read_ns, digest, recipe, is_confirmed, problem, is_partial in rows
            }

    def list_files_page(
        self, after: RootedPath | None, limit: int
    ) -> Sequence[tuple[RootedPath, FileRecord]]:
        """Return the next files in the order of root and path, with their chunks.

        Args:
            after: The last file of the previous page; None for the first page.
            limit: The most files to return. Fewer mean that this is the last page.
        """
        root, path = key_columns(after) if after else ("", b"")
        rows = self._db.execute(
            "SELECT root, path FROM files WHERE (root, path) > (?, ?) ORDER BY root, path LIMIT ?",
            (root, path, limit),
        )
        with self._wrong_types_as_damage():
            origins = [rooted_path(root, path) for root, path in rows]
        return [(origin, record) for origin in origins if (record := self.get_record(origin))]

    def list_failures(self) -> Sequence[FileFailure]:
        """Return every file that failed, wholly or in part, in the order of root and path."""
        rows = self._db.execute(
            "SELECT root, path, problem, partial, since_ns FROM files "
            "WHERE problem IS NOT NULL ORDER BY root, path"
        )
        with self._wrong_types_as_damage():
            return [
                FileFailure(rooted_path(root, path), Problem(reason, bool(is_partial)), since_ns)
                for root, path, reason, is_partial, since_ns in rows
            ]

    def locate_chunks(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkLocation]:
        """Return the file, lines and ordinal of each known chunk; unknown ids are left out.

        Between an intent and its confirmation a chunk can have two places; the newer one counts.
        """
        locations = {}
        for start in range(0, len(chunk_ids), _MAX_SQL_VARIABLES):
            some_ids = chunk_ids[start : start + _MAX_SQL_VARIABLES]
            placeholders = ",".join("?" * len(some_ids))
            rows = self._db.execute(
                "SELECT chunk_id, root, path, start_line, end_line, ordinal, vector_key "
                "FROM chunks JOIN files ON files.id=file "
                f"WHERE chunk_id IN ({placeholders}) ORDER BY generation",
                some_ids,
            )
            with self._wrong_types_as_damage():
                for chunk_id, root, path, *position in rows:
                    locations[chunk_id] = ChunkLocation(rooted_path(root, path), *position)
        return locations

    def chunk_places(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkPlace]:
        """Return number, neighbours and siblings of each chunk of a confirmed file; no others."""
        return self._lists.read_places(chunk_ids)

    def iter_change_times(self) -> Iterator[tuple[RootedPath, int]]:
        """Yield each file, no exchange, and when it changed before it was last read, in ns."""
        with self._wrong_types_as_damage():
            yield from iter_change_times(self._db)

    def change_times(self, origins: Iterable[RootedPath]) -> Mapping[RootedPath, int]:
        """Return when files changed before they were last read, in ns; without unknown files."""
        with self._wrong_types_as_damage():
            return change_times_of(self._db, origins)

    def neighbor_chunk_ids(self, chunk_id: str, max_distance: int) -> Sequence[str]:
        """Return the ids of a chunk and its neighbours in its file, in the file's order.

        Args:
            chunk_id: The chunk; for an unknown one the result is empty.
            max_distance: How many chunks before and after it, at most.
        """
        row = self._db.execute(
            "SELECT file, max(generation, applied), ordinal FROM chunks "
            "JOIN files ON files.id=file WHERE chunk_id=? ORDER BY generation DESC",
            (chunk_id,),
        ).fetchone()
        if row is None:
            return []
        file_id, newest_generation, ordinal = row
        listed = self._lists.read_chunks(
            file_id, newest_generation, ordinal - max_distance, ordinal + max_distance
        )
        return [chunk.chunk_id for _, chunk in listed.values()]

    def chunk_ids_with_prefix(self, prefix: str, limit: int) -> Sequence[str]:
        """Return up to `limit` chunk ids that start with some hexadecimal digits, in no order."""
        rows = self._db.execute(
            "SELECT DISTINCT chunk_id FROM chunks "
            "WHERE chunk_id != '' AND chunk_id >= ? AND chunk_id < ? LIMIT ?",
            (prefix, prefix + "g", limit),  # "g" sorts after every hexadecimal digit.
        )
        return [chunk_id for (chunk_id,) in rows]

    def iter_expected_rows(self) -> Iterator[tuple[str, str, RootedPath]]:
        """Yield (chunk id, row hash, file) of each row that the table should hold.

        For a file with an unconfirmed intent these are the rows that the intent wants.
        """
        rows = self._db.execute(
            "SELECT file, ordinal, chunk_id, row_hash, root, path "
            "FROM chunks JOIN files ON files.id=file ORDER BY file, generation, ordinal"
        )
        for _, rows_of_file in groupby(rows, itemgetter(0)):
            # By generation: the newer row of an ordinal replaces the older one.
            newest = {
                ordinal: (chunk_id, row_hash, root, path)
                for _, ordinal, chunk_id, row_hash, root, path in rows_of_file
            }
            for chunk_id, row_hash, root, path in truncate_at_end_marker(newest).values():
                yield chunk_id, row_hash, rooted_path(root, path)

    def counts_by_root(self) -> Mapping[str, tuple[int, int]]:
        """Return (files, wanted chunks) by root.

        Files without chunks count; failed files and exchanges of conversations do not.
        """
        return counts_by_root(self._db)

    def left_out_by_root(self) -> Mapping[str, int]:
        """Return root -> how many files are left out, being equal to the main checkout's."""
        return left_out_by_root(self._db)

    def list_indexed_files(self, after: RootedPath, limit: int) -> Sequence[ListedFile]:
        """Return the next indexed files in the order of root and path; no exchanges.

        Args:
            after: The last file of the previous page; two empty texts for the first page.
            limit: The most files to return. Fewer mean that this is the last page.
        """
        with self._wrong_types_as_damage():
            return list_indexed_files(self._db, after, limit)

    def recipe_counts_by_root(self) -> Mapping[str, Mapping[str, int]]:
        """Return root -> recipe digest -> how many files of the root have that recipe.

        A file without a digest does not count: its first update was interrupted, so it says
        nothing about the recipe of the others.
        """
        return recipe_counts_by_root(self._db)

    def root_names(self) -> Sequence[str]:
        """Return the names of all roots that have files."""
        return [name for (name,) in self._db.execute("SELECT DISTINCT root FROM files")]

    def get_meta(self, key: str) -> str:
        """Return the value stored under a key; "" if there is none."""
        row = self._db.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return str(row[0]) if row else ""

    # Writing

    def save_intents(self, updates: Sequence[FileUpdate]) -> None:
        """Store which chunks each file is about to have, in one transaction; durable on return.

        The files stay unconfirmed until `confirm_updates`. A new intent replaces an earlier one.
        """
        with self._db.transaction():
            for update in updates:
                file_id = self._find_or_insert_file(update.origin)
                wanted = update.new_record.chunks if update.new_record else ()
                self._db.execute("UPDATE files SET wanted=applied+1 WHERE id=?", (file_id,))
                self._lists.write_intent(file_id, wanted)

    def confirm_updates(self, updates: Sequence[FileUpdate]) -> None:
        """Store each file's new record as confirmed, in one transaction; durable on return.

        An update without a new record deletes the file and its chunks from the catalog.
        """
        now_ns = time.time_ns()
        with self._db.transaction():
            for update in updates:
                file_id = self._find_or_insert_file(update.origin)
                if self._records_changes:
                    self.history.record(file_id, update, now_ns)
                if update.new_record is None:
                    self._db.execute("DELETE FROM files WHERE id=?", (file_id,))
                else:
                    self._confirm(file_id, update.new_record, update.reason)
            self.history.prune()

    def _confirm(self, file_id: int, record: FileRecord, reason: str) -> None:
        problem = record.problem
        values = {
            "id": file_id,
            "fingerprint": pack_fingerprint(record.fingerprint),
            "read_ns": record.read_ns,
            "digest": record.content_digest,
            "recipe": record.recipe_digest,
            "since_ns": record.read_ns if problem else 0,
            "problem": problem.reason if problem else None,
            "partial": bool(problem and problem.is_partial),
            "reason": reason,
        }
        self._db.execute(_CONFIRM_SQL, values)
        self._lists.replace_chunks(file_id, record.chunks)

    def update_fingerprints(
        self, fingerprints: Sequence[tuple[RootedPath, Fingerprint, int]]
    ) -> None:
        """Store new fingerprints of files whose content did not change, in one transaction.

        Args:
            fingerprints: (file, its fingerprint, nanoseconds of the clock before it was read).
        """
        values = [
            (pack_fingerprint(fingerprint), read_ns, *key_columns(origin))
            for origin, fingerprint, read_ns in fingerprints
        ]
        with self._db.transaction():
            self._db.executemany(
                "UPDATE files SET fingerprint=?, read_ns=? WHERE root=? AND path=?", values
            )

    def mark_for_reread(self, origins: Sequence[RootedPath]) -> None:
        """Make files unconfirmed, so that they are read again and compared with the table."""
        with self._db.transaction():
            self._db.executemany(
                "UPDATE files SET wanted=applied+1 WHERE root=? AND path=? AND wanted=applied",
                map(key_columns, origins),
            )

    def delete_root_records(self, root: str) -> None:
        """Delete the records and changes of all files of a root; for an unknown one do nothing."""
        with self._db.transaction():
            for table in ("files", "changes"):
                self._db.execute(f"DELETE FROM {table} WHERE root=?", (root,))

    def mark_all_for_reread(self) -> None:
        """Make the next walk read every file again, even if its size and times are unchanged."""
        self._db.execute("UPDATE files SET read_ns=0")

    def mark_all_for_rechunk(self) -> None:
        """Make the next walk read and chunk every file again, by deleting all recipe digests."""
        with self._db.transaction():
            self._db.execute("UPDATE files SET recipe=''")

    def set_meta(self, key: str, value: str) -> None:
        """Store a value under a key, replacing the previous one; durable on return."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, value))

    def _find_or_insert_file(self, origin: RootedPath) -> int:
        """Return the id of a file, inserting it without content if it is unknown."""
        key = key_columns(origin)
        row = self._db.execute("SELECT id FROM files WHERE root=? AND path=?", key).fetchone()
        if row:
            return int(row[0])
        inserted = self._db.execute(
            "INSERT INTO files(root, path, fingerprint, read_ns, digest, recipe, wanted, applied) "
            "VALUES(?,?,?,0,'','',0,0)",
            (*key, pack_fingerprint(NO_FINGERPRINT)),
        )
        return int(inserted.lastrowid or 0)
