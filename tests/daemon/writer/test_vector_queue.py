"""Files that wait for vectors: saved ones first, none starved, none lost while it cannot be read."""

from __future__ import annotations

from anchord.core.types import RootedPath
from anchord.daemon.writer.file_queue import AGING_INTERVAL, SHORTEST_TURN_S, Urgency
from anchord.daemon.writer.vector_queue import VectorQueue

A, B, C = (RootedPath("docs", f"{name}.md") for name in "abc")


def test_saved_files_get_their_vectors_first() -> None:
    queue = VectorQueue()
    queue.add_found([A])
    queue.add(B, Urgency.SAVED, 1.0)
    assert queue.next_files() == [B]
    assert queue.has_next(saved_only=True)
    queue.remove(B)
    assert not queue.has_next(saved_only=True)
    assert queue.next_files(saved_only=True) == []
    assert queue.next_files() == [A]


def test_one_of_eight_turns_belongs_to_vectors_while_files_keep_coming() -> None:
    queue = VectorQueue()
    assert not any(queue.takes_turn(0.0) for _ in range(50))
    queue.add(A, Urgency.LATER, 1.0)
    taken = [queue.takes_turn(0.0) for _ in range(2 * AGING_INTERVAL)]
    assert taken == ([False] * (AGING_INTERVAL - 1) + [True]) * 2


def test_such_a_turn_lasts_a_moment_although_files_wait() -> None:
    queue = VectorQueue()
    queue.add(A, Urgency.LATER, 1.0)
    assert not queue.may_go_on(100.0)
    for _ in range(AGING_INTERVAL):
        queue.takes_turn(100.0)
    assert queue.may_go_on(100.0)
    assert not queue.may_go_on(100.0 + SHORTEST_TURN_S)


def test_a_file_that_cannot_be_read_waits_for_a_walk() -> None:
    queue = VectorQueue()
    queue.add_found([A, B])
    queue.set_unreadable(A)
    assert queue.snapshot() == [B]
    queue.remove(B)
    assert (len(queue), queue.may_lack_some) == (0, True)
    queue.retry_unreadable("other")
    assert queue.snapshot() == []
    queue.retry_unreadable("docs")
    assert queue.snapshot() == [A]


def test_it_may_lack_some_until_the_table_was_asked() -> None:
    queue = VectorQueue()
    assert queue.may_lack_some
    queue.add_found([])
    assert not queue.may_lack_some


def test_a_root_takes_its_files_along() -> None:
    queue = VectorQueue()
    other = RootedPath("other", "d.md")
    queue.add_found([A, other, C])
    queue.set_unreadable(C)
    assert queue.drop_root("docs") == [A]
    queue.retry_unreadable("docs")
    assert queue.snapshot() == [other]
