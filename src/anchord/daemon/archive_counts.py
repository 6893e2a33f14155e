"""What the archive of conversations holds, for `status`: counted at most every two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing, suppress

from anchord.config.paths import Paths
from anchord.errors import StoreDamagedError, StoreError
from anchord.ipc.messages.status import ConversationCounts, DetachedCounts, KeptStatus
from anchord.search.detached import count_detached
from anchord.search.kept_sessions import open_kept
from anchord.sources.conversations.archive.reader import Archive

_MAX_AGE_S = 2.0


class ArchiveCounts:
    """Counts of exchanges by root, and of detached ones."""

    def __init__(self, paths: Paths, on_damage: Callable[[], None]) -> None:
        """Count nothing yet.

        Args:
            paths: Where the archive and the kept transcripts are.
            on_damage: Called when damage keeps it from being counted, once until it can be again.
        """
        self._paths = paths
        self._on_damage = on_damage
        self._counted_at = float("-inf")
        self._by_root: dict[str, ConversationCounts] = {}
        self._detached: tuple[DetachedCounts, ...] = ()
        self._kept: KeptStatus | None = None
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

    def kept(self) -> KeptStatus | None:
        """Return how much is kept of transcripts byte for byte; None if that cannot be read."""
        self._update()
        return self._kept

    def _update(self) -> None:
        now = time.monotonic()
        if now - self._counted_at <= _MAX_AGE_S:
            return
        self._counted_at = now
        self._kept = self._count_kept()
        try:
            with closing(Archive(self._paths.archive_file, read_only=True)) as archive:
                counts = archive.counts_by_root()
                self._by_root = {name: ConversationCounts(**each) for name, each in counts.items()}
                self._detached = tuple(count_detached(archive.detached_groups()))
            self.error = None
        except StoreError as error:
            if isinstance(error, StoreDamagedError) and not self.error:
                self._on_damage()
            self.error = error

    def _count_kept(self) -> KeptStatus | None:
        with suppress(StoreError), open_kept(self._paths.kept_transcripts_file) as kept:
            if kept:
                totals = kept.totals()
                return KeptStatus(
                    transcripts=totals.files,
                    transcript_bytes=totals.transcript_bytes,
                    bytes=totals.disk_bytes,
                )
        return None
