"""What each step of the writer's loop calls, in which order: its parts are replaced by a record of calls."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import pytest

from anchord.config.schema import Config, EmbeddingConfig, StoreConfig, WatchConfig
from anchord.core.types import RootedPath
from anchord.daemon.writer import loop as module
from anchord.daemon.writer.file_queue import Turn, Urgency
from anchord.daemon.writer.loop import WriterLoop
from anchord.daemon.writer.stats import WriterStats
from anchord.errors import AnchordError, StoreError
from anchord.store.table.connection import TableReadError

NOW = 100.0
A, B = RootedPath("docs", "a.md"), RootedPath("docs", "b.md")
PARTS = {
    "WorkQueue": "queue",
    "IndexCheck": "check",
    "Maintenance": "maintenance",
    "GenerationBuilds": "builds",
    "SyncBarrier": "barrier",
    "OutcomeHandler": "outcomes",
    "JobQueue": "jobs",
    "Backoff": "backoff",
    "TurnWork": "work",
}


class Parts:
    """A loop whose parts do nothing but record their calls; nothing waits, and it is 100 s."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the parts."""
        self.all: Any = Mock()
        self.made: dict[str, tuple[Any, ...]] = {}
        self.now = NOW
        self.battery = False
        self.restarts: list[str] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(module, "on_battery", lambda: self.battery)
        for name, part in PARTS.items():
            monkeypatch.setattr(module, name, self._maker(part))
        parts = self.all
        parts.queue.has_hints = parts.queue.vectors.has_next.return_value = False
        parts.queue.has_more_urgent.return_value = False
        parts.queue.has_files_before_vectors.return_value = False
        parts.queue.next_turn.return_value = None
        parts.queue.walk_if_due.return_value = False
        parts.queue.next_due_at.return_value = math.inf
        parts.queue.root_checks.pop_settled.return_value = []
        parts.queue.root_checks.find_changed.return_value = set()
        parts.queue.root_watcher.retargeted_roots.return_value = []
        parts.check.own_files.is_unsaved = parts.check.is_due = parts.check.is_repair_due = False
        parts.check.own_files.find_problem.return_value = ""
        parts.check.run.return_value = []
        parts.check.began_at = 50.0
        parts.maintenance.is_check_due.return_value = False
        parts.maintenance.check_and_repair_if_due.return_value = []
        parts.maintenance.last_checked_at = None
        parts.maintenance.exceeds_memory_limit.return_value = False
        parts.builds.current = None
        parts.builds.is_from_scratch = parts.builds.is_due.return_value = False
        parts.barrier.has_new_calls = parts.barrier.has_waiters = False
        parts.jobs.__bool__ = Mock(return_value=False)
        parts.queue.__len__ = Mock(return_value=0)
        lock = Mock(return_value=None)
        parts.queue.wake_condition.__enter__ = parts.queue.wake_condition.__exit__ = lock
        parts.backoff.resume_at, parts.backoff.pause_s, parts.backoff.reason = 0.0, 1.0, "why"
        parts.backoff.unexpected_errors = 0
        parts.backoff.record_error.return_value = False
        parts.work.may_use_model.return_value = True
        parts.work.has_failed_fill = False
        self.loop = self.opened(Config())
        self.loop._next_supervise = math.inf

    def _maker(self, part: str) -> Callable[..., Any]:
        def make(*given: object) -> Any:  # noqa: ANN401 - a part of any kind
            self.made[part] = given
            return getattr(self.all, part)

        return make

    def opened(self, config: Config) -> WriterLoop:
        """Return a loop with a configuration."""
        return WriterLoop(self.all.writer, config, self.restarts.append)

    def calls(self, *without: str) -> list[str]:
        """Return the names of the calls since the last time, without some and without signs of life."""
        left_out = ("writer.heartbeat.beat", "check.own_files.find_problem", *without)
        names = [name for name, _, _ in self.all.mock_calls if "__" not in name]
        self.all.reset_mock()
        return [name for name in names if name not in left_out]

    def slept(self) -> list[float]:
        """Return the seconds of each sleep since the last time."""
        wait = self.all.queue.wake_condition.wait
        seconds = [given.args[0] for given in wait.call_args_list]
        wait.reset_mock()
        return seconds


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    made = Parts(monkeypatch)
    made.all.reset_mock()
    return made


