"""The sentence of an exchange that decides something, if there is one.

A rule of words, in English: it misses decisions that are said otherwise. It looks for what someone
settles ("let's go with", "we decided", "use X instead of Y"), and leaves out questions, wishes, and
what is only weighed or quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from anchord.core.lazy_re import lazy_re

_MAX_TEXT_CHARS = 40_000
"""Of a question and of an answer: what is pasted is longer, and decides nothing."""
_MIN_WORDS = 4
_MAX_WORDS = 60
_SENTENCE_END = lazy_re(r"(?<=[.!?])\s+(?=[A-Z\"'*`(\[])|\n+")
_CODE_BLOCK = lazy_re(r"^```.*?(?:^```\s*$|\Z)", re.MULTILINE | re.DOTALL)
_MARKS = lazy_re(r"^[\s>#*\-\u2022\d.)\]]+|\*\*|`")
_DO = (
    "(?:use|keep|put|make|do|return|call|show|store|write|read|pass|rename|move|remove|drop|add|"
    "mock|check|replace|take|set|run|have|let)"
)
_USER_DECIDES = lazy_re(
    r"\blet'?s (?:go with|use|keep|stick with|switch to|drop|do (?:it|that|this)|not|skip)\b"
    r"|\b(?:we|i)(?:'ve| have|'ll| will)? (?:decided|chose|settled|agreed|picked|opted)\b"
    r"|\b(?:go|going|went|stick) with (?:the |option|that|a\b|an\b|your)"
    r"|^(?:no,? |ok(?:ay)?,? |yes,? |please |just )*(?:don't|do not|never) (?:use|add|take|store)\b"
    rf"|^(?:no,? |ok(?:ay)?,? |yes,? |please |just )*{_DO}\b.{{2,200}}\b(?:instead|rather than)\b"
    rf"|\binstead\b,? (?:of .{{2,120}}, ?)?{_DO}\b"
    rf"|^(?:yes|no),? (?:please )?{_DO} (?:that|it|this|option|the)\b",
    re.IGNORECASE,
)
_ANSWER_DECIDES = lazy_re(
    r"\b(?:we|i)(?:'ve| have)? (?:decided|chose|chosen|settled on|agreed|opted)\b"
    r"|\b(?:decision|decided|verdict|conclusion)\s*(?:is|was)?\s*:"
    r"|\bthe decision (?:is|was)\b"
    r"|\bi(?:'ll| will|'m going to) (?:go with|use|stick with|keep)\b.{2,}"
    r"(?:\binstead\b|\bbecause\b|\bsince\b|\brather than\b|\bso that\b)"
    r"|\b(?:went|going) with\b",
    re.IGNORECASE,
)
_UNDECIDED = lazy_re(
    r"\?\s*$|^(?:and |but |so )?(?:if|should|would|could|can|do we|does|is|are|why|what|how|when|"
    r"where)\b|\b(?:maybe|perhaps|might|not sure|consider|what if|for example|e\.g\.|seems|"
    r"feel like|wonder|or should)\b",
    re.IGNORECASE,
)


class Decision(NamedTuple):
    """A sentence that decides."""

    sentence: str
    is_users: bool
    """Whether the person said it; False for the assistant."""


def find_decision(question: str, answer: str) -> Decision | None:
    """Return the first sentence that decides: of the person, else of the assistant.

    Args:
        question: What the person typed.
        answer: What was said in answer to it.
    """
    for text, decides, is_users in (
        (question, _USER_DECIDES, True),
        (answer, _ANSWER_DECIDES, False),
    ):
        for sentence in _sentences(text[:_MAX_TEXT_CHARS]):
            if decides.search(sentence) and not _UNDECIDED.search(sentence):
                return Decision(sentence, is_users)
    return None


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in one line each, without code and marks of markdown."""
    for part in _SENTENCE_END.split(_CODE_BLOCK.sub("\n", text)):
        if part.lstrip().startswith((">", "|")):
            continue  # Quoted, or a row of a table.
        sentence = " ".join(_MARKS.sub("", part).split())
        if _MIN_WORDS <= len(sentence.split()) <= _MAX_WORDS:
            yield sentence
