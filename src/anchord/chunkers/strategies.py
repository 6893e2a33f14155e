"""The strategies beside `anchored`: each says where a text is cut, in spans of characters; `chunk` does the rest.

None of them keeps ids as `anchored` does after an edit, for their cuts depend on what stands before. They are for who comes
from the programs they were taken from, and to be compared with. What those lose (text after a rule, answers after the
eighth line, tiny pieces, what is over the model's window) is kept here.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import itemgetter

from anchord.chunkers.layout import Layout, Sizing
from anchord.chunkers.plan import Plan
from anchord.chunkers.sentences import sentences
from anchord.chunkers.splits import BLANK_LINE, Ruler, Span, at, joined, packed, split


@dataclass(frozen=True, slots=True)
class Text:
    """A document in characters, with what its format knows of it. All spans are in order."""

    text: str
    kind: str
    headings: Mapping[int, int]
    """Where the lines of each heading start, and where they end."""
    fences: Sequence[Span]
    """Fences of markdown, whatever their size."""
    kept: Sequence[Span]
    """Those of them that fit in a chunk."""
    ruler: Ruler
    body: int

    @property
    def whole(self) -> Span:
        """The span of everything."""
        return 0, len(self.text)

    def by_fences(self, span: Span) -> list[tuple[Span, bool]]:
        """Cut a span where fences begin and end; each part with whether it is a fence."""
        inner = self.fences[bisect_right(self.fences, span[0], key=_end) : bisect_left(self.fences, span[1], key=_start)]
        edges = [edge for fence in inner for edge in fence if span[0] < edge < span[1]]
        parts = pairwise(dict.fromkeys([span[0], *edges, span[1]]))
        whole = set(inner)
        return [(part, part in whole) for part in parts]

    def fence_end(self, start: int, end: int) -> int:
        """Return the end of the first fence that begins before `end` and ends after `start`, 0 where there is none."""
        number = bisect_right(self.fences, start, key=_end)
        return self.fences[number][1] if number < len(self.fences) and self.fences[number][0] < end else 0

    def fits(self, start: int, end: int) -> bool:
        """Whether the model can take a span, and a heading before it."""
        return self.ruler.weight(start, end) <= self.body

    def within(self, weight: int) -> Callable[[int, int], bool]:
        """Give the test whether a span is at most so heavy, or as heavy as the model can take."""
        return lambda start, end: self.ruler.weight(start, end) <= min(weight, self.body)

    def lighter(self, weight: int) -> Callable[[int, int], bool]:
        """Give the test whether a span is at most so heavy, or nothing but a fence that must not be cut."""
        small, kept = self.within(weight), dict(self.kept)

        def fits(start: int, end: int) -> bool:
            last = kept.get(_skip(self.text, start, end))
            return small(start, end) or (last is not None and not self.text[last:end].strip())

        return fits

    def split(self, spans: Sequence[Span]) -> list[Span]:
        """Cut what does not fit; no text is ever cut off."""
        return [part for span in spans for part in split(self.text, span, self.fits, self.kept)]


def spans_of(document_text: str, kind: str, layout: Layout, plan: Plan, sizing: Sizing) -> list[Span]:
    """Return where a strategy cuts a text; the spans cover all that is not blank."""
    offsets = [0, *accumulate(len(line) + 1 for line in layout.lines)]
    limits, ruler = plan.limits, Ruler(document_text, sizing)
    is_markdown = kind in ("markdown", "exchange", "attachment", "summary")
    blocks = [(wrap.first, wrap.last) for wrap in layout.wraps if wrap.verbatim and is_markdown]
    fences = [(offsets[first], offsets[last + 1] - 1) for first, last in blocks]
    kept = [fence for fence in fences if limits.whole_fences and ruler.weight(*fence) <= limits.body]
    headings = {offsets[first]: offsets[last] - 1 for first, last in _heading_lines(layout)}
    text = Text(document_text, kind, headings, fences, kept, ruler, limits.body)
    return _STRATEGIES[plan.strategy](text, plan)


def _heading_lines(layout: Layout) -> list[Span]:
    """Return the lines [first, last) of each heading: a setext title has two or more."""
    firsts = [heading.line for heading in layout.headings]
    lasts = []
    for first, after in pairwise([*firsts, len(layout.lines)]):
        last = first + 1
        while last < min(after, len(layout.forms)) and layout.forms[first] == layout.forms[last] == "heading":
            last += 1
        lasts.append(last)
    return list(zip(firsts, lasts, strict=True))


def _whole(text: Text, _: Plan) -> list[Span]:
    """One chunk, where it fits."""
    return text.split([text.whole])


def _window(text: Text, plan: Plan) -> list[Span]:
    """`max_chars` characters; in their second half cut at a blank line, else at a newline; then back by `overlap_chars`."""
    spans, start, size = [], 0, plan.max_chars
    while start < len(text.text):
        end = min(start + size, len(text.text))
        if end < len(text.text):
            found = (text.text.rfind(separator, start, end) for separator in ("\n\n", "\n"))
            end = next((cut for cut in found if cut > start + size // 2), end)
        spans.append((start, end))
        start = end if end == len(text.text) else end - plan.overlap_chars
    if len(spans) > 1 and spans[-1][1] - spans[-1][0] < plan.min_chars:
        spans[-2:] = [(spans[-2][0], spans[-1][1])]
    parts = text.split(spans)
    starts = accumulate((start for start, _ in parts), max)  # Of a window too heavy for the model the last part is all overlap.
    return [(start, end) for start, (_, end) in zip(starts, parts, strict=True)]


def _titled(text: Text, spans: Sequence[Span]) -> list[Span]:
    """Put a span of nothing but headings to the span after it."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and _is_bare(text, *merged[-1]) and text.fits(merged[-1][0], end):
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def _is_bare(text: Text, start: int, end: int) -> bool:
    begin = _skip(text.text, start, end)
    while begin < end and begin in text.headings:
        begin = _skip(text.text, text.headings[begin], end)
    return begin >= end


