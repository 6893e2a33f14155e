"""Calls of the socket whose client may leave: what waits for the writer then stops waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar


class Call:
    """One call of a client. Any thread may cancel it."""

    def __init__(self) -> None:
        """Create a call that nothing waits for yet."""
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self.is_cancelled = False

    def cancel(self) -> None:
        """Mark the call as cancelled, and wake what waits for it."""
        with self._lock:
            self.is_cancelled = True
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Register a function that `cancel` calls, in the thread that cancels.

        Args:
            callback: Must not block. Called immediately if the call is cancelled already.
        """
        with self._lock:
            self._callbacks.append(callback)
            is_cancelled = self.is_cancelled
        if is_cancelled:
            callback()


_CURRENT: ContextVar[Call] = ContextVar("call")


def set_current_call(call: Call) -> None:
    """Make a call the current one in this context."""
    _CURRENT.set(call)


def current_call() -> Call:
    """Return the call that this thread executes; a new one, never cancelled, if there is none."""
    return _CURRENT.get(None) or Call()
