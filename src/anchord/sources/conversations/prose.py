"""What the readers of transcripts share: a text is read whole, for what a line is depends on all others."""

from __future__ import annotations

from anchord.conversation import Carrier, TooLongError
from anchord.sources.clean import clean

MOST_BYTES = 64 << 20
"""Eleven times as much memory goes into it."""


def whole_lines(carrier: Carrier) -> list[str]:
    """Return all lines of a text.

    Raises:
        TooLongError: it is longer than is read of any.
    """
    with carrier.open() as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise TooLongError(f"a transcript of more than {MOST_BYTES >> 20} MB")
    return clean(data.decode("utf-8", "replace")).split("\n")
