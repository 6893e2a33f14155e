"""Where sentences end, with character offsets. The only user of sentencex (by Wikimedia: abbreviations, quotes, CJK).

The anchored chunker does not come here: its cuts must not move with a library's version.
"""

from __future__ import annotations

from importlib.metadata import version

from sentencex import get_sentence_boundaries  # type: ignore[import-untyped]

_AT_ONCE = 8_000
"""Characters: sentencex takes time in the square of what it is given."""


def sentence_version() -> str:
    """Name what ends sentences, for the recipe."""
    return f"sentencex {version('sentencex')}"


def sentences(text: str, first: int, last: int) -> list[tuple[int, int]]:
    """Return the sentences of text[first:last] as offsets [start, end) in `text`, in order; blanks between belong to none."""
    spans: list[tuple[int, int]] = []
    while first < last:
        found = get_sentence_boundaries("en", text[first : min(first + _AT_ONCE, last)])
        some = [(first + one["start_index"], first + one["end_index"]) for one in found if not one["is_paragraph_break"]]
        if first + _AT_ONCE < last and len(some) > 1:
            some.pop()  # It may go on: it is looked at again with what follows.
        spans += some
        first = some[-1][1] if some else first + _AT_ONCE
    return [(start, end) for start, end in spans if text[start:end].strip()]
