"""When the whole index is compared or repaired: after a crash, once a week, and when a file of the table is not as it was."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anchord.core.types import RootedPath
from anchord.daemon.writer import index_check as module
from anchord.daemon.writer.index_check import IndexCheck
from anchord.errors import StoreError
from anchord.store.table import damage

WEEK_S = 7 * 24 * 3600.0
FILES = [RootedPath("docs", "a.md")]


class Index:
    """An index whose parts record what happens to them."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with a table of three rows, at 1,000 s."""
        self.now = 1000.0
        self.events: list[object] = []
        self.rows = 3
        self.repairs: list[str] = []
        self.fails: StoreError | None = None
        self.problem = ""
        self.needed: dict[str, int | None] = {"data/a.lance": 4}
        self.table = base / "chunks.lance"
        (self.table / "data").mkdir(parents=True)
        (self.table / "_versions").mkdir()
        (self.table / "_versions" / "1.manifest").write_bytes(b"version")
        self.file = self.table / "data" / "a.lance"
        self.file.write_bytes(b"rows")
        writer: Any = SimpleNamespace(
            store=SimpleNamespace(dataset_uri=str(self.table), count_rows=lambda: self.rows),
            catalog=SimpleNamespace(counts_by_root=lambda: {"docs": (1, 2), "more": (1, 1)}),
            archive=None,
            was_clean_shutdown=True,
            repairs=["at the start"],
        )
        self.writer = writer
        own_files = SimpleNamespace(
            note=lambda: self.events.append("own files noted"), find_problem=lambda: self.problem
        )
        monkeypatch.setattr(module, "OwnFiles", lambda _: own_files)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(
            module, "note_archive_state", lambda *_: self.events.append("archive noted")
        )
        monkeypatch.setattr(module, "record_start", lambda _: self.events.append("start"))
        monkeypatch.setattr(
            module, "record_clean_shutdown", lambda _, files: self.events.append(set(files))
        )
        monkeypatch.setattr(damage, "read_version_files", lambda _: self.needed)
        monkeypatch.setattr(module, "audit_index", self._audit)
        monkeypatch.setattr(module, "repair_index_table", self._repair)
        self.check = IndexCheck(writer)
        self.check.on_repair = lambda: self.events.append("readers open again")

    def _audit(self, writer: object) -> list[RootedPath]:
        assert writer is self.writer
        self.events.append("audited")
        return FILES

    def _repair(self, writer: object, altered: set[str], *, rebuild_indices: bool) -> list[str]:
        assert writer is self.writer
        if self.fails:
            raise self.fails
        self.events.append(("repaired", set(altered), rebuild_indices))
        if altered:
            self.needed = {}  # The newest version does without what was lost.
        return self.repairs

    def replace_table(self) -> None:
        """Put another table in the place of the present one."""
        (self.table / "data" / "new.lance").write_bytes(b"new")
        self.needed = {"data/new.lance": 3}

    @property
    def due(self) -> tuple[bool, bool]:
        """Return whether an audit and a repair are due."""
        return self.check.is_audit_due, self.check.is_repair_due


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return Index(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("clean", "rows", "is_due"),
    [(True, 3, False), (False, 3, True), (True, 2, True), (True, 4, True)],
)
def test_a_start_compares_the_ids_after_a_crash_or_if_rows_are_missing(
    index: Index,
    clean: bool,  # noqa: FBT001 - a column of the table
    rows: int,
    is_due: bool,  # noqa: FBT001 - likewise
) -> None:
    index.writer.was_clean_shutdown, index.rows = clean, rows
    assert index.due == (False, False)
    index.check.start()
    assert index.due == (is_due, False)
    assert index.check.is_due is is_due
    assert index.events == ["own files noted", "start"]
    index.check.look_for_altered_files()
    assert index.due == (is_due, False)


