"""The exceptions that a user or a program may see.

Each has a message that says what happened, and a hint that says what to do, both in one line. A
problem with a single file is not an exception but a `core.types.Problem`: it is reported, and the
other files are indexed.
"""

from __future__ import annotations

from typing import Self


class AnchordError(Exception):
    """Base of all exceptions of anchord."""

    code = "failed"
    """Identifies the class in an error answer on the socket. It never changes."""
    exit_code = 1
    """Exit status of a command that fails with this error."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Create an error.

        Args:
            message: What happened, in one line without a period.
            hint: What to do about it, in one line; "" when there is nothing to do.
        """
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AnchordError):
    """The caller passed something wrong: an argument, a path, a name."""

    code = "usage"
    exit_code = 2


class ConfigError(UsageError):
    """The configuration file is wrong."""

    code = "config"


class StoreError(AnchordError):
    """The table, the catalog or another file of the index cannot be used."""

    code = "store"


class StoreUnavailableError(StoreError):
    """A file of the index cannot be used now: locked, no permission, a full or failing disk.

    Nothing in it has changed. Waiting may help; it must not be moved or rebuilt.
    """

    code = "store_unavailable"
    exit_code = 75
    """EX_TEMPFAIL: the same command can succeed later."""


class StoreDamagedError(StoreError):
    """The bytes of a database are corrupt: it must be set aside and rebuilt."""

    code = "store_damaged"


class NewerStateError(StoreError):
    """A newer anchord wrote a file; this version must not change it."""

    code = "newer_state"

    @classmethod
    def for_schema_version(cls, item: str, version: int) -> Self:
        """Create the error for a file or table.

        Args:
            item: The file or table, as a user knows it.
            version: Schema version that was found in it.
        """
        return cls(f"{item} was written by a newer anchord (schema {version})", "update anchord")


class DimensionMismatchError(StoreError):
    """The table is intact, but its vectors have another number of dimensions than expected."""

    code = "other_form"


class EmbedderError(AnchordError):
    """A model or its server is unavailable. Trying again later may help."""

    code = "embedder"


class BatchFailedError(EmbedderError):
    """The model failed on a batch of texts, perhaps because of a single one of them."""

    code = "embedder_batch"


class PausedError(AnchordError):
    """Indexing is paused, so what the caller wants to wait for does not happen."""

    code = "paused"


class TargetNotWritableError(AnchordError):
    """The process that makes a backup may not write to its folder; another one perhaps may."""

    code = "target_not_writable"


class NotRunningError(AnchordError):
    """No daemon answers on the socket."""

    code = "not_running"
    exit_code = 3


class AlreadyRunningError(AnchordError):
    """Another process writes to this index."""

    code = "already_running"
    exit_code = 1


class TimeoutExpiredError(AnchordError):
    """A wait took longer than the caller allowed."""

    code = "timeout"
