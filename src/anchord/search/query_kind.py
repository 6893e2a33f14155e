"""What a query looks like: a question, a sentence, or terms such as names and headings.

People ask in their own words, and those are rarely the text's: meaning counts more then, and a file
of which much fits is the likelier answer. Names, keywords and headings are words of the text. The
kind follows from the query alone, so the same query is always weighed in the same way. Only English
questions are recognised by their words, others by their question mark (docs/design/search.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from anchord.core.query_syntax import ParsedQuery

_WORD = re.compile(r"[\w'\u2019]+")
_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e")
_FIRST_WORDS = frozenset(
    """
    how what why when where which who whose whom can could does do did is are am will would should
    may has have
    """.split()  # noqa: SIM905 - a list of words would not be easier to read; likewise below
)
"""Words that begin a question."""
_PERSONS = frozenset(
    """
    i me my mine we us our ours you your yours he him his she her they them their someone somebody
    """.split()  # noqa: SIM905
)
"""Words of somebody who tells what happens to him."""
_LINKING_WORDS = _FIRST_WORDS | frozenset(
    """
    a an the of to in on at by for from with without into onto over under after before between and
    or but if as than then that this these those be been being was were doing having had shall might
    must no nor not so such there here up down out off only just also too very more most some any
    each every all both either one get gets got while until because about again now still else never
    ever always it its
    """.split()  # noqa: SIM905
)
"""Words that join others to a sentence."""
_SMALL_WORDS = _PERSONS | _LINKING_WORDS
"""Words that do not say what a text is about."""
_MIN_QUESTION_WORDS = 3
_MIN_TOLD_WORDS = 4
_MIN_SENTENCE_WORDS = 6
_MIN_LINKING_SHARE = 0.3
_MIN_IDENTIFIER_SHARE = 0.5


class QueryKind(StrEnum):
    """What a query looks like."""

    TERMS = "terms"
    """Names, paths, keywords or a heading."""
    SENTENCE = "sentence"
    """A statement, such as one of the documents' own."""
    QUESTION = "question"
    """A question, or what somebody tells of his situation."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How a query is weighed."""

    vector: float
    """The cosine's weight in a document, 0 to 1; words have the rest."""
    file: float
    """How much the other chunks of a file count beside each chunk of it, 0 to 1."""


WEIGHTS = {
    QueryKind.TERMS: Weights(vector=0.3, file=0.0),
    QueryKind.SENTENCE: Weights(vector=0.4, file=0.22),
    QueryKind.QUESTION: Weights(vector=0.55, file=0.22),
}
"""Chosen on 120 questions and 40 sentences written from the titles of 245 pages alone, and on 173
sentences of those pages that contain a link; checked on 125, 40 and 175 of 191 other pages. The
right file is first for 62 % of the questions, and for 44 % with 0.3 for every query (others: 59 and
54). Weights of questions from 0.45 to 0.65 differ by 3 % at most. See docs/design/search.md."""


def kind_of_query(query: ParsedQuery) -> QueryKind:
    """Return what a query looks like."""
    words = [word.replace("\u2019", "'") for word in _WORD.findall(query.text.lower())]
    if not words or query.identifier_share >= _MIN_IDENTIFIER_SHARE:
        return QueryKind.TERMS
    if query.text.rstrip().endswith(_QUESTION_MARKS) or _asks(words) or _tells(words):
        return QueryKind.QUESTION
    return QueryKind.SENTENCE if _is_sentence(words) else QueryKind.TERMS


def content_words(text: str) -> list[str]:
    """Return the words of a text that say what it is about, in lower case and without "'s"."""
    words = [word.replace("\u2019", "'") for word in _WORD.findall(text.lower())]
    heads = [word.partition("'")[0] for word in words if not word.endswith("n't")]
    return [head for head in heads if head and head not in _SMALL_WORDS]


def _asks(words: Sequence[str]) -> bool:
    return len(words) >= _MIN_QUESTION_WORDS and words[0] in _FIRST_WORDS


def _tells(words: Sequence[str]) -> bool:
    """Whether somebody tells what happens to him, as in "I can't find it"."""
    persons = (word.partition("'")[0] in _PERSONS for word in words)
    return len(words) >= _MIN_TOLD_WORDS and any(persons)


def _is_sentence(words: Sequence[str]) -> bool:
    linking = sum(word in _LINKING_WORDS or "'" in word for word in words)
    return len(words) >= _MIN_SENTENCE_WORDS and linking >= _MIN_LINKING_SHARE * len(words)
