"""Many readers at a time, or one writer."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from anchord.daemon.rw_lock import ReadWriteLock

LONG_S = 30.0


def begun(do: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    return thread


def test_it_is_shared_by_those_who_come_at_once() -> None:
    lock, met = ReadWriteLock(), threading.Barrier(3, timeout=LONG_S)

    def hold() -> None:
        with lock.read_lock():
            met.wait()

    others = [begun(hold) for _ in range(2)]
    hold()
    for each in others:
        each.join(LONG_S)
    assert not met.broken


def test_who_wants_to_be_alone_waits_for_those_who_hold_it_and_comes_before_those_who_come_later() -> (
    None
):
    lock, order = ReadWriteLock(), list[str]()
    held, wanted, let_go = (threading.Event() for _ in range(3))

    def first() -> None:
        with lock.read_lock():
            held.set()
            let_go.wait(LONG_S)
            order.append("first")

    def change() -> None:
        wanted.set()
        with lock.write_lock(LONG_S):
            order.append("changed")

    def later() -> None:
        with lock.read_lock():
            order.append("later")

    threads = [begun(first)]
    assert held.wait(LONG_S)
    threads.append(begun(change))
    assert wanted.wait(LONG_S)
    while not lock._has_writer:
        pass
    threads.append(begun(later))
    let_go.set()
    for each in threads:
        each.join(LONG_S)
    assert order == ["first", "changed", "later"]


def test_a_lock_that_is_never_released_is_not_waited_for_without_end() -> None:
    lock, held, let_go = ReadWriteLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock.read_lock():
            held.set()
            let_go.wait(LONG_S)

    holder = begun(hold)
    assert held.wait(LONG_S)
    with lock.write_lock(0.01):
        assert holder.is_alive()
    let_go.set()
    holder.join(LONG_S)
    with lock.read_lock():
        assert not holder.is_alive()


def test_a_failure_releases_the_lock() -> None:
    lock = ReadWriteLock()
    with pytest.raises(ZeroDivisionError), lock.read_lock():
        1 / 0  # noqa: B018 - it fails
    with pytest.raises(ZeroDivisionError), lock.write_lock(LONG_S):
        1 / 0  # noqa: B018 - it fails
    with lock.write_lock(0.0):
        assert lock._reader_count == 0
