"""`decisions`: exchanges that decide something."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from anchord.ipc.messages.base import Message, Params
from anchord.ipc.messages.files import MAX_LISTED


class DecisionsParams(Params, frozen=True, kw_only=True):
    """Parameters of "decisions". An empty text does not filter."""

    project: str = ""
    """A part of the project's name, or its folder."""
    since: str = ""
    """A date or an age as for "search"."""
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 30


class DecisionAnswer(Message, frozen=True, kw_only=True):
    """An exchange that seems to decide something, and the sentence that shows it."""

    id: str
    """The exchange, for "session"."""
    path: str
    """Its path in the index."""
    at: str
    """When it ended: ISO 8601 in UTC, or ""."""
    agent: str
    session: str
    title: str
    project: str
    """In words, as in "sessions"."""
    question: str
    """In one line, cut."""
    sentence: str
    by: str
    """Who said the sentence: "user" or "assistant"."""
