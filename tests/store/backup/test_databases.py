"""A pinned database is copied as it was, whatever is written meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from anchord.errors import StoreDamagedError, StoreError
from anchord.store.backup.databases import (
    copy_database,
    find_damage,
    pin_database,
    pinned_bytes,
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT)")
        connection.executemany("INSERT INTO t VALUES(?,?)", [(n, "x" * 900) for n in range(2000)])
        yield connection


def numbers(file: Path) -> list[int]:
    with closing(sqlite3.connect(file)) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM t ORDER BY n")]


def test_writes_during_the_copy_are_not_in_it_and_do_not_start_it_again(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    steps: list[int] = []
    with closing(pin_database(tmp_path / "a.sqlite")) as pinned:
        database.execute("DELETE FROM t WHERE n < 1000")

        def write(count: int) -> None:
            steps.append(count)
            database.execute("INSERT INTO t VALUES(?, 'new')", (10_000 + len(steps),))

        expected_bytes = pinned_bytes(pinned)
        copy_database(pinned, tmp_path / "copy.sqlite", write)
    assert numbers(tmp_path / "copy.sqlite") == list(range(2000))
    assert (tmp_path / "copy.sqlite").stat().st_size == expected_bytes
    assert 1 < len(steps) <= expected_bytes // steps[0] + 1
    assert len(numbers(tmp_path / "a.sqlite")) == 1000 + len(steps)


def test_two_copies_of_one_state_have_the_same_bytes(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("DELETE FROM t WHERE n % 3")
    for name in ("one", "two"):
        with closing(pin_database(tmp_path / "a.sqlite")) as pinned:
            copy_database(pinned, tmp_path / name, lambda _: None)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.usefixtures("database")
def test_a_corrupt_database_is_not_copied_as_if_it_were_sound(tmp_path: Path) -> None:
    with closing(pin_database(tmp_path / "a.sqlite")) as pinned:
        copy_database(pinned, tmp_path / "sound.sqlite", lambda _: None)
    content = bytearray((tmp_path / "sound.sqlite").read_bytes())
    content[40960:45056] = b"\xff" * 4096
    (tmp_path / "b.sqlite").write_bytes(content)
    assert find_damage(tmp_path / "sound.sqlite") == ""
    assert find_damage(tmp_path / "b.sqlite") != ""
    with closing(pin_database(tmp_path / "b.sqlite")) as pinned, pytest.raises(StoreDamagedError):
        copy_database(pinned, tmp_path / "copy.sqlite", lambda _: None)


def test_what_is_no_database_or_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("no database " * 100)
    with pytest.raises(StoreDamagedError):
        pin_database(tmp_path / "text.sqlite")
    with pytest.raises(StoreError):
        pin_database(tmp_path / "none.sqlite")
    assert find_damage(tmp_path / "none.sqlite") != ""
