"""When the table is compacted, index parts are merged and old versions deleted: a case per threshold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from anchord.daemon.writer import maintenance as module
from anchord.daemon.writer.maintenance import Maintenance
from anchord.errors import StoreError
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.compaction import COMPACTION_TIMEOUT_S
from anchord.store.table.maintenance import COMPACT_AFTER_COMMITS


class Stand:
    """A fake writer, index check and compaction that record their calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with a table whose rows are all in its indices."""
        self.commits = 0
        self.unindexed_rows: int | None = 0
        """Number of rows in no index; None if they cannot be counted."""
        self.counted = 0
        self.compactions: list[tuple[bool, bool]] = []
        """(merges the parts of the indices, drops old versions) of each."""
        self.events: list[object] = []
        self.is_repair_due = False
        self.problems: list[str] = []
        self.meta: dict[str, str] = {}
        monkeypatch.setattr(table_maintenance, "maintain", self._maintain)
        monkeypatch.setattr(module, "trim_heap", lambda: self.events.append("trim"))
        monkeypatch.setattr(module, "CompactionWorker", lambda _: self)
        monkeypatch.setattr(module, "PageCheck", lambda _: self)

    def opened(self, memory_limit_bytes: int = 0) -> Maintenance:
        """Return the maintenance of a process that has just started."""
        writer: Any = SimpleNamespace(
            indexer=self,
            store=self,
            catalog=SimpleNamespace(
                get_meta=lambda key: self.meta.get(key, ""), set_meta=self.meta.__setitem__
            ),
            heartbeat=SimpleNamespace(beat=lambda seconds=0: self.events.append(seconds)),
            lock=SimpleNamespace(descriptor=7),
            paths=SimpleNamespace(archive_file="archive", catalog_file="catalog"),
        )
        check: Any = self
        made = Maintenance(writer, memory_limit_bytes, check)
        made.on_index_merge = lambda: self.events.append("merged")
        return made

    @property
    def commit_count(self) -> int:
        """Return how many commits there were since the start."""
        return self.commits

    def count_unindexed_rows(self) -> int:
        """Return how many rows are in no index."""
        self.counted += 1
        if self.unindexed_rows is None:
            raise StoreError("cannot be read", "")
        return self.unindexed_rows

    def look_for_altered_files(self) -> None:
        """Record the check."""
        self.events.append("looked")

    def note_files(self) -> None:
        """Record the note."""
        self.events.append("noted")

    def close(self) -> None:
        """Record the end of a worker or a check."""
        self.events.append("closed")

    def _maintain(
        self,
        store: object,
        *,
        merge_indices: bool = False,
        drop_old_versions: bool = True,
        compact: object = None,
    ) -> list[str]:
        assert store is compact is self, "it runs in the worker process"
        self.events.append("compacted")
        self.compactions.append((merge_indices, drop_old_versions))
        return self.problems


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    return Stand(monkeypatch)


@pytest.mark.parametrize(
    ("commits", "unindexed_rows", "idle_s", "is_compacted"),
    [
        (COMPACT_AFTER_COMMITS, 0, 0, True),
        (COMPACT_AFTER_COMMITS - 1, 1_000, 29.9, False),
        (20, 0, 30, True),
        (19, 0, 30, False),
        (19, 0, 299.9, False),
        (1, 0, 300, True),
        (0, 0, 10_000, False),
        (1, 200, 30, True),
        (1, 199, 30, False),
        (1, 200, 29.9, False),
        (1, None, 30, True),
    ],
)
def test_a_table_is_compacted_when_it_slows_searches_and_the_writer_rests(
    stand: Stand,
    commits: int,
    unindexed_rows: int | None,
    idle_s: float,
    is_compacted: bool,  # noqa: FBT001 - a column of the table
) -> None:
    maintenance = stand.opened()
    stand.commits, stand.unindexed_rows = commits, unindexed_rows
    maintenance.compact_if_due(idle_s=idle_s)
    assert (maintenance.compaction_count, len(stand.compactions)) == (is_compacted, is_compacted)
    maintenance.compact_if_due(idle_s=29.9)
    assert maintenance.compaction_count == is_compacted, "the same commits are compacted once"


def test_rows_in_no_index_at_the_start_are_compacted_at_the_first_long_rest(stand: Stand) -> None:
    stand.unindexed_rows = 3
    maintenance = stand.opened()
    maintenance.compact_if_due(idle_s=299.9)
    assert maintenance.compaction_count == 0
    maintenance.compact_if_due(idle_s=300)
    assert maintenance.compaction_count == 1


def test_rows_are_counted_once_for_each_number_of_commits(stand: Stand) -> None:
    maintenance = stand.opened()
    stand.commits, stand.counted = 1, 0
    for _ in range(3):
        maintenance.compact_if_due(idle_s=30)
    assert stand.counted == 1
    stand.commits = 2
    maintenance.compact_if_due(idle_s=30)
    assert stand.counted == 2


def test_memory_is_returned_once_after_commits(stand: Stand) -> None:
    maintenance = stand.opened()
    maintenance.compact_if_due(idle_s=30)
    assert stand.events == []
    stand.commits = 1
    for _ in range(2):
        maintenance.compact_if_due(idle_s=30)
    assert stand.events == ["trim"]
    stand.commits = 2
    maintenance.compact_if_due(idle_s=29.9)
    assert stand.events == ["trim"]


def test_parts_are_merged_by_every_tenth_compaction_also_over_restarts(stand: Stand) -> None:
    for _ in range(20):
        stand.opened().compact()
    assert stand.compactions == 2 * ([(False, False)] * 9 + [(True, True)])


def test_parts_are_merged_by_every_fourth_compaction_at_rest_and_old_versions_by_each(
    stand: Stand,
) -> None:
    maintenance = stand.opened()
    for _ in range(8):
        maintenance.compact(idle=True)
    assert stand.compactions == 2 * ([(False, True)] * 3 + [(True, True)])


def test_four_unmerged_parts_are_merged_at_the_next_rest(stand: Stand) -> None:
    maintenance = stand.opened()
    for _ in range(3):
        maintenance.compact()
    maintenance.compact_if_due(idle_s=30)
    assert maintenance.compaction_count == 3
    maintenance.compact()
    maintenance.compact_if_due(idle_s=30)
    assert stand.compactions[3:] == [(False, False), (True, True)]


@pytest.mark.parametrize("written", ["99", "10", "10 of an older version"])
def test_a_count_of_parts_of_any_version_leads_to_a_merge(stand: Stand, written: str) -> None:
    stand.meta["upkeep passes"] = written
    stand.opened().compact()
    assert stand.compactions == [(True, True)]
    assert stand.meta["upkeep passes"] == "0"


def test_a_compaction_is_watched_noted_and_reported_to_readers(stand: Stand) -> None:
    maintenance = stand.opened()
    stand.problems = ["no room"]
    maintenance.compact()
    assert stand.events == ["looked", COMPACTION_TIMEOUT_S, "compacted", "noted", 0, "trim"]
    assert maintenance.errors == ["no room"]
    stand.events.clear()
    stand.problems, stand.meta["upkeep passes"] = [], "9"
    stand.opened().compact()
    assert stand.events[-2:] == ["merged", "trim"]


def test_a_table_with_damaged_files_is_not_compacted(stand: Stand) -> None:
    maintenance = stand.opened()
    stand.is_repair_due = True
    maintenance.compact()
    assert (stand.events, maintenance.compaction_count) == (["looked"], 0)


def test_a_full_disk_does_not_stop_the_compaction_that_makes_room(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: str) -> None:
        raise StoreError("the disk is full", "make room")

    maintenance = stand.opened()
    monkeypatch.setattr(maintenance._writer.catalog, "set_meta", full)
    maintenance.compact()
    assert stand.compactions == [(False, False)]


@pytest.mark.parametrize(("limit", "exceeds"), [(0, False), (1, True), (1 << 60, False)])
def test_the_limit_of_memory_counts_unless_it_is_zero(
    stand: Stand,
    limit: int,
    exceeds: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert stand.opened(limit).exceeds_memory_limit() is exceeds


def test_worker_and_check_end_with_it(stand: Stand) -> None:
    stand.opened().close()
    assert stand.events == ["closed", "closed"]
