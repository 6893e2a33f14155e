"""The strategies beside `anchored` and `exchange`: where each cuts a text, in spans of characters.

Their ids are less stable than those of `anchored`, because a cut depends on what stands before it.
They are for users of the programs that they come from, and for comparison. What those programs lose
is kept here: text after a rule, answers after the eighth line, tiny chunks, and text over the
model's window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from anchord.chunking.engine.layout import Layout, Sizing
from anchord.chunking.engine.span_placement import CharSpan
from anchord.chunking.plan import Plan
from anchord.chunking.strategies.sentences import find_sentence_spans
from anchord.chunking.strategies.separators import (
    BLANK_LINE,
    SpanTest,
    merge_small_spans,
    merge_while_fits,
    split_after_matches,
    split_until_fits,
)
from anchord.chunking.strategies.splittable_text import SplittableText, build_splittable_text

_CHARS_PER_TOKEN = 4
"""Estimate for overlaps that are set in characters."""


def split_by_strategy(
    document_text: str, kind: str, layout: Layout, plan: Plan, sizing: Sizing
) -> list[CharSpan]:
    """Cut a text by the plan's strategy.

    Args:
        document_text: The text.
        kind: The document's kind.
        layout: The text's lines, headings and fences.
        plan: "whole", "window", "headers", "paragraph", "semantic", "sentences", "two_stage" or
            "recursive", with its sizes.
        sizing: Counts tokens.

    Returns:
        Spans in order that cover all but whitespace; they overlap where the plan says so.

    Raises:
        KeyError: The plan has another strategy.
    """
    text = build_splittable_text(
        document_text,
        kind,
        layout,
        plan.limits,
        sizing,
    )
    return _STRATEGIES[plan.strategy](text, plan)


def _whole(text: SplittableText, _plan: Plan) -> list[CharSpan]:
    """Return the whole text as one chunk, where it fits."""
    return text.split_oversized([text.full_span])


def _window(text: SplittableText, plan: Plan) -> list[CharSpan]:
    """Cut after at most `max_chars`; a chunk begins `overlap_chars` before the last one's end."""
    length = len(text.text)
    spans: list[CharSpan] = []
    start = 0
    while start < length:
        end = _window_end(text.text, start, plan.max_chars)
        span = (start, end)
        spans.append(span)
        start = end
        if end < length:
            start = end - plan.overlap_chars
    _extend_over_short_end(spans, plan.min_chars)
    parts = text.split_oversized(spans)
    return _without_starts_going_back(parts)


def _extend_over_short_end(spans: list[CharSpan], min_chars: int) -> None:
    """Merge the last span into the one before it, where it has fewer than `min_chars`."""
    if len(spans) < 2:
        return
    last_start, end = spans[-1]
    length = end - last_start
    if length < min_chars:
        spans.pop()
        start, _ = spans[-1]
        spans[-1] = (start, end)


def _without_starts_going_back(spans: Sequence[CharSpan]) -> list[CharSpan]:
    """Move each start to the latest one before it.

    The last part of a window that the model cannot take may be all overlap.
    """
    ordered: list[CharSpan] = []
    latest_start = 0
    for start, end in spans:
        latest_start = max(latest_start, start)
        span = (latest_start, end)
        ordered.append(span)
    return ordered


def _window_end(text: str, start: int, max_chars: int) -> int:
    """Return the end of a window: in its second half a blank line, else a newline, else its end."""
    end = min(start + max_chars, len(text))
    if end == len(text):
        return end
    middle = start + max_chars // 2
    for separator in ("\n\n", "\n"):
        cut = text.rfind(separator, start, end)
        if cut > middle:
            return cut
    return end


def _headers(text: SplittableText, _plan: Plan) -> list[CharSpan]:
    """Make each section a chunk."""
    return text.split_oversized(_sections(text))


