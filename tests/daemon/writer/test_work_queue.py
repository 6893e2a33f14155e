"""When roots and folders are walked, and the order of files in the queue."""

from __future__ import annotations

import time

import pytest
from daemon.writer.conftest import Steps

from anchord.core.types import NO_FINGERPRINT, Problem, RootedPath
from anchord.daemon.writer import work_queue as module
from anchord.daemon.writer.hint_inspection import HintInspector, Inspection
from anchord.index.reconcile import ReconcileResult

A, B, C = (RootedPath("docs", name) for name in ("0.md", "1.md", "2.md"))


@pytest.fixture
def walks(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Record the walks: root and folder."""
    seen: list[tuple[str, str]] = []

    def reconcile(root: str, folder: str = "") -> None:
        seen.append((root, folder))

    monkeypatch.setattr(steps.loop.work_queue, "reconcile", reconcile)
    return seen


def test_all_roots_are_walked_when_their_time_has_come(
    steps: Steps, walks: list[tuple[str, str]]
) -> None:
    queue = steps.loop.work_queue
    queue._next_reconcile = queue._next_poll = 100.0
    assert not queue.walk_if_due(99.9)
    assert walks == []
    assert queue.walk_if_due(100.0)
    assert walks == [("docs", "")]
    assert queue._next_reconcile > 100.0


def test_folders_that_nobody_watches_are_walked_every_poll_s(
    steps: Steps, walks: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = steps.loop.work_queue
    queue._next_reconcile, queue._next_poll = 1e9, 100.0
    watcher = queue.root_watcher
    monkeypatch.setattr(watcher, "polled_folders", lambda _: ["a", "b/c"])
    assert queue.next_due_at() == 100.0
    assert not queue.walk_if_due(99.9)
    assert queue.walk_if_due(100.0)
    assert walks == [("docs", "a"), ("docs", "b/c")]
    assert queue._next_poll == 100.0 + steps.writer.config.watch.poll_s
    assert not queue.walk_if_due(100.1)
    monkeypatch.setattr(watcher, "polled_folders", lambda _: [])
    assert queue.next_due_at() == 1e9
    assert not queue.walk_if_due(1e8)
    assert len(walks) == 2


def test_the_time_of_the_next_walk_of_everything_varies_by_a_tenth_at_most(
    steps: Steps, walks: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = steps.loop.work_queue
    monkeypatch.setattr(time, "monotonic", lambda: 1_000.0)
    times = set()
    for _ in range(50):
        queue.reconcile_all()
        times.add(queue._next_reconcile - 1_000.0)
    monkeypatch.undo()
    every_s = steps.writer.config.watch.reconcile_s
    assert len(times) > 40
    assert (1 - module._JITTER) * every_s <= min(times) < every_s < max(times)
    assert max(times) <= (1 + module._JITTER) * every_s
    assert len(walks) == 50


def test_saved_files_come_before_what_a_walk_found_and_each_with_its_reason(steps: Steps) -> None:
    queue = steps.loop.work_queue
    first, second = (RootedPath("docs", name) for name in ("first.md", "second.md"))
    queue.enqueue([first, second])
    queue.enqueue([second, first])
    steps.saved(C, 0.0)
    found = "found by a walk"
    assert queue.next_files(2) == [(C, "saved"), (first, found)]
    assert queue.next_files(10) == [(C, "saved"), (first, found), (second, found)]
    assert queue.next_files(1) == [(C, "saved")]
    assert (queue.file_count, len(queue)) == (3, 3)
    queue.add_hint(RootedPath("docs", "hinted.md"))
    assert (queue.file_count, len(queue), queue.has_hints) == (3, 4, True)
    queue.remove(first)
    queue.remove(C)
    assert queue.next_files(10) == [(second, found)]
    assert queue.drop_root_hints("docs") == [second]
    assert queue.drop_root_hints("other") == []


def test_a_file_that_is_being_written_is_tried_again_once_it_settled(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = steps.loop.work_queue
    now = time.monotonic()
    queue.enqueue([A])
    queue.requeue_later(A)
    assert queue.file_count == 0
    assert not queue.has_fresh_due(now)
    settled = now + 3_600
    assert queue.has_fresh_due(settled)
    monkeypatch.setattr(time, "monotonic", lambda: settled)
    queue.drain_hints(skip_debounce=False)
    monkeypatch.undo()
    assert queue.files.snapshot() == [A]
    assert not queue.has_fresh_due(settled)


def test_a_tree_that_was_copied_or_deleted_is_walked_once(steps: Steps) -> None:
    walked: list[str] = []
    problem = Problem("permission denied")

    def walk(root: str, folder: str) -> ReconcileResult:
        assert root == "docs"
        walked.append(folder)
        problems = ((f"{folder}/locked", problem),) if folder == "half" else ()
        return ReconcileResult(folder_problems=problems)

    inspector = HintInspector(steps.writer, walk)
    deepest_first = ["a/b/c", "a/b", "ab", "half/locked", "a", "half", "0.md"]
    inspection = inspector.inspect("docs", dict.fromkeys(deepest_first, 1.0))
    assert inspection is not None
    assert list(inspection.files_due) == [A]
    # What the walk of the folder above could not read is looked at by itself.
    assert sorted(walked) == ["a", "ab", "half", "half/locked"]


def test_a_hint_of_a_root_that_was_removed_is_dropped(steps: Steps) -> None:
    queue = steps.loop.work_queue
    queue.add_hint(RootedPath("gone", "a.md"))
    queue.drain_hints(skip_debounce=True)
    assert (len(queue), queue.has_hints) == (0, False)


def test_a_hint_of_an_ignore_file_walks_the_whole_root(
    steps: Steps, walks: list[tuple[str, str]]
) -> None:
    queue = steps.loop.work_queue
    queue.add_hint(RootedPath("docs", "deep/.gitignore"))
    queue.add_hint(A)
    queue.drain_hints(skip_debounce=True)
    assert walks == [("docs", "")]
    walks.clear()
    queue.add_hint(RootedPath("docs", ""))
    queue.drain_hints(skip_debounce=True)
    assert walks == [("docs", "")]


def test_deletions_wait_for_others_unless_somebody_waits_for_them(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = steps.loop.work_queue
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    (steps.folder / "0.md").unlink()
    for hint in (A, B):
        queue._debouncer.add_hint(hint, now - 5)
    queue.drain_hints(skip_debounce=False)
    assert queue.files.snapshot() == [B]
    assert len(queue._deletions) == 1
    queue.drain_hints(skip_debounce=True)
    assert queue.files.snapshot() == [B, A]
    assert queue._recent_deletions.count("docs") == 1
    assert A in queue.missing_files
    monkeypatch.undo()


def test_deletions_just_before_count_in_a_walk_of_the_root(steps: Steps) -> None:
    """47 files were deleted just before, and the last 3 now: 50 deletions need a confirmation."""
    queue = steps.loop.work_queue
    for name in ("0.md", "1.md", "2.md"):
        (steps.folder / name).unlink()
    queue._recent_deletions.record("docs", 47)
    assert queue.reconcile("docs").held_deletions == 3
    assert queue.root_watcher.states["docs"].held_deletions == 3
    confirmed = queue.reconcile("docs", deletions_confirmed=True)
    assert (confirmed.held_deletions, set(queue.missing_files)) == (0, {A, B, C})
    assert queue.reconcile("docs").held_deletions == 0, "these went through the guard"


def leave(steps: Steps, count: int, folder: str = "gone") -> list[RootedPath]:
    """Index files of a folder, and delete them; return them."""
    (steps.folder / folder).mkdir()
    files = [steps.write(f"{folder}/{n}.md", f"Words of {folder} {n}.\n") for n in range(count)]
    steps.loop.walk_and_index_all()
    for file in files:
        (steps.folder / file.path).unlink()
    return files


@pytest.mark.parametrize("is_indexed_between", [False, True])
@pytest.mark.parametrize("later_by", ["events", "walk"])
def test_deletions_that_a_walk_found_count_with_those_that_follow(
    steps: Steps, *, later_by: str, is_indexed_between: bool
) -> None:
    queue = steps.loop.work_queue
    others = [steps.write(f"other{n}.md", f"Words of {n}.\n") for n in range(30)]
    leave(steps, 30)
    assert queue.reconcile("docs").held_deletions == 0
    if is_indexed_between:
        steps.loop.work.index(queue.files.snapshot(), lambda: False)
    for file in others:
        (steps.folder / file.path).unlink()
    if later_by == "events":
        for file in others:
            queue.add_hint(file)
        queue.drain_hints(skip_debounce=True)
    else:
        queue.reconcile("docs")
    assert queue.root_watcher.states["docs"].held_deletions == 30
    assert not queue.missing_files.keys() & set(others)


def test_deletions_that_wait_to_be_indexed_are_counted_once(steps: Steps) -> None:
    queue = steps.loop.work_queue
    leave(steps, 30)
    for _ in range(3):
        assert queue.reconcile("docs").held_deletions == 0
    assert queue._recent_deletions.count("docs") == 30


def test_confirmed_deletions_do_not_count_with_those_that_follow(steps: Steps) -> None:
    queue = steps.loop.work_queue
    leave(steps, 60)
    assert queue.reconcile("docs").held_deletions == 60
    queue.reconcile("docs", deletions_confirmed=True)
    assert queue._recent_deletions.count("docs") == 0
    (steps.folder / "0.md").unlink()
    assert queue.reconcile("docs").held_deletions == 0


def test_a_walk_of_a_polled_folder_holds_a_mass_deletion(steps: Steps) -> None:
    queue = steps.loop.work_queue
    files = leave(steps, 60)
    assert queue.reconcile("docs", "gone").held_deletions == 60
    assert not set(queue.files.snapshot()) & set(files)
    assert queue.root_watcher.states["docs"].held_deletions == 60


def test_files_of_a_folder_that_moved_are_moves(steps: Steps) -> None:
    (steps.folder / "old").mkdir()
    for name in ("a.md", "b.md"):
        steps.write(f"old/{name}", f"Words of {name} in a folder.\n")
    steps.loop.walk_and_index_all()
    queue = steps.loop.work_queue
    (steps.folder / "old").rename(steps.folder / "new")
    for path in ("old", "new"):
        queue.add_hint(RootedPath("docs", path))
    queue.drain_hints(skip_debounce=True)
    assert queue.moved_from == {
        RootedPath("docs", f"new/{name}"): RootedPath("docs", f"old/{name}")
        for name in ("a.md", "b.md")
    }
    queue.remove(RootedPath("docs", "new/a.md"))
    assert list(queue.moved_from) == [RootedPath("docs", "new/b.md")]


# Hints that need a look


@pytest.mark.parametrize(("settled_s", "is_due"), [(-0.01, False), (0.0, True)])
def test_a_hint_is_due_once_it_settled(
    steps: Steps,
    monkeypatch: pytest.MonkeyPatch,
    settled_s: float,
    is_due: bool,  # noqa: FBT001 - a column of the table
) -> None:
    queue = steps.loop.work_queue
    monkeypatch.setattr(queue, "_settle_s", 0.5)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    queue.add_hint(A)
    assert queue.last_event_at == 100.0
    assert queue.has_fresh_due(100.5 + settled_s) is is_due
    monkeypatch.undo()


def test_the_log_of_a_database_is_a_hint_of_the_database(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = steps.loop.work_queue
    looked: list[str] = []

    def inspect(root: str, hinted_at: dict[str, float]) -> None:
        assert root == "docs"
        looked.extend(hinted_at)

    monkeypatch.setattr(HintInspector, "inspect", lambda _, *of: inspect(*of))
    monkeypatch.setattr(queue, "reconcile", looked.append)
    queue.add_hint(RootedPath("docs", "state.vscdb-wal"))
    queue.drain_hints(skip_debounce=True)
    assert looked == ["state.vscdb", "docs"], "and a folder that cannot be walked walks the root"


def test_an_emptied_file_waits_like_a_deleted_one_and_one_without_rows_does_not(
    steps: Steps,
) -> None:
    queue = steps.loop.work_queue
    steps.write("0.md", "")
    steps.write("new.md", "")
    inspection = queue._inspector.inspect("docs", {"0.md": 1.0, "new.md": 2.0, "1.md": 3.0})
    assert inspection is not None
    assert list(inspection.missing) == [A]
    record = steps.writer.catalog.get_record(A)
    assert record is not None
    assert inspection.missing[A] == record.fingerprint
    assert inspection.hinted_paths == {A: "0.md"}
    assert set(inspection.present) == {"new.md", "1.md"}
    assert inspection.files_due == {A: 1.0, RootedPath("docs", "new.md"): 2.0, B: 3.0}


@pytest.mark.parametrize(
    ("recent", "devices", "asks"),
    [
        (49, [7], True),
        (48, [7], False),
        (0, [7] * 50, True),
        (99, [], False),
        (0, [8], True),
        (0, [7, 8], True),
        (0, [NO_FINGERPRINT.device], False),
    ],
)
def test_a_walk_of_the_root_decides_about_fifty_deletions_or_those_of_another_disk(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, recent: int, devices: list[int], *, asks: bool
) -> None:
    queue = steps.loop.work_queue
    monkeypatch.setattr(queue.root_watcher, "stat_device", lambda _: 7)
    queue._recent_deletions.record("docs", recent)
    files = {
        RootedPath("docs", f"{number}.md"): NO_FINGERPRINT._replace(device=device)
        for number, device in enumerate(devices)
    }
    assert queue._needs_deletion_guard("docs", files) is asks


def test_missing_files_come_after_those_that_exist_and_keep_their_first_hint(steps: Steps) -> None:
    queue = steps.loop.work_queue
    steps.saved(B, 1.0)
    inspection = Inspection(root="docs", files_due={A: 5.0, B: 6.0, C: 7.0})
    inspection.missing[A] = queue.missing_files[A] = NO_FINGERPRINT
    queue._enqueue_hinted(inspection)
    assert queue.hinted_at == {B: 1.0, C: 7.0, A: 5.0}
    assert queue.files.snapshot() == [B, C, A]
    turn = queue.next_turn()
    assert turn is not None
    assert turn.files == [C, B], "the last save goes first"


def test_a_root_that_is_removed_takes_its_hints_and_deletions_with_it(steps: Steps) -> None:
    queue = steps.loop.work_queue
    queue._debouncer.add_hint(A, 1.0)
    queue._deletions.add(B, 1.0)
    steps.saved(C, 1.0)
    assert queue.drop_root_hints("docs") == [C]
    assert (len(queue._debouncer), len(queue._deletions)) == (0, 0)


def test_status_tells_what_the_last_walk_of_the_whole_root_found(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = steps.loop.work_queue
    state = queue.root_watcher.states["docs"]
    state.is_scanned = False
    walks = queue.reconcile_count
    problem = Problem("permission denied")
    result = ReconcileResult(
        walk_error="gone", is_refused=True, held_deletions=3, file_count=5, skipped=7,
        folder_problems=(("locked", problem),), gone_or_emptied={A: NO_FINGERPRINT},
        paths_due=(A,), moved_from={B: C},
    )  # fmt: skip
    monkeypatch.setattr(steps.writer.indexer, "reconcile", lambda *_: result)
    assert queue.reconcile("docs", "sub") is result
    assert (state.is_scanned, queue.reconcile_count) == (False, walks)
    assert (queue.missing_files, queue.moved_from) == ({A: NO_FINGERPRINT}, {B: C})
    assert queue.files.snapshot() == [A]
    queue.reconcile("docs")
    assert (state.is_scanned, state.walk_error, state.is_refused) == (True, "gone", True)
    assert (state.held_deletions, state.file_count, state.skipped_count) == (3, 5, 7)
    assert {path: told for path, (told, _) in state.folder_problems.items()} == {"locked": problem}
    assert queue.reconcile_count == walks + 1


def test_files_and_roots_whose_rules_settle_are_what_sync_waits_for(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = steps.loop.work_queue
    steps.saved(A, 1.0)
    queue.enqueue([B])
    assert queue.pending_paths == {A, B}
    monkeypatch.setattr(type(queue.root_checks), "unsettled_roots", property(lambda _: ["docs"]))
    assert queue.pending_paths == {A, B, RootedPath("docs", "")}
    monkeypatch.undo()
