"""How surely a hit is about the query: a score that means the same in every search.

The score by which hits are sorted is relative to the best of one search, so that a query about
nothing in the index has hits with high scores too. This one counts three parts from 0 to 1: how
near the hit is in meaning (half), which share of the query's words it contains (0.3), and which
share the best hits contain together (0.2). Without a cosine that can be judged, words alone count.
How the parts, their weights and the two limits were chosen is in docs/design/search.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import chain

from anchord.core.ports import ChunkStore
from anchord.core.query_syntax import ParsedQuery, is_unspaced
from anchord.core.types import Hit, Row
from anchord.core.word_forms import spans_of_other_forms
from anchord.core.word_stems import stems_among, word_stems
from anchord.search.passages import Passage
from anchord.search.query_kind import content_words

_MEANING_WEIGHT, _HIT_WORDS_WEIGHT, _ALL_WORDS_WEIGHT = 0.5, 0.3, 0.2
_MEANING_ALONE_WEIGHT = 0.6
_EVIDENCE_GROUPS = 10
_EVIDENCE_HITS = 20
"""So many hits decide whether anything is about the query, where fewer groups are shown."""
_LIKELY = 0.57
_STRONG = 0.7
_PAIR = 2
_PART_OF_NAME = re.compile(r"_|(?<=[a-z])(?=[A-Z])")


class Confidence(StrEnum):
    """How surely a hit is about the query."""

    STRONG = "strong"
    LIKELY = "likely"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class CosineScale:
    """What a model's cosines say: those of texts that have nothing, and much, in common."""

    unrelated: float
    related: float
    """Above `unrelated`."""

    def nearness(self, cosine: float) -> float:
        """Return where a cosine is between unrelated (0) and related (1), within 0 to 1."""
        share = (cosine - self.unrelated) / (self.related - self.unrelated)
        return min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Judgement:
    """How surely a hit is about the query, and why; all numbers are 0 to 1."""

    meaning: float | None
    """How near it is in meaning; None where that cannot be judged."""
    words: float
    """The share of the query's words that it contains."""
    all_words: float
    """The share of the query's words that the best hits contain together."""

    @property
    def score(self) -> float:
        """All parts together; if meaning is unknown, the words have its weight as well."""
        by_words = _HIT_WORDS_WEIGHT * self.words + _ALL_WORDS_WEIGHT * self.all_words
        if self.meaning is None:
            return by_words / (_HIT_WORDS_WEIGHT + _ALL_WORDS_WEIGHT)
        together = _MEANING_WEIGHT * self.meaning + by_words
        # What is as near as an answer is one, in whatever words or language.
        nearest = _MEANING_ALONE_WEIGHT * self.meaning
        # What has every word of the query is about it: a name, or the code of an error.
        named = _LIKELY if self.words == 1 else 0.0
        return max(together, nearest, named)

    @property
    def confidence(self) -> Confidence:
        """The score as a word."""
        if self.score >= _STRONG:
            return Confidence.STRONG
        return Confidence.LIKELY if self.score >= _LIKELY else Confidence.WEAK


def judge_hits(
    query: ParsedQuery,
    texts_of_hits: Sequence[tuple[Hit, str]],
    scale: CosineScale | None,
    highest_other_cosine: float | None,
    *,
    by_words: bool = True,
) -> dict[str, Judgement]:
    """Return how surely each hit is about the query, by the hit's id.

    Args:
        query: The query.
        texts_of_hits: Hits, each with its text: path, headings and content.
        scale: What the model's cosines say; None if that is unknown.
        highest_other_cosine: Upper bound on the cosine of hits that only words found; None if
            nothing bounds it.
        by_words: Whether words were searched; if not, or if the query has none, the meaning counts
            alone where it is known.
    """
    words = query_words(query)
    words_by_id = {hit.id: words_in(text, words, query) for hit, text in texts_of_hits}
    all_words = _share(frozenset().union(*words_by_id.values()), words)
    identifier_share = query.identifier_share

    def judge(hit: Hit) -> Judgement:
        share = _share(words_by_id[hit.id], words)
        if hit.contains_identifier:
            share = max(share, identifier_share)
        cosine = highest_other_cosine if hit.cosine is None else hit.cosine
        meaning = None
        if scale is not None and cosine is not None:
            meaning = scale.nearness(cosine)
        if meaning is not None and not (by_words and words):
            return Judgement(meaning, meaning, meaning)
        return Judgement(meaning, share, max(share, all_words))

    return {hit.id: judge(hit) for hit, _ in texts_of_hits}


