"""A lock that many hold at once, or one alone: questions are asked side by side, and none while what they read is replaced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Whoever waits to be alone is let in before those that come later. One thread at most may ask to be alone."""

    def __init__(self) -> None:
        """Begin with nobody holding it."""
        self._changed = threading.Condition()
        self._holders = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold it beside others. Not to be entered twice by one thread: the second time it may wait for itself."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._holders += 1
        try:
            yield
        finally:
            with self._changed:
                self._holders -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, patience_s: float) -> Iterator[None]:
        """Hold it alone; beside those who do not let go within `patience_s`."""
        with self._changed:
            self._alone = True
            self._changed.wait_for(lambda: not self._holders, patience_s)
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