WAIT = "queue.wake_condition.wait"
TAKEN_IN = ["queue.drain_hints", "jobs.run_pending"]
LOOKED = ["work.find_missing_vectors", "queue.root_checks.pop_settled", "queue.walk_if_due"]
ASKED = ["work.may_use_model", "queue.next_turn"]
RESTED = [
    "queue.vectors.has_next",
    "builds.is_due",
    "backoff.clear_reason",
    "work.forget_model_problem",
    "maintenance.is_check_due",
    "maintenance.compact_if_due",
    "maintenance.check_and_repair_if_due",
    "maintenance.keep_transcripts",
    "writer.stop_idle_processes",
    "maintenance.stop_worker_if_idle",
    "queue.next_due_at",
    WAIT,
]


# What it begins with


def test_the_limit_of_memory_is_that_of_the_configuration(parts: Parts) -> None:
    loop = parts.opened(Config(store=StoreConfig(max_memory_mb=3)))
    assert parts.made["maintenance"] == (parts.all.writer, 3, loop.index_check)


def test_a_loop_begins_without_pause_problem_or_error(parts: Parts) -> None:
    loop = parts.opened(Config())
    assert (loop.paused, loop.folder_problem, loop.backlog_waits_for_mains) == (False, "", False)
    assert (loop.started, loop.alive, loop._stopping) == (False, False, False)
    assert parts.made["backoff"] == (parts.all.writer.paths,)
    assert loop._thread.name == "writer"
    assert loop._thread.daemon, "it must not keep the process alive"
    promoted: list[int] = []
    loop.run_promotion(lambda: promoted.append(1))
    assert promoted == [1]


def test_a_repair_has_readers_open_the_table_again_as_a_merge_does(parts: Parts) -> None:
    parts.loop.index_check.on_repair()
    assert parts.calls() == ["maintenance.on_index_merge"]


@pytest.mark.parametrize(("mode", "uses_events"), [("events", True), ("poll", False)])
def test_a_start_watches_checks_and_goes_on_with_a_build_before_the_thread_begins(
    parts: Parts,
    monkeypatch: pytest.MonkeyPatch,
    mode: Any,  # noqa: ANN401 - a literal of the schema
    uses_events: bool,  # noqa: FBT001 - a column of the table
) -> None:
    loop = parts.opened(Config(watch=WatchConfig(mode=mode)))
    monkeypatch.setattr(loop._thread, "start", parts.all.thread.start)
    loop.start()
    watcher = parts.all.queue.root_watcher
    watcher.start.assert_called_once_with(use_events=uses_events)
    assert parts.calls() == [
        "queue.root_watcher.start",
        "check.start",
        "builds.resume_or_delete",
        "thread.start",
    ]


def test_an_end_wakes_the_thread_drops_its_batch_waits_for_it_and_closes_all(parts: Parts) -> None:
    loop = parts.loop
    parts.all.thread.ident = 7
    loop._thread = parts.all.thread
    assert loop.started
    loop.stop()
    assert loop._stopping
    assert parts.calls() == [
        "queue.wake_condition.notify_all",
        "writer.profile.close",
        "writer.configured_profile.close",
        "thread.join",
        "queue.root_watcher.close",
        "maintenance.close",
        "barrier.close",
        "jobs.close",
        "builds.close",
        "check.record_end",
    ]


def test_a_loop_that_was_never_started_ends_without_a_thread(parts: Parts) -> None:
    parts.loop._thread = parts.all.thread
    parts.all.thread.ident = None
    parts.loop.stop()
    assert "thread.join" not in parts.calls()


