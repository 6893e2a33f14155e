"""Single steps of the writer's loop: priorities, sleep, requests to other threads, errors, status."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from daemon.writer.conftest import Steps

from anchord.core.types import RootedPath
from anchord.daemon.writer import own_files
from anchord.daemon.writer.file_queue import Turn, Urgency
from anchord.errors import AnchordError, StoreDamagedError, StoreError, StoreUnavailableError
from anchord.index.generation import REBUILD, RECHUNK
from anchord.index.session import IndexWriter
from anchord.store.table import damage
from anchord.store.table.connection import TableReadError

# What is most urgent


def test_saved_files_go_before_what_a_walk_found_and_that_before_a_check(steps: Steps) -> None:
    loop = steps.loop
    steps.queued("backlog.md")
    steps.saved(steps.write("saved.md", "Just now.\n"))
    loop.index_check.is_audit_due = True
    steps.work()
    assert ("saved.md" in steps.paths(), "backlog.md" in steps.paths()) == (True, False)
    steps.work()
    assert ("backlog.md" in steps.paths(), loop.index_check.is_audit_due) == (True, True)
    steps.work()
    assert not loop.index_check.is_audit_due


def test_without_mains_only_the_backlog_and_a_build_wait(steps: Steps) -> None:
    loop = steps.loop
    steps.queued("backlog.md")
    loop.builds.start(RECHUNK)
    loop.backlog_waits_for_mains = True
    loop.index_check.is_audit_due = True
    steps.work()
    assert not loop.index_check.is_audit_due
    steps.work()
    assert "backlog.md" not in steps.paths()
    assert loop.next_generation
    assert loop.next_generation.files_done == 0
    loop.backlog_waits_for_mains = False
    steps.work()
    assert "backlog.md" in steps.paths()
    loop.next_generation.delete()
    loop.builds.current = None


def test_a_build_goes_on_when_nothing_else_waits_and_its_pause_is_over(steps: Steps) -> None:
    loop = steps.loop
    loop.builds.start(RECHUNK)
    loop.builds.next_step_at = 1.0
    steps.work()
    assert loop.next_generation
    assert loop.next_generation.files_done == 0
    loop.builds.next_step_at = 0.0
    for _ in range(3):
        steps.work()
    assert loop.next_generation is None
    assert steps.paths() == {"0.md", "1.md", "2.md"}


@pytest.mark.parametrize(
    "why", ["stopping", "paused", "on battery", "job", "sync", "saved", "settled hint"]
)
def test_what_a_walk_found_is_interrupted_for_what_is_more_urgent(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    loop = steps.loop
    later, saved = (Turn([], urgency, began_at=0.0) for urgency in (Urgency.LATER, Urgency.SAVED))
    assert not loop._should_end_turn(later)
    if why == "stopping":
        monkeypatch.setattr(loop, "_stopping", True)
    elif why == "paused":
        loop.paused = True
    elif why == "on battery":
        loop.backlog_waits_for_mains = True
    elif why == "job":
        loop.submit(lambda: None)
    elif why == "sync":
        monkeypatch.setattr(type(loop._barrier), "has_new_calls", property(lambda _: True))
    elif why == "saved":
        steps.saved(RootedPath("docs", "a.md"))
    else:
        loop.work_queue.add_hint(RootedPath("docs", "a.md"))
        monkeypatch.setattr(time, "monotonic", lambda: math.inf)
    assert loop._should_end_turn(later)
    assert loop._should_end_turn(saved) == (why in {"stopping", "paused", "settled hint"})
    monkeypatch.undo()


# Sleep


def test_it_sleeps_until_something_is_due_two_seconds_at_most(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    for until in (100.5, 101.9, 1_000.0, 99.0):
        steps.loop._sleep(until)
    assert steps.waits == pytest.approx([0.5, 1.9, 2.0, 0.0])
    monkeypatch.undo()


@pytest.mark.parametrize("why", ["stopping", "hint", "job", "sync"])
def test_it_does_not_sleep_while_something_waits_unless_it_is_paused(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The wake-up of an earlier event is already over: nothing would wake the loop again."""
    loop = steps.loop
    if why == "stopping":
        monkeypatch.setattr(loop, "_stopping", True)
    elif why == "hint":
        loop.work_queue.add_hint(RootedPath("docs", "a.md"))
    elif why == "job":
        loop.submit(lambda: None)
    else:
        monkeypatch.setattr(type(loop._barrier), "has_new_calls", property(lambda _: True))
    loop._sleep(math.inf)
    assert steps.waits == []
    loop.paused = True
    loop._sleep(math.inf)
    assert len(steps.waits) == (why != "stopping")
    loop.paused = False
    monkeypatch.undo()


