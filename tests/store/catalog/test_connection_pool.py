"""When connections are reused and when they are closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anchord.errors import StoreError
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.catalog.connection_pool import CatalogPool


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made(tmp_path / "state.sqlite", "first")
    return tmp_path / "state.sqlite"


@pytest.fixture
def pool(file: Path) -> Iterator[CatalogPool]:
    pool = CatalogPool(file)
    yield pool
    pool.close()


def made(file: Path, name: str) -> None:
    with SqliteCatalog(file) as catalogue:
        catalogue.set_meta("name", name)


def test_a_connection_is_used_again(pool: CatalogPool) -> None:
    with pool.connection() as first:
        pass
    with pool.connection() as second:
        assert second is first


def test_a_kept_connection_returns_what_is_stored_now(pool: CatalogPool, file: Path) -> None:
    with pool.connection() as first:
        assert first.get_meta("name") == "first"
    made(file, "changed")
    with pool.connection() as second:
        assert second.get_meta("name") == "changed"


def test_questions_at_the_same_time_have_one_each(pool: CatalogPool) -> None:
    with pool.connection() as first, pool.connection() as second:
        assert first is not second


def test_one_on_which_a_question_failed_is_closed(pool: CatalogPool) -> None:
    with pytest.raises(ValueError, match="no"), pool.connection() as first:
        raise ValueError("no")
    with pool.connection() as second:
        assert second is not first
    with pytest.raises(StoreError):
        first.get_meta("name")


def test_another_file_in_the_place_of_the_one_before_is_read(pool: CatalogPool, file: Path) -> None:
    with pool.connection() as first:
        pass
    made(file.with_name("other.sqlite"), "other")
    file.with_name("other.sqlite").replace(file)
    with pool.connection() as second:
        assert second.get_meta("name") == "other"
    with pytest.raises(StoreError):
        first.get_meta("name")


def test_a_file_that_is_gone_is_reported_whatever_was_read_before(
    pool: CatalogPool, file: Path
) -> None:
    with pool.connection():
        file.unlink()
    with pytest.raises(StoreError), pool.connection():
        pass


def test_nothing_stays_open_in_a_closed_pool(pool: CatalogPool) -> None:
    with pool.connection() as idle:
        pass
    with pool.connection() as asked:
        assert asked is idle
        pool.close()
        assert asked.get_meta("name") == "first"
    with pytest.raises(StoreError):
        asked.get_meta("name")
