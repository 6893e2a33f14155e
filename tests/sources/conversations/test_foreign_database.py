"""Foreign databases: only real tables are read, and queries have a time limit."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from anchord.sources.conversations import foreign_database
from anchord.sources.conversations.foreign_database import BrokenError, ForeignDatabase, Value

SQL = "SELECT key FROM cursorDiskKV"
ENDLESS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0"
)
DISGUISED = (
    "CREATE TABLE cursorDiskKV(key); PRAGMA writable_schema = ON; "
    f"UPDATE sqlite_master SET sql = 'CREATE VIEW cursorDiskKV(key) AS {ENDLESS}'"
)


def read(file: Path, schema: str, sql: str = SQL) -> list[tuple[Value, ...]]:
    """Make a database and run a query on it."""
    connection = sqlite3.connect(file)
    connection.executescript(schema)
    connection.close()
    database = ForeignDatabase(str(file))
    try:
        return list(database.query(sql))
    finally:
        database.close()


@pytest.mark.parametrize(
    "schema",
    [
        f"CREATE VIEW cursorDiskKV(key) AS {ENDLESS}",
        "CREATE TABLE t(key); CREATE VIEW cursorDiskKV AS SELECT key FROM t",
        "CREATE VIRTUAL TABLE cursorDiskKV USING fts5(key)",
        "CREATE VIRTUAL TABLE cursorDiskKV USING rtree(key, a, b)",
        DISGUISED,
    ],
    ids=["endless view", "view", "word index", "rtree", "view disguised as a table"],
)
def test_only_a_real_table_is_read(tmp_path: Path, schema: str) -> None:
    with pytest.raises(BrokenError):
        read(tmp_path / "state.vscdb", schema)


def test_real_tables_their_columns_and_the_schema_are_read(tmp_path: Path) -> None:
    table = "CREATE TABLE cursorDiskKV(key UNIQUE, value)"
    filled = f"{table}; INSERT INTO cursorDiskKV VALUES ('a', x'00ff'), ('b', NULL)"
    assert read(tmp_path / "1", filled, "SELECT * FROM cursorDiskKV ORDER BY rowid") == [
        ("a", b"\0\xff"),
        ("b", None),
    ]
    assert read(tmp_path / "2", filled, "SELECT name FROM pragma_table_info('cursorDiskKV')") == [
        ("key",),
        ("value",),
    ]
    assert read(tmp_path / "3", filled, "SELECT sql FROM sqlite_master WHERE rootpage = 2") == [
        (table,)
    ]
    assert read(tmp_path / "4", filled, "SELECT id FROM session") == []


def test_no_function_is_called(tmp_path: Path) -> None:
    with pytest.raises(BrokenError):
        read(
            tmp_path / "a.db", "CREATE TABLE cursorDiskKV(key)", "SELECT random() FROM cursorDiskKV"
        )


def test_a_query_without_a_next_row_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_database, "_ROW_TIMEOUT_S", 0.05)
    filled = (
        "CREATE TABLE cursorDiskKV(key); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
        "FROM c WHERE x < 3000) INSERT INTO cursorDiskKV SELECT x FROM c"
    )
    product = "SELECT a.key FROM cursorDiskKV a, cursorDiskKV b, cursorDiskKV c WHERE a.key + b.key + c.key < 0"
    with pytest.raises(BrokenError, match="interrupted"):
        read(tmp_path / "a.db", filled, product)


def test_a_value_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = foreign_database._LIMITS | {sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000}
    monkeypatch.setattr(foreign_database, "_LIMITS", limits)
    computed = "CREATE TABLE cursorDiskKV(a, key AS (zeroblob(9000000))); INSERT INTO cursorDiskKV(a) VALUES (1)"
    with pytest.raises(BrokenError, match="too big"):
        read(tmp_path / "a.db", computed)


@pytest.mark.parametrize("page", range(3))
def test_a_torn_page_is_a_broken_database_or_other_rows(tmp_path: Path, page: int) -> None:
    file = tmp_path / "a.db"
    read(file, "CREATE TABLE cursorDiskKV(key); INSERT INTO cursorDiskKV VALUES (zeroblob(9000))")
    data = bytearray(file.read_bytes())
    data[page * 4096 + 100 : page * 4096 + 2000] = os.urandom(1900)
    file.write_bytes(data)
    with suppress(BrokenError):
        list(ForeignDatabase(str(file)).query(SQL))


@pytest.mark.parametrize("state", ["open in its program", "closed", "copied with its index"])
def test_a_database_with_a_log_is_read_and_nothing_is_written_beside_it(
    tmp_path: Path, state: str
) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    program = sqlite3.connect(folder / "a.db")
    program.execute("PRAGMA journal_mode=WAL")
    program.executescript("CREATE TABLE cursorDiskKV(key); INSERT INTO cursorDiskKV VALUES ('a')")
    if state == "copied with its index":
        folder = shutil.copytree(folder, tmp_path / "copy")
    if state != "open in its program":
        program.close()
    before = {each.name: each.read_bytes() for each in folder.iterdir() if each.suffix != ".db-shm"}
    names = sorted(os.listdir(folder))
    with closing(ForeignDatabase(str(folder / "a.db"))) as database:
        assert list(database.query(SQL)) == [("a",)]
    assert sorted(os.listdir(folder)) == names
    assert all((folder / name).read_bytes() == content for name, content in before.items())
    program.close()


def test_a_log_without_its_index_is_refused_and_not_left_out(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as program:
        program.execute("PRAGMA journal_mode=WAL")
        program.execute("CREATE TABLE cursorDiskKV(key)")
        for name in ("a.db", "a.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / f"copy-{name}")
        with (
            closing(ForeignDatabase(str(tmp_path / "copy-a.db"))) as database,
            pytest.raises(BrokenError, match="no index"),
        ):
            list(database.query(SQL))


def test_a_database_inside_another_file_is_refused() -> None:
    with pytest.raises(BrokenError, match="unpack it"):
        list(ForeignDatabase("").query(SQL))
