"""Which line of a text matches a query best."""

from __future__ import annotations

from collections.abc import Sequence


def match_weight(line: str, words: Sequence[str]) -> int:
    """Return how much of a query a line contains: the letters of its words that occur in it.

    Args:
        line: A line of a text, in lower case.
        words: What matched in the whole text, in lower case.
    """
    return sum([len(word) for word in words if word in line])
