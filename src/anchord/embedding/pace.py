"""How much of the machine the model's process takes: more while somebody waits."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from anchord.embedding.workers.worker_main import WorkerSettings

_WAITER_S = 30.0
"""So long after somebody waited it stays fast: to start another process takes 0.4 s of CPU."""


class Pace:
    """Knows whether somebody waits for vectors. Any thread may use it."""

    def __init__(self, threads: int, clock: Callable[[], float]) -> None:
        """Begin with nobody waiting.

        Args:
            threads: Threads of a process, whoever waits; 0 lets this choose.
            clock: Seconds of a monotonic clock.
        """
        self._threads = threads
        self._clock = clock
        self._last_waiter_at = float("-inf")

    def note_waiter(self) -> None:
        """Note that somebody waits for vectors now."""
        self._last_waiter_at = self._clock()

    @property
    def has_waiter(self) -> bool:
        """Whether somebody waits now, or has within the last 30 s."""
        return self._clock() < self._last_waiter_at + _WAITER_S

    @property
    def backlog_threads(self) -> int:
        """Threads of a process that embeds a backlog for which nobody waits."""
        return self._threads or max(1, _processors() // 2)

    def adapt(self, settings: WorkerSettings) -> WorkerSettings:
        """Return the settings of a process for a backlog, faster ones if somebody waits."""
        return self.fast(settings) if self.has_waiter else settings

    def fast(self, settings: WorkerSettings) -> WorkerSettings:
        """Return the settings of a process for whose work somebody waits."""
        threads = self._threads or max(1, _processors() - 1)
        return msgspec.structs.replace(settings, threads=threads, nice=0)


def _processors() -> int:
    return os.cpu_count() or 2
