"""Where a secret is in a text."""

from __future__ import annotations

from typing import NamedTuple

MARK_START = "[REDACTED:"


class Finding(NamedTuple):
    """A secret in a text.

    Attributes:
        start: Index of its first character.
        end: Index after its last character.
        kind: Kind of the secret, such as `github`.
    """

    start: int
    end: int
    kind: str
