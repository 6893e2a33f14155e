"""What the archive of conversations holds, for `status`: counted at most every two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from anchord.errors import StoreDamagedError, StoreError
from anchord.ipc.messages.status import ConversationCounts, DetachedCounts
from anchord.search.detached import count_detached
from anchord.sources.conversations.archive.reader import Archive

_MAX_AGE_S = 2.0


class ArchiveCounts:
    """Counts of exchanges by root, and of detached ones."""

    def __init__(self, archive_file: Path, on_damage: Callable[[], None]) -> None:
        """Count nothing yet.

        Args:
            archive_file: The archive.
            on_damage: Called when damage keeps it from being counted, once until it can be again.
        """
        self._archive_file = archive_file
        self._on_damage = on_damage
        self._counted_at = float("-inf")
        self._by_root: dict[str, ConversationCounts] = {}
        self._detached: tuple[DetachedCounts, ...] = ()
        self.error: StoreError | None = None
        """Why the archive could not be counted last time, None if it could."""

    def of_root(self, name: str) -> ConversationCounts | None:
        """Return the counts of a root's conversations; None if it has none."""
        self._update()
        return self._by_root.get(name)

    def detached(self) -> tuple[DetachedCounts, ...]:
        """Return the groups of exchanges that are kept and not indexed."""
        self._update()
        return self._detached

    def _update(self) -> None:
        now = time.monotonic()
        if now - self._counted_at <= _MAX_AGE_S:
            return
        self._counted_at = now
        try:
            with closing(Archive(self._archive_file, read_only=True)) as archive:
                counts = archive.counts_by_root()
                self._by_root = {name: ConversationCounts(**each) for name, each in counts.items()}
                self._detached = tuple(count_detached(archive.detached_groups()))
            self.error = None
        except StoreError as error:
            if isinstance(error, StoreDamagedError) and not self.error:
                self._on_damage()
            self.error = error