def test_the_thread_runs_steps_until_the_end_and_backs_off_after_each_error(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, errors = parts.loop, [ValueError("x"), None, StoreError("y", ""), None]
    steps: list[object] = []
    recorded: list[Exception] = []

    def step() -> None:
        steps.append(1)
        error = errors[len(steps) - 1]
        loop._stopping = len(steps) == len(errors)
        if error:
            raise error

    monkeypatch.setattr(loop, "_step", step)
    monkeypatch.setattr(loop, "back_off", recorded.append)
    loop._thread.run()
    assert len(steps) == 4
    assert recorded == [errors[0], errors[2]]


# For other threads


@pytest.mark.parametrize("words_only", [True, False])
def test_a_call_of_sync_is_passed_on_as_it_was_made(parts: Parts, *, words_only: bool) -> None:
    loop, wait = parts.loop, parts.all.barrier.wait
    wait.return_value = "waited"
    assert loop.wait_for_sync(7.0, words_only=words_only) == wait.return_value
    wait.assert_called_once_with(7.0, loop._wake_writer, words_only=words_only)
    parts.all.work.end_pauses.assert_called_once_with(words_only=words_only)


def test_a_call_of_sync_waits_for_vectors_unless_it_says_otherwise(parts: Parts) -> None:
    parts.loop.wait_for_sync(None)
    parts.all.barrier.wait.assert_called_once_with(None, parts.loop._wake_writer, words_only=False)


def test_a_job_is_queued_with_what_wakes_the_thread(parts: Parts) -> None:
    def job() -> int:
        return 7

    assert parts.loop.submit(job) is parts.all.jobs.submit.return_value
    parts.all.jobs.submit.assert_called_once_with(job, parts.loop._wake_writer)
    parts.calls()
    parts.loop._wake_writer()
    assert parts.calls() == ["queue.wake_condition.notify_all"]


@pytest.mark.parametrize("paused", [True, False])
def test_a_pause_blocks_calls_of_sync_and_wakes_the_thread(parts: Parts, *, paused: bool) -> None:
    parts.loop.set_paused(paused=paused)
    assert parts.loop.paused is paused
    parts.all.barrier.set_blocked.assert_called_once_with(blocked=paused)
    assert parts.calls() == ["barrier.set_blocked", "queue.wake_condition.notify_all"]


def test_status_reads_what_the_parts_say(parts: Parts) -> None:
    loop = parts.loop
    assert (loop.blocked_reason, loop.next_generation) == ("why", None)
    parts.all.queue.__len__.return_value = 3
    parts.all.builds.files_due = 4
    assert loop.pending_count == 7
    parts.all.builds.current = Mock()
    assert loop.next_generation is parts.all.builds.current


# Jobs


def test_a_root_is_added_to_the_index_then_watched_then_walked(parts: Parts) -> None:
    root = Mock()
    parts.loop.add_root(root)
    parts.all.queue.reconcile.assert_called_once_with(root.name)
    assert parts.calls() == ["writer.add_root", "queue.root_watcher.add", "queue.reconcile"]


@pytest.mark.parametrize("is_building", [True, False])
def test_a_root_that_is_removed_leaves_every_part(parts: Parts, *, is_building: bool) -> None:
    queue = parts.all.queue
    queue.drop_root_hints.return_value = [A, B]
    queue.vectors.drop_root.return_value = [B]
    if is_building:
        parts.all.builds.current = parts.all.build
    assert parts.loop.remove_root("docs") is parts.all.writer.drop_root.return_value
    parts.all.barrier.mark_vectors_done.assert_called_once_with(B)
    assert [given.args for given in parts.all.outcomes.mark_done.call_args_list] == [(A,), (B,)]
    assert parts.calls() == [
        "queue.root_watcher.remove",
        "queue.drop_root_hints",
        "outcomes.mark_done",
        "outcomes.mark_done",
        "queue.vectors.drop_root",
        "barrier.mark_vectors_done",
        "barrier.release_finished_calls",
        *(["build.drop_root"] if is_building else []),
        "writer.drop_root",
    ]


def test_a_job_that_needs_all_takes_in_all_hints_walks_and_indexes(parts: Parts) -> None:
    parts.loop.walk_and_index_all()
    parts.all.queue.drain_hints.assert_called_once_with(skip_debounce=True)
    parts.all.work.finish_all.assert_called_once_with(parts.loop._is_stopping)
    assert parts.calls() == ["queue.drain_hints", "queue.reconcile_all", "work.finish_all"]
    parts.loop.paused = True
    parts.loop.walk_and_index_all()
    assert parts.calls() == []


# Steps


def test_a_step_at_rest_takes_in_what_came_looks_at_everything_and_sleeps(parts: Parts) -> None:
    parts.loop._step()
    parts.all.queue.drain_hints.assert_called_once_with(skip_debounce=False)
    parts.all.queue.walk_if_due.assert_called_once_with(NOW)
    parts.all.work.may_use_model.assert_called_once_with(NOW)
    parts.all.builds.is_due.assert_called_once_with(NOW)
    assert parts.all.writer.heartbeat.beat.call_count == 2
    assert parts.slept() == [2.0]
    assert parts.calls() == [*TAKEN_IN, *LOOKED, *ASKED, *RESTED]


def test_a_step_that_walked_does_nothing_else(parts: Parts) -> None:
    parts.all.queue.walk_if_due.return_value = True
    parts.loop._step()
    assert parts.calls() == [*TAKEN_IN, *LOOKED]


@pytest.mark.parametrize("is_unsaved", [True, False])
@pytest.mark.parametrize(("resume_at", "is_over"), [(100.1, False), (100.0, True), (99.9, True)])
def test_a_step_during_a_pause_sleeps_until_its_end_and_not_later(
    parts: Parts,
    resume_at: float,
    is_over: bool,  # noqa: FBT001 - a column of the table
    is_unsaved: bool,  # noqa: FBT001 - likewise
) -> None:
    """A lost archive that could not be saved keeps even jobs waiting; then the sleep is 2 s."""
    parts.all.check.own_files.is_unsaved = is_unsaved
    parts.all.backoff.resume_at = resume_at
    parts.loop._step()
    looked_for_files = parts.all.check.own_files.find_problem.called
    slept, calls = parts.slept(), parts.calls()
    if is_over:
        assert calls == [*TAKEN_IN, *LOOKED, *ASKED, *RESTED]
    elif is_unsaved:
        assert (slept, calls, looked_for_files) == ([2.0], [WAIT], False)
    else:
        assert calls == [*TAKEN_IN, WAIT]
        assert slept == pytest.approx([0.1])


def test_a_step_while_paused_runs_jobs_and_sleeps(parts: Parts) -> None:
    parts.loop.paused = True
    parts.loop._step()
    assert (parts.slept(), parts.calls()) == ([2.0], [*TAKEN_IN, WAIT])


def test_a_step_after_files_were_lost_sleeps_though_work_waits(parts: Parts) -> None:
    parts.all.check.own_files.find_problem.return_value = "the folder was deleted"
    parts.all.queue.has_hints = True
    for _ in range(2):
        parts.loop._step()
    assert parts.restarts == ["the folder was deleted"]
    assert parts.loop.folder_problem == "the folder was deleted"
    parts.all.barrier.set_blocked.assert_called_once_with(blocked=True)
    assert parts.all.check.own_files.find_problem.call_count == 1
    assert parts.slept() == [2.0, 2.0]
    assert parts.calls() == ["barrier.set_blocked", WAIT, WAIT]


def test_a_step_repairs_the_table_before_anything_else_is_changed(parts: Parts) -> None:
    parts.all.check.is_repair_due = True
    parts.all.check.run.return_value = [A]
    parts.all.queue.vectors.is_known = True
    parts.loop._step()
    parts.all.queue.enqueue.assert_called_once_with([A])
    assert parts.all.queue.vectors.is_known is False
    calls = parts.calls()
    assert calls[:6] == [
        *TAKEN_IN, "check.run", "queue.enqueue", "barrier.expect_files", "work.find_missing_vectors",
    ]  # fmt: skip


def test_a_build_from_scratch_goes_before_a_repair_and_the_step_ends_with_it(parts: Parts) -> None:
    parts.all.check.is_repair_due = parts.all.builds.is_from_scratch = True
    parts.all.builds.next_step_at = 100.5
    parts.loop._step()
    assert parts.slept() == [0.5]
    assert parts.calls() == [*TAKEN_IN, "builds.index_next_files", WAIT]


@pytest.mark.parametrize(("due_at", "is_due"), [(100.0, True), (100.1, False)])
def test_roots_battery_and_memory_are_looked_at_when_it_is_time(
    parts: Parts,
    due_at: float,
    is_due: bool,  # noqa: FBT001 - a column of the table
) -> None:
    parts.loop._next_supervise = due_at
    parts.loop._step()
    assert ("check.audit_if_due" in parts.calls()) is is_due
    assert parts.loop._next_supervise == (102.0 if is_due else due_at)


def test_a_step_walks_once_for_new_calls_of_sync_after_it_accepted_them(parts: Parts) -> None:
    parts.all.barrier.has_new_calls = True
    parts.all.barrier.accept_for_walk.side_effect = lambda: nullcontext(2)
    parts.all.queue.pending_paths = {A}
    parts.all.queue.vectors.snapshot.return_value = [B]
    parts.loop._step()
    drains = [given.kwargs for given in parts.all.queue.drain_hints.call_args_list]
    assert drains == [{"skip_debounce": False}, {"skip_debounce": True}]
    parts.all.barrier.set_pending_paths.assert_called_once_with({A}, 2, [B])
    calls = parts.calls()
    assert calls[3:10] == [
        "check.look_for_altered_files",
        "work.find_missing_vectors",
        "barrier.accept_for_walk",
        "queue.drain_hints",
        "queue.reconcile_all",
        "queue.vectors.snapshot",
        "barrier.set_pending_paths",
    ]


def test_the_walk_for_sync_follows_a_check_that_is_due(parts: Parts) -> None:
    parts.all.check.is_due = True
    parts.all.barrier.accept_for_walk.side_effect = lambda: nullcontext(0)
    parts.loop._walk_for_sync()
    assert parts.calls()[:6] == [
        "check.look_for_altered_files",
        "check.run",
        "queue.enqueue",
        "barrier.expect_files",
        "work.find_missing_vectors",
        "barrier.accept_for_walk",
    ]


def test_calls_of_sync_that_waited_for_rules_wait_for_their_files(parts: Parts) -> None:
    parts.all.queue.root_checks.pop_settled.return_value = ["docs"]
    parts.all.queue.pending_paths = {A}
    parts.loop._step()
    parts.all.barrier.replace_pending.assert_called_once_with(RootedPath("docs", ""), {A})


# What is most urgent


@pytest.mark.parametrize("has_model", [True, False])
@pytest.mark.parametrize("on_mains", [True, False])
def test_files_go_first_and_are_asked_for_as_model_and_battery_allow(
    parts: Parts, *, has_model: bool, on_mains: bool
) -> None:
    parts.loop.backlog_waits_for_mains = not on_mains
    parts.all.work.may_use_model.return_value = has_model
    parts.all.check.is_due = True
    turn = Turn([A], Urgency.LATER)
    parts.all.queue.next_turn.return_value = turn
    parts.loop._do_most_urgent_work(NOW)
    parts.all.queue.next_turn.assert_called_once_with(
        without_later=not on_mains, without_vectors=not has_model
    )
    files, should_stop = parts.all.work.index.call_args.args
    assert files == [A]
    assert parts.calls() == [*ASKED, "work.index"]
    assert should_stop() is not on_mains
    parts.loop.paused = True
    assert should_stop() is True


@pytest.mark.parametrize("check_is_due", [True, False])
@pytest.mark.parametrize("has_model", [True, False])
@pytest.mark.parametrize("vectors_wait", [True, False])
@pytest.mark.parametrize("build_is_due", [True, False])
@pytest.mark.parametrize("on_mains", [True, False])
def test_a_check_goes_before_vectors_and_those_before_a_build(
    parts: Parts,
    *,
    check_is_due: bool,
    has_model: bool,
    vectors_wait: bool,
    build_is_due: bool,
    on_mains: bool,
) -> None:
    parts.loop.backlog_waits_for_mains = not on_mains
    parts.all.work.may_use_model.return_value = has_model
    parts.all.check.is_due = check_is_due
    parts.all.queue.vectors.has_next.return_value = vectors_wait
    parts.all.builds.is_due.return_value = build_is_due
    parts.loop._do_most_urgent_work(NOW)
    if check_is_due:
        expected = "check.run"
    elif has_model and vectors_wait:
        expected = "work.try_to_fill_vectors"
        parts.all.queue.vectors.has_next.assert_called_once_with(saved_only=not on_mains)
        parts.all.work.try_to_fill_vectors.assert_called_once_with(
            parts.loop._should_end_fill, saved_only=not on_mains
        )
    elif has_model and build_is_due and on_mains:
        expected = "work.try_with_model"
        parts.all.work.try_with_model.assert_called_once_with(parts.loop._build)
    else:
        expected = "maintenance.compact_if_due"
    kinds = {"check.run", "work.try_to_fill_vectors", "work.try_with_model"}
    kinds.add("maintenance.compact_if_due")
    assert [name for name in parts.calls() if name in kinds] == [expected]


@pytest.mark.parametrize("has_failed", [True, False])
@pytest.mark.parametrize("build_is_due", [True, False])
@pytest.mark.parametrize("on_mains", [True, False])
def test_after_a_fill_that_failed_a_build_that_may_replace_the_model_goes_first(
    parts: Parts, *, has_failed: bool, build_is_due: bool, on_mains: bool
) -> None:
    parts.loop.backlog_waits_for_mains = not on_mains
    parts.all.work.has_failed_fill = has_failed
    parts.all.queue.vectors.has_next.return_value = True
    parts.all.builds.is_due.return_value = build_is_due
    parts.loop._do_most_urgent_work(NOW)
    builds = has_failed and build_is_due and on_mains
    expected = "work.try_with_model" if builds else "work.try_to_fill_vectors"
    kinds = {"work.try_to_fill_vectors", "work.try_with_model"}
    assert [name for name in parts.calls() if name in kinds] == [expected]


@pytest.mark.parametrize(
    "why", ["", "stopping", "files lost", "paused", "job", "sync", "files", "query", "check"]
)
def test_vectors_are_left_for_whatever_else_comes(parts: Parts, why: str) -> None:
    loop = parts.loop
    loop._stopping, loop.paused = why == "stopping", why == "paused"
    parts.all.check.own_files.find_problem.return_value = "gone" if why == "files lost" else ""
    parts.all.jobs.__bool__.return_value = why == "job"
    parts.all.barrier.has_new_calls = why == "sync"
    parts.all.queue.has_files_before_vectors.return_value = why == "files"
    parts.all.queue.vectors.has_wanted = why == "query"
    parts.all.check.is_due = why == "check"
    assert loop._should_end_fill() is (why != "")
    assert parts.all.writer.heartbeat.beat.call_count == 1, "a sign of life for each batch"


@pytest.mark.parametrize("on_mains", [True, False])
def test_vectors_are_left_for_the_files_that_may_be_indexed_now(
    parts: Parts, *, on_mains: bool
) -> None:
    parts.loop.backlog_waits_for_mains = not on_mains
    parts.loop._should_end_fill()
    parts.all.queue.has_files_before_vectors.assert_called_once_with(without_later=not on_mains)


@pytest.mark.parametrize("why", ["", "stopping", "files lost"])
def test_work_stops_at_once_at_the_end_or_when_files_are_lost(parts: Parts, why: str) -> None:
    parts.loop._stopping = why == "stopping"
    parts.all.check.own_files.find_problem.return_value = "gone" if why == "files lost" else ""
    assert parts.loop._is_stopping() is (why != "")
    assert parts.all.writer.heartbeat.beat.call_count == 1


@pytest.mark.parametrize("urgency", list(Urgency))
@pytest.mark.parametrize("why", ["", "job", "sync", "battery", "more urgent"])
def test_only_what_a_walk_found_is_left_for_jobs_and_sync(
    parts: Parts, urgency: Urgency, why: str
) -> None:
    parts.all.jobs.__bool__.return_value = why == "job"
    parts.all.barrier.has_new_calls = why == "sync"
    parts.loop.backlog_waits_for_mains = why == "battery"
    parts.all.queue.has_more_urgent.return_value = why == "more urgent"
    is_left = parts.loop._should_end_turn(Turn([], urgency, began_at=0.0))
    assert is_left is (why == "more urgent" or (why != "" and urgency is Urgency.LATER))


def test_a_turn_that_has_just_begun_is_not_left(parts: Parts) -> None:
    parts.all.queue.has_more_urgent.return_value = True
    turn = Turn([], Urgency.SAVED, began_at=NOW)
    assert parts.loop._should_end_turn(turn) is False
    parts.now += 3_600
    assert parts.loop._should_end_turn(turn) is True
    parts.all.queue.has_more_urgent.assert_called_once_with(Urgency.SAVED, parts.now)


# Every two seconds


def test_moved_roots_are_added_again_and_changed_ones_walked(parts: Parts) -> None:
    root = Mock()
    queue = parts.all.queue
    queue.root_watcher.retargeted_roots.return_value = [root]
    queue.root_checks.find_changed.return_value = {"more"}
    parts.loop._supervise(NOW)
    parts.all.check.audit_if_due.assert_called_once_with(NOW)
    parts.all.writer.add_root.assert_called_once_with(root)
    queue.root_checks.find_changed.assert_called_once_with(queue.root_watcher, NOW)
    assert [given.args for given in queue.reconcile.call_args_list] == [(root.name,), ("more",)]
    assert parts.restarts == []


@pytest.mark.parametrize("configured", ["pause", "continue"])
@pytest.mark.parametrize("has_waiters", [True, False])
@pytest.mark.parametrize("battery", [True, False])
def test_the_backlog_waits_for_mains_as_configured_unless_somebody_waits_for_it(
    parts: Parts,
    configured: Any,  # noqa: ANN401 - a literal of the schema
    *,
    has_waiters: bool,
    battery: bool,
) -> None:
    loop = parts.opened(Config(embedding=EmbeddingConfig(on_battery=configured)))
    parts.all.barrier.has_waiters, parts.battery = has_waiters, battery
    loop.backlog_waits_for_mains = True
    loop._supervise(NOW)
    waits = configured == "pause" and battery and not has_waiters
    assert loop.backlog_waits_for_mains is waits


def test_too_much_memory_is_reported_each_time_to_whoever_asked_for_that(parts: Parts) -> None:
    told: list[str] = []
    parts.all.maintenance.exceeds_memory_limit.return_value = True
    parts.loop._supervise(NOW)
    assert len(parts.restarts) == 1, "without anybody else the process restarts"
    parts.loop.request_memory_restart = told.append
    for _ in range(2):
        parts.loop._supervise(NOW)
    assert told == ["anchord uses more memory than max_memory_mb allows"] * 2
    assert len(parts.restarts) == 1


# Checks, builds and rest


@pytest.mark.parametrize(
    ("failed_at", "is_accepted", "calls"),
    [
        (49.9, True, []),
        (50.0, True, []),
        (
            50.1,
            True,
            ["check.request_repair", "check.run", "queue.enqueue", "barrier.expect_files"],
        ),
        (50.1, False, ["check.request_repair"]),
    ],
)
def test_rows_that_cannot_be_read_lead_to_a_check_unless_one_began_since(
    parts: Parts,
    failed_at: float,
    is_accepted: bool,  # noqa: FBT001 - a column of the table
    calls: list[str],
) -> None:
    parts.all.check.is_repair_due = is_accepted
    parts.loop.check_index(failed_at)
    assert parts.calls() == calls


def test_nothing_is_built_without_a_build_and_nothing_counts_while_it_waits(parts: Parts) -> None:
    parts.loop._build()
    parts.all.builds.current = parts.all.build
    parts.all.builds.index_next_files.return_value = None
    parts.loop._build()
    assert parts.calls() == ["builds.index_next_files"] * 2


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_build_that_holds_everything_takes_over_and_is_followed_by_a_walk(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, *, is_finished: bool
) -> None:
    loop, build = parts.loop, parts.all.build
    recorded: list[object] = []
    monkeypatch.setattr(WriterStats, "record_outcome", lambda _, each: recorded.append(each))
    build.is_finished = is_finished
    parts.all.builds.current = build
    parts.all.builds.index_next_files.return_value = ["one", "two"]
    parts.all.queue.root_watcher.unseen_roots = ["gone"]
    parts.all.queue.vectors.is_known = True
    loop._build()
    roots, should_stop = parts.all.builds.index_next_files.call_args.args
    assert (roots, recorded) == (["gone"], ["one", "two"])
    taken_over = ["build.promote", "check.note_new_table", "queue.reconcile_all"]
    parts.all.backoff.reset.assert_called_once_with()
    calls = parts.calls("backoff.reset")
    assert calls == ["builds.index_next_files", *(taken_over if is_finished else [])]
    assert loop.next_generation is (None if is_finished else build)
    assert loop.stats.last_commit_at == (NOW if is_finished else None)
    assert parts.all.queue.vectors.is_known is not is_finished
    assert should_stop() is False
    parts.all.jobs.__bool__.return_value = True
    assert should_stop() is True, "a job goes before the rest of a build"


@pytest.mark.parametrize(("last_commit_at", "idle_s"), [(None, 40.0), (70.0, 30.0)])
def test_a_rest_counts_from_the_last_commit_or_else_from_the_start(
    parts: Parts, last_commit_at: float | None, idle_s: float
) -> None:
    parts.now = 60.0
    loop = parts.opened(Config())
    loop.stats.last_commit_at = last_commit_at
    parts.now = NOW
    loop._rest(NOW)
    parts.all.maintenance.compact_if_due.assert_called_once_with(idle_s=idle_s)


@pytest.mark.parametrize("files", [[], [A]])
def test_files_that_a_check_at_rest_found_are_queued_and_their_vectors_looked_for(
    parts: Parts, files: list[RootedPath]
) -> None:
    parts.all.maintenance.is_check_due.return_value = True
    parts.all.maintenance.check_and_repair_if_due.return_value = files
    parts.all.maintenance.last_checked_at = 90.0
    parts.all.queue.vectors.is_known = True
    parts.loop._rest(NOW)
    parts.all.maintenance.check_and_repair_if_due.assert_called_once_with(NOW)
    assert parts.loop.stats.last_verified_at == 90.0
    assert parts.all.queue.vectors.is_known is (not files)
    assert parts.all.queue.enqueue.call_args_list == ([((files,),)] if files else [])
    calls = parts.calls()
    assert calls[2:5] == [
        "maintenance.is_check_due",
        "check.look_for_altered_files",
        "maintenance.compact_if_due",
    ]


@pytest.mark.parametrize("is_building", [True, False])
def test_a_failure_of_the_model_is_forgotten_at_rest_unless_a_build_needs_it(
    parts: Parts, *, is_building: bool
) -> None:
    parts.all.builds.current = parts.all.build if is_building else None
    parts.loop._rest(NOW)
    parts.all.work.forget_model_problem.assert_called_once_with(is_building=is_building)


@pytest.mark.parametrize(
    ("due_at", "supervise_at", "slept"), [(100.5, 101.0, 0.5), (101.5, 101.0, 1.0), (99, 101, 0.0)]
)
def test_a_rest_lasts_until_the_next_thing_is_due(
    parts: Parts, due_at: float, supervise_at: float, slept: float
) -> None:
    parts.all.queue.next_due_at.return_value = due_at
    parts.loop._next_supervise = supervise_at
    parts.loop._rest(NOW)
    assert parts.slept() == [slept]


def test_a_hint_that_came_during_a_rest_is_not_slept_over(parts: Parts) -> None:
    parts.all.queue.has_hints = True
    parts.loop._rest(NOW)
    assert parts.slept() == []


@pytest.mark.parametrize("why", ["", "stopping", "hints", "job", "sync"])
@pytest.mark.parametrize("wakes_for_work", [True, False])
@pytest.mark.parametrize("paused", [True, False])
def test_a_loop_with_work_does_not_sleep_unless_it_may_not_work(
    parts: Parts, why: str, *, wakes_for_work: bool, paused: bool
) -> None:
    parts.loop._stopping, parts.loop.paused = why == "stopping", paused
    parts.all.queue.has_hints = why == "hints"
    parts.all.jobs.__bool__.return_value = why == "job"
    parts.all.barrier.has_new_calls = why == "sync"
    parts.loop._sleep(math.inf, wakes_for_work=wakes_for_work)
    has_work = why not in {"", "stopping"}
    is_awake = why == "stopping" or (has_work and wakes_for_work and not paused)
    assert parts.slept() == ([] if is_awake else [2.0])


# Errors


@pytest.mark.parametrize("error", [AnchordError("x", ""), TableReadError("x", ""), ValueError()])
@pytest.mark.parametrize("needs_restart", [True, False])
@pytest.mark.parametrize("stopping", [True, False])
def test_an_error_is_recorded_and_followed_by_a_pause_and_what_it_needs(
    parts: Parts, error: Exception, *, needs_restart: bool, stopping: bool
) -> None:
    parts.all.backoff.record_error.return_value = needs_restart
    parts.all.backoff.is_lasting = False
    parts.loop._stopping = stopping
    parts.loop.back_off(error)
    assert parts.restarts == (["why"] if needs_restart and not stopping else [])
    assert parts.calls() == [
        *(["check.request_repair"] if isinstance(error, TableReadError) else []),
        *([] if stopping else ["backoff.record_error"]),
        "backoff.start_pause",
    ]


@pytest.mark.parametrize("lasting", [True, False])
def test_calls_without_a_timeout_end_at_a_lasting_failure(parts: Parts, *, lasting: bool) -> None:
    parts.all.backoff.is_lasting = lasting
    parts.loop.back_off(ValueError())
    assert parts.all.barrier.interrupt_calls_without_timeout.called is lasting
