"""LanceDB's asynchronous calls, waited for by whichever thread asks.

Its synchronous ones take five or six turns through an event loop for each query, a third of what the query takes. Here one that
asks for several things in a row takes one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

_STARTING = threading.Lock()


def waited(call: Coroutine[Any, Any, T]) -> T:
    """Return what a call gives, and raise what it raises. Any thread may ask, at the same time as others."""
    with _STARTING:  # So that two threads that are first at once share one.
        loop = _loop()
    future = asyncio.run_coroutine_threadsafe(call, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="lancedb", daemon=True).start()
    return loop
