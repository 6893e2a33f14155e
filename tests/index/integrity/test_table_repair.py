"""A repair of the table says what it did, opens the table again, and embeds nothing that a file still has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from anchord.core.types import RootedPath
from anchord.errors import StoreError
from anchord.index.integrity import table_repair as module
from anchord.index.integrity.table_repair import (
    audit_index,
    repair_index_table,
    retry_after_repair,
    retry_at_start,
)
from anchord.store.table.connection import TableReadError
from anchord.store.table.damage import TableRepair

FILES = [RootedPath("docs", "a.md"), RootedPath("docs", "b.md")]


class Index:
    """An index whose parts record what happens to them."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with a table that needs no repair."""
        self.table = base / "lance" / "chunks.lance"
        self.table.mkdir(parents=True)
        self.damaged = base / "damaged"
        self.events: list[Any] = []
        self.repair = TableRepair()
        self.due: list[RootedPath] = []
        self.due_count = 0
        self.is_local = True
        note = self.events.append
        self.writer: Any = SimpleNamespace(
            store=SimpleNamespace(
                dataset_uri=str(self.table),
                refresh=lambda *, clear_cache=False: note(("refresh", clear_cache)),
                scan=lambda columns: [pa.table({columns[0]: ["known"]})],
                count_due=lambda: self.due_count,
            ),
            paths=SimpleNamespace(damaged_folder=self.damaged),
            heartbeat=SimpleNamespace(beat=lambda *_: note("beat")),
            catalog=SimpleNamespace(
                locate_chunks=lambda ids: {
                    each: SimpleNamespace(origin=FILES[number // 2])
                    for number, each in enumerate(ids)
                }
            ),
            indexer=SimpleNamespace(
                delete_damaged_rows=lambda *each: note(("deleted", each)),
                delete_stray_rows=lambda: self.due,
                index=self._index,
            ),
            vector_cache=SimpleNamespace(put=lambda vectors, _: note(("kept", vectors))),
            repairs=["before"],
        )
        monkeypatch.setattr(module, "is_local", lambda _: self.is_local)
        monkeypatch.setattr(module, "repair_table", self._repair)
        monkeypatch.setattr(module, "salvage_vectors", self._salvage)

    def _index(self, files: list[RootedPath]) -> Any:  # noqa: ANN401 - a generator
        self.events.append(("indexing", files))
        yield from files
        self.events.append("indexed")

    def _repair(
        self, table: Path, altered: object, folder: Path, beat: object, *, rebuild_indices: bool
    ) -> TableRepair:
        assert table == self.table
        assert folder.parent == self.damaged
        assert beat is self.writer.heartbeat.beat
        self.events.append(("repair", altered, rebuild_indices))
        return self.repair

    def _salvage(self, table: Path, aside: list[Path], is_wanted: Any) -> Any:  # noqa: ANN401 - a predicate, a generator
        assert table == self.table
        self.events.append(("salvage", aside, is_wanted("known"), is_wanted("lost")))
        yield {"lost": b"1"}
        assert not is_wanted("lost"), "what was found is not looked for again"
        yield {"more": b"2"}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return Index(tmp_path, monkeypatch)


def test_a_sound_table_is_opened_again_and_nothing_is_said(index: Index) -> None:
    assert repair_index_table(index.writer, {"data/a"}) == []
    assert index.events == [("repair", {"data/a"}, False), ("refresh", True)]


def test_a_table_that_no_version_of_opens_is_moved_aside(index: Index) -> None:
    index.repair = TableRepair(repairs=("one file was lost",), is_readable=False)
    told = repair_index_table(index.writer, (), rebuild_indices=True)
    assert told == [
        "one file was lost",
        "no version of the table could be read: it is rebuilt from the files",
    ]
    assert index.events == [("repair", (), True), ("refresh", True)]
    assert not index.table.exists()
    assert len(list(index.damaged.glob("*/chunks.lance"))) == 1


def test_chunks_that_changed_on_disk_are_deleted_and_their_files_read_again(index: Index) -> None:
    index.repair = TableRepair(corrupt_ids=("1", "2", "3"))
    told = repair_index_table(index.writer, ())
    assert told == ["3 chunks had changed on disk: written again"]
    assert index.events[-1] == ("deleted", ((), FILES, ("1", "2", "3")))


def test_a_remote_table_is_left_alone(index: Index) -> None:
    index.is_local = False
    assert repair_index_table(index.writer, ()) == []
    assert index.events == []
    index.due = FILES
    assert audit_index(index.writer) == FILES
    assert index.events == []


def test_vectors_of_missing_rows_are_looked_for_in_files_that_no_row_refers_to(
    index: Index,
) -> None:
    assert audit_index(index.writer) == []
    assert index.events == []
    aside = index.damaged / "then" / "chunks.lance" / "data"
    aside.mkdir(parents=True)
    index.due = FILES
    assert audit_index(index.writer) == FILES
    assert index.events == [
        ("salvage", [aside], False, True),
        "beat",
        ("kept", {"lost": b"1"}),
        "beat",
        ("kept", {"more": b"2"}),
    ]


def test_vectors_that_rows_lack_are_looked_for_too(index: Index) -> None:
    index.due_count = 1
    assert audit_index(index.writer) == []
    kept = [event for event in index.events if event[0] == "kept"]
    assert kept == [("kept", {"lost": b"1"}), ("kept", {"more": b"2"})]
    index.is_local = False
    index.events.clear()
    assert audit_index(index.writer) == []
    assert index.events == []


def test_a_job_that_cannot_read_rows_is_run_again_after_a_repair(index: Index) -> None:
    calls: list[int] = []

    def job() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise TableReadError("rows cannot be read", "")
        return "answer"

    assert retry_after_repair(index.writer, lambda: "at once") == "at once"
    assert index.events == []
    index.repair = TableRepair(repairs=("mended",))
    assert retry_after_repair(index.writer, job) == "answer"
    assert len(calls) == 2
    assert index.writer.repairs == ["before", "mended"]
    assert index.events == [
        ("repair", (), True),
        ("refresh", True),
        ("indexing", []),
        "indexed",
    ]


def test_while_an_index_is_opened_nothing_is_indexed_after_a_repair(index: Index) -> None:
    """The start audits the table later: what could be missing is not vouched for until then."""
    errors = [TableReadError("rows cannot be read", "")]

    def job() -> str:
        if errors:
            raise errors.pop()
        return "answer"

    index.writer.was_clean_shutdown = True
    assert retry_at_start(index.writer, lambda: "at once") == "at once"
    assert index.writer.was_clean_shutdown
    assert retry_at_start(index.writer, job) == "answer"
    assert not index.writer.was_clean_shutdown
    assert index.events == [("repair", (), True), ("refresh", True)]


def test_another_error_of_a_job_is_not_repaired(index: Index) -> None:
    def job() -> None:
        raise StoreError("the disk is full", "")

    with pytest.raises(StoreError, match="full"):
        retry_after_repair(index.writer, job)
    assert index.events == []
