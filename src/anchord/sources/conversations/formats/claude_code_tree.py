"""Which questions of a Claude Code session are on branches that the person left.

Two questions with the same nearest message above them are a fork: the person went back and asked
something else. Every other fork is a pair of parallel tool calls. The active branch is the one that
holds the last message of the file.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(slots=True)
class MessageTree:
    """The messages of a session, each below the record that it follows.

    Add records in the file's order: a record first, then the message that it holds, if any.
    """

    _nearest_message: dict[str, str] = field(default_factory=dict)
    """Record -> the nearest message at or above it, "" for none."""
    _question_parents: dict[str, str] = field(default_factory=dict)
    """Question -> the nearest message above it, "" for none; in the file's order."""
    _question_of: dict[str, str] = field(default_factory=dict)
    """Message -> the question that it belongs to, "" for none."""
    _last_question: str = ""

    @property
    def has_questions(self) -> bool:
        """Whether a question was added."""
        return bool(self._question_parents)

    def add_record(self, uuid: str, parent: str) -> None:
        """Add a record of any type below another one, which may be unknown."""
        self._nearest_message[uuid] = self._nearest_message.get(parent, "")

    def add_question(self, uuid: str) -> None:
        """Make an added record a question."""
        self._question_parents[uuid] = self._nearest_message.get(uuid, "")
        self._nearest_message[uuid] = uuid
        self._question_of[uuid] = uuid
        self._last_question = uuid

    def add_answer(self, uuid: str) -> None:
        """Make an added record an answer: to its parent's question, else to the last one."""
        parent = self._nearest_message.get(uuid, "")
        question = self._question_of.get(parent, self._last_question)
        self._question_of[uuid] = question
        self._nearest_message[uuid] = uuid
        self._last_question = question

    def superseded_questions(self) -> frozenset[str]:
        """Return the questions on branches that were left.

        Questions with no known message above them never fork: they follow each other in file order.
        """
        forks = self._forked_questions()
        if not forks:
            return frozenset()
        superseded = forks - self._active_questions()
        # A question comes after the one that it follows, so one pass in file order reaches
        # every question below a superseded one.
        for question, parent in self._question_parents.items():
            if self._question_of.get(parent, "") in superseded:
                superseded.add(question)
        return frozenset(superseded)

    def _forked_questions(self) -> set[str]:
        """Return the questions that share the message above them with another question."""
        questions_below: defaultdict[str, list[str]] = defaultdict(list)
        for question, parent in self._question_parents.items():
            if parent:
                questions_below[parent].append(question)
        forks = set[str]()
        for questions in questions_below.values():
            if len(questions) > 1:
                forks.update(questions)
        return forks

    def _active_questions(self) -> set[str]:
        """Return the last question and those above it."""
        active = set[str]()
        question = self._last_question
        while question and question not in active:
            active.add(question)
            parent = self._question_parents.get(question, "")
            question = self._question_of.get(parent, "")
        return active
