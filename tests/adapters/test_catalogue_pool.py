"""Connections that are kept, and when they are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.catalogue_pool import CataloguePool
from anchord.errors import StoreError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made(tmp_path / "state.sqlite", "first")
    return tmp_path / "state.sqlite"


@pytest.fixture
def pool(file: Path) -> Iterator[CataloguePool]:
    pool = CataloguePool(file)
    yield pool
    pool.close()


def made(file: Path, name: str) -> None:
    with SqliteCatalogue(file) as catalogue:
        catalogue.note("name", name)


def test_a_connection_is_used_again(pool: CataloguePool) -> None:
    with pool.one() as first:
        pass
    with pool.one() as second:
        assert second is first


def test_what_a_connection_had_read_before_is_not_what_it_tells_now(pool: CataloguePool, file: Path) -> None:
    with pool.one() as first:
        assert first.noted("name") == "first"
    made(file, "changed")
    with pool.one() as second:
        assert second.noted("name") == "changed"


def test_questions_at_the_same_time_have_one_each(pool: CataloguePool) -> None:
    with pool.one() as first, pool.one() as second:
        assert first is not second


def test_one_on_which_a_question_failed_is_closed(pool: CataloguePool) -> None:
    with pytest.raises(ValueError, match="no"), pool.one() as first:
        raise ValueError("no")
    with pool.one() as second:
        assert second is not first
    with pytest.raises(StoreError):
        first.noted("name")


def test_another_file_in_the_place_of_the_one_before_is_read(pool: CataloguePool, file: Path) -> None:
    with pool.one() as first:
        pass
    made(file.with_name("other.sqlite"), "other")
    file.with_name("other.sqlite").replace(file)
    with pool.one() as second:
        assert second.noted("name") == "other"
    with pytest.raises(StoreError):
        first.noted("name")


def test_a_file_that_is_gone_is_told_whatever_was_read_before(pool: CataloguePool, file: Path) -> None:
    with pool.one():
        file.unlink()
    with pytest.raises(StoreError), pool.one():
        pass


def test_nothing_stays_open_in_a_closed_pool(pool: CataloguePool) -> None:
    with pool.one() as idle:
        pass
    with pool.one() as asked:
        assert asked is idle
        pool.close()
        assert asked.noted("name") == "first"
    with pytest.raises(StoreError):
        asked.noted("name")
