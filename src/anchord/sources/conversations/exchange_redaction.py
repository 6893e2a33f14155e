"""Replaces secrets in exchanges, and in what names them: ids, titles and folders."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from urllib.parse import unquote

from anchord.core.ids import hash_content
from anchord.sources.conversations.events import Exchange, SessionInfo, SupersededQuestions
from anchord.sources.conversations.exchange_document import exchange_path, fields_to_json
from anchord.sources.conversations.exchanges import ExchangeStreamItem
from anchord.sources.secrets.redactor import redact

_ID_HASH_CHARS = 8
MAX_TOOL_CHARS = 200
"""So much is kept of a tool's call."""


def redact_exchange(exchange: Exchange) -> tuple[Exchange, Counter[str]]:
    """Return an exchange without secrets, and how many were replaced by kind.

    Args:
        exchange: Its id and session were redacted before.
    """
    question, answer, model = map(redact, (exchange.question, exchange.answer, exchange.model))
    tools = [redact(tool) for tool in exchange.tools]
    files = [redact(file) for file in exchange.files]
    branch = redact(exchange.branch)
    counts: Counter[str] = Counter()
    for redacted in (question, answer, model, branch, *tools, *files):
        counts += redacted.counts_by_kind
    clean = replace(
        exchange,
        question=question.text,
        answer=answer.text,
        model=model.text,
        tools=tuple(tool.text for tool in tools),
        files=tuple(file.text for file in files),
        branch=branch.text,
    )
    return cut_tools(clean), counts


def cut_tools(exchange: Exchange) -> Exchange:
    """Return an exchange with at most 200 characters of each of its tools' calls.

    Invariant: secrets were replaced before. What a cut leaves of one can look like none: a password
    in a URL is known by the `@` after it.
    """
    lines = (tool[:MAX_TOOL_CHARS].rstrip() for tool in exchange.tools)
    return replace(exchange, tools=tuple(dict.fromkeys(lines)))


def _without_cut_word(tool: str) -> str:
    """Return a tool's call without its last word if it was cut there, perhaps in a secret."""
    return tool if len(tool) < MAX_TOOL_CHARS - 1 else tool.rpartition(" ")[0]


def redact_session_item(item: ExchangeStreamItem) -> ExchangeStreamItem:
    """Return an item without secrets in its ids, title and folder."""
    if isinstance(item, SessionInfo):
        return redact_session_info(item)
    if isinstance(item, Exchange):
        return redact_exchange_ids(item)
    if isinstance(item, SupersededQuestions):
        return SupersededQuestions(frozenset(map(redact_id, item.ids)))
    return item


def redact_session_info(info: SessionInfo) -> SessionInfo:
    """Return what a file says of a session without secrets."""
    return replace(
        info,
        session=redact_id(info.session),
        title=redact(info.title).text,
        project=redact(info.project).text,
        parent=redact_id(info.parent),
    )


def redact_exchange_ids(exchange: Exchange) -> Exchange:
    """Return an exchange without secrets in its id and session; the texts stay."""
    return replace(
        exchange,
        session=redact_id(exchange.session),
        id=redact_id(exchange.id),
    )


def keep_item(item: ExchangeStreamItem) -> ExchangeStreamItem:
    """Return an item as it is, where secrets are not replaced."""
    return item


def redact_id(identifier: str) -> str:
    """Return an id of a session or an exchange without secrets.

    Different ids stay different: part of a hash is added.
    """
    redacted = redact(identifier)
    if not redacted.counts_by_kind:
        return identifier
    return f"{redacted.text}-{hash_content(identifier.encode())[:_ID_HASH_CHARS]}"


def redact_exchange_path(path: str) -> str:
    """Return the path of an exchange with the ids in it redacted, as `redact_id` does it.

    Args:
        path: A path from `exchange_path`.
    """
    source, *ids = path[1:].split("/")
    session_id = ids[0] if len(ids) > 1 else ""
    session = redact_id(unquote(session_id))
    exchange = redact_id(unquote(ids[-1]))
    return exchange_path(source, session, exchange)


def redact_encoded_exchange(
    data: bytes, *, tools_were_cut_first: bool
) -> tuple[bytes, Counter[str]]:
    """Return a stored exchange without secrets, and how many were replaced by kind.

    Args:
        data: JSON as `encode_exchange` returns it.
        tools_were_cut_first: Whether the calls of its tools were cut before secrets were replaced
            in them. The word at the cut is dropped then.

    Raises:
        ValueError, KeyError: It is damaged.
    """
    fields = json.loads(data)
    counts: Counter[str] = Counter()

    def clean(text: str) -> str:
        redacted = redact(text)
        counts.update(redacted.counts_by_kind)
        return redacted.text

    fields["exchange"] = redact_id(fields["exchange"])
    for name in ("question", "answer", "model"):
        fields[name] = clean(fields[name])
    if tools_were_cut_first:
        fields["tools"] = [_without_cut_word(tool) for tool in fields["tools"]]
    fields["tools"] = [clean(tool)[:MAX_TOOL_CHARS] for tool in fields["tools"]]
    fields["files"] = [clean(file) for file in fields["files"]]
    return fields_to_json(fields), counts
