"""Make a sound archive from what is readable of a damaged one.

Pages are read one by one (`page_records`). A record is assigned to a table of the archive by the
number and the types of its columns, so neither the schema nor the pages above it are needed. An
exchange counts as readable if its text is whole: zlib checks it. The indexes name exchanges,
sessions and files whose own rows are lost, and decide where a row contradicts its session.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from anchord.core.ids import hash_content
from anchord.core.sqlite_connection import translate_sqlite_errors
from anchord.core.types import RootedPath
from anchord.sources.conversations.archive.page_records import (
    DamagedFile,
    FoundRecord,
    Value,
    layouts_of,
)
from anchord.sources.conversations.archive.record_columns import (
    EMPTY_VALUES,
    fit_record,
    table_columns,
    to_row,
)
from anchord.sources.conversations.archive.schema import open_database
from anchord.sources.conversations.exchange_document import exchange_path

_MAX_VERSION = 1 << 60
_VERSION_GAP = 1_000_000
"""Versions of lost exchanges are not used again: the catalog may still hold them."""
_MEND_SQL = """
DELETE FROM tellings WHERE carrier NOT IN (SELECT id FROM carriers)
    OR exchange NOT IN (SELECT id FROM exchanges);
DELETE FROM heads WHERE carrier NOT IN (SELECT id FROM carriers)
    OR session NOT IN (SELECT id FROM sessions);
UPDATE exchanges SET carrier=NULL WHERE carrier NOT IN (SELECT id FROM carriers);
INSERT OR IGNORE INTO tellings(carrier, exchange, digest, until)
    SELECT carrier, id, digest, until FROM exchanges WHERE carrier IS NOT NULL;
UPDATE carriers SET reader='', mark='';
"""
_TITLE_SQL = """
UPDATE sessions SET
    title=ifnull(
        (SELECT title FROM heads WHERE session=id AND title!='' ORDER BY updated DESC), ''),
    project=ifnull(
        (SELECT project FROM heads WHERE session=id AND project!='' ORDER BY updated DESC), '')
WHERE id=?
"""


@dataclass(frozen=True, slots=True)
class SalvageResult:
    """What a salvage saved and what it could not."""

    saved_count: int
    """Exchanges in the new archive."""
    lost: tuple[RootedPath, ...]
    """Exchanges that were in the damaged archive and cannot be read; those of which nothing is
    known any more are not among them."""


@dataclass(slots=True)
class _Named:
    """What the indexes say: the id of a row -> its key."""

    exchanges: dict[int, tuple[str, str]] = field(default_factory=dict)
    carriers: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    sessions: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    unreadable: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Rows of exchanges whose text is damaged."""


def salvage_archive(damaged_file: Path, new_file: Path) -> SalvageResult:
    """Write what is readable of a damaged archive to a new file.

    The transcript files of the new archive are due to be read again in full.

    Args:
        damaged_file: The archive; it and its `-wal` are only read.
        new_file: Must not exist. It is closed and on disk when this returns.

    Raises:
        StoreError: The new file cannot be written, or the damaged one cannot be opened.
    """
    with ExitStack() as stack, translate_sqlite_errors(new_file):
        file = _open(damaged_file, stack)
        wal_file = Path(f"{damaged_file}-wal")
        wal = _open(wal_file, stack) if wal_file.exists() else None
        db = stack.enter_context(closing(open_database(new_file, read_only=False)))
        layouts = layouts_of(file, wal)
        found = [DamagedFile(file, wal, layout) for layout in layouts]
        salvage = _Salvage(db)
        # Usually there is one layout only. A wrong one gives no exchange whose text is whole.
        best = found[0] if len(found) == 1 else max(found, key=salvage.count_readable)
        return salvage.run(best.records())


def _open(file: Path, stack: ExitStack) -> int:
    descriptor = os.open(file, os.O_RDONLY)
    stack.callback(os.close, descriptor)
    return descriptor


