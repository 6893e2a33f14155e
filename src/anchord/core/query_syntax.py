"""The query syntax: words, phrases and prefixes that a hit must or must not contain.

- `"an exact phrase"` must occur in a hit. Within a question or a sentence it need not: it ranks
  hits higher (`search.quoted_terms`).
- `-word` and `-"a phrase"` must not occur.
- `pref*` must be the beginning of some word of a hit.

All else is words, including what only resembles this syntax: `--flag`, `a-b`, a single quote mark,
`*args`, `2 * 3`. No query is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from anchord.core.lazy_re import lazy_re
from anchord.core.word_forms import spans_of_other_forms
from anchord.core.word_stems import find_words, word_stems

_PIECE = lazy_re(
    r'(?<![^\s(])(?P<excluded>-)?"(?P<phrase>\s*[^\s"][^"]*)"(?!\w)|(?P<word>[^\s"]+|")'
)
_EXCLUDED_WORD = lazy_re(r"-(\w.*)")
_PREFIX = lazy_re(r"(\w[\w.]{1,})\*")
_WORD = lazy_re(r"\w+")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul: scripts that put no space between words, or
between a word and its ending."""
_UNSPACED_CHARACTER = lazy_re(f"[{_UNSPACED}]")
_IDENTIFIER = lazy_re(
    r"(?=.*[^\W\d_])(?:\w+(?:[./:]+\w+)+|\w*_\w+)"  # a.b, a/b, a::b, a_b
    r"|[a-z]+[A-Z]\w*|[A-Z]{2,}[a-z]\w*|[A-Z][a-z]+[A-Z]\w*|[a-zA-Z]+\d\w*"  # aB, ABc, AbC, a1
    r"|v?\d+(?:\.\d+){2,}|[a-zA-Z](?:\+\+|#)|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # 1.2.3, C++, a@b.c
    rf"|(?=..)(?:(?![{_UNSPACED}])\w)*[{_UNSPACED}]\w*"  # The word index may cut it elsewhere.
    r"|[\u3400-\u9fff]"  # It may have a single character only within a longer word.
)
_PUNCTUATION = "()[]{}<>,;:.!?'`*"
"""Characters around an identifier that do not belong to it."""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query, split into words and conditions."""

    text: str
    """What is embedded and searched for: all words, without the excluded ones and the syntax."""
    required_phrases: tuple[str, ...] = ()
    excluded_phrases: tuple[str, ...] = ()
    """Excluded words and phrases."""
    required_prefixes: tuple[str, ...] = ()
    """Prefixes without their `*`."""
    preferred_phrases: tuple[str, ...] = ()
    """Quoted phrases that rank hits higher and exclude none."""

    @property
    def unquoted_words(self) -> int:
        """The number of words that are neither quoted nor a prefix."""
        quoted = sum(len(phrase.split()) for phrase in self.required_phrases)
        return len(self.text.split()) - quoted - len(self.required_prefixes)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The words that a hit should contain literally, each once, in order.

        They are names in code, paths, versions, mail addresses, and words in scripts without
        spaces.
        """
        words = (word.strip(_PUNCTUATION) for word in self.text.split())
        return tuple(dict.fromkeys(word for word in words if _IDENTIFIER.fullmatch(word)))

    @property
    def identifier_share(self) -> float:
        """The number of identifiers divided by the number of words (0 to 1)."""
        identifier_count = len(self.identifiers)
        if identifier_count == 0:
            return 0.0
        return identifier_count / len(self.text.split())

    def heading_score(self, heading: str) -> float:
        """Return how surely the query means a heading.

        Args:
            heading: The heading's title.

        Returns:
            0 unless every word of the heading is in the query, compared by stem. Else 0.5 for a
            heading of one word and 1 for a longer one. Words such as "the" do not count.
        """
        heading_stems = _stems(heading)
        if not heading_stems <= _stems(self.text):
            return 0.0
        return min(1.0, len(heading_stems) / 2)


