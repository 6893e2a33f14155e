"""Deletions seen by the watcher: they wait a moment before they count, and recent ones are counted.

An unmounted disk or an emptied folder shows up as a burst of deletions. Waiting until the burst is
over lets the deletion guard weigh all of it at once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from anchord.core.types import RootedPath

_QUIET_S = 1.0
"""A root's deletions are processed once none was added for so long."""
_MAX_WAIT_S = 10.0
"""... or this long after the hint about the first of them, whichever comes first."""
_WINDOW_S = 30.0
"""Deletions closer together than this are weighed as one by the deletion guard."""


@dataclass(slots=True)
class _RootDeletions:
    hinted_at: dict[str, float] = field(default_factory=dict)
    last_added_at: float = 0.0

    @property
    def due_at(self) -> float:
        quiet_at = self.last_added_at + _QUIET_S
        latest_at = min(self.hinted_at.values()) + _MAX_WAIT_S
        return min(quiet_at, latest_at)


class DeletionDebouncer:
    """Paths where something is missing, by root, until the root is quiet. Times are monotonic."""

    def __init__(self) -> None:
        """Start empty."""
        self._by_root: dict[str, _RootDeletions] = {}

    def __len__(self) -> int:
        """Count the waiting paths of all roots."""
        return sum(len(waiting.hinted_at) for waiting in self._by_root.values())

    def add(self, path: RootedPath, hinted_at: float) -> None:
        """Add a path; this prolongs the wait of its whole root.

        Args:
            path: A file that is missing, or the folder above it that was hinted at.
            hinted_at: Time of the hint. A path that waits already keeps its earlier time.
        """
        waiting = self._by_root.setdefault(path.root, _RootDeletions())
        waiting.hinted_at.setdefault(path.path, hinted_at)
        waiting.last_added_at = time.monotonic()

    def next_due_at(self) -> float | None:
        """Return when the next root is due, None when nothing waits."""
        return min((waiting.due_at for waiting in self._by_root.values()), default=None)

    def roots_due(self, *, include_unsettled: bool) -> list[str]:
        """Return the roots whose wait is over; with `include_unsettled`, all that wait."""
        now = time.monotonic()
        return [
            root
            for root, waiting in self._by_root.items()
            if include_unsettled or waiting.due_at <= now
        ]

    def pop_root(self, root_name: str) -> Mapping[str, float]:
        """Remove a root and return its waiting paths with the time of their hint."""
        waiting = self._by_root.pop(root_name, None)
        return waiting.hinted_at if waiting else {}


class RecentDeletions:
    """Counts the deletions of each root in the last 30 seconds."""

    def __init__(self) -> None:
        """Start with none."""
        self._by_root: dict[str, deque[tuple[float, int]]] = {}

    def record(self, root_name: str, file_count: int) -> None:
        """Count files of a root that are about to be deleted from the index."""
        if not file_count:
            return
        self._by_root.setdefault(root_name, deque()).append((time.monotonic(), file_count))

    def count(self, root_name: str) -> int:
        """Return how many files of a root were recorded in the last 30 seconds."""
        recorded = self._by_root.get(root_name, deque())
        while recorded and recorded[0][0] < time.monotonic() - _WINDOW_S:
            recorded.popleft()
        return sum(file_count for _, file_count in recorded)
