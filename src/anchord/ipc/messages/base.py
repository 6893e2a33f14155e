"""The bases of all parameters and of all answers."""

from __future__ import annotations

from typing import Any

import msgspec


class Params(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """Base of all parameters, and the parameters of a method that takes none.

    What has its default is not sent: a daemon of an older version may not know the parameter.
    """


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers and of their parts.

    Fields that this version does not know are ignored: a newer daemon may answer with more. A field
    that is added later has a default: until it is restarted, an older daemon does not send it.
    """

    def as_json(self) -> dict[str, Any]:
        """Return the message as JSON values."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields
