"""What travels as a user's text and nobody typed: recognised at its start alone, for people quote such tags.

Where prose follows the closing tag, the prose stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


class Noise:
    """Wrappers of a source: tags with a closing, and beginnings that make all of a text noise."""

    def __init__(self, tags: Sequence[str], beginnings: Sequence[str]) -> None:
        """Take names of tags and beginnings of texts."""
        names = "|".join(map(re.escape, tags))
        self._wrapper = re.compile(rf"\s*<({names})(?:\s[^>]*)?>.*?</\1>", re.DOTALL) if tags else None
        self._open = re.compile(rf"\s*<(?:{names})(?:\s[^>]*)?>") if tags else None
        self._beginnings = tuple(beginnings)

    def removed(self, text: str) -> str:
        """Return what a person typed of a text, "" where that is nothing."""
        rest = text
        while self._wrapper and (found := self._wrapper.match(rest)):
            rest = rest[found.end() :]
        if self._open and self._open.match(rest):
            return ""  # A wrapper without its end is noise to the end.
        return "" if rest.lstrip().startswith(self._beginnings) else rest.strip("\n") if rest.strip() else ""
