"""Splitting by separators and sizes, in spans of characters: what the strategies that know no anchors are made of.

A span is (start, end), the end left out. Spans of one text are in order and cover it, blanks included, so that nothing is lost
between them; an overlap only moves a start back into the span before.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from anchord.chunkers.layout import CHARS_PER_WEIGHT, Sizing

Span = tuple[int, int]
Fits = Callable[[int, int], bool]

BLANK_LINE = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)*\n")
NEWLINE = re.compile(r"\n")
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
SPACE = re.compile(r"\s+")
SEPARATORS = (BLANK_LINE, NEWLINE, SENTENCE, SPACE)
"""From the best; each is cut after, so that it stays with what is before it."""
_WORD = re.compile(r"\S+")
_HARD = 40


class Ruler:
    """Weights of the spans of a text, by sums over its words: word pieces add up over blanks."""

    def __init__(self, text: str, sizing: Sizing) -> None:
        """Count each different word once."""
        self._words = [match.span() for match in _WORD.finditer(text)]
        self._starts = [start for start, _ in self._words]
        self._tokens = [0, *accumulate(sizing.count([text[start:end] for start, end in self._words]))]
        self._chars = [0, *accumulate(end - start for start, end in self._words)]

    def weight(self, start: int, end: int) -> int:
        """Return the weight of a span: its tokens, or a token for 8 characters that are not blank, whichever is more."""
        return max(self._sum(self._tokens, start, end), -(-self._sum(self._chars, start, end) // CHARS_PER_WEIGHT))

    def _sum(self, sums: Sequence[int], start: int, end: int) -> int:
        """Add up over a span; a word that is cut counts by its share, rounded up."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        total = sums[last] - sums[min(first, last)]
        if first and self._words[first - 1][1] > start:
            total += self._share(sums, first - 1, start, end)
        if last > first and self._words[last - 1][1] > end:
            total -= sums[last] - sums[last - 1] - self._share(sums, last - 1, start, end)
        return total

    def _share(self, sums: Sequence[int], word: int, start: int, end: int) -> int:
        first, last = self._words[word]
        inside = max(0, min(last, end) - max(first, start))
        return -(-(sums[word + 1] - sums[word]) * inside // (last - first))

    def word(self, at: int) -> int:
        """Return the start of the first word that begins at `at` or later."""
        number = bisect_left(self._starts, at)
        return self._starts[number] if number < len(self._starts) else at

    def back(self, at: int, weight: int) -> int:
        """Return where the words before `at` begin that weigh at most `weight` together."""
        last = bisect_left(self._starts, at)
        first = max(
            bisect_left(self._tokens, self._tokens[last] - weight, 0, last),
            bisect_left(self._chars, self._chars[last] - weight * CHARS_PER_WEIGHT, 0, last),
        )
        return self._starts[first] if first < last else at


def at(text: str, span: Span, pattern: re.Pattern[str], kept: Sequence[Span] = ()) -> list[Span]:
    """Cut a span after each match; never inside the spans `kept`, which are sorted."""
    cuts = [match.end() for match in pattern.finditer(text, *span) if span[0] < match.end() < span[1]]
    cuts = [cut for cut in cuts if not _inside(cut, kept)]
    return list(pairwise([span[0], *dict.fromkeys(cuts), span[1]]))


def _inside(cut: int, kept: Sequence[Span]) -> bool:
    number = bisect_left(kept, cut, key=lambda span: span[0])
    return number > 0 and kept[number - 1][1] > cut


def split(
    text: str, span: Span, fits: Fits, kept: Sequence[Span] = (), separators: Sequence[re.Pattern[str]] = SEPARATORS
) -> list[Span]:
    """Cut a span into spans that fit: at the first separator, what is still too large at the next, at last anywhere.

    Neighbours are put together again while they fit. The spans `kept`, which begin and end with lines and fit, are not cut.
    """
    if fits(*span):
        return [span]
    for level, separator in enumerate(separators, 1):
        units = at(text, span, separator, kept)
        if len(units) > 1:
            return _refined(text, units, fits, kept, separators[level:])
    return packed(_sliced(span, fits), fits)


def _sliced(span: Span, fits: Fits) -> list[Span]:
    step = _HARD
    while step > 1 and not fits(span[0], min(span[0] + step, span[1])):
        step //= 2
    return [(start, min(start + step, span[1])) for start in range(span[0], span[1], step)]


def _refined(
    text: str, units: Sequence[Span], fits: Fits, kept: Sequence[Span], separators: Sequence[re.Pattern[str]]
) -> list[Span]:
    spans: list[Span] = []
    run: list[Span] = []
    for unit in units:
        if fits(*unit):
            run.append(unit)
            continue
        spans += packed(run, fits)
        run = []
        spans += split(text, unit, fits, kept, separators)
    return spans + packed(run, fits)


def packed(units: Iterable[Span], fits: Fits) -> list[Span]:
    """Put neighbours together, from the first on, while they fit."""
    spans: list[Span] = []
    for start, end in units:
        if spans and fits(spans[-1][0], end):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def joined(spans: Sequence[Span], small: Fits, fits: Fits) -> list[Span]:
    """Put what is small to the span after it, or else to the one before, where both fit together; nothing is ever dropped."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and small(*merged[-1]):
            if fits(merged[-1][0], end):
                merged[-1] = (merged[-1][0], end)
                continue
            _put_back(merged, fits)
        merged.append((start, end))
    if merged and small(*merged[-1]):
        _put_back(merged, fits)
    return merged


def _put_back(spans: list[Span], fits: Fits) -> None:
    """Put the last span to the one before it, where both fit together."""
    if len(spans) > 1 and fits(spans[-2][0], spans[-1][1]):
        spans[-2:] = [(spans[-2][0], spans[-1][1])]
