"""What the writer did since the daemon started, for status."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from anchord.core.types import Action, FileOutcome, RootedPath
from anchord.index.metrics import Throughput, WorkCounters
from anchord.ipc.messages.status import DoneOfTotal, Percentiles
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
    verify_progress: DoneOfTotal | None = None
    """While `verify` reads transcript files: how many are done, and of how many."""
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES))
    """Milliseconds from a save's first event until it was searchable, of the last 1,000 saves."""
    changing_since_ns: dict[RootedPath, int] = field(default_factory=dict)
    """Files that changed each time they were read, so that they are not indexed as they are; since
    when, in nanoseconds of the wall clock."""
    recent_outcomes: deque[tuple[float, FileOutcome]] = field(
        default_factory=lambda: deque(maxlen=_RECENT_OUTCOMES)
    )
    """The last 20 files that were changed or failed, oldest first, with the time."""

    def record_verified(self, checked_at: float | None) -> None:
        """Note when the index was compared with the files; None for never."""
        if checked_at is not None:
            self.last_verified_at = max(checked_at, self.last_verified_at or 0.0)

    def record_outcome(self, outcome: FileOutcome) -> None:
        """Count a handled file."""
        now = time.monotonic()
        self.totals.add(outcome)
        if outcome.action is Action.RETRY:
            self.changing_since_ns.setdefault(outcome.origin, time.time_ns())
        else:
            self.changing_since_ns.pop(outcome.origin, None)
        if outcome.action is not Action.EMBEDDED:  # Its file was counted when words found it.
            self.files_done += not is_exchange_path(outcome.origin.path)
            self.throughput.record_file(now)
        if outcome.action not in (Action.UNCHANGED, Action.SKIPPED):
            self.recent_outcomes.append((now, outcome))


def p50_and_p95(values: Sequence[float]) -> Percentiles:
    """Return the median and the 95th percentile, rounded to 0.1; both None without values.

    The percentile is that of the nearest rank: of two values the larger, so never below the median.
    """
    if not values:
        return Percentiles(p50=None, p95=None)
    ordered = sorted(values)
    rank = math.ceil(0.95 * len(ordered)) - 1
    median = statistics.median(ordered)
    return Percentiles(p50=round(median, 1), p95=round(ordered[rank], 1))
