"""Runs LanceDB's asynchronous calls from ordinary threads.

LanceDB's synchronous calls enter an event loop five or six times for each query, which takes a
third of the query's time. Here a query enters it once.
"""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from anchord.store.table.lance_errors import panics_as_errors

T = TypeVar("T")

_START_LOCK = threading.Lock()


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the shared event loop and block until it ends. Thread-safe.

    The first call starts the loop in a daemon thread of its own.

    Returns:
        What the coroutine returns. Raises what it raises; RuntimeError for a panic.

    Raises:
        OSError: EAGAIN: the system allows no more threads, or has no memory for one.
    """
    try:
        with _START_LOCK:  # Two concurrent first calls must not start two loops.
            loop = _start_loop()
    except RuntimeError as error:
        coroutine.close()
        raise OSError(errno.EAGAIN, str(error)) from error
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        with panics_as_errors():
            return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(
        target=loop.run_forever,
        name="lancedb",
        daemon=True,
    ).start()
    return loop
