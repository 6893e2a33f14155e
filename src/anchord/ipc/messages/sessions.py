"""`sessions`, `session`: the conversations that the archive keeps, and one of them in full."""

from __future__ import annotations

from anchord.ipc.messages.base import Message, Params


class SessionsParams(Params, frozen=True, kw_only=True):
    """Parameters of "sessions". An empty text does not filter."""

    project: str = ""
    """A part of the project's name, or a path of its folder."""
    agent: str = ""
    """A part of the name of the program, such as `claude` for `claude-code`."""
    root: str = ""
    since: str = ""
    """A date as for "search". A session counts by its last message."""
    until: str = ""
    limit: int = 20
    """How many of the newest to return; 0 returns all."""
    subagents: bool = False
    """Also return sessions that another session started."""
    kept: bool = False
    """Return kept transcripts that have no exchange of their own, instead of sessions."""


class SessionAnswer(Message, frozen=True, kw_only=True):
    """A conversation."""

    id: str
    """As the program that wrote it names it."""
    agent: str
    """The program, such as `claude-code`."""
    project: str
    """The project in words: the name of its repository, or of its folder. "" if unknown."""
    project_path: str
    """The project's folder as the transcript names it."""
    title: str
    """Its title, or its first question."""
    started_at: str
    """ISO 8601 in UTC, or ""."""
    last_at: str
    turns: int
    """Questions, without those on abandoned branches."""
    files: int
    """Files that were changed."""
    state: str
    """"here", "shorter" or "damaged" (the transcript has less than what anchord keeps, or NUL
    bytes), "deleted" (it is gone), "detached" (kept and not indexed) or "prompts-only" (only what
    the user typed is known)."""
    path: str
    """Absolute path of the transcript file or folder, also if it is gone; "" if unknown."""
    root: str
    parent: str = ""
    """The id of the session that started it, for the session of a sub-agent."""
    kept: bool = False
    """Whether the transcript's own bytes are kept, so that it can be restored."""
    note: str = ""
    """Why a transcript has no exchange of its own; then its `id` is its path."""


class SessionParams(Params, frozen=True, kw_only=True):
    """Parameters of "session"."""

    id: str
    """Its id or the beginning of it, the path of its transcript, or the id of an exchange."""
    offset: int = 0
    """How many exchanges to leave out at the beginning."""
    limit: int = 0
    """How many exchanges to return; 0 returns all."""


class SessionExchange(Message, frozen=True, kw_only=True):
    """A question, and everything said in answer to it."""

    id: str
    at: str
    question: str
    answer: str
    tools: tuple[str, ...]
    """Tool calls, one line each."""
    files: tuple[str, ...] = ()
    """Paths of the files that were changed."""
    path: str = ""
    """Its path in the index, as a search result names it."""
    kind: str = "exchange"
    """`exchange`, `attachment` or `summary`."""


class SessionDetail(SessionAnswer, frozen=True, kw_only=True):
    """A conversation with its exchanges."""

    exchange_count: int
    """How many there are, with those that `offset` and `limit` left out."""
    exchanges: tuple[SessionExchange, ...]
