"""A read-write lock: queries run side by side, and none runs while what they read is replaced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """Any number of readers or one writer. A waiting writer goes before readers that come later.

    At most one thread may use the write lock.
    """

    def __init__(self) -> None:
        """Start unlocked."""
        self._changed = threading.Condition()
        self._reader_count = 0
        self._has_writer = False
        """Whether a writer waits or holds the lock: then no reader enters."""

    @contextmanager
    def read_lock(self) -> Iterator[None]:
        """Hold the lock for reading; block while a writer waits for it or holds it.

        Not re-entrant: a second acquisition by the same thread can deadlock.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._has_writer)
            self._reader_count += 1
        try:
            yield
        finally:
            with self._changed:
                self._reader_count -= 1
                self._changed.notify_all()

    @contextmanager
    def write_lock(self, max_wait_s: float) -> Iterator[None]:
        """Hold the lock for writing; block until no reader holds it.

        Args:
            max_wait_s: Seconds to wait for readers. After that the lock is held beside those that
                still read: a stuck reader must not stop the writer.
        """
        with self._changed:
            self._has_writer = True
            self._changed.wait_for(lambda: not self._reader_count, max_wait_s)
        try:
            yield
        finally:
            with self._changed:
                self._has_writer = False
                self._changed.notify_all()