def _skip(text: str, start: int, end: int) -> int:
    """Return the start of the line of the first character that is not blank; `end` where all are."""
    found = _FILLED.search(text, start, end)
    return max(start, text.rfind("\n", start, found.start()) + 1) if found else end


def _sections(text: Text) -> list[Span]:
    """From heading to heading; a heading without text of its own stays with the section after it."""
    return _titled(text, list(pairwise(dict.fromkeys([0, *text.headings, len(text.text)]))))


def _headers(text: Text, _: Plan) -> list[Span]:
    """A section a chunk."""
    return text.split(_sections(text))


def _paragraph(text: Text, plan: Plan) -> list[Span]:
    """From blank line to blank line, but not in fences."""
    paragraphs = text.split(at(text.text, text.whole, BLANK_LINE, text.fences))
    return joined(_titled(text, paragraphs), text.within(plan.min_tokens - 1), text.fits)


def _units(text: Text, span: Span) -> list[Span]:
    """Sentences; a fence is one unit, and so is a paragraph of code. A heading stays with its first sentence."""
    if text.kind == "code":
        return at(text.text, span, BLANK_LINE)
    units: list[Span] = []
    for part, is_fence in text.by_fences(span):
        paragraphs = [] if is_fence else at(text.text, part, BLANK_LINE)
        units += [part] if is_fence else [one for paragraph in paragraphs for one in _sentences(text, *paragraph)]
    return _titled(text, units)


def _sentences(text: Text, start: int, end: int) -> list[Span]:
    """The sentences of a paragraph, the first one with the heading before it; together they are all of it."""
    begin = text.headings.get(_skip(text.text, start, end), start)
    starts = [first for first, _ in sentences(text.text, begin, end)][1:] if begin < end else []
    return list(pairwise(dict.fromkeys([start, *starts, end])))


def _each_sentence(text: Text, plan: Plan) -> list[Span]:
    """A sentence a chunk."""
    return joined(text.split(_units(text, text.whole)), text.within(plan.min_tokens - 1), text.fits)


def _semantic(text: Text, plan: Plan) -> list[Span]:
    """Sentences up to the limit, each chunk with the end of the one before; a section begins a chunk."""
    fits, sections = text.lighter(text.body - plan.overlap_tokens), _sections(text)
    parts: list[Span] = []
    for section in sections:
        units = [part for unit in _units(text, section) for part in split(text.text, unit, fits, text.kept)]
        parts += packed(units, text.fits if text.fits(*section) else fits)
    return _overlapping(
        text, plan, joined(parts, text.within(plan.min_tokens - 1), text.fits), {start for start, _ in sections}
    )


def _recursive(text: Text, plan: Plan) -> list[Span]:
    """`max_chars` characters, cut at the best separator that there is, after `overlap_chars` of the chunk before."""
    light = text.within(text.body - min(plan.overlap_chars // _CHARS_PER_TOKEN, text.body // 2))
    parts = split(text.text, text.whole, lambda start, end: end - start <= plan.max_chars and light(start, end))
    return _overlapping(text, plan, parts)


def _two_stage(text: Text, plan: Plan) -> list[Span]:
    """Sections; what is over the limit is cut at fences first, then at blank lines and so on, with an overlap."""
    fits, sections = text.lighter(text.body - plan.overlap_tokens), _sections(text)
    parts: list[Span] = []
    for section in sections:
        pieces = [part for unit, _ in text.by_fences(section) for part in split(text.text, unit, fits, text.kept)]
        parts += [section] if text.fits(*section) else packed(pieces, fits)
    return _overlapping(text, plan, parts, {start for start, _ in sections})


def _overlapping(text: Text, plan: Plan, parts: Sequence[Span], fresh: Collection[int] = ()) -> list[Span]:
    """Begin each span with the end of the one before, as far as the model can take both; not those that start at `fresh`.

    Nothing is repeated out of a fence: half a fence is worse than none.
    """
    spans = list(parts[:1])
    for (before, _), (start, end) in pairwise(parts):
        room = max(0, text.body - text.ruler.weight(start, end))
        if start in fresh:
            begin = start
        elif plan.overlap_chars:
            begin = max(before, text.ruler.word(start - plan.overlap_chars), text.ruler.back(start, room))
        else:
            begin = max(before, text.ruler.back(start, min(room, plan.overlap_tokens)))
        spans.append((min(start, max(begin, text.fence_end(begin, start))), end))
    return spans


_start = itemgetter(0)
_end = itemgetter(1)
_FILLED = re.compile(r"\S")
_CHARS_PER_TOKEN = 4

_STRATEGIES: dict[str, Callable[[Text, Plan], list[Span]]] = {
    "whole": _whole,
    "window": _window,
    "headers": _headers,
    "paragraph": _paragraph,
    "semantic": _semantic,
    "sentences": _each_sentence,
    "two_stage": _two_stage,
    "recursive": _recursive,
}