def is_about(
    hits: Iterable[Hit], judgement_by_id: Mapping[str, Judgement], *, by_words: bool = True
) -> bool:
    """Return whether any of the hits seems to be about the query.

    A hit whose meaning cannot be judged is never denied where words found it.

    Args:
        hits: The best hits.
        judgement_by_id: How surely each of them is about the query.
        by_words: Whether words were searched; if not, what cannot be judged is not denied either.
    """
    judged = [(hit, judgement_by_id[hit.id]) for hit in hits]
    return any(
        judgement.confidence is not Confidence.WEAK
        or (judgement.meaning is None and (_is_found_by_words(hit) or not by_words))
        for hit, judgement in judged
    )


def shown_evidence(groups: Sequence[Sequence[Passage]]) -> list[tuple[Hit, str]]:
    """Return the hits of what is shown, each with its path, headings and content."""
    passages = chain.from_iterable(groups)
    return [(passage.hit, _text_of(passage.row, passage.text)) for passage in passages]


def other_evidence(
    hits: Sequence[Hit], groups: Sequence[Sequence[Passage]], store: ChunkStore
) -> list[tuple[Hit, str]]:
    """Return the best hits that are not shown, likewise; none if many groups are shown.

    Args:
        hits: All hits, best first.
        groups: What is shown.
        store: Where the texts are read.
    """
    if len(groups) >= _EVIDENCE_GROUPS:
        return []
    passages = chain.from_iterable(groups)
    shown_ids = {chunk_id for passage in passages for chunk_id in passage.chunk_ids}
    others = {hit.id: hit for hit in hits[:_EVIDENCE_HITS] if hit.id not in shown_ids}
    rows = store.get_display_rows(list(others)) if others else ()
    return [(others[row.id], _text_of(row, row.text)) for row in rows]


def _text_of(row: Row, content: str) -> str:
    return f"{row.path}\n{row.header_path}\n{content}"


def query_words(query: ParsedQuery) -> frozenset[str]:
    """Return what a hit should contain: stems, and pairs of characters of scripts without spaces.

    Words such as "how" and "my" do not count, unless there are no others.
    """
    stems = word_stems(" ".join(content_words(query.text)) or query.text)
    return frozenset(chain.from_iterable(map(_pairs, stems)))


@lru_cache(maxsize=256)
def words_in(text: str, words: frozenset[str], query: ParsedQuery) -> frozenset[str]:
    """Return which of a query's words a text contains, in any form that the word index finds.

    A search asks twice for the texts that it shows.

    Args:
        text: The text.
        words: The query's words, as `query_words` returns them.
        query: The query.
    """
    found = stems_among(words, text)
    missing = words - found
    if not missing:
        return found
    found |= {word for word in filter(is_unspaced, missing) if word in text}
    # The parts of names, such as `token_budget` and `tokenBudget`.
    lowered = text.lower()
    if within := frozenset(word for word in missing - found if word in lowered):
        found |= stems_among(within, _PART_OF_NAME.sub(" ", text))
    prefixes = [prefix.lower() for prefix in query.required_prefixes]
    for word in missing - found:
        is_prefix = any(prefix.startswith(word) and prefix in lowered for prefix in prefixes)
        if is_prefix or _has_other_form(word, text, query):
            found |= {word}
    return found


def _has_other_form(stem: str, text: str, query: ParsedQuery) -> bool:
    """Return whether a text has a word of a query, given by its stem, in another form."""
    written = _written_words(query.text).get(stem, ())
    return any(spans_of_other_forms(word, text) for word in written)


@lru_cache(maxsize=64)
def _written_words(text: str) -> Mapping[str, Sequence[str]]:
    """Return the words of a text by each of their stems."""
    words: dict[str, list[str]] = {}
    for word in text.split():
        for stem in word_stems(word):
            words.setdefault(stem, []).append(word)
    return words


def _share(found: frozenset[str], words: frozenset[str]) -> float:
    return len(found) / max(1, len(words))


def _pairs(word: str) -> Sequence[str]:
    if len(word) <= _PAIR or not is_unspaced(word):
        return (word,)
    return [word[start : start + _PAIR] for start in range(len(word) - 1)]


def _is_found_by_words(hit: Hit) -> bool:
    return hit.bm25 is not None or hit.contains_identifier
