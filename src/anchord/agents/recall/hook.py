"""The hooks of Claude Code: what they read on standard input, and what they print.

A hook never fails and never waits for long: where anything is wrong it prints nothing. It runs at
every prompt, so this module imports only what it needs: half of its time is imports.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from anchord.agents.recall.journal import Journal, LogEntry
from anchord.agents.recall.prompts import query_of
from anchord.agents.recall.settings import load_settings
from anchord.config.paths import find_paths
from anchord.core.quoting import escape_line, quote_names
from anchord.errors import AnchordError
from anchord.ipc.messages.base import Message, Params
from anchord.ipc.messages.searching import Passage, SearchAnswer, SearchParams
from anchord.ipc.messages.status import StatusAnswer
from anchord.ipc.protocol import decode_answer, encode_request, result_of

A = TypeVar("A", bound=Message)

TIMEOUT_S = 0.3
_RECEIVED_BYTES = 1 << 18
_SESSION_CHARS = 64
_MAX_EVENT_BYTES = 4 << 20
_WARM_UP_S = 0.01
_SEARCHED = 8
"""Files that a search returns: those that were shown or are no strong match are left out."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


class Places(NamedTuple):
    """The files of a home that a hook needs."""

    socket: Path
    data_folder: Path


def run_hook() -> None:
    """Answer the event on standard input on standard output."""
    paths = find_paths(os.environ)
    event = sys.stdin.buffer.read(_MAX_EVENT_BYTES)
    output = answer_hook(event, Places(paths.socket_file, paths.data_folder))
    if output:
        sys.stdout.write(output + "\n")


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
            if event.get("source") == "compact":  # The passages may be gone from its context.
                Journal(places.data_folder).forget(_session(event))
            status = ask_within(places.socket, "status", Params(), StatusAnswer)
            context = describe(status) if status else ""
            if status and load_settings(places.data_folder).is_on:
                warm_up(places.socket)
        elif name == "UserPromptSubmit":
            context = recall(event, places)
    if not context:
        return ""
    output = {"hookEventName": name, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": output})


def warm_up(socket_file: Path) -> None:
    """Have the daemon load the model and the secret rules, which takes seconds; does not wait."""
    params = SearchParams(query="anchord", k=1, is_prompt=True)
    ask_within(socket_file, "search", params, SearchAnswer, _WARM_UP_S)


def describe(status: StatusAnswer) -> str:
    """Return two lines: what is indexed, and how fresh it is."""
    # A name must not close the element in which Claude Code gives this to the model.
    names = quote_names(root.name for root in status.roots).replace("<", r"\u{3c}")
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
    session = _session(event)
    query = query_of(_without_surrogates(str(event.get("prompt", ""))))
    context, tokens, passages, outcome = "", 0, list[Passage](), "short"
    if query:
        params = SearchParams(query=query, k=_SEARCHED, cwd=_folder(event), is_prompt=True)
        found = ask_within(places.socket, "search", params, SearchAnswer)
        outcome = "no strong match" if found else "no answer"
        if found and found.about:
            # Not for the many prompts without a strong match.
            from anchord.agents.recall.selection import render, select  # noqa: PLC0415

            selected = select(found, journal.shown(session), settings.hits)
            context, tokens, passages = render(selected, settings.tokens)
    if passages:
        outcome = "added"
        journal.add_shown(session, (each for passage in passages for each in passage.ids))
    journal.log(
        LogEntry(
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            session=session,
            outcome=outcome,
            ms=round((time.monotonic() - began) * 1_000),
            tokens=tokens,
            bytes=len(context.encode()),
            hits=tuple(map(_place, passages)),
        )
    )
    return context


def ask_within(
    socket_file: Path, method: str, params: Params, answer: type[A], timeout_s: float = TIMEOUT_S
) -> A | None:
    """Ask the daemon, and give up after a time.

    Args:
        socket_file: The daemon's.
        method: What to ask.
        params: Its parameters.
        answer: The type of its answer.
        timeout_s: For all of it.

    Returns:
        The answer; None where no daemon runs, none came in time, or it is an error.
    """
    deadline = time.monotonic() + timeout_s
    line = bytearray()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(socket_file))
            connection.sendall(encode_request(1, method, params))
            while not line.endswith(b"\n"):
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                received = connection.recv(_RECEIVED_BYTES)
                if not received:
                    return None
                line += received
        return result_of(decode_answer(bytes(line)), answer)
    except (OSError, AnchordError):
        return None


def _session(event: dict[str, Any]) -> str:
    """Return the session's id as a file name."""
    session = str(event.get("session_id", ""))
    return re.sub(r"[^A-Za-z0-9-]", "_", session)[:_SESSION_CHARS] or "_"


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
