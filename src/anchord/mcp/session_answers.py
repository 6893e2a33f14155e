"""Answers of `sessions` and `session` for agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anchord.core.token_counts import cut_field, token_upper_bound
from anchord.ipc.messages.sessions import SessionAnswer, SessionDetail
from anchord.mcp.file_answers import own_note
from anchord.mcp.parts import (
    OMITTED_TOKENS,
    Answer,
    entry_tokens,
    escaped,
    escaped_fields,
    make_answer,
    select,
    with_entries,
)
from anchord.mcp.render import render_answer

_NONE = "No conversation is like this."
_KEYS = ("id", "agent", "project", "title", "last_at", "turns", "files", "state", "parent")
_ALWAYS = ("id", "agent", "title", "turns", "state")
_QUESTION_SHARE = 3
"""A question gets at most this part of the tokens that are left; its answer the rest."""
_MAX_TEXT_CHARS = 200_000
"""More than any answer can have."""
_MAX_CALLS = 6
_MAX_FILES = 6
_MAX_CALL_TOKENS = 30
_MIN_ANSWER_TOKENS = 60
"""With fewer tokens left, an exchange is not begun."""


def sessions_answer(found: Sequence[SessionAnswer], note: str = "") -> Answer:
    """Return a list of conversations, as many as fit the default budget.

    Args:
        found: Answer of the method "sessions".
        note: How complete the index is; names in it are quoted by `core.quoting`.

    Returns:
        A `schema.SessionsAnswer`.
    """
    entries = [_session(escaped(each)) for each in found]
    head = make_answer(**own_note(note, "" if found else _NONE))
    return with_entries(head, "sessions", entries)


def session_answer(found: SessionDetail, offset: int, token_budget: int, note: str = "") -> Answer:
    """Return a conversation with as many exchanges as fit.

    Args:
        found: Answer of the method "session".
        offset: How many exchanges the caller left out at the beginning.
        token_budget: Maximum tokens of the rendered answer, by `token_upper_bound`.
        note: As for `sessions_answer`.

    Returns:
        A `schema.SessionAnswer`. The first exchange is cut to fit; a later one that does not fit
        is where `next_offset` goes on.
    """
    fields = found.as_json()
    exchanges = [escaped_fields(_with_text(each)) for each in fields.pop("exchanges")]
    result = escaped_fields(fields)
    head = make_answer(
        **own_note(note), session=_session(result), exchange_count=found.exchange_count
    )
    frame = token_upper_bound(render_answer({**head, "exchanges": []}))
    tokens_left = token_budget - frame - OMITTED_TOKENS
    shown: list[Answer] = []
    for exchange in exchanges:
        entry = _exchange(exchange)
        tokens = entry_tokens(entry)
        if tokens > tokens_left and (shown or tokens_left < _MIN_ANSWER_TOKENS):
            break
        if tokens > tokens_left:
            entry = _cut(entry, tokens_left)
            tokens = tokens_left
        shown.append(entry)
        tokens_left -= tokens
    after = offset + len(shown)
    more = {"next_offset": after} if after < found.exchange_count else {}
    return {**head, "exchanges": shown, **more}


def _session(session: Mapping[str, Any]) -> Answer:
    filled = [key for key in _KEYS if session[key] or key in _ALWAYS]
    return select(session, filled)


def _with_text(exchange: Mapping[str, Any]) -> Answer:
    """Return an exchange whose answer is its text: that has line ends."""
    return {**exchange, "answer": "", "text": exchange["answer"][:_MAX_TEXT_CHARS]}


def _exchange(exchange: Mapping[str, Any]) -> Answer:
    at = select(exchange, ("at",) if exchange["at"] else ())
    tools = [cut_field(each, _MAX_CALL_TOKENS) for each in exchange["tools"][:_MAX_CALLS]]
    files = [cut_field(each, _MAX_CALL_TOKENS) for each in exchange["files"][:_MAX_FILES]]
    lists = {name: value for name, value in (("tools", tools), ("files", files)) if value}
    return {**at, "question": exchange["question"], "text": exchange["text"], **lists}


def _cut(entry: Answer, tokens: int) -> Answer:
    """Return an exchange cut to some tokens; without its lists if these do not fit."""
    bare = {**entry, "question": "", "text": ""}
    if entry_tokens(bare) > tokens // 2:
        bare = {name: value for name, value in bare.items() if name not in {"tools", "files"}}
    tokens -= entry_tokens(bare)
    question = cut_field(entry["question"], max(tokens // _QUESTION_SHARE, 0))
    left = tokens - entry_tokens({"": question}) if question else tokens
    return {**bare, "question": question, "text": cut_field(entry["text"], max(left, 0))}
