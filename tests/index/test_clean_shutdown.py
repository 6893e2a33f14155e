"""Only a writer that ended in good order, over a table that nobody touched since, spares the next start its check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeCatalogue

from anchord.index.clean_shutdown import record_clean_shutdown, record_start, was_clean_shutdown
from anchord.store.table.damage import list_table_files


class Home:
    """A catalog, and a table of two files."""

    def __init__(self, base: Path) -> None:
        """Write the files."""
        self.notes = FakeCatalogue()
        self.catalog: Any = self.notes
        self.table = base / "chunks.lance"
        (self.table / "data").mkdir(parents=True)
        for name in ("one", "two"):
            (self.table / "data" / name).write_bytes(b"rows")

    def end(self) -> None:
        """End the writer in good order."""
        record_clean_shutdown(self.catalog, list_table_files(self.table))

    def was_clean(self) -> bool:
        """Begin the next one."""
        return was_clean_shutdown(self.catalog, self.table)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_new_home_was_never_closed_in_good_order(home: Home) -> None:
    assert home.was_clean() is False


def test_an_end_in_good_order_counts_until_the_next_start(home: Home) -> None:
    home.end()
    assert home.was_clean() is True
    assert home.was_clean() is True, "asking changes nothing"
    record_start(home.catalog)
    assert home.was_clean() is False, "a kill leaves this note"
    home.end()
    assert home.was_clean() is True


@pytest.mark.parametrize("change", ["lost", "more", "size", "time", "all lost"])
def test_a_table_that_was_changed_while_nobody_ran_is_checked(home: Home, change: str) -> None:
    home.end()
    one = home.table / "data" / "one"
    if change == "lost":
        one.unlink()
    elif change == "more":
        one.with_name("three").write_bytes(b"rows")
    elif change == "size":
        one.write_bytes(b"more rows")
    elif change == "time":
        os.utime(one, ns=(1, 1))
    else:
        home.table.rename(home.table.with_name("elsewhere"))
    assert home.was_clean() is False


def test_a_table_that_is_not_on_this_disk_has_no_files_to_compare(home: Home) -> None:
    home.table = home.table.with_name("remote")
    home.end()
    assert home.was_clean() is True


def test_the_files_are_noted_before_the_good_order(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the two leaves no note of good order over files that nobody noted."""
    written: list[str] = []
    monkeypatch.setattr(home.notes, "set_meta", lambda key, _: written.append(key))
    home.end()
    assert written == ["table files", "clean"]
