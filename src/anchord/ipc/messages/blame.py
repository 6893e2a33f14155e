"""`blame`: the exchanges that changed a file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from anchord.ipc.messages.base import Message, Params
from anchord.ipc.messages.files import MAX_LISTED


class BlameParams(Params, frozen=True, kw_only=True):
    """Parameters of "blame"."""

    path: str
    """Absolute path of the file; it need not exist any more."""
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 20


class TouchAnswer(Message, frozen=True, kw_only=True):
    """An exchange in which an assistant changed or used a file."""

    id: str
    """Its first chunk."""
    at: str
    """When it ended: ISO 8601 in UTC, or ""."""
    agent: str
    """The program, such as `claude-code`."""
    session: str
    title: str
    """The session's title, or ""."""
    project: str
    """In words, as in "sessions"."""
    question: str
    """In one line."""
    how: str
    """"edited", or "named" where only a tool call names the file."""
    file: str
    """The file as the transcript names it."""
    elsewhere: bool
    """Whether it was changed in another worktree or clone of the repository."""


class BlameAnswer(Message, frozen=True, kw_only=True):
    """Answer of "blame", newest first. Only exchanges that are indexed are known."""

    path: str
    """Absolute path of the file."""
    inside: str
    """The path in its repository, by which other worktrees and clones are matched; "" without
    one."""
    touches: tuple[TouchAnswer, ...]
    omitted: int
    """Exchanges beyond the limit."""
