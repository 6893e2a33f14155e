"""What travels as a user's text and nobody typed: recognised at its start alone, for people quote such tags.

Where prose follows the closing tag, the prose stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


class Noise:
    """Wrappers of a source: tags with a closing, and beginnings that make all of a text noise."""

    def __init__(self, tags: Sequence[str], beginnings: Sequence[str | tuple[str, str]]) -> None:
        """Take names of tags and beginnings of texts; what stands behind the end of one that has an end is typed again."""
        names = "|".join(map(re.escape, tags))
        self._wrapper = re.compile(rf"\s*<({names})(?:\s[^>]*)?>.*?</\1>", re.DOTALL) if tags else None
        self._open = re.compile(rf"\s*<(?:{names})(?:\s[^>]*)?>") if tags else None
        self._beginnings = [(each, "") if isinstance(each, str) else each for each in beginnings]

    def removed(self, text: str) -> str:
        """Return what a person typed of a text, "" where that is nothing."""
        rest = text
        while (shorter := self._behind(rest)) is not None:
            rest = shorter
        if self._open and self._open.match(rest):
            return ""  # A wrapper without its end is noise to the end.
        return rest.strip("\n") if rest.strip() else ""

    def _behind(self, text: str) -> str | None:
        """Return what is behind the noise that a text begins with, None where it begins with none."""
        found = self._wrapper.match(text) if self._wrapper else None
        if found:
            return text[found.end() :]
        bare = text.lstrip()
        for beginning, end in self._beginnings:
            if bare.startswith(beginning):
                return bare.partition(end)[2] if end else ""
        return None