def _sections(text: SplittableText) -> list[CharSpan]:
    """Cut before every heading; a heading without text of its own stays with the next section."""
    length = len(text.text)
    edges = [0, *text.heading_ends, length]
    distinct_edges = dict.fromkeys(edges)
    spans = list(pairwise(distinct_edges))
    return _join_bare_headings(text, spans)


def _join_bare_headings(text: SplittableText, spans: Sequence[CharSpan]) -> list[CharSpan]:
    """Merge a span of nothing but headings with the span after it, where both fit in a chunk."""
    merged: list[CharSpan] = []
    for span in spans:
        if not merged:
            merged.append(span)
            continue
        last_start, last_end = merged[-1]
        _, end = span
        is_bare = text.is_only_headings(last_start, last_end)
        if is_bare and text.fits(last_start, end):
            merged[-1] = (last_start, end)
        else:
            merged.append(span)
    return merged


def _paragraph(text: SplittableText, plan: Plan) -> list[CharSpan]:
    """Cut at every blank line that is not in a fence."""
    paragraphs = split_after_matches(
        text.text,
        text.full_span,
        BLANK_LINE,
        text.fences,
    )
    parts = text.split_oversized(paragraphs)
    spans = _join_bare_headings(text, parts)
    return _merge_small(text, plan, spans)


def _each_sentence(text: SplittableText, plan: Plan) -> list[CharSpan]:
    """Make each sentence a chunk."""
    units = _units(text, text.full_span)
    sentences = text.split_oversized(units)
    return _merge_small(text, plan, sentences)


def _merge_small(text: SplittableText, plan: Plan, spans: Sequence[CharSpan]) -> list[CharSpan]:
    """Merge spans of fewer than `min_tokens` with a neighbour, where both fit in a chunk."""
    max_small_weight = plan.min_tokens - 1
    is_small = text.max_weight_test(max_small_weight)
    return merge_small_spans(spans, is_small, text.fits)


def _units(text: SplittableText, span: CharSpan) -> list[CharSpan]:
    """Cut a span into sentences; a fence is one unit, and so is a paragraph of code.

    A heading stays with its first sentence.
    """
    if text.kind == "code":
        return split_after_matches(text.text, span, BLANK_LINE)
    units: list[CharSpan] = []
    for part, is_fence in text.split_at_fences(span):
        if is_fence:
            units.append(part)
            continue
        for paragraph in split_after_matches(text.text, part, BLANK_LINE):
            sentences = _sentences(text, *paragraph)
            units += sentences
    return _join_bare_headings(text, units)


def _sentences(text: SplittableText, start: int, end: int) -> list[CharSpan]:
    """Cut a paragraph into sentences; the first has the heading before it. They cover it."""
    content_start = text.skip_blank_lines(start, end)
    content_start = text.heading_ends.get(content_start, start)
    sentences: list[CharSpan] = []
    if content_start < end:
        sentences = find_sentence_spans(text.text, content_start, end)
    later_sentences = sentences[1:]
    inner_starts = [sentence_start for sentence_start, _ in later_sentences]
    edges = [start, *inner_starts, end]
    distinct_edges = dict.fromkeys(edges)
    spans = pairwise(distinct_edges)
    return list(spans)


def _semantic(text: SplittableText, plan: Plan) -> list[CharSpan]:
    """Put sentences together up to the limit; a section begins a chunk. Chunks overlap."""
    fits_with_overlap = _room_for_overlap_test(text, plan)
    sections = _sections(text)
    parts: list[CharSpan] = []
    for section in sections:
        units = _units(text, section)
        pieces = _split_all(text, units, fits_with_overlap)
        fits = fits_with_overlap
        if text.fits(*section):
            # A section in one chunk needs no room for an overlap.
            fits = text.fits
        merged_pieces = merge_while_fits(pieces, fits)
        parts += merged_pieces
    section_starts = {start for start, _ in sections}
    merged_parts = _merge_small(text, plan, parts)
    return _with_overlap(text, plan, merged_parts, section_starts)


