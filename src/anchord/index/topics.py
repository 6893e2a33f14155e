"""Label texts with rooms: coarse topics to restrict a search to.

A file's room is the folder that it is in, directly below its root. A file at the top of its root
has the room that its name says, else the topic of its first words. The room of an exchange is its
topic. With `extract = "general"` a chunk of a conversation that matches a memory type has that type
as its room.
Labels depend on names and words only: the same text always has the same room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

DEFAULT_TOPIC = "general"
_TOPIC_CHARS = 2_000
_MIN_TOPIC_WORDS = 2
"""A text has a topic if it holds at least so many different words of it."""

_TOPICS: Mapping[str, str] = {
    "problems": (
        r"problems?|issues?|bugs?|broken|fail(?:s|ed|ing|ure)?|crash(?:e[sd]|ing)?|stuck|"
        r"traceback|exception|workaround|regression|flaky|hangs?|leaks?|wrong|"
        r"fix(?:e[sd])?"
    ),
    "decisions": (
        r"decided?|decision|chose|chosen|picked|settled|agreed|instead of|trade-?offs?|"
        r"alternatives?|rationale|adopt(?:ed)?|rejected|switch(?:ed)? to|migrate[sd]?|"
        r"go with|conclusion"
    ),
    "planning": (
        r"plan(?:s|ned|ning)?|roadmap|milestones?|deadline|priorit(?:y|ies|ize)|sprint|"
        r"backlog|scope|estimate|todo|next steps?|schedule[d]?|release date|goals?|"
        r"requirements?"
    ),
    "architecture": (
        r"architecture|design(?:ed)?|patterns?|layers?|modules?|components?|interfaces?|"
        r"schema|services?|boundar(?:y|ies)|protocols?|data model|coupling|abstraction|"
        r"diagram"
    ),
    "technical": (
        r"code|function|class|method|api|database|sql|query|server|client|"
        r"deploy(?:ed|ment)?|docker|git|commit|branch|tests?|build|compile[rsd]?|"
        r"refactor(?:ed|ing)?|library|package|script|config(?:uration)?|endpoint"
    ),
}
"""Topic -> its words, as a regular expression. The first listed wins a tie."""
_NAMES: Mapping[str, str] = {
    "architecture": r"architecture|design|adr",
    "decisions": r"decision",
    "planning": r"roadmap|plan|todo|milestone|backlog",
    "problems": r"troubleshoot|problem|issues|postmortem|incident",
    "technical": r"api|install|setup|usage|develop|contribut",
}
"""Topic -> parts of a file's name, as a regular expression."""
_MEMORIES: Mapping[str, str] = {
    "preference": (
        r"\b(?:i|we) (?:always|never|usually|prefer|like|hate|want|don't like|"
        r"do not like)\b|\bplease (?:always|never)\b|"
        r"\bmy (?:preference|style|convention)\b|\bour (?:convention|style|rule)\b"
    ),
    "decision": (
        r"\b(?:i|we)(?:'ve| have)? (?:decided|chose|settled|agreed|went with|"
        r"picked)\b|\blet's (?:go with|use|switch)\b|\binstead of\b.*\bbecause\b|"
        r"\bthe decision (?:is|was)\b"
    ),
    "milestone": (
        r"\b(?:finally|first time) (?:works?|working|passes|green)\b|\bit works\b|"
        r"\b(?:shipped|released|launched|merged|deployed) (?:it|to|the|v\d)|"
        r"\bversion \d+(?:\.\d+)+ (?:is out|released)\b|\bbreakthrough\b"
    ),
    "problem": (
        r"\bthe (?:problem|issue|bug|root cause) (?:is|was)\b|"
        r"\b(?:doesn't|does not|didn't|won't) work\b|"
        r"\bkeeps? (?:failing|crashing|breaking)\b|\bturned out\b|\bfixed (?:it|this|by)\b"
    ),
    "emotional": (
        r"\b(?:i|we)(?:'m| am|'re| are| feel| felt) (?:so |very |"
        r"really )?(?:happy|sad|proud|afraid|worried|frustrated|excited|tired|"
        r"grateful|relieved)\b|\bthank you\b"
    ),
}
"""Memory type -> phrases that mark it, as a regular expression. The first listed wins a tie."""
_TOPIC_WORDS = {
    topic: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for topic, words in _TOPICS.items()
}
_NAME_WORDS = {topic: re.compile(words) for topic, words in _NAMES.items()}
_MEMORY_PHRASES = {kind: re.compile(words, re.IGNORECASE) for kind, words in _MEMORIES.items()}


def room_of_file(path: str, text: str) -> str:
    """Return the room of a file that is not part of a conversation.

    Args:
        path: The path relative to the root.
        text: The file's text; only the first 2,000 characters count.
    """
    folder, separator, name = path.rpartition("/")
    if separator:
        return folder.partition("/")[0].lower()
    lower_name = name.lower()
    for topic, words in _NAME_WORDS.items():
        if words.search(lower_name):
            return topic
    return topic_of(text)


def topic_of(text: str) -> str:
    """Return the topic with the most different words in the first 2,000 characters of a text.

    Returns:
        "general" where no topic has two different words.
    """
    beginning = text[:_TOPIC_CHARS]
    word_counts = {
        topic: len({word.lower() for word in words.findall(beginning)})
        for topic, words in _TOPIC_WORDS.items()
    }
    best = max(word_counts, key=lambda topic: word_counts[topic])
    return best if word_counts[best] >= _MIN_TOPIC_WORDS else DEFAULT_TOPIC


def memory_type_of(text: str) -> str:
    """Return the memory type with the most marking phrases in a text, "" where none has any."""
    phrase_counts = {kind: len(phrases.findall(text)) for kind, phrases in _MEMORY_PHRASES.items()}
    best = max(phrase_counts, key=lambda kind: phrase_counts[kind])
    return best if phrase_counts[best] else ""
