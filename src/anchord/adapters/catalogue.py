"""`state.sqlite`: the truth about files; `catalogue_schema` has its tables.

WAL with synchronous=FULL: when `intend` or `apply` returns, a power cut does not undo it. One writer; any number of
read-only connections beside it, which see whole transactions. Paths are stored as the bytes the system gave.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from anchord.adapters.catalogue_lists import ChunkLists, cut
from anchord.adapters.catalogue_schema import READABLE, RECIPES, SCHEMA, STEPS, TABLES
from anchord.errors import NewerStateError, StoreDamagedError, StoreError
from anchord.model import UNSEEN, Failure, Fingerprint, Known, Origin, Problem, Spot, Update

_VARIABLES = 500
_JOURNAL = 16_000_000
"""Bytes of the journal that stay a file's: what is taken over goes through it, and it would keep that size."""


class SqliteCatalogue:
    """The catalogue in one SQLite file. Not shared between threads: each opens its own."""

    def __init__(self, file: Path, *, read_only: bool = False) -> None:
        """Open or create the file.

        Raises:
            StoreDamagedError: the file is damaged, or so old that it cannot be brought forward. NewerStateError: a newer
                anchord wrote it. StoreError: it cannot be written, or (read-only) is not there.
        """
        self._file = file
        uri = f"file:{_quoted(file)}?mode={'ro' if read_only else 'rwc'}"
        with _telling(file):
            self._db = sqlite3.connect(
                uri, uri=True, isolation_level=None, timeout=30, check_same_thread=False, factory=_Connection
            )
            self._db.file = str(file)
            self._db.execute("PRAGMA foreign_keys=ON")
            if not read_only:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=FULL")
                self._db.execute("PRAGMA secure_delete=ON")  # What was forgotten is overwritten.
                self._db.execute(f"PRAGMA journal_size_limit={_JOURNAL}")
            self._check_schema(read_only=read_only)
        self._lists = ChunkLists(self._db)

    def __enter__(self) -> Self:
        """Use as a context that closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _check_schema(self, *, read_only: bool) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and read_only:
            raise StoreError(f"{self._file} holds no index", "run `anchord index` to make it")
        if version == 0:
            self._db.executescript(f"BEGIN; {TABLES} PRAGMA user_version={SCHEMA}; COMMIT;")
        elif version > SCHEMA:
            raise NewerStateError.of(str(self._file), version)
        elif version < READABLE and read_only:
            raise StoreError(f"{self._file} was written by an older anchord", "`anchord index` brings it forward")
        elif not read_only and any(number not in STEPS for number in range(version, SCHEMA)):
            raise StoreDamagedError(f"it was written by an anchord too old to be brought forward (schema {version})")
        if not read_only:
            self._db.execute(RECIPES)

    def bring_forward(self) -> None:
        """Take one step after another to the present schema; all of it or nothing is done.

        The writer does so once nothing else of the home has refused it: a newer anchord's home is left as it is. Until then
        only notes are read and kept.
        """
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        steps = "".join(STEPS[number] for number in range(version, SCHEMA))
        if version < SCHEMA:
            self._db.executescript(f"BEGIN; {steps} PRAGMA user_version={SCHEMA}; COMMIT;")

    def is_sound(self) -> bool:
        """Read all of the file for damage; takes a second for 100,000 files."""
        try:
            return bool(self._db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
        except (StoreError, sqlite3.Error):
            return False

    def copy_to(self, file: Path) -> None:
        """Write the whole catalogue, as it is now, to another file."""
        with _telling(file), closing(sqlite3.connect(file)) as copy:
            self._db.backup(copy)

    def take_over(self, file: Path) -> None:
        """Hold what another file does instead. Whoever reads beside sees all of the one or all of the other.

        A file that was renamed over this one would not do: its journal is found by name, and a reader that had opened the
        one file would read it with the journal of the other, or with none.
        """
        with _telling(file), closing(sqlite3.connect(f"file:{_quoted(file)}?mode=rw", uri=True)) as other:
            other.backup(self._db)

    def flush(self) -> None:
        """Move everything from the journal into the file, so that the file alone is all of it and old pages are gone."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # What is known

    def known(self, origin: Origin) -> Known | None:
        """Return what is known of a file."""
        row = self._db.execute(f"SELECT {_COLUMNS}, id FROM files WHERE root=? AND path=?", _key(origin)).fetchone()
        if row is None:
            return None
        *columns, file = row
        known = _known(columns)
        return known._replace(chunks=tuple(placed for _, placed in self._lists.of(file).values())) if known.settled else known

    def reason(self, origin: Origin) -> str:
        """Return the reason of the last decision that changed a file's state."""
        row = self._db.execute("SELECT reason FROM files WHERE root=? AND path=?", _key(origin)).fetchone()
        return str(row[0]) if row else ""

    def overview(self, root: str, prefix: str) -> Mapping[str, Known]:
        """Return the known files of a root: the file `prefix` itself and those below it; "" means all."""
        where = "root=?"
        values: list[str | bytes] = [root]
        if prefix:
            low = os.fsencode(prefix)
            where += " AND (path=? OR (path>=? AND path<?))"
            values += [low, low + b"/", low + b"0"]  # "0" is the byte after "/".
        rows = self._db.execute(f"SELECT path, {_COLUMNS} FROM files WHERE {where}", values)
        unpack, new = _FINGERPRINT.unpack, tuple.__new__
        return {  # Written out: each call of a function here is made for every file at every start.
            path.decode(_NAMES, "surrogateescape"): new(
                Known,
                (
                    new(Fingerprint, unpack(packed)),
                    read_ns,
                    digest,
                    recipe,
                    bool(settled),
                    (),
                    problem and Problem(problem, bool(partial)),
                ),
            )
            for path, packed, read_ns, digest, recipe, settled, problem, partial in rows
        }

    def page(self, after: Origin | None, limit: int) -> Sequence[tuple[Origin, Known]]:
        """Return the next files by root and path, with their chunks."""
        low = _key(after) if after else ("", b"")
        rows = self._db.execute(
            "SELECT root, path FROM files WHERE (root, path) > (?, ?) ORDER BY root, path LIMIT ?", (*low, limit)
        )
        origins = [_origin(root, path) for root, path in rows]
        return [(origin, known) for origin in origins if (known := self.known(origin))]

    def unsettled(self) -> Sequence[Origin]:
        """Return the files whose last intent was not confirmed."""
        return [_origin(*row) for row in self._db.execute("SELECT root, path FROM files WHERE wanted != applied")]

    def failures(self) -> Sequence[Failure]:
        """Return every listed problem."""
        rows = self._db.execute(
            "SELECT root, path, problem, partial, since_ns FROM files WHERE problem IS NOT NULL ORDER BY root, path"
        )
        return [Failure(_origin(root, path), Problem(text, bool(partial)), since) for root, path, text, partial, since in rows]

    def spots(self, chunk_ids: Sequence[str]) -> Mapping[str, Spot]:
        """Return where chunks stand; between an intent and its confirmation the newer place is given."""
        spots = {}
        for some in _slices(chunk_ids):
            rows = self._db.execute(
                "SELECT chunk_id, root, path, start_line, end_line, ordinal FROM chunks JOIN files ON files.id=file "
                f"WHERE chunk_id IN ({_marks(some)}) ORDER BY generation",
                some,
            )
            spots.update({row[0]: Spot(_origin(row[1], row[2]), *row[3:]) for row in rows})
        return spots

    def neighbours(self, chunk_id: str, reach: int) -> Sequence[str]:
        """Return the ids of a chunk and of those up to `reach` before and after it in its file, in order."""
        row = self._db.execute(
            "SELECT file, CASE WHEN generation > applied THEN generation ELSE applied END, ordinal "
            "FROM chunks JOIN files ON files.id=file WHERE chunk_id=? ORDER BY generation DESC",
            (chunk_id,),
        ).fetchone()
        if row is None:
            return []
        file, newest, ordinal = row
        listed = self._lists.of(file, newest, ordinal - reach, ordinal + reach)
        return [placed.chunk_id for _, placed in listed.values()]

    def starting_with(self, prefix: str, limit: int) -> Sequence[str]:
        """Return up to `limit` chunk ids that start with some digits."""
        rows = self._db.execute(
            "SELECT DISTINCT chunk_id FROM chunks WHERE chunk_id != '' AND chunk_id >= ? AND chunk_id < ? LIMIT ?",
            (prefix, prefix + "g", limit),
        )
        return [chunk for (chunk,) in rows]

    def wanted_rows(self) -> Iterator[tuple[str, str, Origin]]:
        """Yield each wanted row's id and hash, with its file."""
        rows = self._db.execute(
            "SELECT file, ordinal, chunk_id, row_hash, root, path FROM chunks JOIN files ON files.id=file "
            "ORDER BY file, generation, ordinal"
        )
        for _, of_file in groupby(rows, itemgetter(0)):
            listed = {ordinal: (chunk, row_hash, root, path) for _, ordinal, chunk, row_hash, root, path in of_file}
            for chunk, row_hash, root, path in cut(listed).values():
                yield chunk, row_hash, _origin(root, path)

    def counts(self) -> Mapping[str, tuple[int, int]]:
        """Return (files with chunks or with nothing to chunk, chunks wanted) by root.

        Unusable files are not counted, and exchanges not among the files.
        """
        rows = self._db.execute(
            "SELECT root, "
            "sum(digest != '' AND (digest != 'told' OR problem IS NULL OR partial) AND substr(path, 1, 1) != x'2f'), "
            "sum(CASE WHEN wanted=applied THEN (SELECT count(*) FROM chunks WHERE file=id) ELSE "
            "(SELECT count(DISTINCT ordinal) FROM chunks WHERE file=id AND ordinal < ifnull("
            "(SELECT ordinal FROM chunks WHERE file=id AND chunk_id=''), ordinal+1)) END) "
            "FROM files GROUP BY root"
        )
        return {root: (files, chunks) for root, files, chunks in rows}

    # What changes

    def intend(self, updates: Sequence[Update]) -> None:
        """Write what of each file's wanted chunks differs under a new generation."""
        with self._transaction():
            for update in updates:
                file = self._file_id(update.origin)
                self._db.execute("UPDATE files SET wanted=applied+1 WHERE id=?", (file,))
                self._lists.intend(file, update.known.chunks if update.known else ())

    def apply(self, updates: Sequence[Update]) -> None:
        """Make each file's wanted state the known one."""
        with self._transaction():
            for update in updates:
                file = self._file_id(update.origin)
                if update.known is None:
                    self._db.execute("DELETE FROM files WHERE id=?", (file,))
                    continue
                known, problem = update.known, update.known.problem
                since = known.read_ns if problem else 0
                self._db.execute(
                    "UPDATE files SET fingerprint=?, read_ns=?, digest=?, recipe=?, wanted=wanted+1, applied=wanted+1, "
                    "since_ns=CASE WHEN problem IS ? THEN since_ns ELSE ? END, problem=?, partial=?, reason=? WHERE id=?",
                    (_packed(known.fingerprint), known.read_ns, known.digest, known.recipe, problem and problem.reason, since,
                     problem and problem.reason, bool(problem and problem.partial), update.reason, file),
                )  # fmt: skip
                self._lists.stand(file, known.chunks)

    def seen(self, looks: Sequence[tuple[Origin, Fingerprint, int]]) -> None:
        """Note new fingerprints of unchanged content, each with the time before it was read."""
        with self._transaction():
            self._db.executemany(
                "UPDATE files SET fingerprint=?, read_ns=? WHERE root=? AND path=?",
                [(_packed(fingerprint), read_ns, *_key(origin)) for origin, fingerprint, read_ns in looks],
            )

    def doubt(self, origins: Sequence[Origin]) -> None:
        """Unsettle files; their chunks stay listed until they are read again."""
        with self._transaction():
            for origin in origins:
                self._db.execute("UPDATE files SET wanted=applied+1 WHERE root=? AND path=? AND wanted=applied", _key(origin))

    def forget_root(self, root: str) -> None:
        """Drop a root's files and chunks."""
        with self._transaction():
            self._db.execute("DELETE FROM files WHERE root=?", (root,))

    def distrust(self) -> None:
        """Have every file read again, whatever its size and times say."""
        with self._transaction():
            self._db.execute("UPDATE files SET read_ns=0")

    def outdate(self) -> None:
        """Have every file read and chunked again, as if the recipe had changed."""
        with self._transaction():
            self._db.execute("UPDATE files SET recipe=''")

    def origins(self, root: str) -> Sequence[Origin]:
        """Return the known files of a root."""
        return [_origin(root, path) for (path,) in self._db.execute("SELECT path FROM files WHERE root=?", (root,))]

    # Notes

    def recipes(self) -> Mapping[str, Mapping[str, int]]:
        """Return, for each root, how many of its files were indexed by which recipe."""
        found: dict[str, dict[str, int]] = {}
        for root, recipe, count in self._db.execute("SELECT root, recipe, count(*) FROM files GROUP BY root, recipe"):
            found.setdefault(root, {})[recipe] = count
        return found

    def root_names(self) -> Sequence[str]:
        """Return the names of all roots that have files."""
        return [name for (name,) in self._db.execute("SELECT DISTINCT root FROM files")]

    def note(self, key: str, value: str) -> None:
        """Keep a small fact."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, value))

    def noted(self, key: str) -> str:
        """Return a small fact, "" when there is none."""
        row = self._db.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def _file_id(self, origin: Origin) -> int:
        row = self._db.execute("SELECT id FROM files WHERE root=? AND path=?", _key(origin)).fetchone()
        if row:
            return int(row[0])
        added = self._db.execute(
            "INSERT INTO files(root, path, fingerprint, read_ns, digest, recipe, wanted, applied) VALUES(?,?,?,0,'','',0,0)",
            (*_key(origin), _packed(UNSEEN)),
        )
        return int(added.lastrowid or 0)

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)


class _Connection(sqlite3.Connection):
    """Raises what callers know: a full disk is the store's trouble and damage is damage, whatever SQLite calls it."""

    file = ""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3 has it
        with _telling(self.file):
            return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:  # noqa: ANN401 - likewise
        with _telling(self.file):
            return super().executemany(*arguments)