def _room_for_overlap_test(text: SplittableText, plan: Plan) -> SpanTest:
    """Return the test whether a span fits in a chunk together with its overlap."""
    max_weight = text.max_weight - plan.overlap_tokens
    return text.max_weight_or_fence_test(max_weight)


def _split_all(text: SplittableText, spans: Sequence[CharSpan], fits: SpanTest) -> list[CharSpan]:
    """Split each span that does not fit."""
    whole_text = text.text
    protected_spans = text.protected_spans
    pieces: list[CharSpan] = []
    for span in spans:
        span_pieces = split_until_fits(
            whole_text,
            span,
            fits,
            protected_spans,
        )
        pieces += span_pieces
    return pieces


def _two_stage(text: SplittableText, plan: Plan) -> list[CharSpan]:
    """Make each section a chunk; cut a larger one at fences, then at separators. Chunks overlap."""
    fits_with_overlap = _room_for_overlap_test(text, plan)
    sections = _sections(text)
    parts: list[CharSpan] = []
    for section in sections:
        if text.fits(*section):
            parts.append(section)
            continue
        units = [unit for unit, _ in text.split_at_fences(section)]
        pieces = _split_all(text, units, fits_with_overlap)
        merged_pieces = merge_while_fits(pieces, fits_with_overlap)
        parts += merged_pieces
    section_starts = {start for start, _ in sections}
    return _with_overlap(text, plan, parts, section_starts)


def _recursive(text: SplittableText, plan: Plan) -> list[CharSpan]:
    """Cut at the best separators into `max_chars` characters. Chunks overlap."""
    overlap_tokens = plan.overlap_chars // _CHARS_PER_TOKEN
    half_chunk = text.max_weight // 2
    overlap_weight = min(overlap_tokens, half_chunk)
    max_weight = text.max_weight - overlap_weight
    is_light = text.max_weight_test(max_weight)

    def fits(start: int, end: int) -> bool:
        length = end - start
        if length > plan.max_chars:
            return False
        return is_light(start, end)

    spans = split_until_fits(text.text, text.full_span, fits)
    return _with_overlap(text, plan, spans)


def _with_overlap(
    text: SplittableText,
    plan: Plan,
    spans: Sequence[CharSpan],
    section_starts: Collection[int] = (),
) -> list[CharSpan]:
    """Begin each span with the end of the one before, as far as both fit in a chunk.

    The start of a section has no overlap. Nothing is repeated out of a fence: half a fence is worse
    than none.
    """
    overlapping = list(spans[:1])
    for (previous_start, _), (start, end) in pairwise(spans):
        new_start = start
        if start not in section_starts:
            new_start = max(previous_start, _overlap_start(text, plan, start, end))
        fence_end = text.first_fence_end_between(new_start, start)
        new_start = max(new_start, fence_end)
        overlapping.append((min(start, new_start), end))
    return overlapping


def _overlap_start(text: SplittableText, plan: Plan, start: int, end: int) -> int:
    """Return the start of the words to repeat before a span, by the plan and by the room left."""
    weigher = text.weigher
    weight = weigher.weight(start, end)
    room = max(0, text.max_weight - weight)
    if not plan.overlap_chars:
        max_weight = min(room, plan.overlap_tokens)
        return weigher.start_of_words_before(start, max_weight)
    wanted_start = start - plan.overlap_chars
    by_chars = weigher.next_word_start(wanted_start)
    by_weight = weigher.start_of_words_before(start, room)
    return max(by_chars, by_weight)


_STRATEGIES: dict[str, Callable[[SplittableText, Plan], list[CharSpan]]] = {
    "whole": _whole,
    "window": _window,
    "headers": _headers,
    "paragraph": _paragraph,
    "semantic": _semantic,
    "sentences": _each_sentence,
    "two_stage": _two_stage,
    "recursive": _recursive,
}
