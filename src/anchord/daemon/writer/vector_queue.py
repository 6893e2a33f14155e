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
        self._behind: dict[RootedPath, tuple[Urgency, float]] = {}
        """Files whose model has failed, and their place before, in the order of the tries."""
        self._fills = 0
        """How often `next_files` was called while files were behind."""
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
        return len(self._waiting) + len(self._behind)

    def __contains__(self, file: RootedPath) -> bool:
        """Return whether a file waits."""
        return file in self._waiting or file in self._behind

    @property
    def may_lack_some(self) -> bool:
        """Whether a chunk of the table may lack its vector."""
        return not self.is_known or bool(self or self._unreadable)

    def add(self, file: RootedPath, urgency: Urgency, time_s: float) -> None:
        """Add a file that was just indexed.

        Args:
            file: The file.
            urgency: What it was indexed with.
            time_s: As for `FileQueue.add`.
        """
        if file in self._behind:  # It may have another model now.
            self._waiting.add(file, *self._behind[file])
            del self._behind[file]
        # `LEAVING` is for files without chunks.
        is_saved = urgency is Urgency.SAVED
        self._waiting.add(file, Urgency.SAVED if is_saved else Urgency.LATER, time_s)

    def add_found(self, files: Iterable[RootedPath]) -> None:
        """Add all files that the table has such chunks of; those that wait keep their place."""
        for file in files:
            if file not in self:
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
            elif file in self._behind:
                self._behind[file] = min(self._behind[file], (Urgency.FOUND, wanted_at))

    def has_next(self, *, saved_only: bool = False) -> bool:
        """Whether a file waits; with `saved_only` only those that somebody saved count."""
        return bool(self._count_saved() if saved_only else len(self))

    def _count_saved(self) -> int:
        behind = sum(urgency is Urgency.SAVED for urgency, _ in self._behind.values())
        return self._waiting.count(Urgency.SAVED) + behind

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
        """Return the files whose vectors to make next; they stay until `remove`.

        Those that were set back are tried when no others wait, and each eighth time.
        """
        self._put_wanted_first()
        allowed = [Urgency.SAVED] if saved_only else list(Urgency)
        behind = [file for file, (urgency, _) in self._behind.items() if urgency in allowed]
        self._fills += bool(behind)
        if behind and self._fills % AGING_INTERVAL == 0:
            return behind[:FILES_PER_FILL]
        turn = self._waiting.next_urgency(allowed)
        if turn is None:
            return behind[:FILES_PER_FILL]
        return self._waiting.next_files(turn[0], FILES_PER_FILL, {})

    def set_back(self, files: Iterable[RootedPath]) -> None:
        """Let files that wait go behind all others: their model has failed, another may work."""
        for file in files:
            if place := self._behind.pop(file, None) or self._waiting.place_of(file):
                self._behind[file] = place
                self._waiting.remove(file)

    def note_made(self, file: RootedPath) -> None:
        """Note that a model made vectors of a file; if it had failed, files get their places back.

        Those of another model that still fails are set back again when they are tried.
        """
        if file in self._behind:
            for each, place in self._behind.items():
                self._waiting.add(each, *place)
            self._behind.clear()

    def snapshot(self) -> list[RootedPath]:
        """Return all files that wait."""
        return [*self._waiting.snapshot(), *self._behind]

    def remove(self, file: RootedPath) -> None:
        """Take a file off the queue."""
        self._waiting.remove(file)
        self._behind.pop(file, None)
        self._unreadable.discard(file)

    def set_unreadable(self, file: RootedPath) -> None:
        """Let a file wait until a walk of its root finds that files can be read again."""
        self.remove(file)
        self._unreadable.add(file)

    def retry_unreadable(self, root_name: str) -> None:
        """Queue the files of a root again that could not be read."""
        for file in [each for each in self._unreadable if each.root == root_name]:
            self._unreadable.discard(file)
            self.add(file, Urgency.LATER, time.time())

    def drop_root(self, root_name: str) -> list[RootedPath]:
        """Remove the files of a root; return those that waited."""
        self._unreadable = {each for each in self._unreadable if each.root != root_name}
        files = [each for each in self.snapshot() if each.root == root_name]
        for file in files:
            self.remove(file)
        return files
