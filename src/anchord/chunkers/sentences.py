"""Where sentences end, with character offsets. The only user of sentencex (by Wikimedia: abbreviations, quotes, CJK).

The anchored chunker does not come here: its cuts must not move with a library's version.
"""

from __future__ import annotations

from importlib.metadata import version

from sentencex import get_sentence_boundaries  # type: ignore[import-untyped]


def sentence_version() -> str:
    """Name what ends sentences, for the recipe."""
    return f"sentencex {version('sentencex')}"


def sentences(text: str, first: int, last: int) -> list[tuple[int, int]]:
    """Return the sentences of text[first:last] as offsets [start, end) in `text`, in order; blanks between belong to none."""
    found = get_sentence_boundaries("en", text[first:last])
    spans = [(first + one["start_index"], first + one["end_index"]) for one in found if not one["is_paragraph_break"]]
    return [(start, end) for start, end in spans if text[start:end].strip()]
