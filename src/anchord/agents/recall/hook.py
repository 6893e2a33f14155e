"""The hooks of Claude Code: what they read on standard input, and what they print.

A hook never fails and never waits for long: where anything is wrong it prints nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from anchord.agents.recall.journal import Journal, LogEntry
from anchord.agents.recall.prompts import query_of
from anchord.agents.recall.selection import render, select
from anchord.agents.recall.settings import load_settings
from anchord.core.quoting import escape_line, quote_names
from anchord.core.token_counts import token_upper_bound
from anchord.errors import AnchordError
from anchord.ipc import requests
from anchord.ipc.messages.searching import Passage
from anchord.ipc.messages.status import StatusAnswer
from anchord.ipc.patience import connect
from anchord.ipc.protocol import decode_answer, encode_request, result_of
from anchord.ipc.requests import Call

A = TypeVar("A")

TIMEOUT_S = 0.3
_RECEIVED_BYTES = 1 << 18
_SESSION_CHARS = 16
_SEARCHED = 8
"""Files that a search returns: those that were shown or are not sure are left out."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


class Places(NamedTuple):
    """The files of a home that a hook needs."""

    socket: Path
    data_folder: Path


def answer_hook(event_text: bytes, places: Places) -> str:
    """Return what a hook prints; "" for nothing.

    Args:
        event_text: JSON of Claude Code: `hook_event_name`, `session_id`, `cwd` and `prompt`.
        places: The home's.
    """
    try:
        event = json.loads(event_text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(event, dict):
        return ""
    name = event.get("hook_event_name")
    context = ""
    with suppress(OSError, AnchordError):
        if name == "SessionStart":
            status = ask_within(places.socket, requests.status(), TIMEOUT_S)
            context = describe(status) if status else ""
        elif name == "UserPromptSubmit":
            context = recall(event, places)
    if not context:
        return ""
    output = {"hookEventName": name, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": output})


def describe(status: StatusAnswer) -> str:
    """Return two lines: what is indexed, and how fresh it is."""
    names = quote_names(root.name for root in status.roots)
    held = f"{status.files:,} files in {status.chunks:,} chunks"
    if status.degraded:
        state = "The index may be incomplete: call the tool `status` for the reasons"
    elif status.pending:
        state = f"Indexing: {status.pending:,} files wait"
    elif status.last_commit_age_s is None:
        state = "Up to date"
    else:
        state = f"Up to date; the last change was indexed {_age(status.last_commit_age_s)} ago"
    return f"anchord (MCP tools `search` and `show`) indexes {held}: {names}.\n{state}."


def recall(event: dict[str, Any], places: Places) -> str:
    """Return the context for a prompt, and write the log; "" for nothing."""
    began = time.monotonic()
    settings = load_settings(places.data_folder)
    if not settings.is_on:
        return ""
    journal = Journal(places.data_folder)
    session = _hash(str(event.get("session_id", "")))
    query = query_of(_without_surrogates(str(event.get("prompt", ""))))
    context, passages, outcome = "", list[Passage](), "short"
    if query:
        call = requests.search(query, k=_SEARCHED, cwd=_folder(event))
        found = ask_within(places.socket, call, TIMEOUT_S)
        outcome = "nothing sure" if found else "no answer"
        if found:
            selected = select(found, journal.shown(session), settings.hits)
            context, passages = render(selected, settings.tokens)
    if passages:
        outcome = "said"
        journal.add_shown(session, (each for passage in passages for each in passage.ids))
    journal.log(
        LogEntry(
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            session=session,
            outcome=outcome,
            ms=round((time.monotonic() - began) * 1_000),
            tokens=token_upper_bound(context),
            bytes=len(context.encode()),
            hits=tuple(map(_place, passages)),
        )
    )
    return context


def ask_within(socket_file: Path, call: Call[A], timeout_s: float) -> A | None:
    """Ask the daemon, and give up after a time.

    Args:
        socket_file: The daemon's.
        call: What to ask.
        timeout_s: For all of it.

    Returns:
        The answer; None where no daemon runs, none came in time, or it is an error.
    """
    deadline = time.monotonic() + timeout_s
    line = bytearray()
    try:
        with connect(socket_file, timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(encode_request(1, call.method.name, call.params))
            while not line.endswith(b"\n"):
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                received = connection.recv(_RECEIVED_BYTES)
                if not received:
                    return None
                line += received
        return result_of(decode_answer(bytes(line)), call.method.answer)
    except (OSError, AnchordError):
        return None


def _hash(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:_SESSION_CHARS]


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _folder(event: dict[str, Any]) -> str:
    return _without_surrogates(str(event.get("cwd") or ""))


def _place(passage: Passage) -> str:
    place = f"{passage.file or passage.path}:{passage.start_line}-{passage.end_line}"
    return escape_line(place)


def _age(seconds: float) -> str:
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