class _Salvage:
    """One salvage into an empty archive."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        names = db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        self._tables = {name: table_columns(db, name) for (name,) in names.fetchall()}
        self._named = _Named()

    def count_readable(self, file: DamagedFile) -> int:
        """Return how many exchanges a layout of the file gives."""
        rows = (self._row_of(record) for record in file.records())
        return sum(table == "exchanges" and _read_content(row) is not None for table, row in rows)

    def run(self, records: Iterable[FoundRecord]) -> SalvageResult:
        """Write all records to the archive, then complete what is missing."""
        self._db.execute("PRAGMA foreign_keys=OFF")
        self._db.execute("BEGIN IMMEDIATE")
        for record in records:
            self._take(record)
        self._insert_named_rows()
        self._place_sessions()
        self._place_exchanges()
        for statement in _MEND_SQL.split(";"):
            self._db.execute(statement)
        self._set_next_version()
        self._db.execute("COMMIT")
        saved = {id_: (root, path) for id_, root, path in self._exchanges("id, root, path")}
        self._db.execute("PRAGMA journal_mode=DELETE")  # One file, without a WAL.
        return SalvageResult(len(saved), self._lost(saved))

    def _take(self, record: FoundRecord) -> None:
        """Insert a row of a table; note an entry of an index."""
        table, row = self._row_of(record)
        if table == "exchanges":
            self._take_exchange(row)
        elif table == "sessions" and not any(record.values):
            # It would move its exchanges to a root without a name; without it they keep theirs.
            return
        elif table:
            self._insert("INSERT OR IGNORE", table, row)
        elif record.rowid is None:
            self._note_index_entry(record.values)

    def _row_of(self, record: FoundRecord) -> tuple[str, dict[str, Value]]:
        """Return the table that a record fits best, and its row; "" if it fits none."""
        best, best_score = "", -1
        for table, columns in self._tables.items():
            score = fit_record(record, columns)
            if score > best_score:
                best, best_score = table, score
        return best, to_row(record, self._tables[best]) if best else {}

    def _take_exchange(self, row: dict[str, Value]) -> None:
        data = _read_content(row)
        if data is None:
            place = (str(row["root"]), str(row["path"]))
            self._named.unreadable[_int(row["id"])] = place
            return
        if isinstance(row["path"], bytes):
            # A path of an exchange is text: a changed bit of the record's header made it bytes.
            row["path"] = row["path"].decode("utf-8", "replace")
        exchange = json.loads(data)
        row["name"], row["until"] = exchange["exchange"], exchange["until"]
        row["digest"] = hash_content(data)
        row["superseded"] = int(bool(row["superseded"]))
        row["due"] = 1
        if not 0 < _int(row["version"]) < _MAX_VERSION:
            row["version"] = 0
        if not _is_json_of_counts(str(row["redacted"])):
            row["redacted"] = ""
        if self._insert_newest(row):
            return
        # Another exchange has its id, or its path: the id of one of them is damaged.
        row["id"] = None
        self._insert_newest(row)

    def _insert_newest(self, row: dict[str, Value]) -> bool:
        """Insert an exchange, or replace an older copy of it; return False if its id is taken."""
        older = self._db.execute(
            "SELECT id, version FROM exchanges WHERE root=? AND path=?", (row["root"], row["path"])
        ).fetchone()
        if older and older[1] >= row["version"]:
            return True
        if older:
            self._db.execute("DELETE FROM exchanges WHERE id=?", (older[0],))
        return self._insert("INSERT OR IGNORE", "exchanges", row)

    def _insert(self, verb: str, table: str, row: dict[str, Value]) -> bool:
        columns = ",".join(row)
        marks = ",".join("?" * len(row))
        statement = f"{verb} INTO {table}({columns}) VALUES({marks})"
        return self._db.execute(statement, tuple(row.values())).rowcount > 0

    def _note_index_entry(self, values: Sequence[Value]) -> None:
        match values:
            case (str(root), str(path), int(id_)) if path.startswith("/"):
                self._named.exchanges[id_] = (root, path)
            case (str(root), bytes(file_path), int(id_)):
                self._named.carriers[id_] = (root, file_path)
            case (str(root), str(source), str(name), int(id_)):
                self._named.sessions[id_] = (root, source, name)

    def _insert_named_rows(self) -> None:
        """Insert the files and sessions that only an index names."""
        for id_, (root, path) in self._named.carriers.items():
            row = {column.name: EMPTY_VALUES[column.type] for column in self._tables["carriers"]}
            row |= {"id": id_, "root": root, "path": path, "unknown": "{}"}
            self._insert("INSERT OR IGNORE", "carriers", row)
        for id_, key in self._named.sessions.items():
            self._insert_session(id_, key)

    def _insert_session(self, id_: int | None, key: tuple[str, str, str]) -> int:
        """Insert a session unless it exists; return its id."""
        row = dict(zip(("root", "source", "name"), key, strict=True))
        if self._insert(
            "INSERT OR IGNORE",
            "sessions",
            {"id": id_, **row, "title": "", "project": "", "parent": ""},
        ):
            self._db.execute(_TITLE_SQL, (id_,))
        found = self._db.execute(
            "SELECT id FROM sessions WHERE root=? AND source=? AND name=?", key
        ).fetchone()
        return int(found[0]) if found else self._insert_session(None, key)

    def _place_sessions(self) -> None:
        """Give a session whose root is no root of the archive that of most of its exchanges."""
        names = self._db.execute("SELECT name FROM roots UNION SELECT key FROM detached")
        known = {name for (name,) in names.fetchall()}
        roots_by_session: defaultdict[int, Counter[str]] = defaultdict(Counter)
        for id_, root, session_id in self._exchanges("id, root, session"):
            named_root, _ = self._named.exchanges.get(id_, (root, ""))
            roots_by_session[session_id].update({root, named_root} & known)
        sessions = self._db.execute("SELECT id, root, source, name FROM sessions").fetchall()
        for session_id, root, source, name in sessions:
            roots = roots_by_session[session_id]
            if root not in known and roots:
                ((most_common, _),) = roots.most_common(1)
                key = (most_common, source, name)
                statement = "UPDATE OR IGNORE sessions SET root=?, source=?, name=? WHERE id=?"
                self._db.execute(statement, (*key, session_id))
                # It stays as it was if an index has named that session: then both are one.
                same_id = self._insert_session(None, key)
                self._db.execute(
                    "UPDATE exchanges SET session=? WHERE session=?", (same_id, session_id)
                )

    def _place_exchanges(self) -> None:
        """Give each exchange a session, and the root and path on which the witnesses agree."""
        for id_, root, path, name, session_id in self._exchanges("id, root, path, name, session"):
            session = self._db.execute(
                "SELECT root, source, name FROM sessions WHERE id=?", (session_id,)
            ).fetchone()
            named = self._named.exchanges.get(id_, (root, path))
            if session is None:
                new_id = self._insert_session(session_id, _session_from_path(named, session_id))
                self._db.execute("UPDATE exchanges SET session=? WHERE id=?", (new_id, id_))
                continue
            better = _best_place([(root, path), named, (session[0], path)], session, name)
            if better != (root, path) and (
                self._move(id_, better) or self._delete_copy(id_, better)
            ):
                # Or the index, which may have rows of the damaged path, would restore it.
                self._db.execute("INSERT INTO deleted(root, path) VALUES(?, ?)", (root, path))

    def _move(self, id_: int, place: tuple[str, str]) -> bool:
        """Give an exchange its root and path; return False if another exchange has them."""
        statement = "UPDATE OR IGNORE exchanges SET root=?, path=? WHERE id=?"
        return self._db.execute(statement, (*place, id_)).rowcount > 0

    def _delete_copy(self, id_: int, place_of_other: tuple[str, str]) -> bool:
        """Delete an exchange if the one at its right place says the same; return whether it did.

        The index restored that one, because it did not find it at the damaged path.
        """
        statement = "SELECT content FROM exchanges WHERE root=? AND path=?"
        other = self._db.execute(statement, place_of_other).fetchone()
        own = self._db.execute("SELECT content FROM exchanges WHERE id=?", (id_,)).fetchone()
        if _messages(own[0]) != _messages(other[0]):
            return False
        self._db.execute("DELETE FROM exchanges WHERE id=?", (id_,))
        return True

    def _set_next_version(self) -> None:
        (version,) = self._db.execute("SELECT ifnull(max(version), 0) FROM exchanges").fetchone()
        stored = self._db.execute("SELECT value FROM meta WHERE key='version'").fetchone()
        known = int(stored[0]) if stored and stored[0].isdecimal() else 0
        last = max(version, known if known < _MAX_VERSION else 0)
        values = (str(last + _VERSION_GAP),)
        self._db.execute("INSERT OR REPLACE INTO meta VALUES('version',?)", values)

    def _exchanges(self, columns: str) -> list[tuple[Any, ...]]:
        return self._db.execute(f"SELECT {columns} FROM exchanges").fetchall()

    def _lost(self, saved: dict[int, tuple[str, str]]) -> tuple[RootedPath, ...]:
        known = {**self._named.unreadable, **self._named.exchanges}
        places = set(saved.values())
        lost = {place for id_, place in known.items() if id_ not in saved and place not in places}
        return tuple(RootedPath(root, path) for root, path in sorted(lost))


def _read_content(row: dict[str, Value]) -> bytes | None:
    """Return an exchange's JSON; None if it is damaged."""
    try:
        data = zlib.decompress(row["content"])  # type: ignore[arg-type]
        fields = json.loads(data)
        is_whole = isinstance(fields["exchange"], str) and isinstance(fields["until"], str)
    except (zlib.error, ValueError, KeyError, TypeError):
        return None
    return data if is_whole else None


