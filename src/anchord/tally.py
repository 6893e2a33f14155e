"""What was done, summed up and logged: the same for a daemon's life and for one `anchord index`."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import structlog

from anchord.model import Outcome, printable

log = structlog.get_logger()

_MARK_S = 1.0
_LATELY_S = 60.0
_LEAST_MARKS = 3


@dataclass(slots=True)
class Tally:
    """Files by what happened to them, texts embedded, vectors used again, rows written and deleted."""

    actions: Counter[str] = field(default_factory=Counter)
    embedded: int = 0
    reused: int = 0
    upserted: int = 0
    deleted: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.actions[str(outcome.action)] += 1
        self.embedded += outcome.embedded
        self.reused += outcome.reused
        self.upserted += outcome.upserted
        self.deleted += outcome.deleted

    def copy(self) -> Tally:
        """Return the tally as it is now."""
        return Tally(self.actions.copy(), self.embedded, self.reused, self.upserted, self.deleted)

    def since(self, before: Tally) -> Tally:
        """Return what was added since an earlier copy."""
        return Tally(
            self.actions - before.actions,
            self.embedded - before.embedded,
            self.reused - before.reused,
            self.upserted - before.upserted,
            self.deleted - before.deleted,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "embedded": self.embedded,
            "reused": self.reused,
            "upserted": self.upserted,
            "deleted": self.deleted,
            "actions": dict(self.actions),
        }


class Pace:
    """How fast files were handled lately, and so how long the others will take. Times are of the steady clock."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._marks: deque[tuple[float, int]] = deque()
        self._done = 0

    def step(self, now: float) -> None:
        """Note a handled file."""
        self._done += 1
        if not self._marks or now - self._marks[-1][0] >= _MARK_S:
            self._marks.append((now, self._done))
        while now - self._marks[0][0] > _LATELY_S:
            self._marks.popleft()

    def left_s(self, waiting: int) -> float | None:
        """Return the seconds that so many files will take; None while nobody can know."""
        if not waiting or len(self._marks) < _LEAST_MARKS:
            return None
        (began, first), (ended, last) = self._marks[0], self._marks[-1]
        return round(waiting * (ended - began) / (last - first), 1)


def log_outcome(outcome: Outcome) -> None:
    """Write an outcome to the log; never content."""
    log.info(
        "file.handled",
        action=str(outcome.action),
        root=outcome.origin.root,
        path=printable(outcome.origin.path),
        reason=outcome.reason,
        chunks=outcome.chunks,
        kept=outcome.kept,
        shifted=outcome.shifted,
        upserted=outcome.upserted,
        deleted=outcome.deleted,
        embedded=outcome.embedded,
        reused=outcome.reused,
    )
