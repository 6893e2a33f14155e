"""The types of conversations: events that a format's reader yields, and exchanges made of them.

A transcript file holds sessions: one session's own file, an export with thousands of them, a
database, or a folder. A reader goes through it once and yields events. `exchanges` builds exchanges
of them, in one place for all formats. Texts are what a person typed and what the assistant said to
that person, verbatim. Times are UTC in ISO 8601 with milliseconds and "Z", or "" where the source
has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Protocol

from anchord.core.lazy_re import lazy_re

_FORMAT_NAME = lazy_re(r"[0-9]{1,4}|[A-Za-z]+(?:[_./:-][A-Za-z]+)*")
_MAX_NAME_CHARS = 40


class Role(StrEnum):
    """What a turn is in its exchange."""

    QUESTION = "question"
    """A person's message; it starts an exchange."""
    ANSWER = "answer"
    """It belongs to the open exchange."""
    ATTACHMENT = "attachment"
    """A text attached to the open exchange. Its first line is its name."""
    SUMMARY = "summary"
    """A summary that the program wrote of the conversation. It belongs to no exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session starts, or the source says more of the present one. An empty field says nothing."""

    session: str
    """The session's id as the source names it."""
    title: str = ""
    project: str = ""
    """The project folder that the session was about, as the source names it."""
    parent: str = ""
    """For a sub-agent's session: the id of the session that started it."""
    updated: str = ""
    """When the session was updated last, as far as the source says. The latest one's title wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message."""

    id: str
    """The source's id of the message, or its position; unique in the session."""
    role: Role
    text: str
    at: str = ""
    """When it was sent."""
    model: str = ""
    """The model that wrote it."""
    tools: tuple[str, ...] = ()
    """Tool calls, one line each: `[Bash] git status`."""
    files: tuple[str, ...] = ()
    """Paths of the files that were changed."""
    branch: str = ""
    """The git branch that was checked out."""
    speaker: str = ""
    """The speaker's name, where it is neither the user nor the assistant."""
    superseded: bool = False
    """It is on an abandoned branch: an edited question, or an answer that was regenerated."""
    offset: int = 0
    """Byte offset of its first record in a file of lines."""


@dataclass(frozen=True, slots=True)
class SupersededQuestions:
    """Questions of the present session that are on an abandoned branch."""

    ids: frozenset[str]
    """Ids of their turns."""


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A record of unknown kind, or a broken one. Such records are counted by `description`."""

    kind: str
    name: str = ""
    """The record's own name for its kind. It can be any text."""
    count: int = 1
    """How many records of this kind it stands for."""

    @property
    def description(self) -> str:
        """The kind and the name. A name that does not look like one of a format is left out.

        Such a name could be content, or a secret.
        """
        if not self.name:
            return self.kind
        looks_like_name = len(self.name) <= _MAX_NAME_CHARS and _FORMAT_NAME.fullmatch(self.name)
        name = self.name if looks_like_name else "of an odd name"
        return f"{self.kind} {name}".strip()


@dataclass(frozen=True, slots=True)
class NeedsFullRead:
    """A record refers to something before the resume point: the file must be read in full."""


Event = SessionInfo | Turn | SupersededQuestions | UnknownRecord | NeedsFullRead


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question, and every answer before the next question."""

    session: str
    """The session's id as the source names it."""
    id: str
    """Unique in the session."""
    number: int
    """Its place in the session, from 0."""
    question: str
    """"" for what was said before the first question, and for summaries."""
    answer: str
    kind: str = "exchange"
    """`exchange`, `attachment` or `summary`."""
    at: str = ""
    """Time of the first message."""
    until: str = ""
    """Time of the last message."""
    model: str = ""
    """The model that answered last."""
    tools: tuple[str, ...] = ()
    """Tool calls, one line each, without repetitions."""
    files: tuple[str, ...] = ()
    """Paths of the files that were changed, without repetitions."""
    branch: str = ""
    """The git branch that was checked out at its begin; "" where the source does not say."""
    superseded: bool = False
    """It is on an abandoned branch: stored, but not indexed."""
    offset: int = 0
    """Byte offset of its first record in a file of lines."""


class TooLongError(ValueError):
    """A part that must be read as a whole is longer than the limit of its format."""


@dataclass(frozen=True, slots=True)
class Line:
    """A complete line of a transcript file."""

    offset: int
    """Byte offset of its first byte."""
    data: bytes
    """The line without its line end."""


class TranscriptFile(Protocol):
    """Read access to a file, a zip's member, a folder or a database that holds sessions.

    Nothing is ever written to it.
    """

    @property
    def path(self) -> str:
        """The path relative to the root, with "/"; for a zip's member `archive.zip!member`."""

    def lines(self, start_offset: int = 0) -> Iterator[Line]:
        """Yield the complete lines of a file of lines.

        A last line without a line end is left out unless it is a complete JSON object. A line
        longer than 64 MiB is cut there.

        Args:
            start_offset: Byte offset of the first line to read.

        Raises:
            OSError: The file cannot be read.
        """

    def open(self) -> BinaryIO:
        """Open the whole content as a stream.

        Raises:
            OSError: The file cannot be read.
        """

    def member_names(self) -> list[str]:
        """Return the paths of the members of a folder or a zip, with "/"; [] for a file."""

    def open_member(self, name: str) -> BinaryIO:
        """Open a member as a stream.

        Raises:
            KeyError: There is no member of this name.
        """

    def query(
        self, sql: str, *values: str | int
    ) -> Iterator[tuple[str | int | float | bytes | None, ...]]:
        """Yield the rows of a query to a database; nothing if a table or column is missing.

        Args:
            sql: One SELECT statement with `?` for each value.
            *values: Its values.

        Raises:
            OSError: The database is damaged.
        """