@contextmanager
def _telling(file: Path | str) -> Iterator[None]:
    where = f"{file}: "
    try:
        yield
    except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
        damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        kind = StoreDamagedError if damaged else StoreError
        raise kind(f"{where}{error}", "see its permissions and the free space of the disk") from error
    except sqlite3.IntegrityError as error:
        raise StoreError(f"{where}{error}", "run `anchord verify --repair`") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamagedError(f"{where}{error}", "it is set aside and made anew, with the table's vectors") from error


_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class _Transaction:
    """BEGIN IMMEDIATE ... COMMIT, or ROLLBACK when the block or its end fails: nothing stays half begun."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if not failed:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                with suppress(StoreError):  # A full disk makes SQLite roll back by itself.
                    self._db.execute("ROLLBACK")


_COLUMNS = "fingerprint, read_ns, digest, recipe, wanted=applied, problem, partial"


def _known(columns: Sequence[Any]) -> Known:
    fingerprint, read_ns, digest, recipe, settled, problem, partial = columns
    return Known(_unpacked(fingerprint), read_ns, digest, recipe, bool(settled), (), _problem(problem, partial))


def _problem(text: str | None, partial: int) -> Problem | None:
    return None if text is None else Problem(text, bool(partial))


def _key(origin: Origin) -> tuple[str, bytes]:
    return origin.root, os.fsencode(origin.path)


def _origin(root: str, path: bytes) -> Origin:
    return Origin(root, os.fsdecode(path))


_NAMES = sys.getfilesystemencoding()
"""What `os.fsdecode` goes by, without its questions: an overview has hundreds of thousands of names."""
_FINGERPRINT = struct.Struct("<qqqQQ")
"""Size, time of writing, time of change, inode, device: inodes of some file systems do not fit SQLite's signed 64 bits."""


def _packed(fingerprint: Fingerprint) -> bytes:
    f = fingerprint
    return _FINGERPRINT.pack(f.size, f.mtime_ns, f.ctime_ns, f.inode, f.device)


def _unpacked(packed: bytes) -> Fingerprint:
    return Fingerprint._make(_FINGERPRINT.unpack(packed))


def _quoted(file: Path) -> str:
    return str(file).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _slices(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(values), _VARIABLES):
        yield values[at : at + _VARIABLES]


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))