def _messages(content: bytes) -> tuple[object, object]:
    """Return question and answer of an exchange's text, which is whole."""
    fields = json.loads(zlib.decompress(content))
    return fields["question"], fields["answer"]


def _is_json_of_counts(text: str) -> bool:
    try:
        counts = json.loads(text or "{}")
    except ValueError:
        return False
    if not isinstance(counts, dict):
        return False
    return all(isinstance(count, int) for count in counts.values())


def _session_from_path(place: tuple[str, str], session_id: int) -> tuple[str, str, str]:
    """Return root, source and name of a session by the path of one of its exchanges."""
    root, path = place
    parts = [unquote(part) for part in path.split("/")[1:]]
    name = parts[1] if len(parts) == 3 else f"recovered-{session_id}"
    return root, parts[0] if parts else "", name


def _best_place(
    places: Sequence[tuple[str, str]], session: tuple[str, str, str], name: str
) -> tuple[str, str]:
    """Return the root and path that fit an exchange's session best; the first among equals."""
    root, source, session_name = session
    paths = (exchange_path(source, session_name, name), exchange_path(source, "", name))

    def fit(place: tuple[str, str]) -> int:
        place_root, path = place
        return (place_root == root) + (path in paths)

    return max(places, key=fit)


def _int(value: Value) -> int:
    return value if isinstance(value, int) else 0
