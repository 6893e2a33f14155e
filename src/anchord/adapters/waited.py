"""LanceDB's asynchronous calls, waited for by whichever thread asks.

Its synchronous ones take five or six turns through an event loop for each query, a third of what the query takes. Here one that
asks for several things in a row takes one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_starting = threading.Lock()
_running: list[asyncio.AbstractEventLoop] = []


def waited(call: Coroutine[Any, Any, T]) -> T:
    """Return what a call gives, and raise what it raises. Any thread may ask, at the same time as others."""
    future = asyncio.run_coroutine_threadsafe(call, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _loop() -> asyncio.AbstractEventLoop:
    with _starting:
        if not _running:
            _running.append(asyncio.new_event_loop())
            threading.Thread(target=_running[0].run_forever, name="lancedb", daemon=True).start()
        return _running[0]
