"""The contract of every vector cache, on the fake and on SQLite; then what only SQLite has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fakes import SECOND, FakeVanished, HandClock

from anchord.core.ports import VectorCache
from anchord.store import vector_cache as vanished_module
from anchord.store.vector_cache import MAX_AGE_NS, SqliteVectorCache

EAST, NORTH = b"\0\0\x80\x3f\0\0\0\0", b"\0\0\0\0\0\0\x80\x3f"


@pytest.fixture
def clock() -> HandClock:
    """Return a clock that does not move."""
    return HandClock()


@pytest.fixture(params=["fake", "sqlite"])
def vanished(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorCache]:
    """Return an empty cache of either kind."""
    if request.param == "fake":
        yield FakeVanished()
        return
    with closing(SqliteVectorCache(tmp_path / "vectors.sqlite")) as made:
        yield made


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteVectorCache]:
    """Return an empty cache in SQLite."""
    with closing(SqliteVectorCache(tmp_path / "vectors.sqlite")) as made:
        yield made


def test_nothing_is_kept_at_first(vanished: VectorCache) -> None:
    assert vanished.get(["a"]) == {}
    assert vanished.get([]) == {}


def test_what_was_put_is_kept(vanished: VectorCache, clock: HandClock) -> None:
    vanished.put({"a": EAST, "it's": NORTH}, clock())
    assert vanished.get(["it's", "a", "b", "a"]) == {"a": EAST, "it's": NORTH}


def test_getting_takes_nothing_away(vanished: VectorCache, clock: HandClock) -> None:
    vanished.put({"a": EAST}, clock())
    assert vanished.get(["a"]) == vanished.get(["a"]) == {"a": EAST}


def test_the_last_vector_of_a_key_is_kept(vanished: VectorCache, clock: HandClock) -> None:
    vanished.put({"a": EAST}, clock())
    vanished.put({"a": NORTH}, clock())
    assert vanished.get(["a"]) == {"a": NORTH}


def test_what_was_dropped_is_kept_no_more(vanished: VectorCache, clock: HandClock) -> None:
    vanished.put({"a": EAST, "b": NORTH}, clock())
    vanished.delete(["a", "c"])
    vanished.delete([])
    assert vanished.get(["a", "b"]) == {"b": NORTH}


def test_putting_nothing_is_no_error(vanished: VectorCache, clock: HandClock) -> None:
    vanished.put({}, clock())
    assert vanished.get(["a"]) == {}


def test_more_keys_than_fit_a_statement_are_handled(
    vanished: VectorCache, clock: HandClock
) -> None:
    keys = [f"{n}" for n in range(1_300)]
    vanished.put(dict.fromkeys(keys, EAST), clock())
    assert len(vanished.get(keys)) == 1_300


# Only SQLite


def test_vectors_outlive_the_process(tmp_path: Path, clock: HandClock) -> None:
    file = tmp_path / "vectors.sqlite"
    with closing(SqliteVectorCache(file)) as first:
        first.put({"a": EAST}, clock())
    with closing(SqliteVectorCache(file)) as again:
        assert again.get(["a"]) == {"a": EAST}


def test_vectors_are_dropped_after_a_week(sqlite: SqliteVectorCache, clock: HandClock) -> None:
    sqlite.put({"old": EAST}, clock())
    clock.move(MAX_AGE_NS / SECOND)
    sqlite.put({"new": NORTH}, clock())
    assert sqlite.get(["old", "new"]) == {"old": EAST, "new": NORTH}
    clock.move(1)
    sqlite.put({}, clock())
    assert sqlite.get(["old", "new"]) == {"new": NORTH}


def test_a_vector_that_vanished_again_restarts_its_week(
    sqlite: SqliteVectorCache, clock: HandClock
) -> None:
    sqlite.put({"a": EAST}, clock())
    clock.move(6 * 24 * 3600)
    sqlite.put({"a": EAST}, clock())
    clock.move(6 * 24 * 3600)
    sqlite.put({}, clock())
    assert sqlite.get(["a"]) == {"a": EAST}


def test_the_oldest_are_dropped_when_there_are_too_many(
    sqlite: SqliteVectorCache, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vanished_module, "_MAX_VECTORS", 3)
    for key in "abcdefg":
        sqlite.put({key: EAST}, clock())
        clock.move(1)
    kept = set(sqlite.get(list("abcdefg")))
    assert {"e", "f", "g"} <= kept
    assert len(kept) <= 4


def test_one_great_batch_does_not_outgrow_the_bound(
    sqlite: SqliteVectorCache, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vanished_module, "_MAX_VECTORS", 3)
    sqlite.put(dict.fromkeys("abcdefg", EAST), clock())
    clock.move(1)
    sqlite.put({"h": EAST}, clock())
    assert len(sqlite.get(list("abcdefgh"))) <= 4


@pytest.mark.parametrize(
    "content", [b"no database at all\n" * 100, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_a_damaged_file_is_rebuilt(tmp_path: Path, clock: HandClock, content: bytes) -> None:
    file = tmp_path / "vectors.sqlite"
    file.write_bytes(content)
    with closing(SqliteVectorCache(file)) as made:
        assert made.get(["a"]) == {}
        made.put({"a": EAST}, clock())
        assert made.get(["a"]) == {"a": EAST}


def test_a_file_that_is_damaged_inside_costs_vectors_and_no_error(
    tmp_path: Path, clock: HandClock
) -> None:
    file = tmp_path / "vectors.sqlite"
    with closing(SqliteVectorCache(file)) as first:
        first.put({f"{n}": EAST * 200 for n in range(200)}, clock())
    with file.open("r+b") as stream:  # The header and the schema stay good: it opens.
        stream.seek(2 * 4096)
        stream.write(b"\xff" * (file.stat().st_size - 2 * 4096))
    with closing(SqliteVectorCache(file)) as made:
        try:
            made.get([f"{n}" for n in range(200)])
            made.put({"a": EAST}, clock())
        except sqlite3.DatabaseError as error:
            pytest.fail(f"a cache that is damaged must not stop the writer: {error}")


def test_a_deleted_file_is_rebuilt(tmp_path: Path, clock: HandClock) -> None:
    file = tmp_path / "vectors.sqlite"
    with closing(SqliteVectorCache(file)) as first:
        first.put({"a": EAST}, clock())
    for left in tmp_path.iterdir():
        left.unlink()
    with closing(SqliteVectorCache(file)) as again:
        assert again.get(["a"]) == {}
