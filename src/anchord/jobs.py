"""Functions that other threads have the writer run, between two commits; when there is no writer any more, they are told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from anchord.errors import AnchordError

T = TypeVar("T")


class Jobs:
    """`call` and `close` are for other threads; `run` is the writer's."""

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._closed = False

    def __bool__(self) -> bool:
        """Whether some wait."""
        return bool(self._waiting)

    def call(self, job: Callable[[], T], ring: Callable[[], None]) -> Future[T]:
        """Have a function run; `ring` wakes the writer. Once closed, the future raises AnchordError."""
        future: Future[T] = Future()

        def run() -> None:
            if self._closed:
                future.set_exception(AnchordError("anchord is stopping", "ask again once it runs"))
                return
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - carried to the caller, who raises it again
                future.set_exception(error)

        self._waiting.append(run)
        ring()
        if self._closed:
            self.run()
        return future

    def run(self) -> None:
        """Run all that wait."""
        while self._waiting:
            with suppress(IndexError):  # Two threads may want the last one, at the end.
                self._waiting.popleft()()

    def close(self) -> None:
        """Let go of whoever waits, for the writer is not there any more."""
        self._closed = True
        self.run()
