"""When roots and folders are walked, and the order of files in the queue."""

from __future__ import annotations

import time

import pytest
from daemon.writer.conftest import Steps

from anchord.core.types import RootedPath
from anchord.daemon.writer import work_queue as module

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


def test_saved_files_come_before_the_backlog_and_each_with_its_reason(steps: Steps) -> None:
    queue = steps.loop.work_queue
    queue.enqueue([A, B])
    queue.enqueue([B, A])
    queue.fresh_files[C] = 0.0
    assert queue.next_files(2) == [(C, "saved"), (A, "found by a walk")]
    assert queue.next_files(10) == [(C, "saved"), (A, "found by a walk"), (B, "found by a walk")]
    assert queue.next_files(1) == [(C, "saved")]
    assert (queue.file_count, len(queue)) == (3, 3)
    queue.add_hint(RootedPath("docs", "hinted.md"))
    assert (queue.file_count, len(queue), queue.has_hints) == (3, 4, True)
    queue.remove(A)
    queue.remove(C)
    assert queue.next_files(10) == [(B, "found by a walk")]
    assert queue.drop_root_hints("docs") == [B]
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
    assert list(queue.fresh_files) == [A]
    assert not queue.has_fresh_due(settled)


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
    assert list(queue.fresh_files) == [B]
    assert len(queue._deletions) == 1
    queue.drain_hints(skip_debounce=True)
    assert list(queue.fresh_files) == [B, A]
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
        steps.loop._index(list(queue.backlog), lambda: False)
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
    assert not queue.backlog.keys() & set(files)
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
