"""What the writer does about a failed step: wait, retry, and ask for a restart if that fails."""

from __future__ import annotations

import time

from anchord.config.paths import Paths
from anchord.core.os_errors import TRY_AGAIN, from_os_error
from anchord.errors import (
    AnchordError,
    EmbedderError,
    StoreDamagedError,
    StoreUnavailableError,
)
from anchord.index.archive_recovery import record_damage

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_ERRORS_BEFORE_RESTART = 4
LONGEST_BLOCK_S = 10.0
"""How long a call without a timeout waits while every step fails."""


class Backoff:
    """The pause after a failed step, doubled with each failure from 1 s up to 60 s."""

    def __init__(self, paths: Paths) -> None:
        """Start without a failure.

        Args:
            paths: The files of this anchord: damage of the archive is noted beside it.
        """
        self._paths = paths
        self.patience_s = LONGEST_BLOCK_S
        """How long failures are expected to pass by themselves, in seconds."""
        self.reason = ""
        """Message of the last error; "" once a step succeeded."""
        self.error: Exception | None = None
        """The last error."""
        self.pause_s = _FIRST_PAUSE_S
        """Seconds that the next pause takes."""
        self.resume_at = 0.0
        """When the pause ends, by the monotonic clock."""
        self.failing_since: float | None = None
        """When the first of the failures in a row happened, by the monotonic clock."""
        self.unexpected_errors = 0
        """Errors since the last successful step that point to a bug or to damaged data."""

    def record_error(self, error: Exception) -> bool:
        """Store why a step failed.

        Returns:
            Whether only a new process can help: the table is damaged and is repaired when it is
            opened, or four steps in a row failed with errors that anchord does not expect.
        """
        if self.failing_since is None:
            self.failing_since = time.monotonic()
        self.error = error
        if isinstance(error, StoreDamagedError):
            record_damage(self._paths, error)
            self.reason = error.message
            # Counted, so that this process does not record its end as a clean shutdown.
            self.unexpected_errors = max(self.unexpected_errors, 1)
            return True
        if isinstance(error, OSError):
            self.error = error = from_os_error(error) or error
        if isinstance(error, StoreUnavailableError):
            remedy = error.hint.removesuffix(f"; {TRY_AGAIN}")
            self.reason = f"{error.message}: {remedy}"
        elif isinstance(error, AnchordError):
            self.reason = error.message
        else:
            self.reason = f"internal error: {type(error).__name__}"
            self.unexpected_errors += 1
        return self.unexpected_errors >= _ERRORS_BEFORE_RESTART

    @property
    def is_lasting(self) -> bool:
        """Whether every step has failed for longer than the patience."""
        since = self.failing_since
        return since is not None and time.monotonic() - since >= self.patience_s

    def as_error(self, consequence: str) -> AnchordError:
        """Return (not raise) the error of a call that failures which last have ended.

        Args:
            consequence: What cannot be done, as a sentence without its end.
        """
        if isinstance(self.error, StoreDamagedError):
            return self.error
        saved = "what is done is saved: once that is solved, run the command again"
        hint = self.error.hint if isinstance(self.error, EmbedderError) else ""
        hint = f"{hint}; {saved}" if hint else saved
        return StoreUnavailableError(f"{consequence}: {self.reason}", hint)

    def start_pause(self) -> None:
        """Begin the pause before the next try; the one after it will be twice as long."""
        self.resume_at = time.monotonic() + self.pause_s
        self.pause_s = min(self.pause_s * 2, _LONGEST_PAUSE_S)

    def end_pause(self) -> None:
        """Try again now: somebody waits, and may have ended what failed. Any thread may call it."""
        self.resume_at = 0.0

    def clear_reason(self) -> None:
        """Forget the last error's reason and pause, but not how many unexpected errors came."""
        self.reason = ""
        self.pause_s = _FIRST_PAUSE_S
        self.failing_since = None

    def reset(self) -> None:
        """Forget all errors: a step that changed or checked files succeeded."""
        self.clear_reason()
        self.unexpected_errors = 0
