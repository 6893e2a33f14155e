"""`sync` returns when each file that its walk found has an outcome, or when the writer has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from anchord.core.types import RootedPath
from anchord.daemon.calls import Call, set_current_call
from anchord.daemon.writer.sync_barrier import SyncBarrier
from anchord.errors import StoreError

A, B, C = (RootedPath("r", f"{name}.md") for name in "abc")


def test_a_call_returns_when_each_file_of_its_walk_has_an_outcome() -> None:
    barrier, rung = SyncBarrier(), Event()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        assert barrier.has_new_calls
        barrier.set_pending_paths([A, B], barrier.accept_new_calls())
        barrier.mark_done(A)
        barrier.release_finished_calls()
        assert not called.done()
        barrier.mark_done(B)
        barrier.release_finished_calls()
        assert called.result()


def test_a_call_without_pending_files_returns_after_its_walk() -> None:
    barrier, rung = SyncBarrier(), Event()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_pending_paths([], barrier.accept_new_calls())
        assert called.result()


def test_calls_whose_walk_failed_wait_for_another_one() -> None:
    barrier, rung = SyncBarrier(), Event()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        with pytest.raises(StoreError), barrier.accept_for_walk():
            raise StoreError("the catalog is busy")
        barrier.stop_waiting_for_files()
        assert barrier.has_new_calls
        assert not called.done()
        barrier.set_pending_paths([], barrier.accept_new_calls())
        assert called.result()


def test_calls_stop_waiting_for_files_that_nothing_will_index_and_go_on_for_vectors() -> None:
    barrier, rung = SyncBarrier(), Event()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_pending_paths([A], barrier.accept_new_calls(), [B])
        barrier.stop_waiting_for_files()
        assert not called.done()
        barrier.mark_vectors_done(B)
        barrier.release_finished_calls()
        assert called.result()


def test_a_call_whose_time_is_over_says_so() -> None:
    assert not SyncBarrier().wait(0.01, lambda: None)


def test_a_call_under_way_when_the_writer_ends_returns_and_was_not_served() -> None:
    barrier, rung = SyncBarrier(), Event()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_pending_paths([A], barrier.accept_new_calls())
        barrier.close()
        assert not called.result()


def test_a_call_after_the_writers_end_does_not_wait() -> None:
    barrier = SyncBarrier()
    barrier.close()
    assert not barrier.wait(None, lambda: None)


def test_a_call_that_returned_is_no_longer_waited_for() -> None:
    """Otherwise `on_battery = "pause"` never pauses again, and the list grows with each call."""
    barrier = SyncBarrier()
    with ThreadPoolExecutor(1) as pool:
        for pending in ([], [A], [A, B]):
            rung = Event()
            called = pool.submit(barrier.wait, None, rung.set)
            rung.wait()
            assert barrier.has_waiters
            barrier.set_pending_paths(pending, barrier.accept_new_calls())
            assert barrier.has_waiters == bool(pending)
            for path in pending:
                barrier.mark_done(path)
            barrier.release_finished_calls()
            assert called.result()
            assert not barrier.has_waiters
            assert not barrier.has_new_calls


def test_a_call_whose_time_is_over_asks_for_no_walk_any_more() -> None:
    barrier = SyncBarrier()
    assert not barrier.wait(0.01, lambda: None)
    assert not barrier.has_new_calls
    assert not barrier.has_waiters


def test_a_later_call_does_not_change_what_an_earlier_one_waits_for() -> None:
    barrier = SyncBarrier()
    with ThreadPoolExecutor(2) as pool:
        calls = []
        for pending in ([A], [A, B]):
            rung = Event()
            calls.append(pool.submit(barrier.wait, None, rung.set))
            rung.wait()
            barrier.set_pending_paths(pending, barrier.accept_new_calls())
        barrier.mark_done(A)
        barrier.release_finished_calls()
        assert calls[0].result()
        assert not calls[1].done()
        barrier.mark_done(B)
        barrier.release_finished_calls()
        assert calls[1].result()


def test_a_blocked_barrier_ends_calls_at_once_and_a_free_one_serves_them() -> None:
    barrier, rung = SyncBarrier(), Event()
    with ThreadPoolExecutor(2) as pool:
        accepted = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_pending_paths([A], barrier.accept_new_calls())
        rung.clear()
        new = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_blocked(blocked=True)
        assert (accepted.result(), new.result()) == (False, False)
        assert not barrier.has_new_calls
        assert not barrier.wait(None, lambda: None)
        barrier.set_blocked(blocked=False)
        rung.clear()
        served = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_pending_paths([], barrier.accept_new_calls())
        assert served.result()


@pytest.mark.parametrize("timeout_s", [None, 60.0])
@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("words_only", [True, False])
@pytest.mark.parametrize("vectors_fail", [True, False])
def test_a_call_ends_when_what_it_waits_for_keeps_failing_unless_it_has_a_timeout(
    timeout_s: float | None, *, accepted: bool, words_only: bool, vectors_fail: bool
) -> None:
    barrier, rung = SyncBarrier(), Event()
    waits_for_vectors = accepted and not words_only
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, timeout_s, rung.set, words_only=words_only)
        rung.wait()
        if accepted:
            barrier.set_pending_paths([A], barrier.accept_new_calls(), [B])
        barrier.interrupt_calls_without_timeout(for_vectors=vectors_fail)
        is_ended = timeout_s is None and (waits_for_vectors or not vectors_fail)
        if not is_ended:
            assert not called.done()
            barrier.set_pending_paths([], barrier.accept_new_calls())
            barrier.mark_done(A)
            barrier.mark_vectors_done(B)
            barrier.release_finished_calls()
        assert called.result() is not is_ended


def test_a_call_whose_client_left_was_not_served() -> None:
    """The writer continues with the files; no call returns as if they were searchable."""
    barrier, rung, call = SyncBarrier(), Event(), Call()
    with ThreadPoolExecutor(1) as pool:

        def wait() -> bool:
            set_current_call(call)
            return barrier.wait(None, rung.set)

        called = pool.submit(wait)
        rung.wait()
        call.cancel()
        assert not called.result()
        assert not barrier.has_waiters


# What one call waits for: everything happens in the writer's turn, while the call wakes it.


def is_served(
    barrier: SyncBarrier,
    then: Callable[[], None],
    pending: Iterable[RootedPath] = (),
    vectors: Iterable[RootedPath] = (),
    *,
    words_only: bool = False,
) -> bool:
    """Call `sync`, have its walk find what waits, do something, and return what the call says."""

    def walk() -> None:
        barrier.set_pending_paths(pending, barrier.accept_new_calls(), vectors)
        then()
        barrier.release_finished_calls()

    return barrier.wait(0.0, walk, words_only=words_only)


@pytest.mark.parametrize("words_only", [True, False])
@pytest.mark.parametrize("files_done", [True, False])
@pytest.mark.parametrize("vectors_done", [True, False])
def test_a_call_waits_for_files_and_unless_words_are_enough_for_vectors(
    *, words_only: bool, files_done: bool, vectors_done: bool
) -> None:
    barrier = SyncBarrier()

    def work() -> None:
        if files_done:
            barrier.mark_done(A)
        if vectors_done:
            barrier.mark_vectors_done(B)

    served = is_served(barrier, work, [A], [B], words_only=words_only)
    assert served is (files_done and (vectors_done or words_only))
    assert barrier.has_waiters is not served


def test_a_call_waits_for_vectors_unless_it_says_otherwise() -> None:
    barrier = SyncBarrier()
    walk = lambda: barrier.set_pending_paths([], barrier.accept_new_calls(), [A])  # noqa: E731
    assert barrier.wait(0.0, walk) is False


@pytest.mark.parametrize("words_only", [True, False])
@pytest.mark.parametrize("made", [True, False])
def test_a_file_that_was_indexed_without_vectors_is_waited_for_until_they_are_made(
    *, words_only: bool, made: bool
) -> None:
    barrier = SyncBarrier()

    def work() -> None:
        barrier.expect_vectors(A)
        barrier.expect_vectors(B)  # Nobody waits for it.
        barrier.mark_done(A)
        if made:
            barrier.mark_vectors_done(A)

    assert is_served(barrier, work, [A], words_only=words_only) is (made or words_only)


@pytest.mark.parametrize("done", [[], [A], [B], [A, B]])
def test_a_file_that_changed_before_its_vectors_were_made_is_waited_for_again(
    done: list[RootedPath],
) -> None:
    barrier = SyncBarrier()

    def work() -> None:
        barrier.expect_file_again(A)
        barrier.expect_file_again(C)  # Nobody waits for it.
        barrier.mark_vectors_done(B)
        for file in done:
            barrier.mark_done(file)

    assert is_served(barrier, work, [], [A, B]) is (A in done)


@pytest.mark.parametrize(
    ("origin", "instead", "done", "served"),
    [
        (A, [B], [A], False),
        (A, [B], [B], True),
        (A, [B, C], [B], False),
        (A, [], [], True),
        (C, [B], [A], True),
        (C, [B], [B], False),
    ],
)
def test_a_call_waits_for_other_files_in_the_place_of_one(
    origin: RootedPath, instead: list[RootedPath], done: list[RootedPath], *, served: bool
) -> None:
    barrier = SyncBarrier()

    def work() -> None:
        barrier.replace_pending(origin, instead)
        for file in done:
            barrier.mark_done(file)

    assert is_served(barrier, work, [A]) is served


def test_a_call_whose_files_were_replaced_by_none_returns_at_once() -> None:
    barrier = SyncBarrier()

    def walk() -> None:
        barrier.set_pending_paths([A], barrier.accept_new_calls())
        barrier.replace_pending(A, [])

    assert barrier.wait(0.0, walk) is True


def test_only_the_newest_calls_wait_for_what_the_newest_walk_found() -> None:
    barrier = SyncBarrier()

    def work() -> None:
        assert is_served(barrier, lambda: None, [B]) is False
        barrier.mark_done(A)

    assert is_served(barrier, work, [A]) is True


def test_calls_that_come_together_share_a_walk() -> None:
    barrier, accepted = SyncBarrier(), []

    def walk() -> None:
        accepted.append(barrier.accept_new_calls())
        barrier.set_pending_paths([], accepted[-1])

    def call_too() -> None:
        assert barrier.wait(0.0, walk) is True

    assert barrier.wait(0.0, call_too) is True
    assert accepted == [2]
    assert barrier.accept_new_calls() == 0


def test_a_call_that_cannot_be_served_wakes_nobody() -> None:
    barrier, rung = SyncBarrier(), list[int]()
    barrier.set_blocked(blocked=True)
    assert barrier.wait(None, lambda: rung.append(1)) is False
    barrier.set_blocked(blocked=False)
    barrier.close()
    assert barrier.wait(None, lambda: rung.append(1)) is False
    assert (rung, barrier.has_waiters) == ([], False)


def test_the_end_of_a_pause_leaves_calls_alone() -> None:
    barrier = SyncBarrier()
    assert is_served(barrier, lambda: barrier.set_blocked(blocked=False), [A]) is False
    assert is_served(barrier, lambda: barrier.set_blocked(blocked=False)) is True
    assert barrier.has_waiters is True, "the first one waits for its file"


@pytest.mark.parametrize("why", ["end", "pause"])
def test_a_call_that_was_just_served_is_not_when_the_writer_ends_or_pauses(why: str) -> None:
    barrier = SyncBarrier()

    def work() -> None:
        if why == "end":
            barrier.close()
        else:
            barrier.set_blocked(blocked=True)

    assert is_served(barrier, work, [A]) is False
    ended = SyncBarrier()
    assert is_served(ended, ended.close) is False


def test_interrupted_calls_were_not_served_and_later_ones_are() -> None:
    barrier = SyncBarrier()
    assert barrier.wait(0.0, barrier.interrupt_calls) is False
    assert not barrier.has_new_calls

    def serve() -> None:
        barrier.set_pending_paths([], barrier.accept_new_calls())

    assert barrier.wait(0.0, serve) is True


def test_a_call_waits_for_files_that_were_found_to_have_lost_rows() -> None:
    barrier, rung = SyncBarrier(), Event()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_pending_paths([A], barrier.accept_new_calls())
        barrier.expect_files([B])
        barrier.mark_done(A)
        barrier.release_finished_calls()
        assert not called.done()
        barrier.mark_done(B)
        barrier.release_finished_calls()
        assert called.result()


def test_no_call_returns_while_files_of_the_table_are_missing() -> None:
    has_all_files, rung = [False], Event()
    barrier = SyncBarrier(lambda: has_all_files[0])
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_pending_paths([], barrier.accept_new_calls())
        assert not called.done()
        has_all_files[0] = True
        barrier.expect_files([A])
        assert not called.done()
        barrier.mark_done(A)
        barrier.release_finished_calls()
        assert called.result()


def test_the_table_is_looked_at_only_if_a_call_could_return() -> None:
    looked: list[str] = []

    def look() -> bool:
        looked.append("looked")
        return True

    SyncBarrier(look).release_finished_calls()
    assert not looked
