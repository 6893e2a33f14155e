"""Sessions are listed without their texts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from anchord.sources.conversations.archive.page_records import FoundRecord
from anchord.sources.conversations.archive.record_columns import fit_record, table_columns
from anchord.sources.conversations.archive.schema import open_database
from anchord.sources.conversations.archive.session_records import _LIST_SQL

INDEX = "exchanges_listed"


def test_a_list_of_sessions_reads_no_row_of_an_exchange(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "new.sqlite", read_only=False)) as db:
        rows = db.execute(f"EXPLAIN QUERY PLAN {_LIST_SQL.format(where='')}")
        (of_exchanges,) = [plan for _, _, _, plan in rows if plan.split()[1] == "e"]
        assert f"USING COVERING INDEX {INDEX}" in of_exchanges


def test_an_older_archive_gets_the_index(tmp_path: Path) -> None:
    file = tmp_path / "old.sqlite"
    open_database(file, read_only=False).close()
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"DROP INDEX {INDEX}")
        db.commit()
    open_database(file, read_only=False).close()
    with closing(sqlite3.connect(file)) as db:
        query = "SELECT count(*) FROM sqlite_master WHERE name=?"
        assert db.execute(query, (INDEX,)).fetchone() == (1,)


def test_an_entry_of_the_index_is_taken_for_no_row_of_a_table(tmp_path: Path) -> None:
    entries = [(1, "talks", "2026", 0, 2, b"a", 7), (1, "talks", "2026", 0, None, None, 7)]
    with closing(open_database(tmp_path / "new.sqlite", read_only=False)) as db:
        names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        for columns in (table_columns(db, name) for name in names):
            assert [fit_record(FoundRecord(None, each), columns) for each in entries] == [-1, -1]
