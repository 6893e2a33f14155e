"""Which files go first, and that none waits forever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.types import RootedPath
from anchord.daemon.writer.file_queue import AGING_INTERVAL, FileQueue, Turn, Urgency

SAVED, FOUND, LEAVING, LATER = Urgency


def file(name: object) -> RootedPath:
    return RootedPath("docs", f"{name}.md")


def names(files: list[RootedPath]) -> str:
    return " ".join(each.path.removesuffix(".md") for each in files)


def test_a_save_goes_before_a_deletion_and_that_before_what_a_walk_found() -> None:
    queue = FileQueue()
    for name, urgency in (("walk", LATER), ("gone", LEAVING), ("save", SAVED)):
        queue.add(file(name), urgency, 1.0)
    assert names(queue.snapshot()) == "save gone walk"
    for name, urgency in (("save", SAVED), ("gone", LEAVING), ("walk", LATER)):
        assert queue.next_urgency() == (urgency, False)
        assert names(queue.next_files(urgency, 9, {})) == name
        queue.remove(file(name))
    assert queue.next_urgency() is None
    assert (len(queue), file("save") in queue) == (0, False)


@pytest.mark.parametrize(
    ("urgency", "order"),
    [
        (SAVED, "new mid old"),
        (FOUND, "new mid old"),
        (LATER, "new mid old"),
        (LEAVING, "old new mid"),
    ],
)
def test_the_newest_goes_first_and_deletions_go_in_their_order(
    urgency: Urgency, order: str
) -> None:
    queue = FileQueue()
    for name, time in (("old", 1.0), ("new", 3.0), ("mid", 2.0)):
        queue.add(file(name), urgency, time)
    assert names(queue.next_files(urgency, 9, {})) == order
    assert names(queue.next_files(urgency, 2, {})) == " ".join(order.split()[:2])
    assert len(queue) == 3, "they stay until they are done"


def test_a_file_that_waits_keeps_the_higher_urgency_and_the_newer_time() -> None:
    queue = FileQueue()
    queue.add(file("a"), LATER, 1.0)
    queue.add(file("b"), LATER, 2.0)
    queue.add(file("a"), LATER, 3.0)
    queue.add(file("a"), LATER, 2.5)
    assert names(queue.next_files(LATER, 9, {})) == "a b"
    queue.add(file("b"), SAVED, 0.5)
    queue.add(file("b"), LATER, 9.0)
    assert [queue.count(each) for each in Urgency] == [1, 0, 0, 1]
    assert names(queue.snapshot()) == "b a"


def test_the_old_path_of_a_moved_file_follows_the_new_one_and_never_goes_before_it() -> None:
    queue = FileQueue()
    moves = {file("new"): file("old")}
    queue.add(file("old"), LATER, 9.0)
    queue.add(file("other"), LATER, 5.0)
    queue.add(file("new"), LATER, 1.0)
    assert names(queue.next_files(LATER, 1, moves)) == "other"
    assert names(queue.next_files(LATER, 9, moves)) == "other new old"
    queue.remove(file("other"))
    queue.remove(file("new"))
    queue.add(file("new"), SAVED, 1.0)
    assert names(queue.next_files(LATER, 9, moves)) == "new old", "nothing else of them may go"
    assert names(queue.next_files(SAVED, 9, moves)) == "new old"
    queue.remove(file("new"))
    assert names(queue.next_files(LATER, 9, moves)) == "old"


def test_only_what_is_allowed_gets_a_turn() -> None:
    queue = FileQueue()
    queue.add(file("walk"), LATER, 1.0)
    assert queue.next_urgency([SAVED, LEAVING]) is None
    queue.add(file("gone"), LEAVING, 1.0)
    for _ in range(3 * AGING_INTERVAL):
        assert queue.next_urgency([SAVED, LEAVING]) == (LEAVING, False)
    assert (queue.has_more_urgent(LATER), queue.has_more_urgent(LEAVING)) == (True, False)


@given(
    st.lists(st.sampled_from([SAVED, FOUND, LEAVING]), min_size=1, max_size=40), st.integers(1, 30)
)
def test_whatever_comes_in_every_file_is_taken_after_a_bounded_number_of_turns(
    arriving: list[Urgency], turn_size: int
) -> None:
    queue = FileQueue()
    waiting = [file(f"walk{number}") for number in range(20)]
    for each in waiting:
        queue.add(each, LATER, 0.0)
    turns = 0
    while any(each in queue for each in waiting):
        # More comes in than is taken, all of it newer and more urgent.
        for number in range(turn_size + 1):
            urgency = arriving[(turns + number) % len(arriving)]
            queue.add(file(f"new{turns}-{number}"), urgency, float(turns))
            queue.add(file(f"found{turns}-{number}"), LATER, float(turns))
        turn = queue.next_urgency()
        assert turn is not None
        for each in queue.next_files(turn[0], turn_size, {}):
            queue.remove(each)
        turns += 1
        # One turn in eight is theirs, and one file in eight of it is the oldest.
        files_to_take = AGING_INTERVAL * (len(waiting) + 1)
        assert turns <= AGING_INTERVAL * (files_to_take // turn_size + 2)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(list(Urgency)), st.integers(0, 9))))
def test_a_queue_holds_each_file_once_with_its_highest_urgency(
    added: list[tuple[int, Urgency, int]],
) -> None:
    queue = FileQueue()
    expected: dict[int, Urgency] = {}
    for name, urgency, time in added:
        queue.add(file(name), urgency, float(time))
        expected[name] = min(urgency, expected.get(name, urgency))
    assert sorted(queue.snapshot()) == sorted(map(file, expected))
    for urgency in Urgency:
        taken = queue.next_files(urgency, 99, {})
        assert sorted(taken) == sorted(file(name) for name in expected if expected[name] is urgency)


@pytest.mark.parametrize(
    ("turn", "at", "may"),
    [
        (Turn([], LATER, began_at=5.0), 5.0, True),
        (Turn([], LEAVING, began_at=5.0), 5.0, True),
        (Turn([], LATER, is_for_waiting=True, began_at=5.0), 5.4, False),
        (Turn([], LATER, is_for_waiting=True, began_at=5.0), 5.5, True),
        (Turn([], SAVED, began_at=5.0), 6.9, False),
        (Turn([], SAVED, began_at=5.0), 7.0, True),
    ],
)
def test_a_turn_is_protected_for_a_moment(turn: Turn, at: float, *, may: bool) -> None:
    assert turn.may_be_interrupted(at) is may
