"""Results of the daemon with one given string in place of every string of a file, and their MCP answers."""

from __future__ import annotations

import re
from typing import Any

from sample_messages import message

from anchord.core.quoting import quote_command, quote_name, quote_names
from anchord.ipc.messages.files import ChangesAnswer, FilesAnswer
from anchord.ipc.messages.roots import RootAnswer
from anchord.ipc.messages.searching import ExplainAnswer, SearchAnswer, ShowAnswer
from anchord.ipc.messages.sessions import SessionAnswer, SessionDetail
from anchord.ipc.messages.status import StatusAnswer
from anchord.mcp.answers import (
    error_answer,
    explain_answer,
    roots_answer,
    search_answer,
    show_answer,
    status_answer,
)
from anchord.mcp.file_answers import changes_answer, files_answer
from anchord.mcp.parts import Answer
from anchord.mcp.session_answers import session_answer, sessions_answer

_NO_LIMIT = 10_000_000
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"(:?)')
"""A JSON string, and the colon of a key. A JSON parser would accept too much."""


def passage(text: str, number: int = 1, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    return {
        "id": f"{number:032}", "score": 0.5, "root": "r", "path": "a.md", "file": "/home/me/a.md", "section": "A > B",
        "start_line": 1, "end_line": 9, "text": text, "also_at": [], **more,
    }  # fmt: skip


def found(
    *groups: list[dict[str, Any]], note: str = "", complete: bool = True, omitted: int = 0
) -> SearchAnswer:
    fields = {
        "query": "q", "mode": "hybrid", "note": note, "complete": complete, "groups": groups, "omitted": omitted,
    }  # fmt: skip
    return message(SearchAnswer, fields)


def shown(*texts: str, previous: str | None = None, following: str | None = None) -> ShowAnswer:
    chunks = [stored_chunk(text, number) for number, text in enumerate(texts)]
    fields = {"id": "0", "chunks": chunks, "previous": previous, "next": following}
    return message(ShowAnswer, fields)


def stored_chunk(text: str, number: int = 1, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    fields = passage(text, number, **more)
    del fields["score"], fields["also_at"]
    return fields


REPORT: dict[str, Any] = {
    "state": "degraded", "files": 3, "chunks": 9, "pending": 1, "degraded": ["the disk is full"], "last_commit_age_s": 5.0,
    "roots": [{"name": "r", "state": "watching", "files": 3, "path": "/r"}],
    "failed": [{"path": "/r/x", "reason": "binary"}],
}  # fmt: skip
ROOT: dict[str, Any] = {"name": "r", "path": "/r", "kind": "project", "files": 1, "chunks": 2}


def answers_quoting(text: str) -> dict[str, Answer]:
    """Return an answer of every tool in which each string from a file is a text, and of an error; none is cut short."""
    said = {"session": text, "source": text, "at": "2026-01-31T12:00:09+00:00"}
    copy = {"root": text, "path": text, "file": text, "start_line": 4, "end_line": 5}
    odd = passage(
        text,
        1,
        file=text,
        path=text,
        root=text,
        section=text,
        also_at=[copy, copy | {"file": None}],
    )
    without_file = odd | {"id": "2" * 32, "file": None}
    exchange = odd | said | {"id": "3" * 32}
    chunks = [
        {k: v for k, v in each.items() if k not in {"score", "also_at"}}
        for each in (odd, without_file, exchange)
    ]
    conversation = {
        "number": 2, "exchanges": 3, "session": text, "source": text, "title": text, "project": text,
        "previous": {"id": "4" * 32, "question": text}, "next": {"id": "5" * 32, "question": text},
    }  # fmt: skip
    root = {"name": text, "path": text, "kind": text, "state": text, "files": 1, "chunks": 2}
    listed = {name: value for name, value in root.items() if name != "state"}
    name, command = quote_name(text), quote_command("anchord confirm-delete", text)
    held = f"root {name}: 9 files disappeared; confirm with {command}"
    report = REPORT | {
        "degraded": [held],
        "roots": [root],
        "failed": [{"path": text, "reason": text}],
    }
    explanation = {
        "path": text, "root": text, "indexed": True, "chunks": 1, "rule": text, "strategy": text, "decision": "read",
        "reason": text, "last_reason": text, "problem": text, "size": 9,
    }  # fmt: skip
    file = {"root": text, "path": text, "file": text, "kind": text, "chunks": 1, "modified": text}
    change = {
        "root": text, "path": text, "file": text, "at": text, "saves": 1, "new": 1, "gone": 1, "kept": 1, "deleted": True,
    }  # fmt: skip
    session = {
        "id": text, "agent": text, "project": text, "project_path": text, "title": text, "started_at": text,
        "last_at": text, "turns": 1, "files": 1, "state": "here", "path": text, "root": text, "parent": text,
    }  # fmt: skip
    said_there = {
        "id": text,
        "at": text,
        "question": text,
        "answer": text,
        "tools": [text],
        "files": [text],
    }
    detail = session | {"exchange_count": 9, "exchanges": [said_there, said_there]}
    shown_chunks = {"id": "1", "chunks": chunks, "previous": "6" * 32, "next": "7" * 32}  # fmt: skip
    return {
        "search": search_answer(found([odd, without_file], [exchange, odd], note=held), _NO_LIMIT),
        "nothing": search_answer(found(note=held), _NO_LIMIT),
        "show": show_answer(
            message(ShowAnswer, shown_chunks | {"conversation": conversation}), _NO_LIMIT
        ),
        "files": files_answer(
            message(FilesAnswer, {"files": [file], "next": "", "note": held, "complete": False})
        ),
        "changes": changes_answer(
            message(
                ChangesAnswer,
                {"since": text, "changes": [change], "omitted": 1, "note": held, "complete": False},
            )
        ),
        "sessions": sessions_answer([message(SessionAnswer, session)], held),
        "session": session_answer(message(SessionDetail, detail), 0, _NO_LIMIT, held),
        "status": status_answer(message(StatusAnswer, report)),
        "roots": roots_answer([message(RootAnswer, listed)] * 2),
        "explain": explain_answer(message(ExplainAnswer, explanation)),
        "error": error_answer(f"no root {name}", f"there are: {quote_names([text, text])}"),
    }


def without_fields(rendered: str) -> str:
    """Return a rendered answer with every string value emptied."""
    return _STRING.sub(lambda match: match[0] if match[1] else '""', rendered)
