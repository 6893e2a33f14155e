"""An exchange as JSON in the archive, as a path, and as a document for the chunker.

The path of an exchange is `/source/session/exchange`. It begins with "/", which no path of a file
relative to its root does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from anchord.core.types import Document, ExchangeMetadata, Problem
from anchord.sources.conversations.events import Exchange

_SAFE = " +~:@,="


def exchange_path(source: str, session_id: str, exchange_id: str) -> str:
    """Return the path of an exchange, or of its session if `exchange_id` is "".

    Args:
        source: The program that wrote the transcript, such as `claude-code`.
        session_id: The session's id as the source names it; "" leaves it out of the path.
        exchange_id: The exchange's id; "" for the session's path.
    """
    parts = [quote(part, safe=_SAFE) for part in (source, session_id, exchange_id)]
    return "/" + "/".join(part for part in parts if part)


def is_exchange_path(path: str) -> bool:
    """Return whether a path is one of an exchange or a session, not of a file."""
    return path.startswith("/")


def encode_exchange(exchange: Exchange) -> bytes:
    """Encode an exchange as the archive stores it: JSON without the session's fields."""
    fields = {
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
    return fields_to_json(fields)


def decode_texts(encoded_exchange: bytes) -> tuple[str, str]:
    """Return question and answer of a stored exchange."""
    fields = json.loads(encoded_exchange)
    return fields["question"], fields["answer"]


def add_session_info(
    encoded_exchange: bytes, source: str, session: str, title: str, project: str
) -> bytes:
    """Add the session's fields to a stored exchange, for `decode_exchange`."""
    fields = {
        **json.loads(encoded_exchange),
        "source": source,
        "session": session,
        "title": title,
        "project": project,
    }
    return fields_to_json(fields)


def fields_to_json(fields: Mapping[str, object]) -> bytes:
    """Encode the fields of a stored exchange; equal fields give equal bytes."""
    return json.dumps(fields, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")


def decode_exchange(data: bytes) -> Document | Problem:
    """Turn an exchange into a document: the question, a blank line, the answer.

    Args:
        data: JSON as `Archive.read` returns it.

    Returns:
        The document, or a problem if neither question nor answer has a word.
    """
    fields = json.loads(data)
    question = fields["question"].strip("\n")
    answer = fields["answer"].strip("\n")
    text = "\n\n".join(part for part in (question, answer) if part.strip())
    if not text.strip():
        return Problem("an exchange without text: not indexed")
    metadata = ExchangeMetadata(
        source=fields["source"],
        session=fields["session"],
        exchange_id=fields["exchange"],
        at=fields["at"],
        until=fields["until"],
        project=fields["project"],
        model=fields["model"],
        tools="\n".join(fields["tools"]),
        files="\n".join(fields["files"]),
    )
    return Document(
        text=text,
        kind=fields["kind"],
        title=fields["title"] or _folder_name(fields["project"]),
        question_line_count=question.count("\n") + 1 if question.strip() else 0,
        exchange_metadata=metadata,
    )


def question_line(data: bytes) -> str:
    """Return the question of an exchange in one line.

    Args:
        data: JSON as `Archive.read` returns it.
    """
    return " ".join(str(json.loads(data)["question"]).split())


def _folder_name(project: str) -> str:
    r"""Return the last part of a project's path; both "/" and "\\" separate."""
    return project.replace("\\", "/").rstrip("/").rpartition("/")[2]
