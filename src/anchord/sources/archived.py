"""An exchange as it is kept in the archive: from there it is read as a file is, and chunked like one.

The paths of exchanges begin with "/", as that of no file in a root does: `/source/session/exchange`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from anchord.conversation import Exchange
from anchord.model import About, Document, Problem

_SAFE = " +~:@,="


def path_of(source: str, session: str, exchange: str) -> str:
    """Return the path of an exchange; "" for `exchange` gives that of the session."""
    parts = [quote(part, safe=_SAFE) for part in (source, session, exchange)]
    return "/" + "/".join(part for part in parts if part)


def is_archived(path: str) -> bool:
    """Whether a path is that of an exchange or a session, and not of a file."""
    return path.startswith("/")


def dump(exchange: Exchange) -> bytes:
    """Write an exchange as it is kept; what is known of its session is kept once."""
    told = {
        "exchange": exchange.id,
        "kind": exchange.kind,
        "question": exchange.question,
        "answer": exchange.answer,
        "at": exchange.at,
        "until": exchange.until,
        "model": exchange.model,
        "tools": list(exchange.tools),
        "files": list(exchange.files),
    }
    return json.dumps(told, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")


def joined(kept: bytes, source: str, session: str, title: str, project: str) -> bytes:
    """Return a kept exchange with what is known of its session, as `load` takes it."""
    told = {**json.loads(kept), "source": source, "session": session, "title": title, "project": project}
    return json.dumps(told, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")


def load(data: bytes) -> Document | Problem:
    """Read an exchange as a document: the question, a blank line, the answer."""
    told = json.loads(data)
    question, answer = told["question"].strip("\n"), told["answer"].strip("\n")
    text = "\n\n".join(part for part in (question, answer) if part.strip())
    if not text.strip():
        return Problem("an exchange without words: not indexed")
    about = About(
        source=told["source"],
        session=told["session"],
        exchange_id=told["exchange"],
        at=told["at"],
        until=told["until"],
        project=told["project"],
        model=told["model"],
        tools=_lines(told["tools"]),
        files=_lines(told["files"]),
    )
    lines = question.count("\n") + 1 if question.strip() else 0
    return Document(text, told["kind"], title=told["title"] or _named(told["project"]), question_lines=lines, about=about)


def question_of(data: bytes) -> str:
    """Return the question of an exchange in one line."""
    return " ".join(str(json.loads(data)["question"]).split())


def _lines(values: Sequence[str]) -> str:
    return "\n".join(values)


def _named(project: str) -> str:
    """Return the name of a project's folder, on any platform."""
    return project.replace("\\", "/").rstrip("/").rpartition("/")[2]