@pytest.mark.parametrize("how", ["lost", "changed"])
def test_a_file_of_the_table_that_is_not_as_it_was_makes_a_repair_due(
    index: Index, how: str
) -> None:
    index.check.start()
    if how == "lost":
        index.file.unlink()
    else:
        index.file.write_bytes(b"other rows")
    (index.table / "data" / "new.lance").write_bytes(b"new")
    index.check.look_for_altered_files()
    assert index.due == (False, True)
    index.check.look_for_altered_files()
    index.repairs = ["one file was lost"]
    index.events.clear()
    index.now = 1100.0
    assert index.check.run() == FILES
    assert index.events == [
        ("repaired", {"data/a.lance"}, False),
        "readers open again",
        "audited",
    ]
    assert index.due == (False, False)
    assert index.writer.repairs == ["at the start", "one file was lost"]
    assert index.check.began_at == 1100.0
    index.check.look_for_altered_files()
    assert index.due == (False, False)


def test_files_that_this_process_deleted_are_not_lost(index: Index) -> None:
    index.check.start()
    index.needed = {}
    index.file.unlink()
    index.check.look_for_altered_files()
    assert index.due == (False, False)


def test_a_repair_that_fails_stays_due(index: Index) -> None:
    index.check.start()
    index.file.unlink()
    index.check.look_for_altered_files()
    index.fails = StoreError("cannot be read", "")
    with pytest.raises(StoreError):
        index.check.run()
    assert index.due == (False, True)
    index.fails = None
    index.check.run()
    assert ("repaired", {"data/a.lance"}, False) in index.events


def test_rows_that_cannot_be_read_are_looked_for_once_a_minute_if_nothing_is_found(
    index: Index,
) -> None:
    index.check.start()
    index.check.request_repair()
    assert index.due == (False, True)
    index.check.run()
    assert index.events[2:] == [("repaired", set(), False), "audited"]
    assert index.writer.repairs == ["at the start"]
    index.now = 1059.9
    index.check.request_repair()
    assert index.due == (False, False)
    index.now = 1060.0
    index.check.request_repair()
    assert index.due == (False, True)
    index.events.clear()
    index.repairs = ["the search indexes"]
    index.check.run()
    # The rows were read without an error before: an index must be what cannot be read.
    assert index.events == [("repaired", set(), True), "readers open again", "audited"]
    index.check.request_repair()
    assert index.due == (False, True), "the last repair found something"
    index.events.clear()
    index.check.run()
    assert index.events[0] == ("repaired", set(), False)


def test_an_altered_file_is_repaired_at_once_though_the_last_repair_found_nothing(
    index: Index,
) -> None:
    index.check.start()
    index.check.request_repair()
    index.check.run()
    index.file.unlink()
    index.check.request_repair()
    assert index.due == (False, True)
    index.events.clear()
    index.check.run()
    assert index.events[0] == ("repaired", {"data/a.lance"}, False)


def test_all_ids_are_compared_once_a_week_and_the_week_begins_with_any_comparison(
    index: Index,
) -> None:
    index.check.start()
    index.check.audit_if_due(1000.0 + WEEK_S - 1)
    assert index.due == (False, False)
    index.check.audit_if_due(1000.0 + WEEK_S)
    assert index.due == (True, False)
    index.check.audit_if_due(0.0)
    assert index.due == (True, False)
    index.now = 5000.0
    index.check.run()
    assert index.events[2:] == ["audited"]
    index.check.audit_if_due(5000.0 + WEEK_S - 1)
    assert index.due == (False, False)
    index.check.audit_if_due(5000.0 + WEEK_S)
    assert index.due == (True, False)


@pytest.mark.parametrize("why_not", ["", "folder lost", "audit due", "file lost"])
def test_a_clean_end_is_noted_only_if_the_index_is_known_to_be_right(
    index: Index, why_not: str
) -> None:
    index.check.start()
    index.events.clear()
    if why_not == "folder lost":
        index.problem = "the folder is gone"
    elif why_not == "audit due":
        index.check.is_audit_due = True
    elif why_not == "file lost":
        index.file.unlink()
    index.check.record_end()
    files = {"data/a.lance", "_versions/1.manifest"}
    if why_not:
        assert index.events == ([] if why_not == "folder lost" else ["archive noted"])
    else:
        assert index.events == ["archive noted", files]


