"""Find where sentences end, with sentencex: it handles abbreviations, quotes and CJK.

This is the only user of the library. The anchored chunker does not use it: its cuts must not move
with a library's version.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from sentencex import get_sentence_boundaries  # type: ignore[import-untyped]

_MAX_CHARS = 8_000
"""Characters of one call: sentencex takes time by the square of the length."""


@cache
def sentence_splitter_version() -> str:
    """Return the name and version of the library, which is part of the recipe."""
    return f"sentencex {version('sentencex')}"


def find_sentence_spans(text: str, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
    """Return the sentences of text[start_offset:end_offset].

    Returns:
        Offsets [start, end) in `text`, in order. Whitespace between sentences is in none of them.
    """
    spans: list[tuple[int, int]] = []
    while start_offset < end_offset:
        window_end = min(start_offset + _MAX_CHARS, end_offset)
        window_spans = _spans_in_window(text, start_offset, window_end)
        if start_offset + _MAX_CHARS < end_offset and len(window_spans) > 1:
            # The last sentence may go on after the window: the next window starts with it.
            window_spans.pop()
        spans += window_spans
        start_offset = window_spans[-1][1] if window_spans else start_offset + _MAX_CHARS
    return [(start, end) for start, end in spans if text[start:end].strip()]


def _spans_in_window(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the sentences of text[start:end], which is short enough for one call."""
    boundaries = get_sentence_boundaries("en", text[start:end])
    return [
        (start + boundary["start_index"], start + boundary["end_index"])
        for boundary in boundaries
        if not boundary["is_paragraph_break"]
    ]
