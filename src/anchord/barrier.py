"""What `sync` waits on: calls from other threads, let go when every file that waited at their walk has had its outcome.

The barrier does not trust events. A call opens it; the writer then walks every root and names what is waiting, and each
outcome takes one file away. So a call that returned has seen a walk that began after it, whatever was lost before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from anchord.model import Origin


@dataclass(slots=True)
class _Call:
    """A waiting call, and the files that still need an outcome."""

    done: threading.Event = field(default_factory=threading.Event)
    waiting: set[Origin] = field(default_factory=set)


class Barrier:
    """`wait` is for other threads; everything else is the writer's."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._lock = threading.Lock()
        self._new: list[_Call] = []
        self._begun: list[_Call] = []
        self._closed = False

    def wait(self, timeout_s: float | None, ring: Callable[[], None]) -> bool:
        """Return True once everything written before the call is indexed, False when the time is over or the writer ends.

        `ring` wakes the writer.
        """
        call = _Call()
        with self._lock:
            if self._closed:
                return False  # Nobody would ever let this call go.
            self._new.append(call)
        ring()
        return call.done.wait(timeout_s) and not self._closed

    @property
    def called(self) -> bool:
        """Whether somebody waits for a walk."""
        return bool(self._new)

    @property
    def waiting(self) -> bool:
        """Whether somebody waits at all."""
        return bool(self._new or self._begun)

    def take(self) -> int:
        """Count the new calls in: what is walked from now on is walked for them."""
        with self._lock:
            calls, self._new = self._new, []
        self._begun += calls
        return len(calls)

    def name(self, waiting: Iterable[Origin], newest: int) -> None:
        """Tell the newest calls what they wait for."""
        for call in self._begun[len(self._begun) - newest :]:
            call.waiting = set(waiting)
        self.release()

    def settle(self, origin: Origin) -> None:
        """Note a file's outcome."""
        for call in self._begun:
            call.waiting.discard(origin)

    def release(self) -> None:
        """Let go of the calls that wait for nothing any more."""
        for call in self._begun:
            if not call.waiting:
                call.done.set()
        self._begun = [call for call in self._begun if call.waiting]

    def close(self) -> None:
        """Let everybody go: the writer ends."""
        with self._lock:
            self._closed = True
            calls = [*self._begun, *self._new]
        for call in calls:
            call.done.set()
