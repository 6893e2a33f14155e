"""The nouns of conversations: what a reader tells of a carrier, event by event, and the exchanges that are made of it.

A carrier is whatever holds sessions: a session's own file, an export with thousands of them, a database, a folder. A reader
goes through it once and yields events; `sources.exchanges` makes exchanges of them, in one place for all formats. Texts are
prose alone: what a person typed and what the assistant said to that person, verbatim. Times are UTC, ISO 8601 with milliseconds
and "Z", or "" where the source has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Protocol

_NAME = re.compile(r"[0-9]{1,4}|[A-Za-z]+(?:[_./:-][A-Za-z]+)*")
_LONGEST_NAME = 40


class Role(StrEnum):
    """What a turn is in its exchange. Who speaks is told by `speaker` where it is not the user and the assistant."""

    QUESTION = "question"
    """It opens an exchange: a person typed it, or began a thread with it."""
    ANSWER = "answer"
    """It belongs to the open exchange."""
    ATTACHMENT = "attachment"
    """A text that came along with the open exchange: its first line is its name."""
    SUMMARY = "summary"
    """What a program wrote of the conversation by itself; it belongs to no exchange."""


@dataclass(frozen=True, slots=True)
class Head:
    """A session begins, or more is known of the present one; empty fields say nothing."""

    session: str
    title: str = ""
    project: str = ""
    """The folder that it was about, as the source names it."""
    parent: str = ""
    """The session that started this one, for a sub-agent's."""
    updated: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that somebody said."""

    id: str
    """The source's own name of the turn, or a position; unique in its session."""
    role: Role
    text: str
    at: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    """One line each: `[Bash] git status`."""
    files: tuple[str, ...] = ()
    """Files that were changed."""
    speaker: str = ""
    superseded: bool = False
    """It is on a branch that was left: an edited question, an answer that was asked for again."""
    offset: int = 0
    """Where in a carrier of lines its first record starts, in bytes."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """The questions of the present session that are on a branch that was left."""

    ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record that the reader does not know, or that is broken; it is counted by its kind."""

    kind: str
    name: str = ""
    """What the record calls itself, which can be anything."""

    @property
    def told(self) -> str:
        """Return the kind in words. A name that is not plainly one of a format is not told: it could be content, or a key."""
        if not self.name:
            return self.kind
        name = self.name if len(self.name) <= _LONGEST_NAME and _NAME.fullmatch(self.name) else "of an odd name"
        return f"{self.kind} {name}".strip()


@dataclass(frozen=True, slots=True)
class Earlier:
    """Something refers to what was before the start of the reading: all must be read to understand it."""


Event = Head | Turn | Superseded | Unknown | Earlier


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and everything that was said to it before the next one. Text before the first question has an empty one."""

    session: str
    id: str
    number: int
    """Counted from 0 in its session."""
    question: str
    answer: str
    kind: str = "exchange"
    at: str = ""
    until: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    superseded: bool = False
    offset: int = 0


class TooLongError(ValueError):
    """What would have to be read whole is longer than anything that people and programs say to each other."""


@dataclass(frozen=True, slots=True)
class Line:
    """A whole line of a carrier, without its end, and where it starts."""

    offset: int
    data: bytes


class Carrier(Protocol):
    """Reading access to what holds sessions. Nothing is ever written to it."""

    @property
    def path(self) -> str:
        """In its root, with "/"; for a member of an archive the archive's path, "!" and the member's."""

    def lines(self, start: int = 0) -> Iterator[Line]:
        """Yield the whole lines from a byte on; a last line that was torn is left for later. Very long lines are cut."""

    def open(self) -> BinaryIO:
        """Return all of it as a stream."""

    def names(self) -> list[str]:
        """Return the names of the members, for a folder or an archive."""

    def member(self, name: str) -> BinaryIO:
        """Return a member as a stream.

        Raises:
            KeyError: there is none of that name.
        """

    def query(self, sql: str, *values: str | int) -> Iterator[tuple[str | int | float | bytes | None, ...]]:
        """Yield rows, for a database; yields nothing where a table is missing."""
