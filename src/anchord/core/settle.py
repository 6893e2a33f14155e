"""Hints + now -> paths that have settled.

A hint says "look here" and nothing more. A path is due once it has been quiet for `quiet_s`, or at the latest `max_wait_s`
after its first hint, so that a file written for ever is still looked at. A root with more than `burst` waiting paths
collapses to one hint for the whole root: the queue is bounded by being a set. The empty path means the whole root.
"""

from __future__ import annotations

from dataclasses import dataclass

from anchord.model import Origin


@dataclass(slots=True)
class _Waiting:
    first: float
    last: float


class Settling:
    """The waiting hints. Time comes in as an argument, in seconds of any steady clock."""

    def __init__(self, quiet_s: float, max_wait_s: float, burst: int = 2_000) -> None:
        """Set the quiet time, the longest wait, and how many paths of a root are kept apart."""
        self._quiet_s = quiet_s
        self._max_wait_s = max_wait_s
        self._burst = burst
        self._waiting: dict[str, dict[str, _Waiting]] = {}

    def __len__(self) -> int:
        """Count the waiting hints."""
        return sum(map(len, self._waiting.values()))

    def hint(self, origin: Origin, now: float) -> None:
        """Note that a path may have changed."""
        paths = self._waiting.setdefault(origin.root, {})
        if "" in paths and origin.path:
            paths[""].last = now
            return
        waiting = paths.setdefault(origin.path, _Waiting(now, now))
        waiting.last = now
        if not origin.path or len(paths) > self._burst:
            first = min(hint.first for hint in paths.values())
            self._waiting[origin.root] = {"": _Waiting(first, now)}

    def due(self, now: float, *, all_of_it: bool = False) -> list[tuple[Origin, float]]:
        """Take out what has settled (or everything), with the time of its first hint."""
        taken = []
        for root, paths in self._waiting.items():
            for path, waiting in list(paths.items()):
                if all_of_it or now >= self._due_at(waiting):
                    taken.append((Origin(root, path), waiting.first))
                    del paths[path]
        return taken

    def next_at(self) -> float | None:
        """Return when the next path will be due, None when nothing waits."""
        return min((self._due_at(w) for paths in self._waiting.values() for w in paths.values()), default=None)

    def drop(self, root: str) -> None:
        """Forget the hints of a root that is no longer watched."""
        self._waiting.pop(root, None)

    def _due_at(self, waiting: _Waiting) -> float:
        return min(waiting.last + self._quiet_s, waiting.first + self._max_wait_s)
