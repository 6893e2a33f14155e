"""What the writer did since the daemon started, for status."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from anchord.core.types import Action, FileOutcome
from anchord.index.metrics import Throughput, WorkCounters
from anchord.sources.conversations.exchange_document import is_exchange_path

_RECENT_OUTCOMES = 20
_LATENCIES = 1_000


@dataclass(slots=True, kw_only=True)
class WriterStats:
    """Counters since the start of the process. Times are of the monotonic clock, None for never."""

    files_done: int = 0
    """Files that were handled, unchanged and skipped ones included; no exchanges."""
    totals: WorkCounters = field(default_factory=WorkCounters)
    throughput: Throughput = field(default_factory=Throughput)
    last_commit_at: float | None = None
    last_verified_at: float | None = None
    verify_progress: dict[str, int] | None = None
    """While `verify` reads transcript files: how many are done, and of how many."""
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES))
    """Milliseconds from a save's first event until it was searchable, of the last 1,000 saves."""
    recent_outcomes: deque[tuple[float, FileOutcome]] = field(
        default_factory=lambda: deque(maxlen=_RECENT_OUTCOMES)
    )
    """The last 20 files that were changed or failed, oldest first, with the time."""

    def record_outcome(self, outcome: FileOutcome) -> None:
        """Count a handled file."""
        now = time.monotonic()
        self.totals.add(outcome)
        if outcome.action is not Action.EMBEDDED:  # Its file was counted when words found it.
            self.files_done += not is_exchange_path(outcome.origin.path)
            self.throughput.record_file(now)
        if outcome.action not in (Action.UNCHANGED, Action.SKIPPED):
            self.recent_outcomes.append((now, outcome))
