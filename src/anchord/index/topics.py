"""Label texts with rooms: coarse topics to restrict a search to.

The user's own rooms ([[room]]) go first: by path, then by a keyword in the file's name, then by the
keywords in the first 2,000 characters. Otherwise a file's room is the folder that it is in,
directly below its root. A file at the top of its root has the room that its name says, else the
topic of its first words. The room of an exchange is its topic. With `extract = "general"` a chunk
of a conversation that matches a memory type has that type as its room.
Labels depend on names and words only: the same text always has the same room.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from anchord.config.schema import RoomConfig
from anchord.core.lazy_re import lazy_re
from anchord.sources.files.ignore_patterns import IgnorePatterns, compile_patterns

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
    "architecture": "architecture design designs adr adrs",
    "decisions": "decision decisions",
    "planning": "roadmap roadmaps plan plans planning todo todos milestone milestones backlog",
    "problems": (
        "troubleshoot troubleshooting problem problems issue issues postmortem postmortems "
        "incident incidents"
    ),
    "technical": (
        "api apis install installing installation setup usage develop developer developers "
        "developing development contribute contributing contribution contributions contributors"
    ),
}
"""Topic -> words of a file's name. The first listed wins."""
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
    topic: lazy_re(rf"\b(?:{words})\b", re.IGNORECASE) for topic, words in _TOPICS.items()
}
_NAME_WORDS = {topic: frozenset(words.split()) for topic, words in _NAMES.items()}
_MEMORY_PHRASES = {kind: lazy_re(words, re.IGNORECASE) for kind, words in _MEMORIES.items()}
_CASE_CHANGE = lazy_re(r"(?<=[a-z])(?=[A-Z])")
_WORD = lazy_re(r"[^\W\d_]+|\d+")


@dataclass(frozen=True)
class OwnRooms:
    """The rooms that the user configured."""

    rooms: tuple[RoomConfig, ...] = ()

    @property
    def identity(self) -> str:
        """What rows depend on: the rooms in their order; "" for none."""
        if not self.rooms:
            return ""
        return f"rooms {[(room.name, room.keywords, room.paths) for room in self.rooms]!r}"

    @cached_property
    def _matchers(self) -> tuple[_RoomMatcher, ...]:
        return tuple(_RoomMatcher.of(room) for room in self.rooms)

    def room_of_path(self, path: str) -> str:
        """Return the first room with a pattern for a path, else with a keyword in the file's name.

        Args:
            path: A file's path relative to its root.

        Returns:
            "" for a path of no room.
        """
        by_pattern = (room.name for room in self._matchers if room.matches_path(path))
        name_words = _words_of_name(path.rpartition("/")[2])
        by_name = (room.name for room in self._matchers if room.count_keywords(name_words))
        return next(by_pattern, "") or next(by_name, "")

    def room_of_text(self, text: str) -> str:
        """Return the room with the most different keywords in the first 2,000 characters.

        Returns:
            "" for a text without a keyword. The first listed wins a tie.
        """
        if not self.rooms:
            return ""
        words = _words_of(text[:_TOPIC_CHARS])
        best = max(self._matchers, key=lambda room: room.count_keywords(words))
        return best.name if best.count_keywords(words) else ""


NO_OWN_ROOMS = OwnRooms()


@dataclass(frozen=True, slots=True)
class _RoomMatcher:
    name: str
    keywords: frozenset[str]
    """Keywords as `_words_of` returns them."""
    patterns: IgnorePatterns

    @classmethod
    def of(cls, room: RoomConfig) -> _RoomMatcher:
        keywords = frozenset(_words_of(keyword) for keyword in room.keywords)
        return cls(room.name.strip().lower(), keywords, compile_patterns("", "", room.paths))

    def matches_path(self, path: str) -> bool:
        match = self.patterns.nearest_match(path)
        return match is not None and match.is_match

    def count_keywords(self, words: str) -> int:
        return sum(keyword in words for keyword in self.keywords)


def room_of_file(path: str, text: str, own_rooms: OwnRooms = NO_OWN_ROOMS) -> str:
    """Return the room of a file that is not part of a conversation.

    Args:
        path: The path relative to the root.
        text: The file's text; only the first 2,000 characters count.
        own_rooms: The user's own rooms.
    """
    own_room = own_rooms.room_of_path(path) or own_rooms.room_of_text(text)
    if own_room:
        return own_room
    folder, separator, name = path.rpartition("/")
    if separator:
        return folder.partition("/")[0].lower()
    name_words = set(_words_of_name(name).split())
    for topic, words in _NAME_WORDS.items():
        if name_words & words:
            return topic
    return topic_of(text)


def room_of_exchange(text: str, own_rooms: OwnRooms = NO_OWN_ROOMS) -> str:
    """Return the room of an exchange: one of the user's own by its keywords, else the topic.

    Args:
        text: The exchange's text; only the first 2,000 characters count.
        own_rooms: The user's own rooms.
    """
    return own_rooms.room_of_text(text) or topic_of(text)


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


def _words_of(text: str) -> str:
    """Return the words of a text in lower case, with spaces around each: `in` finds whole words.

    Everything but letters and digits separates words, and a number is a word: "plan2026_b.md" is
    " plan 2026 b md ".
    """
    words = _WORD.findall(unicodedata.normalize("NFC", text))
    return f" {' '.join(words).lower()} "


def _words_of_name(name: str) -> str:
    """Return the words of a file's name, as `_words_of`, and those within them: myPlan has both."""
    return _words_of(name) + _words_of(_CASE_CHANGE.sub(" ", name))


def memory_type_of(text: str) -> str:
    """Return the memory type with the most marking phrases in a text, "" where none has any."""
    phrase_counts = {kind: len(phrases.findall(text)) for kind, phrases in _MEMORY_PHRASES.items()}
    best = max(phrase_counts, key=lambda kind: phrase_counts[kind])
    return best if phrase_counts[best] else ""
