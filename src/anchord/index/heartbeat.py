"""The writer's heartbeat: each step sets a deadline for the next one.

The daemon reports to systemd that it is alive only while no deadline has passed. A running thread
proves
nothing: it may wait for a lock, a disk that does not answer, or a regular expression that does not
    end. Steps that wait for another process have a timeout of their own, after which that process
    is replaced. They announce it, so that the daemon is not killed while it recovers by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable

MODEL_STEP_TIMEOUT_S = 1_200.0
"""Seconds for the next batch of the model. Exporting a model at its first use may take 900."""

STEP_TIMEOUT_S = 120.0
"""Seconds for any other step: one file read and chunked, one folder listed, one batch written."""


class HeartbeatMonitor:
    """Deadline of the writer's next step. The writer's thread calls `beat`; other threads read."""

    def __init__(
        self, step_timeout_s: float = STEP_TIMEOUT_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start with a beat.

        Args:
            step_timeout_s: The shortest time until a beat is overdue.
            clock: Returns monotonic seconds.
        """
        self.step_timeout_s = step_timeout_s
        self._clock = clock
        self._deadline = clock() + step_timeout_s

    def beat(self, next_step_timeout_s: float = 0.0) -> None:
        """Record that a step is done, and set the deadline of the next one.

        Args:
            next_step_timeout_s: Seconds for the next step, if more than `step_timeout_s`.
        """
        self._deadline = self._clock() + max(self.step_timeout_s, next_step_timeout_s)

    @property
    def overdue_s(self) -> float:
        """Seconds since the deadline passed; 0 before."""
        return max(0.0, self._clock() - self._deadline)