def parse_query(query: str) -> ParsedQuery:
    """Split a query into words and conditions. Every text is a valid query."""
    words: list[str] = []
    required_phrases: list[str] = []
    excluded_phrases: list[str] = []
    required_prefixes: list[str] = []
    for piece in _PIECE.finditer(query):
        phrase = piece["phrase"]
        if phrase is not None:
            normalized = " ".join(phrase.split())
            if piece["excluded"]:
                excluded_phrases.append(normalized)
            else:
                required_phrases.append(normalized)
                words.append(normalized)
            continue
        word = piece["word"]
        if excluded_word := _EXCLUDED_WORD.fullmatch(word):
            excluded_phrases.append(excluded_word[1])
        elif prefix := _PREFIX.fullmatch(word):
            required_prefixes.append(prefix[1])
            words.append(prefix[1])
        else:
            words.append(word.strip('"'))
    return ParsedQuery(
        text=" ".join(filter(None, words)),
        required_phrases=tuple(required_phrases),
        excluded_phrases=tuple(excluded_phrases),
        required_prefixes=tuple(required_prefixes),
    )


def phrase_regex(phrase: str, *, is_prefix: bool = False) -> str:
    """Return a regular expression that finds a phrase as whole words, in any case.

    It has the same meaning for Python's engine and for the Rust engine of the table.

    Args:
        phrase: One or more words; white space between them matches any white space.
        is_prefix: True to find words that start with the phrase, too.
    """
    words = r"\s+".join(re.escape(word) for word in phrase.split())
    left = r"\b" if _has_word_border(phrase[:1]) else ""
    right = r"\b" if not is_prefix and _has_word_border(phrase[-1:]) else ""
    return f"(?i){left}{words}{right}"


def find_match_spans(query: ParsedQuery, text: str) -> list[tuple[int, int]]:
    r"""Return what to highlight in a text: words by stem, phrases, prefixes and identifiers.

    Stems are compared by dropping common English endings. This serves display only; the search
    itself has other rules.

    Args:
        query: The query that found the text.
        text: Any text.

    Returns:
        Ranges [start, end) of characters, sorted and disjoint.
    """
    stems = _stems(query.text)
    spans = [word.span() for word in find_words(stems, text)]
    spans += spans_of_other_forms(query.text, text)
    for pattern in _literal_patterns(query):
        spans += [match.span() for match in re.finditer(pattern, text)]
    return _merge_overlapping(sorted(spans))


def matched_words(query: ParsedQuery, text: str) -> list[str]:
    """Return what of a query occurs in a text, as the text writes it, each once in any case.

    Args:
        query: The query that found the text.
        text: Any text.
    """
    words: dict[str, str] = {}
    for start, end in find_match_spans(query, text):
        word = text[start:end]
        words.setdefault(word.lower(), word)
    return list(words.values())


def _has_word_border(character: str) -> bool:
    r"""Whether `\b` is required beside this character: not in scripts without spaces."""
    return bool(_WORD.match(character)) and not _UNSPACED_CHARACTER.match(character)


def _literal_patterns(query: ParsedQuery) -> Iterator[str]:
    for phrase in (*query.required_phrases, *query.preferred_phrases):
        yield phrase_regex(phrase)
    for identifier in query.identifiers:
        yield f"(?i){re.escape(identifier)}"
    for prefix in query.required_prefixes:
        yield phrase_regex(prefix, is_prefix=True) + r"\w*"


def _merge_overlapping(sorted_spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted_spans:
        if merged and start <= merged[-1][1]:
            last_start, last_end = merged[-1]
            merged[-1] = (last_start, max(end, last_end))
        else:
            merged.append((start, end))
    return merged


@lru_cache(maxsize=4_096)
def _stems(text: str) -> frozenset[str]:
    return word_stems(text) - _COMMON_STEMS


def is_unspaced(word: str) -> bool:
    """Return whether a word has characters of a script that puts no space between words."""
    return bool(_UNSPACED_CHARACTER.search(word))


_STOP_WORD_STEMS = (
    "a an and are as at b be but by do for how i if in into is it no not of on or such th that the "
    "their then there these they thi this to wa was what when where which who why will with"
)
_COMMON_STEMS = frozenset(_STOP_WORD_STEMS.split())
"""Stems of words that occur in every text."""