def test_a_hint_a_job_a_pause_and_a_call_of_sync_wake_it(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, rung = steps.loop, []
    condition = loop.work_queue.wake_condition
    monkeypatch.setattr(condition, "notify_all", lambda: rung.append(1))
    loop.work_queue.add_hint(RootedPath("docs", "a.md"))
    assert len(rung) == 1
    loop.submit(lambda: None)
    assert len(rung) == 2
    assert not loop.wait_for_sync(0.01)
    assert len(rung) == 3
    loop.set_paused(paused=True)
    loop.set_paused(paused=False)
    assert len(rung) == 5


# Whole steps


def test_a_step_runs_jobs_also_while_paused_and_indexes_nothing_then(steps: Steps) -> None:
    loop = steps.loop
    steps.queued("backlog.md")
    loop.set_paused(paused=True)
    job = loop.submit(lambda: 7)
    loop._step()
    assert job.result(0) == 7
    assert "backlog.md" not in steps.paths()
    assert len(steps.waits) == 1
    loop.set_paused(paused=False)
    steps.walk_and_work()
    assert "backlog.md" in steps.paths()


def test_a_step_during_the_pause_after_an_error_changes_nothing(steps: Steps) -> None:
    loop = steps.loop
    steps.queued("backlog.md")
    loop.back_off(AnchordError("the disk is full", "make room"))
    loop._step()
    assert ("backlog.md" in steps.paths(), loop.blocked_reason) == (False, "the disk is full")
    loop.backoff.resume_at = 0.0
    steps.walk_and_work()
    assert ("backlog.md" in steps.paths(), loop.blocked_reason) == (True, "")


def test_a_deleted_data_folder_asks_once_for_a_new_process_and_ends_calls_of_sync(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = steps.loop
    monkeypatch.setattr(
        loop.index_check.own_files, "find_problem", lambda: "the folder was deleted"
    )
    steps.queued("backlog.md")
    for _ in range(2):
        loop._step()
    assert (steps.restarts, loop.folder_problem) == (
        ["the folder was deleted"],
        "the folder was deleted",
    )
    assert not loop.wait_for_sync(None)
    monkeypatch.undo()
    assert "backlog.md" not in steps.paths()


def test_an_archive_that_cannot_be_saved_is_tried_again_after_a_pause(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: each try costs a copy of the archive, and files are saved meanwhile."""
    loop, clock = steps.loop, [1000.0]
    tries: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(own_files, "_SETTLE_S", 0.0)

    def fail() -> None:
        tries.append(clock[0])
        raise StoreUnavailableError("the disk is full", "make room")

    monkeypatch.setattr(loop.index_check.own_files, "_save_archive", fail)
    steps.writer.paths.archive_file.unlink()
    loop.work_queue.add_hint(steps.write("hint.md", "Saved meanwhile."))
    for _ in range(1000):
        waits = len(steps.waits)
        try:
            loop._step()
        except StoreUnavailableError as error:
            loop.back_off(error)
        else:
            assert len(steps.waits) == waits + 1, "the loop is busy"
        clock[0] += 0.1
    assert [round(later - earlier) for earlier, later in pairwise(tries)] == [1, 2, 4, 8, 16, 32]
    assert loop.blocked_reason == "the disk is full: make room"
    monkeypatch.undo()
    monkeypatch.setattr(loop.backoff, "resume_at", 0.0)
    loop._step()
    assert steps.writer.paths.archive_file.exists()
    assert len(steps.restarts) == 1


def test_too_much_memory_asks_for_a_new_process(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps.loop.maintenance, "exceeds_memory_limit", lambda: True)
    steps.loop._supervise(100.0)
    assert len(steps.restarts) == 1
    assert "max_memory_mb" in steps.restarts[0]
    assert steps.loop._next_supervise == 102.0


# Errors


@pytest.mark.parametrize(
    ("error", "is_restart", "is_repair"),
    [
        (AnchordError("x", ""), False, False),
        (ValueError("x"), False, False),
        (StoreDamagedError("x", ""), True, False),
        (TableReadError("x", ""), False, True),
    ],
)
def test_an_error_pauses_and_asks_for_the_repair_it_needs(
    steps: Steps,
    error: Exception,
    is_restart: bool,  # noqa: FBT001 - a column of the table
    is_repair: bool,  # noqa: FBT001 - likewise
) -> None:
    loop = steps.loop
    loop.back_off(error)
    assert bool(steps.restarts) == is_restart
    assert loop.index_check.is_repair_due == is_repair
    assert loop.blocked_reason
    assert loop.backoff.resume_at > 0
    loop.index_check.is_repair_due = False


def test_an_error_of_a_loop_that_ends_is_none(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps.loop, "_stopping", True)
    steps.loop.back_off(StoreDamagedError("x", ""))
    assert (steps.restarts, steps.loop.blocked_reason) == ([], "")


def test_a_thread_that_ends_fails_those_that_wait_and_asks_for_a_new_process(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = steps.loop
    future = loop.submit(lambda: None)

    def fail(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(loop, "_step", fail)
    monkeypatch.setattr(loop, "back_off", fail)
    with pytest.raises(OSError, match="no space"):
        loop._run()
    with pytest.raises(AnchordError):
        future.result(0)
    with pytest.raises(AnchordError):
        loop.submit(lambda: None).result(0)
    assert not loop.wait_for_sync(0)
    assert steps.restarts == ["the writer thread has ended"]


def test_damage_that_a_job_reports_is_repaired_by_a_new_process(steps: Steps) -> None:
    archive = steps.writer.paths.archive_file
    steps.loop.back_off(StoreDamagedError(f"{archive} is damaged (the text of x)", ""))
    assert len(steps.restarts) == 1
    assert list(archive.parent.glob("*damage*"))


def test_a_table_on_a_bad_sector_waits_with_advice_that_helps(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, before = steps.loop, steps.paths()

    def fail(*_: object) -> None:
        raise OSError("LanceError(IO): Generic LocalFileSystem error: (os error 5)")

    monkeypatch.setattr(damage, "_read_all", fail)
    loop.index_check.request_repair()
    with pytest.raises(StoreUnavailableError) as raised:
        loop._step()
    loop.back_off(raised.value)
    assert "(EIO)" in loop.blocked_reason
    assert "`anchord rebuild` writes a new index" in loop.blocked_reason
    assert loop.index_check.is_repair_due
    assert steps.restarts == []
    loop.builds.start(REBUILD)
    loop.backoff.resume_at = 0.0
    for _ in range(10):
        loop._step()
    assert (loop.next_generation, loop.blocked_reason) == (None, "")
    assert not loop.index_check.is_repair_due
    assert steps.paths() == before


# What is reported


def test_only_a_commit_counts_as_the_last_commit(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is compacted so many seconds after it."""
    loop = steps.loop
    loop.stats.last_commit_at = None
    steps.writer.catalog.mark_all_for_reread()
    loop.walk_and_index_all()
    assert loop.stats.last_commit_at is None
    steps.queued("new.md")
    compacted: list[float] = []
    monkeypatch.setattr(
        loop.maintenance, "compact_if_due", lambda *, idle_s=0.0: compacted.append(idle_s)
    )
    steps.work()
    assert loop.stats.last_commit_at is not None
    assert compacted == [0.0], "asked for after every batch"
    assert loop.work.root_name == ""


def test_a_root_that_is_removed_leaves_no_file_in_the_queue(steps: Steps) -> None:
    loop = steps.loop
    steps.queued("backlog.md")
    loop.remove_root("docs")
    assert len(loop.work_queue) == 0
    assert steps.paths() == set()
    assert list(loop.work_queue.root_watcher.states) == []


def test_jobs_that_need_an_up_to_date_index_get_it_unless_the_loop_is_paused_or_ends(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = steps.loop
    steps.write("new.md", "Just now.\n")
    loop.paused = True
    loop.walk_and_index_all()
    assert "new.md" not in steps.paths()
    loop.paused = False
    monkeypatch.setattr(loop, "_stopping", True)
    loop.walk_and_index_all()
    assert "new.md" not in steps.paths()
    monkeypatch.undo()
    loop.walk_and_index_all()
    assert "new.md" in steps.paths()
    steps.write("hinted.md", "Words.\n")
    loop.work_queue.add_hint(RootedPath("docs", "hinted.md"))
    loop.walk_and_index_all()
    assert not loop.work_queue.has_hints, "hints need not settle"


def test_a_root_that_is_added_is_watched_walked_and_queued(steps: Steps, tmp_path: Path) -> None:
    loop = steps.loop
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "m.md").write_text("Words.\n")
    loop.add_root(
        replace(steps.writer.roots_by_name["docs"], name="more", path=str(tmp_path / "more"))
    )
    assert set(loop.work_queue.root_watcher.states) == {"docs", "more"}
    assert loop.work_queue.files.snapshot() == [RootedPath("more", "m.md")]
    assert loop.pending_count == 1
    steps.work()
    assert (loop.pending_count, "m.md" in steps.paths()) == (0, True)


def test_files_of_a_build_count_among_those_that_wait(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = steps.loop
    monkeypatch.setattr("anchord.index.generation._STEP_FILES", 1)
    loop.builds.start(RECHUNK)
    loop._build()
    assert loop.pending_count == 2
    loop.remove_root("docs")
    assert loop.pending_count == 0
    with loop.builds.suspended():
        assert loop.next_generation is None
    assert loop.next_generation is not None


def test_a_build_is_promoted_as_asked_and_its_files_are_walked_again(steps: Steps) -> None:
    loop, promoted = steps.loop, []

    def run(promote: Callable[[], None]) -> None:
        promoted.append(loop.next_generation)
        promote()

    loop.run_promotion = run
    loop.builds.start(RECHUNK)
    walks = loop.work_queue.reconcile_count
    loop.stats.last_commit_at = None
    for _ in range(3):
        steps.work()
    assert len(promoted) == 1
    assert promoted[0] is not None
    assert loop.next_generation is None
    assert loop.stats.last_commit_at is not None
    assert loop.work_queue.reconcile_count == walks + 1
    assert not loop.index_check.is_repair_due
    loop.index_check.look_for_altered_files()
    assert not loop.index_check.is_repair_due, "the new table's files are known"


def test_a_build_is_told_which_roots_cannot_be_seen(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = steps.loop
    told: list[list[str]] = []
    monkeypatch.setattr(loop.builds, "index_next_files", lambda roots, _: told.append(roots))
    state = loop.work_queue.root_watcher.states["docs"]
    loop._build()
    state.walk_error = "gone"
    loop._build()
    state.walk_error, state.held_deletions = "", 3
    loop._build()
    state.held_deletions = 0
    assert told == [[], ["docs"], ["docs"]]


@pytest.mark.parametrize(
    ("case", "waits"),
    [("battery", True), ("battery, sync waits", False), ("battery, not set", False), ("", False)],
)
def test_the_backlog_waits_for_mains_only_as_configured_and_while_nobody_waits_for_it(
    steps: Steps,
    monkeypatch: pytest.MonkeyPatch,
    case: str,
    waits: bool,  # noqa: FBT001 - a column of the table
) -> None:
    loop = steps.loop
    monkeypatch.setattr(loop, "_pauses_on_battery", "not set" not in case)
    monkeypatch.setattr("anchord.daemon.writer.loop.on_battery", lambda: "battery" in case)
    has_waiters = property(lambda _: "sync" in case)
    monkeypatch.setattr(type(loop._barrier), "has_waiters", has_waiters)
    loop._supervise(100.0)
    assert loop.backlog_waits_for_mains is waits
    monkeypatch.undo()


def test_a_moved_root_is_added_again_and_a_changed_one_is_walked(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = steps.loop
    added: list[object] = []
    walked: list[str] = []
    root = steps.writer.roots_by_name["docs"]
    monkeypatch.setattr(loop.work_queue.root_watcher, "retargeted_roots", lambda: [root])
    monkeypatch.setattr(loop, "add_root", added.append)
    monkeypatch.setattr(loop.work_queue.root_checks, "find_changed", lambda *_: ["docs"])
    monkeypatch.setattr(loop.work_queue, "reconcile", walked.append)
    loop._supervise(100.0)
    assert (added, walked) == ([root], ["docs"])


def test_rows_that_could_not_be_read_are_repaired_once_for_each_failure(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, checks = steps.loop, []
    check = loop.index_check

    def run() -> list[RootedPath]:
        checks.append(check.is_repair_due)
        check.is_repair_due = False
        return [RootedPath("docs", "0.md")]

    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(check, "began_at", 50.0)
    loop.check_index(50.0)
    assert checks == []
    loop.check_index(50.1)
    assert checks == [True]
    assert loop.work_queue.files.snapshot() == [RootedPath("docs", "0.md")]


def test_at_rest_the_table_is_compacted_and_checked_and_idle_processes_end(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = steps.loop
    events: list[object] = []
    maintenance = loop.maintenance
    monkeypatch.setattr(loop, "_sleep", lambda until: events.append(("sleep", until)))
    monkeypatch.setattr(loop.work_queue, "next_due_at", lambda: 500.0)
    monkeypatch.setattr(maintenance, "is_check_due", lambda now: now == 200.0)
    monkeypatch.setattr(maintenance, "compact_if_due", lambda *, idle_s: events.append(idle_s))
    monkeypatch.setattr(
        maintenance, "check_and_repair_if_due", lambda _: [RootedPath("docs", "0.md")]
    )
    monkeypatch.setattr(maintenance, "last_checked_at", None)
    monkeypatch.setattr(maintenance, "stop_worker_if_idle", lambda: events.append("worker"))
    monkeypatch.setattr(loop.index_check, "look_for_altered_files", lambda: events.append("look"))
    monkeypatch.setattr(IndexWriter, "stop_idle_processes", lambda _: events.append("processes"))
    loop._started_at, loop.stats.last_commit_at, loop._next_supervise = 90.0, None, 600.0
    loop.stats.last_verified_at = None
    loop.back_off(AnchordError("x", ""))
    loop._rest(100.0)
    assert events == [10.0, "processes", "worker", ("sleep", 500.0)]
    assert (loop.blocked_reason, loop.stats.last_verified_at) == ("", None)
    assert loop.work_queue.files.snapshot() == [RootedPath("docs", "0.md")]
    events.clear()
    loop.stats.last_commit_at, loop._next_supervise = 170.0, 400.0
    monkeypatch.setattr(maintenance, "last_checked_at", 40.0)
    loop._rest(200.0)
    assert events == ["look", 30.0, "processes", "worker", ("sleep", 400.0)]
    assert loop.stats.last_verified_at == 40.0
    loop.stats.last_verified_at = 60.0
    loop._rest(201.0)
    assert loop.stats.last_verified_at == 60.0, "a whole verification came later"
    monkeypatch.undo()


@pytest.mark.parametrize("ends", ["well", "after unexpected errors", "on a full disk"])
def test_the_end_closes_everything_and_is_noted_only_if_it_went_well(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    loop, closed = steps.loop, []

    def record_end() -> None:
        closed.append("end")
        if ends == "on a full disk":
            raise StoreError("the disk is full", "")

    parts = {
        "watcher": loop.work_queue.root_watcher,
        "maintenance": loop.maintenance,
        "barrier": loop._barrier,
        "jobs": loop._jobs,
        "builds": loop.builds,
        "model": steps.writer.profile.embedder,
    }
    for name, part in parts.items():
        monkeypatch.setattr(part, "close", lambda name=name: closed.append(name))
    monkeypatch.setattr(loop.index_check, "record_end", record_end)
    if ends == "after unexpected errors":
        monkeypatch.setattr(loop.backoff, "unexpected_errors", 1)
    assert (loop.started, loop.alive) == (False, False)
    loop.stop()
    assert set(closed) >= set(parts)
    assert ("end" in closed) == (ends != "after unexpected errors")
    monkeypatch.undo()


@pytest.mark.parametrize("why", ["paused", "files lost", "after an error"])
def test_a_loop_that_may_index_nothing_sleeps_and_indexes_nothing(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    loop = steps.loop
    until: list[float] = []
    steps.queued("backlog.md")
    if why == "paused":
        loop.paused = True
    elif why == "files lost":
        loop.folder_problem = "the folder was deleted"
    else:
        monkeypatch.setattr(loop.backoff, "resume_at", 130.0)
    monkeypatch.setattr(loop, "_sleep", lambda until_s, **_: until.append(until_s))
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    loop._step()
    monkeypatch.undo()
    loop.folder_problem = ""
    assert until == [130.0 if why == "after an error" else 102.0]
    assert "backlog.md" not in steps.paths()
