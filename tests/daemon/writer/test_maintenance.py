"""When the table is compacted, index parts are merged and old versions deleted: a case per threshold."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from anchord.core.types import NO_FINGERPRINT, FileRecord, RootedPath, StoreStats
from anchord.daemon.writer import maintenance as module
from anchord.daemon.writer.maintenance import Maintenance
from anchord.errors import StoreError
from anchord.index.integrity.merged_files import merged_files
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.compaction import COMPACTION_TIMEOUT_S
from anchord.store.table.maintenance import COMPACT_AFTER_COMMITS


class Stand:
    """A fake writer, index check and compaction that record their calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with a table whose rows are all in its indices."""
        self.commits = 0
        self.unindexed_rows: int | None = 0
        self.rows = 0
        self.deleted_rows = 0
        """Number of rows in no index; None if they cannot be counted."""
        self.counted = 0
        self.compactions: list[tuple[bool, bool]] = []
        """(merges the parts of the indices, drops old versions) of each."""
        self.merged_all: list[bool] = []
        """Whether each compaction merged all fragments."""
        self.fragments = 1
        self.events: list[object] = []
        self.is_repair_due = False
        self.problems: list[str] = []
        self.meta: dict[str, str] = {}
        monkeypatch.setattr(table_maintenance, "maintain", self._maintain)
        monkeypatch.setattr(module, "trim_heap", lambda: self.events.append("trim"))
        monkeypatch.setattr(module, "CompactionWorker", lambda _: self)
        monkeypatch.setattr(module, "PageCheck", lambda *_: self)

    def opened(self, memory_limit_mb: int = 0) -> Maintenance:
        """Return the maintenance of a process that has just started."""
        writer: Any = SimpleNamespace(
            indexer=self,
            store=self,
            catalog=SimpleNamespace(
                get_meta=lambda key: self.meta.get(key, ""), set_meta=self.meta.__setitem__
            ),
            heartbeat=SimpleNamespace(beat=lambda seconds=0: self.events.append(seconds)),
            lock=SimpleNamespace(descriptor=7),
            paths=SimpleNamespace(
                archive_file="archive", catalog_file="catalog", kept_transcripts_file="kept"
            ),
            keeper=SimpleNamespace(check_place=lambda: None, due={}),
            files=SimpleNamespace(folder_files=SimpleNamespace(worktrees="worktrees")),
            profile=SimpleNamespace(recipe="recipe", token_counter=len),
            configured_profile=SimpleNamespace(
                recipe=SimpleNamespace(digest=lambda root: f"recipe of {root}")
            ),
            roots_by_name={"docs": None},
            config=SimpleNamespace(privacy=SimpleNamespace(redact="off")),
        )
        check: Any = self
        made = Maintenance(writer, memory_limit_mb, check)
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

    def stats(self) -> StoreStats:
        """Return how many deleted rows are in the files."""
        return StoreStats(
            rows=self.rows,
            fragments=self.fragments,
            versions=1,
            bytes=1,
            deleted_rows=self.deleted_rows,
        )

    def count_rows(self) -> int:
        """Return that the table is empty: no old rules for secrets wrote to it."""
        return 0

    def look_for_altered_files(self) -> None:
        """Record the check."""
        self.events.append("looked")

    def stop_if_idle(self) -> None:
        """Record the question of a worker."""
        self.events.append("asked to stop")

    def run_if_due(self, now: float) -> None:
        """Record the check of the pages."""
        self.events.append(("pages", now))

    def close(self) -> None:
        """Record the end of a worker or a check."""
        self.events.append("closed")

    def _maintain(
        self,
        store: object,
        *,
        merge_indices: bool = False,
        merge_all: bool = False,
        drop_old_versions: bool = True,
        compact: object = None,
    ) -> list[str]:
        assert store is compact is self, "it runs in the worker process"
        self.merged_all.append(merge_all)
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
        (COMPACT_AFTER_COMMITS - 1, 199, 29.9, False),
        (20, 0, 30, True),
        (19, 0, 30, False),
        (19, 0, 299.9, False),
        (1, 0, 300, True),
        (0, 0, 10_000, False),
        (1, 200, 3, True),
        (1, 199, 30, False),
        (1, 200, 2.9, False),
        (1, None, 3, True),
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
    maintenance.compact_if_due(idle_s=2.9)
    assert maintenance.compaction_count == is_compacted, "the same commits are compacted once"


def test_rows_in_no_index_at_the_start_are_compacted_at_the_first_long_rest(stand: Stand) -> None:
    stand.unindexed_rows = 3
    maintenance = stand.opened()
    maintenance.compact_if_due(idle_s=299.9)
    assert maintenance.compaction_count == 0
    maintenance.compact_if_due(idle_s=300)
    assert maintenance.compaction_count == 1


@pytest.mark.parametrize(
    ("rows", "deleted_rows", "is_compacted"),
    [(0, 9_999, False), (0, 10_000, True), (40_004, 10_000, False), (40_004, 10_001, True)],
)
def test_a_table_with_many_deleted_rows_is_compacted_at_rest_at_the_start_and_at_the_end(
    stand: Stand,
    rows: int,
    deleted_rows: int,
    is_compacted: bool,  # noqa: FBT001 - a column of the table
) -> None:
    stand.rows, stand.deleted_rows = rows, deleted_rows
    maintenance = stand.opened()
    maintenance.compact_if_due(idle_s=3)
    assert bool(stand.compactions) is is_compacted
    stand.compactions.clear()
    maintenance.finish_before_end()
    assert bool(stand.compactions) is is_compacted


@pytest.mark.parametrize(
    ("rows", "fragments", "is_merged"),
    [(0, 8, False), (0, 9, True), (131_071, 9, False), (131_072, 10, False), (131_072, 11, True)],
)
def test_many_fragments_are_merged_at_a_long_rest_once_and_before_the_end(
    stand: Stand,
    rows: int,
    fragments: int,
    is_merged: bool,  # noqa: FBT001 - a column of the table
) -> None:
    stand.rows, stand.fragments = rows, fragments
    maintenance = stand.opened()
    maintenance.compact_if_due(idle_s=299)
    assert stand.compactions == []
    for _ in range(2):
        maintenance.compact_if_due(idle_s=300)
        assert stand.merged_all == [True] * is_merged, "once, also if they cannot be merged"
    assert stand.compactions == [(True, True)] * is_merged
    stand.opened().finish_before_end()
    assert stand.merged_all == [True, True] * is_merged


@pytest.mark.parametrize(("unindexed_rows", "is_compacted"), [(199, False), (200, True)])
def test_rows_in_no_index_are_compacted_before_the_end(
    stand: Stand,
    unindexed_rows: int,
    is_compacted: bool,  # noqa: FBT001 - a column of the table
) -> None:
    maintenance = stand.opened()
    stand.unindexed_rows = unindexed_rows
    maintenance.finish_before_end()
    assert maintenance.compaction_count == is_compacted


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


def test_a_compaction_is_watched_and_reported_to_readers(stand: Stand) -> None:
    maintenance = stand.opened()
    stand.problems = ["no room"]
    maintenance.compact()
    assert stand.events == ["looked", COMPACTION_TIMEOUT_S, "compacted", 0, "trim"]
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


def test_a_worker_that_is_not_used_is_asked_to_stop(stand: Stand) -> None:
    stand.opened().stop_worker_if_idle()
    assert stand.events == ["asked to stop"]


def test_the_time_of_compactions_adds_up(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    maintenance = stand.opened()
    clock = iter([10.0, 12.0, 20.0, 25.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    maintenance.compact()
    maintenance.compact()
    assert maintenance.compaction_seconds == 7.0


# Comparing files with their rows


class Checks:
    """A catalog of 20 files, and a clock; each page of files takes 10 ms to compare."""

    def __init__(self, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin at 1,000 s."""
        self.now = 1000.0
        self.files = [(RootedPath("docs", f"{n:02}.md"), self.record()) for n in range(20)]
        self.compared: list[list[str]] = []
        self.differing: set[str] = set()
        self.deleted: list[object] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(module, "verify_unchanged_files", self._verify)
        monkeypatch.setattr(module, "delete_damaged_rows", self._delete)
        self.maintenance = stand.opened()
        catalog: Any = self.maintenance._writer.catalog
        catalog.list_files_page = self._page

    @staticmethod
    def record(recipe: str = "recipe of docs", content_digest: str = "digest") -> FileRecord:
        """Give the record of a file."""
        return FileRecord(NO_FINGERPRINT, 1, content_digest, recipe, is_confirmed=True)

    def _page(self, after: RootedPath | None, count: int) -> list[tuple[RootedPath, FileRecord]]:
        later = [each for each in self.files if after is None or each[0] > after]
        return later[:count]

    def _verify(
        self, page: list[tuple[RootedPath, FileRecord]], *others: object
    ) -> list[RootedPath]:
        writer = self.maintenance._writer
        assert others == (merged_files(writer), writer.catalog, writer.store, ("recipe", len))
        self.now += 0.01
        self.compared.append([file.path for file, _ in page])
        return [file for file, _ in page if file.path in self.differing]

    def _delete(self, writer: object, differences: list[RootedPath]) -> list[RootedPath]:
        assert writer is self.maintenance._writer
        self.deleted.append(list(differences))
        return differences

    def run(self, after_s: float) -> list[RootedPath]:
        """Check some time later."""
        self.now += after_s
        return self.maintenance.check_and_repair_if_due(self.now)


