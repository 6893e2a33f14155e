"""Rooms: a coarse label of what a text is about, to search within. By names and words alone: the same text has the same room.

A file's room is the folder that it is in below its root, else what its name says, else its first words. An exchange's is its
topic. With `extract = "general"` a chunk of a conversation that is a memory of some type is in the room of that type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

GENERAL = "general"
_FIRST_CHARS = 2_000
_ENOUGH = 2
"""So many different words of a topic make a text one of it."""

_TOPICS: Mapping[str, str] = {
    "problems": r"problems?|issues?|bugs?|broken|fail(?:s|ed|ing|ure)?|crash(?:e[sd]|ing)?|stuck|traceback|exception|"
                r"workaround|regression|flaky|hangs?|leaks?|wrong|fix(?:e[sd])?",
    "decisions": r"decided?|decision|chose|chosen|picked|settled|agreed|instead of|trade-?offs?|alternatives?|rationale|"
                 r"adopt(?:ed)?|rejected|switch(?:ed)? to|migrate[sd]?|go with|conclusion",
    "planning": r"plan(?:s|ned|ning)?|roadmap|milestones?|deadline|priorit(?:y|ies|ize)|sprint|backlog|scope|estimate|todo|"
                r"next steps?|schedule[d]?|release date|goals?|requirements?",
    "architecture": r"architecture|design(?:ed)?|patterns?|layers?|modules?|components?|interfaces?|schema|services?|"
                    r"boundar(?:y|ies)|protocols?|data model|coupling|abstraction|diagram",
    "technical": r"code|function|class|method|api|database|sql|query|server|client|deploy(?:ed|ment)?|docker|git|commit|"
                 r"branch|tests?|build|compile[rsd]?|refactor(?:ed|ing)?|library|package|script|config(?:uration)?|endpoint",
}  # fmt: skip
_NAMES: Mapping[str, str] = {
    "architecture": r"architecture|design|adr", "decisions": r"decision", "planning": r"roadmap|plan|todo|milestone|backlog",
    "problems": r"troubleshoot|problem|issues|postmortem|incident", "technical": r"api|install|setup|usage|develop|contribut",
}  # fmt: skip
_MEMORIES: Mapping[str, str] = {
    "preference": r"\b(?:i|we) (?:always|never|usually|prefer|like|hate|want|don't like|do not like)\b|"
                  r"\bplease (?:always|never)\b|\bmy (?:preference|style|convention)\b|\bour (?:convention|style|rule)\b",
    "decision": r"\b(?:i|we)(?:'ve| have)? (?:decided|chose|settled|agreed|went with|picked)\b|"
                r"\blet's (?:go with|use|switch)\b|\binstead of\b.*\bbecause\b|\bthe decision (?:is|was)\b",
    "milestone": r"\b(?:finally|first time) (?:works?|working|passes|green)\b|\bit works\b|"
                 r"\b(?:shipped|released|launched|merged|deployed) (?:it|to|the|v\d)|"
                 r"\bversion \d+(?:\.\d+)+ (?:is out|released)\b|\bbreakthrough\b",
    "problem": r"\bthe (?:problem|issue|bug|root cause) (?:is|was)\b|\b(?:doesn't|does not|didn't|won't) work\b|"
               r"\bkeeps? (?:failing|crashing|breaking)\b|\bturned out\b|\bfixed (?:it|this|by)\b",
    "emotional": r"\b(?:i|we)(?:'m| am|'re| are| feel| felt) (?:so |very |really )?"
                 r"(?:happy|sad|proud|afraid|worried|frustrated|excited|tired|grateful|relieved)\b|\bthank you\b",
}  # fmt: skip
_TOPIC_WORDS = {topic: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for topic, words in _TOPICS.items()}
_NAME_WORDS = {topic: re.compile(words) for topic, words in _NAMES.items()}
_MARKERS = {kind: re.compile(words, re.IGNORECASE) for kind, words in _MEMORIES.items()}


def room_of_file(path: str, text: str) -> str:
    """Return the room of a file of a project."""
    top, inside, name = path.rpartition("/")
    if inside:
        return top.partition("/")[0].lower()
    stem = name.lower()
    return next((topic for topic, words in _NAME_WORDS.items() if words.search(stem)), None) or topic_of(text)


def topic_of(text: str) -> str:
    """Return the topic with the most different words in the first of a text; of equal ones the first listed."""
    first = text[:_FIRST_CHARS]
    found = {topic: len({word.lower() for word in words.findall(first)}) for topic, words in _TOPIC_WORDS.items()}
    best = max(found, key=lambda topic: found[topic])
    return best if found[best] >= _ENOUGH else GENERAL


def memory_of(text: str) -> str:
    """Return the type of memory that a text is, "" for none: the type with the most marks, of equal ones the first listed."""
    found = {kind: len(marks.findall(text)) for kind, marks in _MARKERS.items()}
    best = max(found, key=lambda kind: found[kind])
    return best if found[best] else ""
