"""Files that wait for vectors: saved ones first, none starved, none lost while it cannot be read."""

from __future__ import annotations

from anchord.core.types import RootedPath
from anchord.daemon.writer.file_queue import AGING_INTERVAL, SHORTEST_TURN_S, Urgency
from anchord.daemon.writer.vector_queue import VectorQueue
from anchord.index.vector_fill import FILES_PER_FILL

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


def test_what_a_query_found_goes_after_saved_files_and_before_the_rest() -> None:
    queue = VectorQueue()
    others = [RootedPath("docs", f"other {number}.md") for number in range(20)]
    queue.add_found([A, B, *others])
    queue.add(C, Urgency.SAVED, 1.0)
    queue.add_wanted([A, RootedPath("docs", "has its vectors.md")])
    queue.add_wanted([B])
    order = []
    while len(queue):
        order += (files := queue.next_files())
        for file in files:
            queue.remove(file)
    assert order[:3] == [C, B, A]
    assert set(order[3:]) == set(others)


def test_a_query_interrupts_a_fill_once_for_what_waits_and_is_not_first_yet() -> None:
    queue = VectorQueue()
    queue.add_found([A, B])
    queue.add(C, Urgency.SAVED, 1.0)
    queue.add_wanted([C, RootedPath("docs", "has its vectors.md")])
    assert not queue.has_wanted
    queue.add_wanted([B])
    assert queue.has_wanted
    assert queue.next_files() == [C]
    assert not queue.has_wanted
    queue.add_wanted([B])
    assert not queue.has_wanted, "it goes first among those that are not saved already"


def test_queries_that_find_much_are_forgotten_and_not_collected() -> None:
    queue = VectorQueue()
    queue.add_wanted(RootedPath("docs", f"{number}.md") for number in range(100_000))
    queue.add_found([A])
    queue.add_wanted([A])
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


MANY = [RootedPath("docs", f"{number}.md") for number in range(2 * FILES_PER_FILL)]


def test_files_whose_model_failed_go_behind_the_others_and_none_is_lost() -> None:
    queue = VectorQueue()
    queue.add_found([*MANY, A])
    tried: list[RootedPath] = []
    while A not in (files := queue.next_files()):
        queue.set_back(files)
        tried += files
    assert len(tried) == len(set(tried)) < len(MANY) + 1
    assert (len(queue), set(queue.snapshot())) == (len(MANY) + 1, {*MANY, A})
    queue.set_back([A, B])
    assert B not in queue
    again = [file for _ in range(3) for file in _tried_in_vain(queue)]
    assert set(again) == {*MANY, A}, "each is tried again"


def _tried_in_vain(queue: VectorQueue) -> list[RootedPath]:
    queue.set_back(files := queue.next_files())
    return files


def test_files_that_were_set_back_are_tried_each_eighth_time_while_others_wait() -> None:
    queue = VectorQueue()
    queue.add_found([A])
    queue.set_back([A])
    queue.add(B, Urgency.SAVED, 1.0)
    taken = [queue.next_files() for _ in range(2 * AGING_INTERVAL)]
    assert taken == ([[B]] * (AGING_INTERVAL - 1) + [[A]]) * 2


def test_once_their_model_works_files_have_their_places_again() -> None:
    queue = VectorQueue()
    queue.add(A, Urgency.SAVED, 1.0)
    queue.add_found([B, C])
    queue.set_back([A, B])
    queue.note_made(C)
    assert queue.next_files() == [C], "that is a file of another model"
    queue.note_made(B)
    assert queue.next_files() == [A]
    assert set(queue.snapshot()) == {A, B, C}


def test_a_file_that_was_set_back_is_known_wanted_removed_and_saved_like_others() -> None:
    queue = VectorQueue()
    queue.add_found([A, B, C])
    queue.set_back([A, B, C])
    queue.add_found([A, B, C])
    assert (len(queue), queue.has_next(), queue.has_next(saved_only=True)) == (3, True, False)
    queue.add_wanted([B])
    assert queue.next_files(saved_only=True) == []
    queue.add(C, Urgency.SAVED, 1.0)
    assert queue.next_files(saved_only=True) == [C], "it may have another model now"
    queue.remove(C)
    queue.note_made(A)
    assert queue.next_files() == [B], "a query had found it"
    queue.set_back([A, B])
    queue.set_unreadable(A)
    assert (queue.snapshot(), queue.drop_root("docs"), len(queue)) == ([B], [B], 0)


def test_a_saved_file_that_was_set_back_is_tried_on_battery() -> None:
    queue = VectorQueue()
    queue.add(A, Urgency.SAVED, 1.0)
    queue.set_back([A])
    assert queue.has_next(saved_only=True)
    assert queue.next_files(saved_only=True) == [A]
