"""The files that words find already, and that wait for the vectors of some of their chunks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

from anchord.core.types import RootedPath
from anchord.daemon.writer.file_queue import AGING_INTERVAL, SHORTEST_TURN_S, FileQueue, Urgency
from anchord.index.vector_fill import FILES_PER_FILL

_MOST_WANTED = 1_000


class VectorQueue:
    """Files with chunks that lack vectors. Other threads may use `len()` and `add_wanted`."""

    def __init__(self) -> None:
        """Start empty. The table knows of more files until `is_known` is set."""
        self.is_known = False
        """Whether all files are here that the table has such chunks of."""
        self._waiting = FileQueue()
        self._wanted: deque[tuple[float, RootedPath]] = deque(maxlen=_MOST_WANTED)
        """What other threads asked for, and when by the clock, until the writer thread sees it."""
        self._turns_waited = 0
        """Turns that were given to files since vectors waited."""
        self._own_turn_at = float("-inf")
        """When vectors last got a turn although files waited, by the monotonic clock."""
        self._unreadable: set[RootedPath] = set()
        """Files that could not be read when their vectors were to be made."""

    def __len__(self) -> int:
        """Count the files that wait; those that cannot be read do not."""
        return len(self._waiting)

    @property
    def may_lack_some(self) -> bool:
        """Whether a chunk of the table may lack its vector."""
        return not self.is_known or bool(self._waiting or self._unreadable)

    def add(self, file: RootedPath, urgency: Urgency, time_s: float) -> None:
        """Add a file that was just indexed.

        Args:
            file: The file.
            urgency: What it was indexed with.
            time_s: As for `FileQueue.add`.
        """
        # `LEAVING` is for files without chunks.
        is_saved = urgency is Urgency.SAVED
        self._waiting.add(file, Urgency.SAVED if is_saved else Urgency.LATER, time_s)

    def add_found(self, files: Iterable[RootedPath]) -> None:
        """Add all files that the table has such chunks of; those that wait keep their place."""
        for file in files:
            if file not in self._waiting:
                self.add(file, Urgency.LATER, time.time())
        self.is_known = True

    def add_wanted(self, files: Iterable[RootedPath]) -> None:
        """Let files that wait go before all but saved ones: a query has just found them.

        Any thread may call this. Files that do not wait are ignored.
        """
        now = time.time()
        self._wanted.extend((now, file) for file in files)

    @property
    def has_wanted(self) -> bool:
        """Whether a query has found a file that should go first and is not in its place yet."""
        places = (self._waiting.place_of(file) for _, file in list(self._wanted))
        return any(place and place[0] > Urgency.FOUND for place in places)

    def _put_wanted_first(self) -> None:
        while self._wanted:
            wanted_at, file = self._wanted.popleft()
            if file in self._waiting:
                self._waiting.add(file, Urgency.FOUND, wanted_at)

    def has_next(self, *, saved_only: bool = False) -> bool:
        """Whether a file waits; with `saved_only` only those that somebody saved count."""
        return bool(self._waiting.count(Urgency.SAVED) if saved_only else len(self._waiting))

    def takes_turn(self, now: float, *, saved_only: bool = False) -> bool:
        """Count a turn; return whether it belongs to vectors although files may wait.

        Of each eight turns one does, so that constant saves do not starve them.
        """
        if not self.has_next(saved_only=saved_only):
            self._turns_waited = 0
            return False
        self._turns_waited += 1
        if self._turns_waited % AGING_INTERVAL:
            return False
        self._own_turn_at = now
        return True

    def may_go_on(self, now: float) -> bool:
        """Whether a turn that was given to vectors has just begun: files do not end it yet."""
        return now < self._own_turn_at + SHORTEST_TURN_S

    def next_files(self, *, saved_only: bool = False) -> list[RootedPath]:
        """Return the files whose vectors to make next; they stay until `remove`."""
        self._put_wanted_first()
        allowed = [Urgency.SAVED] if saved_only else list(Urgency)
        turn = self._waiting.next_urgency(allowed)
        return self._waiting.next_files(turn[0], FILES_PER_FILL, {}) if turn else []

    def snapshot(self) -> list[RootedPath]:
        """Return all files that wait."""
        return self._waiting.snapshot()

    def remove(self, file: RootedPath) -> None:
        """Take a file off the queue."""
        self._waiting.remove(file)
        self._unreadable.discard(file)

    def set_unreadable(self, file: RootedPath) -> None:
        """Let a file wait until a walk of its root finds that files can be read again."""
        self._waiting.remove(file)
        self._unreadable.add(file)

    def retry_unreadable(self, root_name: str) -> None:
        """Queue the files of a root again that could not be read."""
        for file in [each for each in self._unreadable if each.root == root_name]:
            self._unreadable.discard(file)
            self.add(file, Urgency.LATER, time.time())

    def drop_root(self, root_name: str) -> list[RootedPath]:
        """Remove the files of a root; return those that waited."""
        self._unreadable = {each for each in self._unreadable if each.root != root_name}
        files = [each for each in self._waiting.snapshot() if each.root == root_name]
        for file in files:
            self._waiting.remove(file)
        return files
