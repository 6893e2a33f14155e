"""What a person typed -> what is looked for: words, and what every hit must or must not hold.

`"an exact phrase"` must be there, `-word` and `-"a phrase"` must not, of `pref*` some word must begin so. All else is words,
also what only looks like one of these: `--flag`, `a-b`, a lone quote, `*args`, `2 * 3`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_PIECE = re.compile(r'(?<![^\s(])(?P<out>-)?"(?P<phrase>[^"]*[^\s"][^"]*)"(?!\w)|(?P<word>[^\s"]+|")')
_WITHOUT = re.compile(r"-(\w.*)")
_PREFIX = re.compile(r"(\w[\w.]{1,})\*")
_WORD = re.compile(r"\w+")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul: nothing need stand between a word and the next, or its ending."""
_NO_BORDER = re.compile(f"[{_UNSPACED}]")
_IDENTIFIER = re.compile(
    r"(?=.*[^\W\d_])(?:\w+(?:[./:]+\w+)+|\w*_\w+)"  # a.b, a/b, a::b, a_b
    r"|[a-z]+[A-Z]\w*|[A-Z]{2,}[a-z]\w*|[A-Z][a-z]+[A-Z]\w*|[a-zA-Z]+\d\w*"  # aB, ABc, AbC, a1
    r"|v?\d+(?:\.\d+){2,}|[a-zA-Z](?:\+\+|#)|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # 1.2.3, C++, a@b.c
    rf"|(?=..)\w*[{_UNSPACED}]\w*"  # The index of words takes a run of these for one word.
)
_CALL = "()[]{}<>,;:.!?'`*"


@dataclass(frozen=True, slots=True)
class Wording:
    """A parsed query."""

    text: str
    """What is embedded and looked for by words: all but what must not be there."""
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Return the words that a hit should have letter by letter: names of code, paths, versions, addresses, CJK."""
        words = (word.strip(_CALL) for word in self.text.split())
        return tuple(dict.fromkeys(word for word in words if _IDENTIFIER.fullmatch(word)))

    @property
    def naming(self) -> float:
        """Return the share of its words that are such names."""
        return len(self.identifiers) / len(self.text.split()) if self.identifiers else 0.0

    def names(self, heading: str) -> float:
        """Return how surely a heading is spoken of: 1 where all its words are, two at the least; a half for one; else 0."""
        words = _stems(heading)
        return min(1.0, len(words) / 2) if words <= _stems(self.text) else 0.0


def parse_query(query: str) -> Wording:
    """Take a query apart; any text is one."""
    kept, phrases, without, prefixes = list[str](), list[str](), list[str](), list[str]()
    for piece in _PIECE.finditer(query):
        phrase, word = piece["phrase"], piece["word"]
        if phrase is not None:
            (without if piece["out"] else phrases).append(" ".join(phrase.split()))
        elif out := _WITHOUT.fullmatch(word):
            without.append(out[1])
        elif begins := _PREFIX.fullmatch(word):
            prefixes.append(begins[1])
        kept += (
            [] if phrase is not None and piece["out"] else [] if word and _WITHOUT.fullmatch(word) else [_plain(phrase, word)]
        )
    return Wording(" ".join(filter(None, kept)), tuple(phrases), tuple(without), tuple(prefixes))


def _plain(phrase: str | None, word: str | None) -> str:
    if phrase is not None:
        return " ".join(phrase.split())
    begins = _PREFIX.fullmatch(word or "")
    return begins[1] if begins else (word or "").strip('"')


def phrase_pattern(phrase: str, *, begins: bool = False) -> str:
    """Return a regular expression of a phrase as whole words (or, with `begins`, as the beginning of some), in any case.

    Written for Rust's engine and for Python's alike.
    """
    words = r"\s+".join(re.escape(word) for word in phrase.split())
    left = r"\b" if _has_border(phrase[:1]) else ""
    right = r"\b" if not begins and _has_border(phrase[-1:]) else ""
    return f"(?i){left}{words}{right}"


def _has_border(end: str) -> bool:
    return bool(_WORD.match(end)) and not _NO_BORDER.match(end)


def spans(wording: Wording, text: str) -> list[tuple[int, int]]:
    """Return where in a text [start, end) something of a query stands, in order and apart: for showing, not for finding.

    A word is found where the stems of both are the same, as far as dropping the usual endings tells.
    """
    stems = _stems(wording.text)
    found = [match.span() for match in _WORD.finditer(text) if _stem(match[0].lower()) in stems]
    exact = [re.escape(name) for name in wording.identifiers]
    patterns = [phrase_pattern(phrase) for phrase in wording.phrases] + [f"(?i){name}" for name in exact]
    patterns += [phrase_pattern(prefix, begins=True) + r"\w*" for prefix in wording.prefixes]
    for pattern in patterns:
        found += [match.span() for match in re.finditer(pattern, text)]
    return _merged(sorted(found))


def matched_words(wording: Wording, text: str) -> list[str]:
    """Return the words, phrases and names of a query that stand in a text, as the text writes them, each once."""
    words: dict[str, str] = {}
    for start, end in spans(wording, text):
        words.setdefault(text[start:end].lower(), text[start:end])
    return list(words.values())


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@lru_cache(maxsize=4_096)
def _stems(text: str) -> frozenset[str]:
    return frozenset(_stem(word.lower()) for word in _WORD.findall(text)) - _COMMON


_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "e", "s", "y")
_COMMON = frozenset(
    {"a", "an", "and", "are", "as", "at", "b", "be", "but", "by", "do", "for", "how", "i", "if", "in", "into", "is", "it", "no",
     "not", "of", "on", "or", "such", "th", "that", "the", "their", "then", "there", "these", "they", "thi", "this", "to", "wa",
     "was", "what", "when", "where", "which", "who", "why", "will", "with"}
)  # fmt: skip
"""Stems of what is in every text."""


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    least = 3
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: -len(ending)]
    return word
