"""The writer thread's steps, and what other threads have it run between two commits."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from math import inf
from typing import TypeVar

from anchord.daemon.calls import current_call
from anchord.errors import AnchordError

T = TypeVar("T")

_TURN_S = 1.0
"""So long jobs are run before other work has its turn."""


def run_steps(
    step: Callable[[], None],
    back_off: Callable[[Exception], None],
    is_stopping: Callable[[], bool],
    give_up: Callable[[], None],
) -> None:
    """Run one step after the other until the thread is to stop.

    Args:
        step: Does one piece of work, or sleeps. If it raises, the loop goes on.
        back_off: Called with what a step raised.
        is_stopping: Whether to end.
        give_up: Called if `back_off` raised: the thread ends, which nobody asked for.
    """
    try:
        while not is_stopping():
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the loop must go on; status shows the reason
                back_off(error)
    finally:
        if not is_stopping():
            give_up()


class JobQueue:
    """A queue of functions. Any thread may `submit` and `close`; the writer thread runs them."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._closed = False

    def __bool__(self) -> bool:
        """Whether jobs wait."""
        return bool(self._waiting)

    def submit(self, job: Callable[[], T], wake: Callable[[], None]) -> Future[T]:
        """Queue a function for the writer thread.

        Args:
            job: The function; what it raises, the future raises.
            wake: Called at once, to wake the writer thread.

        Returns:
            The future of the function's result. After `close` it raises AnchordError. It is
            cancelled if the client leaves before the function starts.
        """
        future: Future[T] = Future()
        current_call().on_cancel(future.cancel)

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            if self._closed:
                future.set_exception(AnchordError("anchord is stopping", "try again once it runs"))
                return
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - carried to the caller, who raises it again
                future.set_exception(error)

        self._waiting.append(run)
        wake()
        if self._closed:
            # `close` may have run its jobs before this one was queued: nobody else would run it.
            self.run_pending(max_s=inf)
        return future

    def run_pending(self, max_s: float = _TURN_S) -> None:
        """Run the waiting jobs in their order; once closed, each fails instead.

        Args:
            max_s: No job begins after so many seconds: calls of `sync` and saved files must not
                wait for all of them. The others stay queued.
        """
        ends_at = time.monotonic() + max_s
        while self._waiting and time.monotonic() <= ends_at:
            # While closing, another thread can take the last job between the two calls.
            with suppress(IndexError):
                self._waiting.popleft()()

    def close(self) -> None:
        """Fail all waiting jobs and those that are still submitted: the writer thread has ended."""
        self._closed = True
        self.run_pending(max_s=inf)