@pytest.fixture
def checks(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Checks:
    return Checks(stand, monkeypatch)


def test_files_are_compared_every_two_minutes_all_in_turn(checks: Checks) -> None:
    names = [file.path for file, _ in checks.files]
    assert checks.run(119.99) == []
    assert (checks.compared, checks.maintenance.last_checked_at) == ([], None)
    assert not checks.maintenance.is_check_due(checks.now)
    assert checks.maintenance.is_check_due(checks.now + 0.01)
    checks.run(0.01)
    assert checks.compared == [names[:8], names[8:16], names[16:]]
    assert checks.maintenance.last_checked_at == checks.now
    checks.run(119.96)  # Two minutes after the check before began.
    assert checks.compared == [names[:8], names[8:16], names[16:]]
    checks.run(0.01)
    assert checks.compared[3:] == [[]]  # The end of the list was not seen before.
    checks.run(120)
    assert checks.compared[4:] == [names[:8], names[8:16], names[16:]]


def test_a_check_of_many_files_stops_in_time_and_goes_on_the_next_time(checks: Checks) -> None:
    checks.files = [(RootedPath("docs", f"{n:03}.md"), checks.record()) for n in range(100)]
    checks.run(120)
    assert [page[0] for page in checks.compared] == ["000.md", "008.md", "016.md"]
    checks.run(120)
    assert [page[0] for page in checks.compared[3:]] == ["024.md", "032.md", "040.md"]


def test_files_whose_rows_differ_are_counted_repaired_and_indexed_again(
    checks: Checks, stand: Stand
) -> None:
    checks.differing = {"03.md", "05.md", "17.md"}
    files = [RootedPath("docs", name) for name in ("03.md", "05.md", "17.md")]
    assert checks.run(120) == files
    assert checks.deleted == [files[:2], files[2:]]
    assert checks.maintenance.differences_found == 3
    assert stand.events == [("pages", 1120.0)]
    checks.differing = set()
    checks.run(120)
    assert checks.run(120) == []
    assert (len(checks.deleted), checks.maintenance.differences_found) == (2, 3)


def test_only_files_whose_rows_should_be_as_configured_are_compared(checks: Checks) -> None:
    checks.files = [
        (RootedPath("docs", "sound.md"), checks.record()),
        (RootedPath("docs", "unreadable.md"), checks.record(content_digest="")),
        (RootedPath("docs", "former recipe.md"), checks.record("former")),
        (RootedPath("gone", "x.md"), checks.record("recipe of gone")),
    ]
    checks.run(120)
    assert checks.compared[0] == ["sound.md"]


# More of when it compacts


@pytest.mark.parametrize(("idle_s", "drops"), [(29.9, False), (30.0, True)])
def test_many_commits_are_compacted_at_once_and_old_versions_deleted_only_at_rest(
    stand: Stand,
    idle_s: float,
    drops: bool,  # noqa: FBT001 - a column of the table
) -> None:
    maintenance = stand.opened()
    stand.commits = COMPACT_AFTER_COMMITS
    maintenance.compact_if_due(idle_s=idle_s)
    assert stand.compactions == [(False, drops)]


@pytest.mark.parametrize("commits", [20, 1])
def test_a_compaction_at_rest_deletes_old_versions(stand: Stand, commits: int) -> None:
    maintenance = stand.opened()
    stand.commits = commits
    maintenance.compact_if_due(idle_s=300.0)
    assert stand.compactions == [(False, True)]


def test_rows_are_counted_anew_after_a_compaction(stand: Stand) -> None:
    maintenance = stand.opened()
    stand.commits = 1
    maintenance.compact_if_due(idle_s=30)
    assert maintenance.compaction_count == 0
    maintenance.compact()
    stand.commits, stand.unindexed_rows = 2, 200
    maintenance.compact_if_due(idle_s=30)
    assert maintenance.compaction_count == 2


def test_nothing_was_done_found_or_failed_before_the_first_compaction(stand: Stand) -> None:
    maintenance = stand.opened()
    assert (maintenance.errors, maintenance.compaction_count) == ([], 0)
    assert (maintenance.compaction_seconds, maintenance.differences_found) == (0.0, 0)
    assert maintenance.last_checked_at is None


def test_the_parts_of_a_compaction_count_from_what_an_earlier_process_left(stand: Stand) -> None:
    stand.meta["upkeep passes"] = "8"
    stand.opened().compact()
    assert (stand.compactions, stand.meta["upkeep passes"]) == ([(False, False)], "9")


def test_the_worker_and_the_check_are_given_the_lock_and_the_databases(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.setattr(module, "CompactionWorker", given.append)
    monkeypatch.setattr(module, "PageCheck", lambda files, _: given.append(files))
    stand.opened()
    assert sorted(given, key=str) == [("archive", "catalog", "kept"), 7]


@pytest.mark.parametrize(
    ("rss", "exceeds"), [(99_999_999, False), (100_000_000, False), (100_000_001, True)]
)
def test_memory_up_to_the_limit_is_allowed(
    stand: Stand,
    rss: int,
    exceeds: bool,  # noqa: FBT001 - a column of the table
) -> None:
    maintenance = stand.opened(100)
    process: Any = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=rss))
    maintenance._process = process
    assert maintenance.exceeds_memory_limit() is exceeds


