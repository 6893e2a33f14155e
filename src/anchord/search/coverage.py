"""How much of the files an index covers: what an answer to a search must say beside its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from anchord.core.quoting import quote_command, quote_name
from anchord.ipc.messages.searching import CoverageAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the files an index covers."""

    is_complete: bool
    """Whether everything that is known to have changed is in the index."""
    state: str = ""
    """The daemon's state; "" without a daemon."""
    reason: str = ""
    """Why the daemon is degraded, "" if it is not."""
    waiting: int = 0
    """Files that are new, changed or deleted and wait to be indexed."""
    found: int = 0
    """Files that the last walks found."""
    held: Mapping[str, int] = field(default_factory=dict)
    """Root name -> files that were deleted or excluded all at once, and are still found."""

    def sentences(self) -> Iterator[str]:
        """Yield what a user must know to judge what was found, and what was not."""
        if not self.is_complete:
            yield f"{self._why_incomplete()}; results may be missing"
        for root, count in self.held.items():
            yield (
                f"{count} files of {quote_name(root)} were deleted or excluded all at once and are "
                f"still found until {quote_command('anchord confirm-delete', root)}"
            )

    def _why_incomplete(self) -> str:
        # Files that were never seen by a walk wait too, so more can wait than were found.
        counts = f"{self.waiting:,} files wait"
        if self.waiting <= self.found:
            counts = f"{self.found - self.waiting:,} of {self.found:,} files are up to date"
        if self.reason:
            return f"{self.reason} ({counts})"
        return {
            "": "the last `anchord index` was interrupted or still runs",
            "paused": f"indexing is paused, `anchord resume` resumes it: {counts}",
            "scanning": "still looking for files",
            "checking": "the index is being checked",
        }.get(self.state, f"still indexing: {counts}")

    def as_message(self) -> CoverageAnswer:
        """Return the coverage as a part of an answer."""
        return CoverageAnswer(
            state=self.state,
            done=max(0, self.found - self.waiting),
            found=self.found,
            held=dict(self.held),
        )
