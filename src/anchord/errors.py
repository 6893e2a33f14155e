"""What can go wrong for the person in front of the program, named for who must act.

Each carries its own message in one line and a hint in one line that says what to do. Trouble with a single file is not
an error but a `Problem` (model.py): it is reported and the rest goes on.
"""

from __future__ import annotations

from typing import Self


class AnchordError(Exception):
    """Base of all; `code` is stable and goes over the socket, `exit_code` is the command's."""

    code = "failed"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep the message for people and the hint for what to do next."""
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AnchordError):
    """The call is wrong: an argument, a path, a name. The caller must change it."""

    code = "usage"
    exit_code = 2


class ConfigError(UsageError):
    """The configuration is wrong. Its owner must change it."""

    code = "config"


class StoreError(AnchordError):
    """The table or the catalogue cannot be used as it is."""

    code = "store"


class StoreDamagedError(StoreError):
    """The bytes of the table or the catalogue are spoiled: it must be set aside and made anew."""

    code = "store_damaged"


class NewerStateError(StoreError):
    """A newer anchord wrote what is on the disk: this one leaves it alone."""

    code = "newer_state"

    @classmethod
    def of(cls, what: str, version: int) -> Self:
        """Say what was written by whom; there is one thing to do."""
        return cls(f"{what} was written by a newer anchord (schema {version})", "update anchord")


class OtherFormError(StoreError):
    """The table is sound and not of the form that was expected: vectors of another size."""

    code = "other_form"


class EmbedderError(AnchordError):
    """No vectors can be had just now. Trying again later may help."""

    code = "embedder"


class BatchFailedError(EmbedderError):
    """The model failed on some texts: it can be because of one of them."""

    code = "embedder_batch"


class NotRunningError(AnchordError):
    """No daemon answers on the socket."""

    code = "not_running"
    exit_code = 3


class AlreadyRunningError(AnchordError):
    """Another anchord writes this index."""

    code = "already_running"
    exit_code = 1


class TimeoutExpiredError(AnchordError):
    """What was waited for did not come in time."""

    code = "timeout"
