"""The work queue's limits of time, and what it does with hints and walks: watcher, index and inspection are fakes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from anchord.config.schema import WatchConfig
from anchord.core.deletion_guard import DeletionPolicy
from anchord.core.types import NO_FINGERPRINT, Fingerprint, RootedPath
from anchord.daemon.writer import work_queue as module
from anchord.daemon.writer.file_queue import Turn, Urgency
from anchord.daemon.writer.hint_inspection import Inspection
from anchord.daemon.writer.work_queue import WorkQueue
from anchord.index.reconcile import ReconcileResult

A, B, C, D = (RootedPath("docs", f"{name}.md") for name in "abcd")
SEEN = NO_FINGERPRINT._replace(device=7)
CONFIG = WatchConfig(settle_ms=500, max_wait_ms=4_000, poll_s=30, reconcile_s=1_000)


class Queue:
    """A work queue over two roots, at 1,000 s by the monotonic clock and 5,000 s by the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with everything in order."""
        self.now = 1_000.0
        self.writer: Any = Mock()
        self.writer.files.redact_path = lambda path: path.replace("secret", "hidden")
        self.writer.indexer.reconcile.side_effect = self._reconcile
        self.watcher: Any = Mock()
        self.watcher.states = {"docs": self.state(), "more": self.state()}
        self.watcher.stat_device.return_value = 7
        self.watcher.polled_folders = lambda root: self.polled.get(root, [])
        self.polled: dict[str, list[str]] = {}
        self.checks: Any = Mock()
        self.checks.unsettled_roots = []
        self.checks.due_times = []
        self.checks.roots_due.return_value = []
        self.inspector: Any = Mock()
        self.inspector.find_moves.return_value = {}
        self.inspected: Inspection | None = Inspection(root="docs")
        self.inspector.inspect.side_effect = lambda *_: self.inspected
        self.walks: list[tuple[str, str]] = []
        self.policies: list[DeletionPolicy] = []
        self.found: dict[tuple[str, str], ReconcileResult] = {}
        """What the walks of a root's folder find; nothing if not given."""
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: 5_000.0)
        monkeypatch.setattr(module, "RootWatcher", lambda *_: self.watcher)
        monkeypatch.setattr(module, "RootChecks", lambda *_: self.checks)
        monkeypatch.setattr(module, "HintInspector", lambda *_: self.inspector)
        self.queue = WorkQueue(self.writer, CONFIG)
        self.queue._next_reconcile = self.queue._next_poll = 9_000.0

    @staticmethod
    def state() -> SimpleNamespace:
        """Give the state of a root in order."""
        return SimpleNamespace(
            walk_error="", held_deletions=0, replace_folder_problems=lambda *_: None
        )

    def _reconcile(
        self, root: str, folder: str, watch_folder: object, policy: DeletionPolicy
    ) -> ReconcileResult:
        assert watch_folder is self.watcher.watch_folder
        self.walks.append((root, folder))
        self.policies.append(policy)
        return self.found.get((root, folder), ReconcileResult())

    def places(self) -> dict[str, tuple[Urgency, float] | None]:
        """Return the place of each file that waits."""
        files = self.queue.files
        return {file.path: files.place_of(file) for file in files.snapshot()}

    def settled(self, *files: RootedPath) -> None:
        """Hint at files, and look at them once they settled."""
        for file in files:
            self.queue.add_hint(file)
        self.now += 0.5
        self.queue.drain_hints(skip_debounce=False)

    def due(self, *files: RootedPath, missing: Iterable[RootedPath] = ()) -> Inspection:
        """Have the next look at hints find files, and others that are gone."""
        self.inspected = Inspection(root="docs", files_due=dict.fromkeys(files, self.now))
        for file in missing:
            self.inspected.files_due[file] = self.now
            self.inspected.missing[file] = SEEN
            self.inspected.hinted_paths[file] = file.path
        return self.inspected


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Queue:
    return Queue(monkeypatch)


# Hints


