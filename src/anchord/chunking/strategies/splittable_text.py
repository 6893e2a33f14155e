"""A document in characters, for the strategies that cut by spans of characters."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import itemgetter

from anchord.chunking.engine.layout import Layout, Limits, Sizing
from anchord.chunking.engine.span_placement import CharSpan
from anchord.chunking.strategies.separators import SpanTest, SpanWeigher, split_until_fits

_MARKDOWN_KINDS = frozenset({"markdown", "exchange", "attachment", "summary"})
_NON_WHITESPACE = re.compile(r"\S")
_start = itemgetter(0)
_end = itemgetter(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplittableText:
    """A document's text, headings and fences, and the weights of its spans.

    All spans are in characters of `text`, the end excluded, and in order.
    """

    text: str
    kind: str
    """The document's kind."""
    heading_ends: Mapping[int, int]
    """Start of each heading's first line -> end of its last line."""
    fences: Sequence[CharSpan]
    """Fences of markdown, whatever their size."""
    protected_spans: Sequence[CharSpan]
    """The fences that must not be cut because they fit in a chunk."""
    weigher: SpanWeigher
    max_weight: int
    """Maximum weight of a chunk's own text."""

    @property
    def full_span(self) -> CharSpan:
        """The span of the whole text."""
        return 0, len(self.text)

    def split_at_fences(self, span: CharSpan) -> list[tuple[CharSpan, bool]]:
        """Cut a span where fences begin and end; return each part with whether it is a fence."""
        start, end = span
        first_fence = bisect_right(self.fences, start, key=_end)
        end_fence = bisect_left(self.fences, end, key=_start)
        fences = self.fences[first_fence:end_fence]
        edges = [edge for fence in fences for edge in fence if start < edge < end]
        parts = pairwise(dict.fromkeys([start, *edges, end]))
        whole_fences = set(fences)
        return [(part, part in whole_fences) for part in parts]

    def first_fence_end_between(self, start: int, end: int) -> int:
        """Return the end of the first fence that ends after `start` and begins before `end`.

        Returns 0 where there is none.
        """
        number = bisect_right(self.fences, start, key=_end)
        if number == len(self.fences):
            return 0
        fence_start, fence_end = self.fences[number]
        return fence_end if fence_start < end else 0

    def skip_blank_lines(self, start: int, end: int) -> int:
        """Return the start of the first line of a span that is not blank; `end` if all are.

        A span that starts inside that line gives `start`.
        """
        found = _NON_WHITESPACE.search(self.text, start, end)
        if found is None:
            return end
        line_start = self.text.rfind("\n", start, found.start()) + 1
        return max(start, line_start)

    def is_only_headings(self, start: int, end: int) -> bool:
        """Return whether a span has nothing but headings and blank lines."""
        position = self.skip_blank_lines(start, end)
        while position < end and position in self.heading_ends:
            position = self.skip_blank_lines(self.heading_ends[position], end)
        return position >= end

    def fits(self, start: int, end: int) -> bool:
        """Return whether a span fits in a chunk, with a heading before it."""
        return self.weigher.weight(start, end) <= self.max_weight

    def max_weight_test(self, max_weight: int) -> SpanTest:
        """Return the test whether a span fits in a chunk and weighs at most `max_weight`."""
        limit = min(max_weight, self.max_weight)
        weigh = self.weigher.weight
        return lambda start, end: weigh(start, end) <= limit

    def max_weight_or_fence_test(self, max_weight: int) -> SpanTest:
        """Return the test that `max_weight_test` gives, but protected fences pass it too."""
        is_light = self.max_weight_test(max_weight)
        protected_ends = dict(self.protected_spans)

        def fits(start: int, end: int) -> bool:
            if is_light(start, end):
                return True
            fence_end = protected_ends.get(self.skip_blank_lines(start, end))
            return fence_end is not None and not self.text[fence_end:end].strip()

        return fits

    def split_oversized(self, spans: Sequence[CharSpan]) -> list[CharSpan]:
        """Cut the spans that do not fit in a chunk; the result covers the same text."""
        parts: list[CharSpan] = []
        for span in spans:
            parts += split_until_fits(
                self.text,
                span,
                self.fits,
                self.protected_spans,
            )
        return parts


def build_splittable_text(
    text: str, kind: str, layout: Layout, limits: Limits, sizing: Sizing
) -> SplittableText:
    """Return a document in characters.

    Args:
        text: The document's text.
        kind: The document's kind. Only the kinds of markdown have fences.
        layout: The document's lines, headings and fences.
        limits: The limits of chunks.
        sizing: Counts the tokens of words.
    """
    line_offsets = [0, *accumulate(len(line) + 1 for line in layout.lines)]
    weigher = SpanWeigher(text, sizing)
    fences: list[CharSpan] = []
    if kind in _MARKDOWN_KINDS:
        fences = [
            (line_offsets[wrap.first_line], line_offsets[wrap.last_line + 1] - 1)
            for wrap in layout.wraps
            if wrap.is_verbatim
        ]
    protected_spans: list[CharSpan] = []
    if limits.whole_fences:
        protected_spans = [fence for fence in fences if weigher.weight(*fence) <= limits.body]
    heading_ends = {
        line_offsets[first]: line_offsets[end] - 1 for first, end in _heading_lines(layout)
    }
    return SplittableText(
        text=text,
        kind=kind,
        heading_ends=heading_ends,
        fences=fences,
        protected_spans=protected_spans,
        weigher=weigher,
        max_weight=limits.body,
    )


def _heading_lines(layout: Layout) -> list[tuple[int, int]]:
    """Return the lines [first, end) of each heading; a setext heading has two or more."""
    first_lines = [heading.line for heading in layout.headings]
    ranges: list[tuple[int, int]] = []
    for first, next_first in pairwise([*first_lines, len(layout.lines)]):
        end = first + 1
        typed_end = min(next_first, len(layout.line_types))
        if first < typed_end and layout.line_types[first] == "heading":
            while end < typed_end and layout.line_types[end] == "heading":
                end += 1
        ranges.append((first, end))
    return ranges
