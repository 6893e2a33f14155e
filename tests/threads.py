"""Calls in other threads, and waiting for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> Future[T]:
    """Call a function in a daemon thread, which does not block the end of the tests."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def spin(condition: Callable[[], object]) -> None:
    """Wait until a condition is true; the test's timeout ends a wait that fails."""
    while not condition():
        os.sched_yield()
