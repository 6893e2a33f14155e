"""What tests do beside their own thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> Future[T]:
    """Call beside this thread; a thread that never ends does not hold up the end of the tests."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def spin(condition: Callable[[], object]) -> None:
    """Let other threads run until something holds; the test's own timeout ends a wait in vain."""
    while not condition():
        os.sched_yield()
