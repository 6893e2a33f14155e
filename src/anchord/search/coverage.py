"""How much of the files an index covers: what an answer to a search must say beside its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from anchord.core.quoting import quote_command, quote_name
from anchord.ipc.messages.searching import CoverageAnswer

_S_PER_MINUTE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the files an index covers."""

    is_complete: bool
    """Whether everything that is known to have changed is in the index; False without a daemon,
    which alone looks for changes."""
    is_interrupted: bool = False
    """Without a daemon: whether what last wrote the index did not end, or still runs."""
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
    chunks: int = 0
    """Chunks in the index; 0 where none of them lacks its vector."""
    without_vector: int = 0
    """Chunks whose vectors are still to be made. A search by meaning finds none of them, or by the
    text that they replaced."""
    vectors_left_s: float | None = None
    """How many seconds making them will take, None if that is unknown."""

    def sentences(self) -> Iterator[str]:
        """Yield what a user must know to judge what was found, and what was not."""
        if not self.is_complete:
            yield f"{self._why_incomplete()}; results may be missing"
        if self.without_vector:
            yield self._meaning_so_far()
        for root, count in self.held.items():
            yield (
                f"{count} files of {quote_name(root)} were deleted or excluded all at once and are "
                f"still found until {quote_command('anchord confirm-delete', root)}"
            )

    def _why_incomplete(self) -> str:
        # Files that were never seen by a walk wait too, so more can wait than were found.
        counts = f"{self.waiting:,} files wait"
        if self.waiting <= self.found:
            current = self.found - self.waiting
            counts = f"{current:,} of {self.found:,} files are up to date"
        if self.reason:
            return f"{self.reason} ({counts})"
        if self.state == "paused":
            # Changes since the pause are not looked at, so the counts do not have them.
            waiting = f" ({counts})" if self.waiting else ""
            paused = "indexing is paused, `anchord resume` resumes it"
            return f"{paused}: changes since then are not indexed{waiting}"
        if self.is_interrupted:
            return "anchord is not running, and the last run was interrupted or still goes on"
        return {
            "": "anchord is not running: what changed since it last ran is not indexed",
            "scanning": "still looking for files",
            "checking": "the index is being checked",
        }.get(self.state, f"still indexing: {counts}")

    def _meaning_so_far(self) -> str:
        with_vector = max(0, self.chunks - self.without_vector)
        percent = 100 * with_vector // max(1, self.chunks)
        sentence = f"words find all of what is indexed, meaning {percent} % of it so far"
        if self.vectors_left_s is None:
            return sentence
        return f"{sentence}, about {_format_duration(self.vectors_left_s)} left"

    def as_message(self) -> CoverageAnswer:
        """Return it as the `coverage` of a search's answer: counts of files, and of vectors."""
        return CoverageAnswer(
            state=self.state,
            done=max(0, self.found - self.waiting),
            found=self.found,
            held=dict(self.held),
            without_vector=self.without_vector,
            vectors_left_s=self.vectors_left_s,
        )


def _format_duration(seconds: float) -> str:
    if seconds < _S_PER_MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / _S_PER_MINUTE)} min"
