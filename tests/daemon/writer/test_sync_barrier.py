"""`sync` returns when each file that its walk found has an outcome, or when the writer has ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from anchord.core.types import RootedPath
from anchord.daemon.calls import Call, set_current_call
from anchord.daemon.writer.sync_barrier import SyncBarrier

A, B = RootedPath("r", "a.md"), RootedPath("r", "b.md")


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
