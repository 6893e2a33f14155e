"""Counters, throughput and log entries of indexed files, for the daemon and for `anchord index`."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

import structlog

from anchord.core.quoting import escape_non_utf8
from anchord.core.types import Action, FileOutcome
from anchord.sources.files.secret_names import redact_path

log = structlog.get_logger()

_SAMPLE_INTERVAL_S = 1.0
_WINDOW_S = 60.0
_MIN_SAMPLES = 3


@dataclass(slots=True, kw_only=True)
class WorkCounters:
    """Counts of files by what was done with them, and of texts, vectors and rows."""

    actions: Counter[str] = field(default_factory=Counter)
    """Files by `Action`."""
    embedded: int = 0
    """Texts that the model embedded."""
    reused: int = 0
    """Rows whose vector existed already."""
    upserted: int = 0
    """Rows written."""
    deleted: int = 0
    """Rows deleted."""

    def add(self, outcome: FileOutcome) -> None:
        """Count one file."""
        # A file that got its vectors was counted when it was indexed.
        if outcome.action is not Action.EMBEDDED:
            self.actions[str(outcome.action)] += 1
        self.embedded += outcome.embedded
        self.reused += outcome.reused
        self.upserted += outcome.upserted
        self.deleted += outcome.deleted

    def copy(self) -> WorkCounters:
        """Return a copy that does not change."""
        return WorkCounters(
            actions=self.actions.copy(),
            embedded=self.embedded,
            reused=self.reused,
            upserted=self.upserted,
            deleted=self.deleted,
        )

    def since(self, earlier: WorkCounters) -> WorkCounters:
        """Return what was counted since an earlier copy."""
        return WorkCounters(
            actions=self.actions - earlier.actions,
            embedded=self.embedded - earlier.embedded,
            reused=self.reused - earlier.reused,
            upserted=self.upserted - earlier.upserted,
            deleted=self.deleted - earlier.deleted,
        )


class Throughput:
    """Files a second over the last minute, to estimate how long the remaining files will take."""

    def __init__(self) -> None:
        """Start without samples."""
        self._samples: deque[tuple[float, int]] = deque()
        """(monotonic seconds, files done by then), at most one a second."""
        self._files_done = 0

    def record_file(self, now: float) -> None:
        """Count one file.

        Args:
            now: Monotonic seconds.
        """
        self._files_done += 1
        if not self._samples or now - self._samples[-1][0] >= _SAMPLE_INTERVAL_S:
            self._samples.append((now, self._files_done))
        while now - self._samples[0][0] > _WINDOW_S:
            self._samples.popleft()

    def estimate_remaining_s(self, files_left: int) -> float | None:
        """Return the seconds that so many files will take; None for 0 files or under 3 samples."""
        if not files_left or len(self._samples) < _MIN_SAMPLES:
            return None
        first_time, first_count = self._samples[0]
        last_time, last_count = self._samples[-1]
        seconds_a_file = (last_time - first_time) / (last_count - first_count)
        return round(files_left * seconds_a_file, 1)


def log_outcome(outcome: FileOutcome) -> None:
    """Write an outcome to the log, without any content of the file or secret of its name."""
    log.info(
        "file.handled",
        action=str(outcome.action),
        root=outcome.origin.root,
        path=escape_non_utf8(redact_path(outcome.origin.path)),
        reason=redact_path(outcome.reason),
        chunks=outcome.chunks,
        kept=outcome.kept,
        shifted=outcome.shifted,
        upserted=outcome.upserted,
        deleted=outcome.deleted,
        embedded=outcome.embedded,
        reused=outcome.reused,
    )