def test_nothing_is_due_and_no_check_began_before_the_start(index: Index) -> None:
    assert index.due == (False, False)
    assert index.check.is_due is False
    assert index.check.began_at == float("-inf")


def test_a_new_table_has_no_damage_of_the_former_one(index: Index) -> None:
    index.check.start()
    index.file.unlink()
    index.check.look_for_altered_files()
    index.replace_table()
    index.check.note_new_table()
    assert index.due == (True, False)
    index.check.look_for_altered_files()
    assert index.due == (True, False)
    index.check.request_repair()
    index.check.run()
    assert ("repaired", set(), False) in index.events, "the lost file was of the former table"


def test_the_files_of_a_table_that_was_replaced_are_not_lost(index: Index) -> None:
    index.check.start()
    index.file.unlink()
    index.replace_table()
    index.check.note_new_table()
    index.check.look_for_altered_files()
    assert index.due == (True, False)


def test_a_file_that_was_written_and_seen_since_the_start_is_missed_too(index: Index) -> None:
    index.check.start()
    new = index.table / "data" / "new.lance"
    new.write_bytes(b"new")
    index.needed |= {"data/new.lance": 3}
    index.check.look_for_altered_files()
    assert index.due == (False, False)
    new.unlink()
    index.check.look_for_altered_files()
    assert index.due == (False, True)
    index.check.run()
    assert ("repaired", {"data/new.lance"}, False) in index.events


def test_files_that_a_comparison_deletes_are_not_lost(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.check.start()

    def audit(_: object) -> list[RootedPath]:
        index.needed = {}
        index.file.unlink()
        return FILES

    monkeypatch.setattr(module, "audit_index", audit)
    assert index.check.run() == FILES
    index.check.look_for_altered_files()
    assert index.due == (False, False)


def test_a_file_that_is_lost_during_a_comparison_is_missed_afterwards(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.check.start()

    def audit(_: object) -> list[RootedPath]:
        index.file.unlink(missing_ok=True)
        return FILES

    monkeypatch.setattr(module, "audit_index", audit)
    index.check.run()
    assert index.due == (False, True)
    assert not index.check.has_all_files()
    index.check.run()
    assert ("repaired", {"data/a.lance"}, False) in index.events
    assert index.check.has_all_files()


def test_a_file_that_was_lost_before_anybody_looked_is_missed(index: Index) -> None:
    index.file.unlink()
    index.check.start()
    assert index.due == (False, True)
    index.check.run()
    index.needed = {"data/new.lance": 3}  # Committed, and lost before the next look.
    assert not index.check.has_all_files()


def test_a_file_that_was_cut_before_anybody_looked_is_not_right(index: Index) -> None:
    index.file.write_bytes(b"row")
    index.check.start()
    assert index.due == (False, True)


def test_a_version_that_is_lost_makes_a_repair_due(index: Index) -> None:
    newer = index.table / "_versions" / "2.manifest"
    newer.write_bytes(b"version")
    index.check.start()
    newer.unlink()
    index.check.look_for_altered_files()
    assert index.due == (False, True)
    index.check.run()
    assert ("repaired", {"_versions/2.manifest"}, False) in index.events
    assert index.check.has_all_files(), "the table is at the version before"


def test_damage_that_was_found_stays_due_until_it_is_repaired(index: Index) -> None:
    index.check.start()
    index.file.unlink()
    for _ in range(2):
        index.check.look_for_altered_files()
        assert index.due == (False, True)
        assert index.check.is_due is True


def test_what_was_repaired_is_listed_after_what_the_start_repaired(index: Index) -> None:
    index.check.start()
    index.repairs = ["one", "two"]
    index.check.request_repair()
    index.check.run()
    assert index.writer.repairs == ["at the start", "one", "two"]
