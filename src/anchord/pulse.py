"""Whether the writer gets on: at each step it says by when the next one must have come.

systemd is told that the daemon is well only while this is so. A thread that lives proves nothing: one that waits for a lock,
for a disk that does not answer or for an expression that does not end lives too. Steps that wait for another process have a
limit of their own, after which that process is replaced; they announce it, so that nothing is killed that mends itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 120.0
"""An ordinary step: a file read, chunked and compared; a folder listed; a batch of rows written."""


class Pulse:
    """Beaten by the writer's thread, felt by others."""

    def __init__(self, step_s: float = STEP_S, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a beat; `clock` gives steady seconds."""
        self.step_s = step_s
        self._clock = clock
        self._due = clock() + step_s

    def beat(self, within_s: float = 0.0) -> None:
        """Say that a step was done, and that the next one may take so long if that is more than an ordinary one."""
        self._due = self._clock() + max(self.step_s, within_s)

    @property
    def late_s(self) -> float:
        """For how long the next beat has been overdue; 0 while it is not."""
        return max(0.0, self._clock() - self._due)