# Replaced secrets


class Erasure:
    """Secrets that the rules have just replaced; a clock."""

    def __init__(self, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin at 1,000 s."""
        self.now = 1000.0
        self.is_due = True
        self.error: StoreError | None = None
        self.erased = 0
        self.stand = stand
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(module, "is_erasure_due", lambda _: self.is_due)
        monkeypatch.setattr(module, "erase_replaced_secrets", self._erase)
        self.maintenance = stand.opened()

    def _erase(self, writer: object) -> None:
        assert writer is self.maintenance._writer
        self.erased += 1
        self.stand.events.append("erased")
        if self.error:
            raise self.error

    def rest(self, after_s: float, idle_s: float = 30.0) -> int:
        """Rest some time later; return how often secrets were erased until then."""
        self.now += after_s
        self.maintenance.compact_if_due(idle_s=idle_s)
        return self.erased


@pytest.fixture
def erasure(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Erasure:
    return Erasure(stand, monkeypatch)


def test_replaced_secrets_are_erased_at_the_first_rest_and_tried_again_after_an_hour(
    erasure: Erasure, stand: Stand
) -> None:
    assert erasure.rest(0.0, idle_s=29.9) == 0
    assert erasure.rest(0.0) == 1
    assert stand.events == ["erased", 0, "merged", "trim"]
    assert erasure.maintenance.errors == []
    assert erasure.rest(3599.9) == 1
    assert erasure.rest(0.1) == 2
    erasure.is_due = False
    assert erasure.rest(7200.0) == 2


def test_secrets_that_could_not_be_erased_are_reported_and_readers_keep_their_table(
    erasure: Erasure, stand: Stand
) -> None:
    erasure.error = StoreError("the disk is full", "")
    assert erasure.rest(0.0) == 1
    assert stand.events == ["erased", 0]
    assert len(erasure.maintenance.errors) == 1
    assert "secrets may still be on the disk" in erasure.maintenance.errors[0]
    assert "the disk is full" in erasure.maintenance.errors[0]
    erasure.error = None
    assert erasure.rest(3600.0) == 2


def test_a_table_whose_rules_are_known_is_not_rewritten(erasure: Erasure, stand: Stand) -> None:
    erasure.is_due = False
    assert erasure.rest(0.0) == 0
    assert stand.events == []
    erasure.is_due = True
    assert erasure.rest(1.0) == 1, "rules that change are seen at the next rest"


@pytest.mark.parametrize("fails", [True, False])
def test_the_rules_of_a_new_index_are_noted_at_the_start(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    noted: list[object] = []

    def note(writer: object) -> None:
        noted.append(writer)
        if fails:
            raise StoreError("the disk is full", "")

    monkeypatch.setattr(module, "note_rules_of_new_index", note)
    maintenance = stand.opened()
    assert noted == [maintenance._writer]
