"""Split text by separators and sizes, in spans of characters: the parts of the classic strategies.

A span is (start, end), the end excluded. The spans of one text are in order and cover it with its
whitespace, so nothing is lost between them. An overlap only moves the start of a span back.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from anchord.chunking.engine.layout import CHARS_PER_WEIGHT, Sizing
from anchord.chunking.engine.span_placement import CharSpan

SpanTest = Callable[[int, int], bool]
"""Decide about a span by its start and end."""

BLANK_LINE = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)*\n")
NEWLINE = re.compile(r"\n")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
WHITESPACE = re.compile(r"\s+")
SEPARATORS = (BLANK_LINE, NEWLINE, SENTENCE_END, WHITESPACE)
"""From the best to the worst. Text is cut after a separator, which stays with what is before it."""
_WORD = re.compile(r"\S+")
_SLICE_CHARS = 40
"""Characters of the parts of a text without separators; fewer where so many do not fit."""


class SpanWeigher:
    """Weighs spans of one text by sums over its words.

    The tokens of words add up: no token of the model reaches over whitespace.
    """

    def __init__(self, text: str, sizing: Sizing) -> None:
        """Count the tokens of every word of the text."""
        self._words: list[CharSpan] = []
        self._starts: list[int] = []
        words: list[str] = []
        lengths: list[int] = []
        for match in _WORD.finditer(text):
            start, end = match.span()
            word = match[0]
            length = end - start
            self._words.append((start, end))
            self._starts.append(start)
            words.append(word)
            lengths.append(length)
        token_counts = sizing.count_tokens(words)
        self._token_sums = [0, *accumulate(token_counts)]
        self._char_sums = [0, *accumulate(lengths)]

    def weight(self, start: int, end: int) -> int:
        """Return the weight of a span.

        It is the number of its tokens, or one for every 8 characters that are not whitespace,
        whichever is more. A word that the span cuts counts by its share, rounded up.
        """
        tokens = self._sum(self._token_sums, start, end)
        chars = self._sum(self._char_sums, start, end)
        weight_by_chars = -(-chars // CHARS_PER_WEIGHT)
        return max(tokens, weight_by_chars)

    def next_word_start(self, position: int) -> int:
        """Return the start of the first word at or after a position; the position if none is."""
        word = bisect_left(self._starts, position)
        if word == len(self._starts):
            return position
        return self._starts[word]

    def start_of_words_before(self, position: int, max_weight: int) -> int:
        """Return the start of the words before a position that weigh at most `max_weight` together.

        It is the position itself where no word is light enough.
        """
        last = bisect_left(self._starts, position)
        token_sums = self._token_sums
        char_sums = self._char_sums
        max_chars = max_weight * CHARS_PER_WEIGHT
        min_tokens = token_sums[last] - max_weight
        min_chars = char_sums[last] - max_chars
        first_by_tokens = bisect_left(token_sums, min_tokens, 0, last)
        first_by_chars = bisect_left(char_sums, min_chars, 0, last)
        first = max(first_by_tokens, first_by_chars)
        if first == last:
            return position
        return self._starts[first]

    def _sum(self, sums: Sequence[int], start: int, end: int) -> int:
        """Return the sum over a span, by prefix sums over the words."""
        first = bisect_left(self._starts, start)
        last = bisect_left(self._starts, end)
        first_counted = min(first, last)
        total = sums[last] - sums[first_counted]
        if first:
            word_before = first - 1
            _, word_end = self._words[word_before]
            if word_end > start:
                # The span starts inside a word, which the sum leaves out.
                total += self._share(sums, word_before, start, end)
        if last > first:
            last_word = last - 1
            _, word_end = self._words[last_word]
            if word_end > end:
                # The span ends inside a word, which the sum counts as a whole.
                total -= sums[last] - sums[last_word]
                total += self._share(sums, last_word, start, end)
        return total

    def _share(self, sums: Sequence[int], word: int, start: int, end: int) -> int:
        """Return the share of a word that is in a span, rounded up."""
        word_start, word_end = self._words[word]
        length = word_end - word_start
        inside_start = max(word_start, start)
        inside_end = min(word_end, end)
        inside = max(0, inside_end - inside_start)
        whole = sums[word + 1] - sums[word]
        share = whole * inside
        return -(-share // length)


def split_after_matches(
    text: str, span: CharSpan, pattern: re.Pattern[str], protected_spans: Sequence[CharSpan] = ()
) -> list[CharSpan]:
    """Cut a span after each match of a pattern.

    Args:
        text: The whole text.
        span: The part of it to cut.
        pattern: A separator.
        protected_spans: Spans that are never cut, in order.

    Returns:
        Spans that cover `span`.
    """
    start, end = span
    cuts = [match.end() for match in pattern.finditer(text, start, end)]
    inner_cuts = dict.fromkeys(
        cut for cut in cuts if start < cut < end and not _is_inside(cut, protected_spans)
    )
    return list(pairwise([start, *inner_cuts, end]))


def _is_inside(cut: int, spans: Sequence[CharSpan]) -> bool:
    number = bisect_left(spans, cut, key=_span_start)
    if number == 0:
        return False
    _, end = spans[number - 1]
    return end > cut


def _span_start(span: CharSpan) -> int:
    start, _ = span
    return start


def split_until_fits(
    text: str,
    span: CharSpan,
    fits: SpanTest,
    protected_spans: Sequence[CharSpan] = (),
    separators: Sequence[re.Pattern[str]] = SEPARATORS,
) -> list[CharSpan]:
    """Cut a span into spans that fit.

    It is cut at the first separator; what is still too large at the next one, in the end anywhere.
    Neighbours are merged again while they fit.

    Args:
        text: The whole text.
        span: The part of it to cut.
        fits: Whether a span is small enough.
        protected_spans: Spans that are never cut, in order. They begin and end with lines, and fit.
        separators: From the best to the worst.

    Returns:
        Spans that cover `span`.
    """
    if fits(*span):
        return [span]
    for level, separator in enumerate(separators, 1):
        units = split_after_matches(text, span, separator, protected_spans)
        if len(units) > 1:
            worse_separators = separators[level:]
            return _split_large_units(
                text,
                units,
                fits,
                protected_spans,
                worse_separators,
            )
    return merge_while_fits(_slice(span, fits), fits)


def _slice(span: CharSpan, fits: SpanTest) -> list[CharSpan]:
    """Cut a span every 40 characters, or fewer if the first slice does not fit."""
    start, end = span
    step = _SLICE_CHARS
    while step > 1:
        first_end = min(start + step, end)
        if fits(start, first_end):
            break
        step //= 2
    slices: list[CharSpan] = []
    for slice_start in range(start, end, step):
        slice_end = min(slice_start + step, end)
        slices.append((slice_start, slice_end))
    return slices


def _split_large_units(
    text: str,
    units: Sequence[CharSpan],
    fits: SpanTest,
    protected_spans: Sequence[CharSpan],
    separators: Sequence[re.Pattern[str]],
) -> list[CharSpan]:
    """Split the units that do not fit, and merge runs of those that do."""
    spans: list[CharSpan] = []
    run: list[CharSpan] = []
    for unit in units:
        if fits(*unit):
            run.append(unit)
            continue
        spans += merge_while_fits(run, fits)
        run = []
        spans += split_until_fits(
            text,
            unit,
            fits,
            protected_spans,
            separators,
        )
    return spans + merge_while_fits(run, fits)


def merge_while_fits(adjacent_spans: Iterable[CharSpan], fits: SpanTest) -> list[CharSpan]:
    """Merge neighbours, from the first on, while they fit together."""
    merged: list[CharSpan] = []
    for start, end in adjacent_spans:
        if not merged:
            merged.append((start, end))
            continue
        last_start, _ = merged[-1]
        if fits(last_start, end):
            merged[-1] = (last_start, end)
        else:
            merged.append((start, end))
    return merged


def merge_small_spans(
    spans: Sequence[CharSpan], is_small: SpanTest, fits: SpanTest
) -> list[CharSpan]:
    """Merge small spans with the one after them, or else with the one before.

    Two spans are merged only where they fit together; a small span that fits nowhere stays.
    """
    merged: list[CharSpan] = []
    for start, end in spans:
        if merged and is_small(*merged[-1]):
            last_start, _ = merged[-1]
            if fits(last_start, end):
                merged[-1] = (last_start, end)
                continue
            _merge_last_two(merged, fits)
        merged.append((start, end))
    if merged and is_small(*merged[-1]):
        _merge_last_two(merged, fits)
    return merged


def _merge_last_two(spans: list[CharSpan], fits: SpanTest) -> None:
    """Merge the last span into the one before it, where both fit together."""
    if len(spans) < 2:
        return
    start, _ = spans[-2]
    _, end = spans[-1]
    if fits(start, end):
        spans.pop()
        spans[-1] = (start, end)
