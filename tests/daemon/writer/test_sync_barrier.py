"""A call of `sync` is let go when what waited at its walk has its outcome, and never waits for a writer that has ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from anchord.core.types import RootedPath
from anchord.daemon.writer.sync_barrier import SyncBarrier

A, B = RootedPath("r", "a.md"), RootedPath("r", "b.md")


def test_a_call_is_let_go_when_each_file_of_its_walk_has_an_outcome() -> None:
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


def test_a_call_that_nothing_waits_for_is_let_go_by_its_walk() -> None:
    barrier, rung = SyncBarrier(), Event()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(barrier.wait, None, rung.set)
        rung.wait()
        barrier.set_pending_paths([], barrier.accept_new_calls())
        assert called.result()


def test_a_call_whose_time_is_over_says_so() -> None:
    assert not SyncBarrier().wait(0.01, lambda: None)


def test_a_call_under_way_when_the_writer_ends_is_let_go_and_was_not_served() -> None:
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
