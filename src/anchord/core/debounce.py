"""Debouncing of hints: a changed path is handled once it has been quiet for a while.

A hint says that a path may have changed. The empty path stands for the whole root. Two limits keep
the work bounded:

- A path is due `quiet_s` after its last hint, but at most `max_wait_s` after its first one. A file
  that is written without pause is therefore still indexed.
- When more than `max_paths_per_root` paths of a root wait, one hint for the whole root replaces
  them.
"""

from __future__ import annotations

from dataclasses import dataclass

from anchord.core.types import RootedPath


@dataclass(slots=True)
class _HintTimes:
    first: float
    last: float


class Debouncer:
    """The set of waiting hints.

    The caller passes the time into every method, as seconds of any monotonic clock.
    """

    def __init__(self, quiet_s: float, max_wait_s: float, max_paths_per_root: int = 2_000) -> None:
        """Start without hints.

        Args:
            quiet_s: Seconds without a further hint after which a path is due.
            max_wait_s: Seconds after its first hint at which a path is due in any case.
            max_paths_per_root: Paths of one root that wait separately. One more replaces them all
                by a hint for the whole root.
        """
        self._quiet_s = quiet_s
        self._max_wait_s = max_wait_s
        self._max_paths_per_root = max_paths_per_root
        self._waiting: dict[str, dict[str, _HintTimes]] = {}

    def __len__(self) -> int:
        """Return the number of waiting hints."""
        return sum(len(hints_by_path) for hints_by_path in self._waiting.values())

    def add_hint(self, origin: RootedPath, now: float) -> None:
        """Add a hint, or prolong the quiet time of one that waits already.

        Args:
            origin: The path that may have changed; an empty path means the whole root, and
                replaces the root's other hints.
            now: The current time.
        """
        hints_by_path = self._waiting.setdefault(origin.root, {})
        whole_root = hints_by_path.get("")
        if whole_root is not None and origin.path:
            whole_root.last = now  # The hint for the whole root covers every path in it.
            return
        hint = hints_by_path.setdefault(origin.path, _HintTimes(first=now, last=now))
        hint.last = now
        if not origin.path or len(hints_by_path) > self._max_paths_per_root:
            first = min(waiting.first for waiting in hints_by_path.values())
            self._waiting[origin.root] = {"": _HintTimes(first=first, last=now)}

    def pop_due(
        self, now: float, *, include_unsettled: bool = False
    ) -> list[tuple[RootedPath, float]]:
        """Remove and return the paths that are due.

        Args:
            now: The current time.
            include_unsettled: True to remove and return every waiting path, due or not.

        Returns:
            (path, time of its first hint) for each removed path.
        """
        popped: list[tuple[RootedPath, float]] = []
        for root, hints_by_path in self._waiting.items():
            for path, hint in list(hints_by_path.items()):
                if include_unsettled or now >= self._due_at(hint):
                    popped.append((RootedPath(root, path), hint.first))
                    del hints_by_path[path]
        return popped

    def next_due_at(self) -> float | None:
        """Return the time at which the next path is due, or None when nothing waits."""
        due_times = [
            self._due_at(hint)
            for hints_by_path in self._waiting.values()
            for hint in hints_by_path.values()
        ]
        return min(due_times, default=None)

    def drop_root(self, root: str) -> None:
        """Discard the hints of a root. An unknown root is no error."""
        self._waiting.pop(root, None)

    def _due_at(self, hint: _HintTimes) -> float:
        return min(hint.last + self._quiet_s, hint.first + self._max_wait_s)
