"""Stems of words, to highlight them and to count which words of a query a text has.

Common English endings are dropped. The search itself has other rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from anchord.core.lazy_re import lazy_re

_WORD = lazy_re(r"\w+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "e", "s", "y")
"""Longest first: the first that fits is dropped."""
_MIN_STEM_LENGTH = 3
_MAX_ALTERNATIVES = 40
"""A pattern of more stems takes longer than to look at each word."""


def word_stems(text: str) -> frozenset[str]:
    """Return the stems of all words of a text, in lower case."""
    return frozenset(map(_stem, _WORD.findall(text.lower())))


def stems_among(stems: frozenset[str], text: str) -> frozenset[str]:
    """Return which of some stems a text has: `stems & word_stems(text)` in a third of the time."""
    if not _has_pattern(stems, text):
        return stems & word_stems(text)
    return frozenset(_stem(word[0].lower()) for word in find_words(stems, text)) & stems


def find_words(stems: frozenset[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the words of a text whose stem is among some, in their order."""
    words: Iterable[re.Match[str]] = _WORD.finditer(text)
    if _has_pattern(stems, text):
        words = _pattern_of(stems).finditer(text)
    return (word for word in words if _stem(word[0].lower()) in stems)


def _has_pattern(stems: frozenset[str], text: str) -> bool:
    are_all_in_pattern = text.isascii() or all(map(str.isascii, stems))
    return are_all_in_pattern and len(stems) <= _MAX_ALTERNATIVES


@lru_cache(maxsize=64)
def _pattern_of(stems: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of words that begin with a stem in ASCII; other letters have odd cases."""
    beginnings = "|".join(sorted(filter(str.isascii, stems))) or "(?!)"
    return re.compile(rf"\b(?:{beginnings})\w*", re.IGNORECASE)


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_LENGTH:
            return word[: -len(ending)]
    return word