def test_a_hint_is_noted_with_its_time_and_without_secrets_and_wakes_the_writer(
    made: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, rung = made.queue, []
    monkeypatch.setattr(queue.wake_condition, "notify_all", lambda: rung.append(1))
    assert (queue.has_hints, queue.last_event_at) == (False, None)
    queue.add_hint(RootedPath("docs", "secret.md"))
    assert (queue.has_hints, queue.last_event_at, rung) == (True, 1_000.0, [1])
    made.inspected = made.due()
    queue.drain_hints(skip_debounce=True)
    made.inspector.inspect.assert_called_once_with("docs", {"hidden.md": 1_000.0})
    assert queue.has_hints is False


def test_everything_that_waits_is_counted(made: Queue) -> None:
    queue = made.queue
    assert (len(queue), queue.file_count) == (0, 0)
    queue.enqueue([A])
    for number in range(2):
        queue._deletions.add(RootedPath("docs", f"gone{number}"), 1.0)
    for number in range(4):
        queue._debouncer.add_hint(RootedPath("docs", f"unsettled{number}"), 1.0)
    for number in range(8):
        queue.add_hint(RootedPath("docs", f"new{number}"))
    assert (len(queue), queue.file_count) == (15, 1)


@pytest.mark.parametrize(
    ("hinted_at", "debounced_at", "is_due"),
    [
        (None, None, False),
        (999.5, None, True),
        (999.51, None, False),
        (None, 999.5, True),
        (None, 999.51, False),
        (999.51, 999.51, False),
        (999.5, 999.51, True),
        (999.51, 999.5, True),
    ],
)
def test_a_hint_is_due_half_a_second_after_it_came_also_before_it_was_sorted(
    made: Queue, *, hinted_at: float | None, debounced_at: float | None, is_due: bool
) -> None:
    queue = made.queue
    if hinted_at:
        queue._hints[A] = hinted_at
    if debounced_at:
        queue._debouncer.add_hint(B, debounced_at)
    assert queue.has_fresh_due(1_000.0) is is_due
    for urgency in Urgency:
        assert queue.has_more_urgent(urgency, 1_000.0) is is_due


def test_a_path_that_is_never_quiet_is_due_four_seconds_after_its_first_hint(made: Queue) -> None:
    for at in range(20):
        made.queue._debouncer.add_hint(A, 1_000.0 + at / 4)
    assert made.queue.next_due_at() == 1_004.0


@pytest.mark.parametrize("saved", [True, False])
def test_a_saved_file_is_more_urgent_than_what_a_walk_found(made: Queue, *, saved: bool) -> None:
    made.queue.files.add(A, Urgency.SAVED if saved else Urgency.LATER, 1.0)
    assert made.queue.has_more_urgent(Urgency.LATER, 1_000.0) is saved
    assert made.queue.has_more_urgent(Urgency.SAVED, 1_000.0) is False


@pytest.mark.parametrize(
    ("waiting", "without_later", "goes_first"),
    [
        (None, False, False),
        (Urgency.SAVED, False, True),
        (Urgency.SAVED, True, True),
        (Urgency.LEAVING, True, True),
        (Urgency.LATER, False, True),
        (Urgency.LATER, True, False),
    ],
)
def test_files_that_may_be_indexed_go_before_vectors_unless_those_just_began(
    made: Queue,
    monkeypatch: pytest.MonkeyPatch,
    waiting: Urgency | None,
    *,
    without_later: bool,
    goes_first: bool,
) -> None:
    queue = made.queue
    if waiting is not None:
        queue.files.add(A, waiting, 1.0)
    assert queue.has_files_before_vectors(without_later=without_later) is goes_first
    monkeypatch.setattr(queue.vectors, "may_go_on", lambda now: now == 1_000.0)
    assert queue.has_files_before_vectors(without_later=without_later) is False


@pytest.mark.parametrize("first", ["walk", "rules", "hint", "deletion", "poll"])
def test_the_next_thing_that_is_due_is_the_first_of_all(made: Queue, first: str) -> None:
    queue, polled = made.queue, {"docs": ["far"]}
    queue._next_reconcile = 5.0 if first == "walk" else 50.0
    made.checks.due_times = [60.0, 5.0] if first == "rules" else [60.0]
    queue._debouncer.add_hint(A, 4.5 if first == "hint" else 70.0)
    made.now = 4.0 if first == "deletion" else 80.0
    queue._deletions.add(B, 4.0 if first == "deletion" else 80.0)
    queue._next_poll = 5.0
    made.polled = polled if first == "poll" else {}
    assert queue.next_due_at() == 5.0


def test_without_hints_the_next_walk_is_what_is_due(made: Queue) -> None:
    assert made.queue.next_due_at() == 9_000.0


def test_hints_are_looked_at_once_they_settled_each_root_by_itself(made: Queue) -> None:
    queue, other = made.queue, RootedPath("more", "x.md")
    for hint in (A, other, B, RootedPath("removed", "y.md")):
        queue.add_hint(hint)
    made.now = 1_000.49
    queue.drain_hints(skip_debounce=False)
    assert made.inspector.inspect.call_count == 0
    assert len(queue) == 3
    made.now = 1_000.5
    made.due()
    queue.drain_hints(skip_debounce=False)
    assert [given.args for given in made.inspector.inspect.call_args_list] == [
        ("docs", {"a.md": 1_000.0, "b.md": 1_000.0}),
        ("more", {"x.md": 1_000.0}),
    ]
    assert len(queue) == 0


# Missing files


def test_a_missing_file_waits_a_second_for_others_and_then_leaves(made: Queue) -> None:
    queue = made.queue
    made.due(B, missing=[A])
    made.settled(A, B)
    assert (list(made.places()), len(queue._deletions)) == (["b.md"], 1)
    assert (queue.missing_files, queue._recent_deletions.count("docs")) == ({}, 0)
    assert queue.next_due_at() == made.now + 1
    made.due(missing=[A])
    made.now += 0.99
    queue.drain_hints(skip_debounce=False)
    assert list(made.places()) == ["b.md"]
    made.now += 0.01
    queue.drain_hints(skip_debounce=False)
    assert made.places()["a.md"] == (Urgency.LEAVING, 0.0)
    assert (queue.missing_files, queue._recent_deletions.count("docs")) == ({A: SEEN}, 1)
    assert len(queue._deletions) == 0
    assert made.inspector.inspect.call_args.args == ("docs", {"a.md": 1_000.0})
    assert made.walks == []


def test_a_missing_file_does_not_wait_when_somebody_waits_for_it(made: Queue) -> None:
    made.due(missing=[A])
    made.queue.add_hint(A)
    made.queue.drain_hints(skip_debounce=True)
    assert list(made.places()) == ["a.md"]
    assert len(made.queue._deletions) == 0


def test_a_missing_file_that_moved_does_not_wait_and_goes_with_its_new_path(made: Queue) -> None:
    made.due(B, missing=[A])
    made.inspector.find_moves.return_value = {B: A}
    made.settled(A, B)
    assert made.queue.moved_from == {B: A}
    assert made.places() == {"b.md": (Urgency.SAVED, 1_000.0), "a.md": (Urgency.LATER, 0.0)}
    assert made.queue.missing_files == {A: SEEN}
    assert len(made.queue._deletions) == 0


@pytest.mark.parametrize(
    ("recent", "missing", "device", "is_asked"),
    [
        (0, 0, 7, False),
        (99, 0, 8, False),
        (0, 1, 7, False),
        (0, 1, 8, True),
        (0, 49, 7, False),
        (0, 50, 7, True),
        (10, 39, 7, False),
        (10, 40, 7, True),
        (0, 1, NO_FINGERPRINT.device, False),
    ],
)
def test_a_walk_decides_about_fifty_deletions_and_those_of_a_disk_that_went(
    made: Queue, recent: int, missing: int, device: int, *, is_asked: bool
) -> None:
    queue = made.queue
    queue._recent_deletions.record("docs", recent)
    gone = [RootedPath("docs", f"gone/{number}.md") for number in range(missing)]
    inspection = made.due(A, missing=gone)
    inspection.missing = {file: SEEN._replace(device=device) for file in gone}
    assert queue._needs_deletion_guard("docs", inspection.missing) is is_asked
    queue.add_hint(A)
    queue.drain_hints(skip_debounce=True)
    assert made.walks == ([("docs", "")] if is_asked else [])
    assert len(queue.missing_files) == (0 if is_asked else missing)
    assert queue.file_count == (1 if is_asked else 1 + missing), "the file that exists is queued"
    assert queue._recent_deletions.count("docs") == recent + (0 if is_asked else missing)


# From hints to the queue


def test_a_folder_that_cannot_be_walked_has_its_root_walked(made: Queue) -> None:
    made.inspected = None
    made.settled(A)
    assert (made.walks, made.places()) == ([("docs", "")], {})
    assert made.checks.expect_new_rules.call_count == 0


@pytest.mark.parametrize("path", ["", ".gitignore", "deep/.gitignore"])
def test_a_hint_of_a_root_or_its_rules_has_the_rules_read_before_a_walk(
    made: Queue, path: str
) -> None:
    made.checks.expect_new_rules.side_effect = lambda _: made.walks.append(("rules", ""))
    made.settled(RootedPath("docs", path))
    assert made.walks == [("rules", ""), ("docs", "")]
    made.checks.expect_new_rules.assert_called_once_with("docs")
    assert made.inspector.inspect.call_count == 0


def test_a_save_goes_first_and_a_burst_with_what_walks_find(made: Queue) -> None:
    queue = made.queue
    burst = [RootedPath("docs", f"copy/{number}.md") for number in range(20)]
    queue.hinted_at[A] = 1.0
    inspection = made.due(A, B, *burst)
    inspection.mtimes_ns[burst[0]] = 2_500_000_000
    made.settled(A)
    places = made.places()
    assert places["a.md"] == places["b.md"] == (Urgency.SAVED, 1_000.0)
    assert places["copy/0.md"] == (Urgency.LATER, 2.5)
    assert places["copy/1.md"] == (Urgency.LATER, 0.0)
    assert queue.hinted_at == {A: 1.0, **dict.fromkeys([B, *burst], 1_000.0)}


def test_files_are_listed_as_they_are_taken_then_as_they_came(made: Queue) -> None:
    queue = made.queue
    assert queue.next_files(5) == []
    queue.enqueue([A, B, C])
    queue.files.add(D, Urgency.SAVED, 1.0)
    queue.hinted_at[D] = 1.0
    queue._last_turn = Turn([C, A], Urgency.LATER)
    found = "found by a walk"
    assert queue.next_files(9) == [(C, found), (A, found), (D, "saved"), (B, found)]
    queue.remove(C)
    assert queue.next_files(2) == [(A, found), (D, "saved")]


def test_what_somebody_else_found_is_queued_by_the_time_it_was_found(made: Queue) -> None:
    made.queue.enqueue([A])
    assert made.places() == {"a.md": (Urgency.LATER, 5_000.0)}


def test_a_file_to_be_tried_again_waits_as_after_a_hint_and_what_was_known_of_it_is_forgotten(
    made: Queue,
) -> None:
    queue = made.queue
    queue.enqueue([A])
    queue.hinted_at[A], queue.missing_files[A], queue.moved_from[A] = 1.0, SEEN, B
    queue.requeue_later(A)
    assert (queue.file_count, len(queue)) == (0, 1)
    assert (queue.hinted_at, queue.missing_files, queue.moved_from) == ({}, {}, {})
    assert queue.has_fresh_due(1_000.49) is False
    assert queue.has_fresh_due(1_000.5) is True


def test_a_removed_root_takes_its_hints_along_and_no_others(made: Queue) -> None:
    queue, other = made.queue, RootedPath("more", "x.md")
    queue.enqueue([A, other])
    for file in (B, other):
        queue._debouncer.add_hint(file, 1.0)
        queue._deletions.add(file, 1.0)
    assert queue.drop_root_hints("docs") == [A]
    assert (len(queue._debouncer), len(queue._deletions), queue.file_count) == (1, 1, 2)
    made.checks.drop.assert_called_once_with("docs")


# Turns


@pytest.mark.parametrize("without_later", [True, False])
@pytest.mark.parametrize("urgency", list(Urgency))
def test_a_turn_is_for_the_files_that_may_be_indexed(
    made: Queue, urgency: Urgency, *, without_later: bool
) -> None:
    queue = made.queue
    assert queue.next_turn() is None
    queue.files.add(A, urgency, 1.0)
    turn = queue.next_turn(without_later=without_later)
    if without_later and urgency is Urgency.LATER:
        assert turn is None
    else:
        assert turn == Turn([A], urgency, is_for_waiting=False, began_at=1_000.0)
        assert queue._last_turn is turn


@pytest.mark.parametrize(
    ("vectors", "given", "own_turns"),
    [
        (None, {}, 0),
        (Urgency.LATER, {}, 1),
        (Urgency.SAVED, {}, 1),
        (Urgency.LATER, {"without_vectors": True}, 0),
        (Urgency.LATER, {"without_later": True}, 0),
        (Urgency.SAVED, {"without_later": True}, 1),
    ],
)
def test_one_of_eight_turns_is_left_to_vectors_that_may_be_made(
    made: Queue, vectors: Urgency | None, given: dict[str, bool], own_turns: int
) -> None:
    queue = made.queue
    queue.files.add(A, Urgency.SAVED, 1.0)
    if vectors is not None:
        queue.vectors.add(B, vectors, 1.0)
    turns = [queue.next_turn(**given) for _ in range(8)]
    assert all(turns[:7])
    assert turns.count(None) == own_turns


def test_files_left_for_vectors_stay_and_moved_ones_come_with_their_old_path(made: Queue) -> None:
    queue = made.queue
    queue.files.add(A, Urgency.SAVED, 1.0)
    queue.files.add(B, Urgency.LATER, 1.0)
    queue.moved_from[A] = B
    turn = queue.next_turn()
    assert turn is not None
    assert turn.files == [A, B]


# Walks


@pytest.mark.parametrize(
    ("uniform", "next_s"), [(-1.0, 900.0), (1.0, 1_100.0), (0.0, 1_000.0), (0.5, 1_050.0)]
)
def test_the_next_walk_of_all_roots_is_a_tenth_sooner_or_later_at_most(
    made: Queue, monkeypatch: pytest.MonkeyPatch, uniform: float, next_s: float
) -> None:
    asked: list[tuple[float, float]] = []
    monkeypatch.setattr(random, "uniform", lambda *given: asked.append(given) or uniform)  # type: ignore[func-returns-value]
    made.queue.reconcile_all()
    assert asked == [(-1, 1)]
    assert made.queue._next_reconcile == pytest.approx(1_000.0 + next_s)
    assert made.walks == [("docs", ""), ("more", "")]


@pytest.mark.parametrize(
    ("next_walk", "rules_due", "next_poll", "polled", "walks"),
    [
        (1_000.0, ["docs"], 1_000.0, True, [("docs", ""), ("more", "")]),
        (1_000.1, ["more"], 1_000.0, True, [("more", "")]),
        (1_000.1, [], 1_000.0, True, [("docs", "far"), ("more", "x"), ("more", "y")]),
        (1_000.1, [], 1_000.1, True, []),
        (1_000.1, [], 1_000.0, False, []),
        (1_000.1, [], 1_000.1, False, []),
    ],
)
def test_one_kind_of_walk_is_made_in_a_step_the_most_thorough_first(  # noqa: PLR0917 - the columns of the table
    made: Queue,
    next_walk: float,
    rules_due: list[str],
    next_poll: float,
    polled: bool,  # noqa: FBT001 - a column of the table
    walks: list[tuple[str, str]],
) -> None:
    queue = made.queue
    queue._next_reconcile, queue._next_poll = next_walk, next_poll
    made.checks.roots_due.return_value = rules_due
    made.polled = {"docs": ["far"], "more": ["x", "y"]} if polled else {}
    assert queue.walk_if_due(1_000.0) is bool(walks)
    assert made.walks == walks
    assert queue._next_poll == (1_030.0 if ("docs", "far") in walks else next_poll)


@pytest.mark.parametrize("folder", ["", "sub"])
@pytest.mark.parametrize("error", ["", "gone"])
def test_a_walk_queues_what_it_found_and_a_whole_one_that_succeeds_more(
    made: Queue, folder: str, error: str
) -> None:
    queue = made.queue
    result = ReconcileResult(
        walk_error=error,
        paths_due=(A, B, C),
        mtimes_ns={A: 3_000_000_000},
        gone_or_emptied={B: SEEN, C: SEEN},
        moved_from={A: C},
        released_deletions=2,
        listed_folders=("", "sub"),
    )
    made.found["docs", folder] = result
    queue.vectors.add(D, Urgency.LATER, 1.0)
    queue.vectors.set_unreadable(D)
    assert queue.reconcile("docs", folder) is result
    later, leaving = Urgency.LATER, Urgency.LEAVING
    assert made.places() == {"b.md": (leaving, 0.0), "a.md": (later, 3.0), "c.md": (later, 0.0)}
    assert (queue.missing_files, queue.moved_from) == ({B: SEEN, C: SEEN}, {A: C})
    assert queue._recent_deletions.count("docs") == 2
    made.watcher.unwatch_unlisted_folders.assert_called_once_with(
        RootedPath("docs", folder), ("", "sub")
    )
    made.checks.note_walk.assert_called_once_with("docs")
    assert queue.reconcile_count == (0 if folder else 1)
    assert queue.vectors.snapshot() == ([] if folder or error else [D])


@pytest.mark.parametrize("missing", [49, 50])
def test_a_folder_in_which_fifty_files_are_missing_has_its_root_walked(
    made: Queue, missing: int
) -> None:
    gone = {RootedPath("docs", f"far/{number}.md"): SEEN for number in range(missing)}
    found = ReconcileResult(gone_or_emptied=gone, paths_due=tuple(gone))
    whole = made.found["docs", ""] = ReconcileResult(held_deletions=missing)
    made.found["docs", "far"] = found
    result = made.queue.reconcile("docs", "far")
    assert result is (whole if missing == 50 else found)
    assert made.walks == ([("docs", "far"), ("docs", "")] if missing == 50 else [("docs", "far")])
    assert made.queue.file_count == (0 if missing == 50 else 49)


def test_a_whole_walk_is_not_repeated_for_its_own_deletions(made: Queue) -> None:
    gone = {RootedPath("docs", f"{number}.md"): SEEN for number in range(60)}
    made.found["docs", ""] = ReconcileResult(gone_or_emptied=gone, paths_due=tuple(gone))
    made.queue.reconcile("docs")
    assert made.walks == [("docs", "")]
    assert made.queue.file_count == 60


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_walk_is_told_what_was_confirmed_what_passed_and_what_went_lately(
    made: Queue, *, confirmed: bool
) -> None:
    queue = made.queue
    queue.missing_files[A] = SEEN
    queue._recent_deletions.record("docs", 3)
    queue._recent_deletions.record("more", 4)
    if confirmed:
        queue.reconcile("docs", deletions_confirmed=True)
    else:
        queue.reconcile("docs")
    policy = made.policies[0]
    assert (policy.all_confirmed, policy.recent_count) == (confirmed, 3)
    assert set(policy.released) == {A}


@pytest.mark.parametrize(
    ("unsettled", "folder", "lists"),
    [(["docs"], "", True), (["docs"], "sub", False), (["more"], "", False), ([], "", False)],
)
def test_a_walk_under_new_rules_looks_for_transcripts_that_were_deleted(
    made: Queue,
    monkeypatch: pytest.MonkeyPatch,
    unsettled: list[str],
    folder: str,
    lists: bool,  # noqa: FBT001 - a column of the table
) -> None:
    writer, events = made.writer, list[object]()
    note: Callable[..., None] = lambda *given: events.append(given)  # noqa: E731 - a record
    files = writer.files.folder_files
    files.rules.begin_walk = note
    monkeypatch.setattr(module, "list_unlisted_files", note)
    made.checks.unsettled_roots = unsettled
    made.queue.reconcile("docs", folder)
    listed = [("docs",), (writer.archive, writer.catalog, writer.roots, files)]
    assert events == (listed if lists else [])


def test_status_shows_the_state_of_a_whole_walk(made: Queue) -> None:
    problems: list[tuple[object, int]] = []
    state = made.watcher.states["docs"]
    state.replace_folder_problems = lambda *given: problems.append(given)
    made.found["docs", ""] = ReconcileResult(
        walk_error="gone", is_refused=True, held_deletions=3, file_count=5, skipped=7
    )
    for _ in range(2):
        made.queue.reconcile("docs")
    assert (state.walk_error, state.is_refused, state.is_scanned) == ("gone", True, True)
    assert (state.held_deletions, state.file_count, state.skipped_count) == (3, 5, 7)
    assert made.queue.reconcile_count == 2
    assert len(problems) == 2
    made.found.clear()
    made.queue.reconcile("docs")
    assert (state.walk_error, state.is_refused, state.held_deletions) == ("", False, 0)


def test_sync_waits_for_files_and_for_roots_whose_rules_settle(made: Queue) -> None:
    made.queue.enqueue([A])
    made.checks.unsettled_roots = ["more"]
    assert made.queue.pending_paths == {A, RootedPath("more", "")}


def test_a_fingerprint_is_kept_for_each_missing_file(made: Queue) -> None:
    """The indexer compares it with what it finds: a file that came back is not deleted."""
    other = Fingerprint(1, 2, 3, 4, 7)
    inspection = made.due(missing=[A, B])
    inspection.missing[B] = other
    made.queue.add_hint(A)
    made.queue.drain_hints(skip_debounce=True)
    assert made.queue.missing_files == {A: SEEN, B: other}
