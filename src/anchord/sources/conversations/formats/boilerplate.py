"""Texts that a program sends as the user's and nobody typed, such as `<system-reminder>` blocks.

Only the beginning of a text is examined, for people quote such tags. Prose after a closing tag is
kept.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from anchord.core.lazy_re import lazy_re

_BLANKS = lazy_re(r"\s*")


class BoilerplateFilter:
    """Removes the boilerplate of one source from the beginnings of texts."""

    def __init__(self, tags: Sequence[str], prefixes: Sequence[str | tuple[str, str]]) -> None:
        """Set what is boilerplate.

        Args:
            tags: Names of tags: `<name ...>` up to its `</name>`, or to the text's end. A block
                can hold blocks of its own name.
            prefixes: Beginnings of texts. A string removes all of the text; a (beginning, end)
                pair removes up to the first `end`, and all of the text where there is none.
        """
        names = "|".join(map(re.escape, tags))
        self._tag: re.Pattern[str] | None = None
        self._open_tag: re.Pattern[str] | None = None
        if tags:
            self._tag = lazy_re(rf"<(?:({names})(?=[\s>])|/({names})>)")
            self._open_tag = lazy_re(rf"<({names})(?:\s[^>]*)?>")
        self._prefixes = [(each, "") if isinstance(each, str) else each for each in prefixes]

    def remove_from(self, text: str) -> str:
        """Return what a person typed of a text, without line feeds around it; "" for nothing."""
        block_ends = self._block_ends(text)
        position = 0
        while (after := self._skip_first(text, position, block_ends)) is not None:
            position = after
        rest = text[position:]
        return rest.strip("\n") if rest.strip() else ""

    def _block_ends(self, text: str) -> dict[int, int]:
        """Return the end of each tag block by its start; a tag without a partner has none."""
        ends: dict[int, int] = {}
        if self._tag is None:
            return ends
        open_starts: defaultdict[str, list[int]] = defaultdict(list)
        for tag in self._tag.finditer(text):
            opened, closed = tag.groups()
            if opened:
                open_starts[opened].append(tag.start())
            elif open_starts[closed]:
                ends[open_starts[closed].pop()] = tag.end()
        return ends

    def _skip_first(self, text: str, position: int, block_ends: Mapping[int, int]) -> int | None:
        """Return where the boilerplate at a position ends, None where there is none."""
        blanks = _BLANKS.match(text, position)
        start = blanks.end() if blanks else position
        tag = self._open_tag.match(text, start) if self._open_tag else None
        if tag:
            # A block that mentions its own tag without closing it ends at the first closing tag.
            return block_ends.get(start) or _end_of_first(f"</{tag[1]}>", text, tag.end())
        for beginning, end in self._prefixes:
            if text.startswith(beginning, start):
                return _end_of_first(end, text, start) if end else len(text)
        return None


def _end_of_first(mark: str, text: str, start: int) -> int:
    """Return where the first such mark ends; the text's end where there is none."""
    found = text.find(mark, start)
    return found + len(mark) if found >= 0 else len(text)
