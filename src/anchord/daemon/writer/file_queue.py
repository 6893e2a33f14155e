"""The files that wait to be indexed, in the order in which somebody is likely to want them.

1. `SAVED`: single saves, the last one first.
2. `FOUND`: what a query found by words and that lacks vectors, the last query's first.
3. `LEAVING`: files that leave the index, in the order in which they came. They cost no embedding.
4. `LATER`: what a walk or a burst found, by time of change, newest first.

Nobody starves. Of each eight files that are taken of one urgency, one is the file that has waited
longest. And of each eight turns, one belongs to the least urgent files that wait. So a file is
taken after a bounded number of turns, whatever comes in meanwhile.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from anchord.core.types import RootedPath

AGING_INTERVAL = 8
"""Every so many files, and every so many turns, what has waited longest is taken."""
SHORTEST_TURN_S = 0.5
"""How long work that has waited goes on before more urgent files interrupt it."""
_SAVES_ALONE_S = 2.0


class Urgency(IntEnum):
    """How soon a file should be indexed; a lower value goes first."""

    SAVED = 0
    FOUND = 1
    LEAVING = 2
    LATER = 3


@dataclass(frozen=True, slots=True)
class Turn:
    """Files to index next."""

    files: list[RootedPath]
    """In order."""
    urgency: Urgency
    """Of all of them."""
    is_for_waiting: bool = False
    """Whether more urgent files wait, and these go first because they have waited long."""
    began_at: float = 0.0
    """When it was given, by the monotonic clock."""

    def may_be_interrupted(self, now: float) -> bool:
        """Return whether what is more urgent may go first now.

        Saves do not interrupt one another at once, and what has waited long gets on a little beside
        constant saves.
        """
        if self.is_for_waiting:
            return now >= self.began_at + SHORTEST_TURN_S
        return self.urgency is not Urgency.SAVED or now >= self.began_at + _SAVES_ALONE_S


class FileQueue:
    """Files with their urgency. Other threads may use `len()`, `in` and `snapshot`."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: dict[Urgency, dict[RootedPath, float]] = {each: {} for each in Urgency}
        """Urgency -> file -> its time, in the order in which they came."""
        self._newest_later: list[tuple[float, RootedPath]] = []
        """A heap of (-time, file) of the files that are `LATER`; some entries are out of date."""
        self._turn_count = 0
        self._chosen_counts: Counter[Urgency] = Counter()
        """How many files of each urgency `next_files` has chosen."""

    def __len__(self) -> int:
        """Count the files."""
        return sum(map(len, self._waiting.values()))

    def __contains__(self, file: RootedPath) -> bool:
        """Return whether a file waits."""
        return any(file in waiting for waiting in self._waiting.values())

    def snapshot(self) -> list[RootedPath]:
        """Return all files, most urgent first, and in the order in which they came."""
        # `list` copies in one step, whatever the writer thread does to the dictionary meanwhile.
        return [file for urgency in Urgency for file in list(self._waiting[urgency])]

    def place_of(self, file: RootedPath) -> tuple[Urgency, float] | None:
        """Return the urgency and the time of a file; None for one that does not wait."""
        for urgency, waiting in self._waiting.items():
            if file in waiting:
                return urgency, waiting[file]
        return None

    def count(self, urgency: Urgency) -> int:
        """Count the files of one urgency."""
        return len(self._waiting[urgency])

    def has_more_urgent(self, than: Urgency) -> bool:
        """Return whether a file waits that goes before those of an urgency."""
        return any(self._waiting[urgency] for urgency in Urgency if urgency < than)

    def add(self, file: RootedPath, urgency: Urgency, time: float) -> None:
        """Add a file. One that waits keeps the higher urgency, and there the newer time.

        Args:
            file: The file.
            urgency: How soon it should be indexed.
            time: When it was saved or changed: of two files of one urgency the newer goes first.
                All times of one urgency must be of the same clock.
        """
        for other in Urgency:
            if other < urgency and file in self._waiting[other]:
                return
            if other > urgency:
                self._waiting[other].pop(file, None)
        waiting = self._waiting[urgency]
        newest = max(time, waiting.get(file, time))
        if urgency is Urgency.LATER and waiting.get(file) != newest:
            heapq.heappush(self._newest_later, (-newest, file))
        waiting[file] = newest

    def remove(self, file: RootedPath) -> None:
        """Remove a file; does nothing for one that does not wait."""
        for waiting in self._waiting.values():
            waiting.pop(file, None)

    def next_urgency(self, allowed: Iterable[Urgency] = Urgency) -> tuple[Urgency, bool] | None:
        """Begin a turn: return whose it is, and whether it is given to those that have waited.

        Args:
            allowed: The urgencies of which files may be indexed now.

        Returns:
            None if no such file waits.
        """
        present = [urgency for urgency in sorted(allowed) if self._waiting[urgency]]
        if not present:
            return None
        if len(present) == 1:
            self._turn_count = 0
            return present[0], False
        self._turn_count += 1
        if self._turn_count % AGING_INTERVAL:
            return present[0], False
        return present[-1], True

    def next_files(
        self, urgency: Urgency, limit: int, sources: Mapping[RootedPath, RootedPath]
    ) -> list[RootedPath]:
        """Return the next files of an urgency, in order. They stay in the queue until `remove`.

        Args:
            urgency: What `next_urgency` returned.
            limit: The most files to return, without those that are added as sources.
            sources: New path -> old path of files that moved. A source follows its new path, so
                that new rows are written before the old ones go.
        """
        held = {old: new for new, old in sources.items() if new in self}
        # Where nothing but sources wait, their new paths are taken before their turn.
        files = self._choose(urgency, limit, held) or [
            held[file] for file in list(self._waiting[urgency])[:limit]
        ]
        pairs = ((file, sources.get(file)) for file in files)
        return [each for pair in pairs for each in pair if each is not None and each in self]

    def _choose(
        self, urgency: Urgency, limit: int, held: Collection[RootedPath]
    ) -> list[RootedPath]:
        """Return the newest files of an urgency, and the oldest for each turn of those that wait.

        Args:
            urgency: Which files.
            limit: The most files to return.
            held: Files that follow another one, and are not chosen by themselves.
        """
        looked_at = limit + len(held)
        by_age = list(self._waiting[urgency])[:looked_at]
        newest = iter(_without(held, self._newest_first(urgency, looked_at)))
        oldest = iter(_without(held, by_age))
        chosen: dict[RootedPath, None] = {}
        while len(chosen) < limit:
            self._chosen_counts[urgency] += 1
            is_for_waiting = self._chosen_counts[urgency] % AGING_INTERVAL == 0
            by_turn, other = (oldest, newest) if is_for_waiting else (newest, oldest)
            file = _first_not_in(chosen, by_turn) or _first_not_in(chosen, other)
            if file is None:
                break
            chosen[file] = None
        return list(chosen)

    def _newest_first(self, urgency: Urgency, limit: int) -> list[RootedPath]:
        waiting = self._waiting[urgency]
        if urgency is Urgency.LEAVING:
            return list(waiting)[:limit]
        if urgency in {Urgency.SAVED, Urgency.FOUND}:
            return sorted(waiting, key=lambda file: -waiting[file])[:limit]
        entries: list[tuple[float, RootedPath]] = []
        while self._newest_later and len(entries) < limit:
            entry = heapq.heappop(self._newest_later)
            is_current = waiting.get(entry[1]) == -entry[0]
            if is_current and entry not in entries[-1:]:  # Not the same twice.
                entries.append(entry)
        for entry in entries:
            heapq.heappush(self._newest_later, entry)
        return [file for _, file in entries]


def _without(left_out: Collection[RootedPath], files: Iterable[RootedPath]) -> list[RootedPath]:
    return [file for file in files if file not in left_out]


def _first_not_in(
    chosen: Mapping[RootedPath, None], files: Iterator[RootedPath]
) -> RootedPath | None:
    return next((file for file in files if file not in chosen), None)
