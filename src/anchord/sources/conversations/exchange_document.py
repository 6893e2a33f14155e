"""An exchange as JSON in the archive, as a path, and as a document for the chunker.

The path of an exchange is `/source/session/exchange`. It begins with "/", which no path of a file
relative to its root does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from anchord.core.types import Document, ExchangeMetadata, Problem, Row
from anchord.sources.conversations.events import Exchange, SessionInfo

EXCHANGE_VERSION = ";2"
"""Increase it with any change to the document that `decode_exchange` makes of the same exchange."""
MAX_TEXT_CHARS = 2_000_000
"""So much of a question, and so much of an answer, is indexed; the archive has all of it. What a
person wrote is shorter, and a pasted file of 60 MB would hold up every other file for a minute."""
_SAFE = " +~:@,="
_HEADING_SEPARATOR = " > "
_LONGEST_WHOLE_HEADING = 299
"""A heading with more characters may be only the beginning of a question."""


def exchange_path(source: str, session_id: str, exchange_id: str) -> str:
    """Return the path of an exchange, or of its session if `exchange_id` is "".

    Args:
        source: The program that wrote the transcript, such as `claude-code`.
        session_id: The session's id as the source names it; "" leaves it out of the path.
        exchange_id: The exchange's id; "" for the session's path.
    """
    parts = [quote(part, safe=_SAFE) for part in (source, session_id, exchange_id)]
    return "/" + "/".join(part for part in parts if part)


ALL_EXCHANGES = "/"
"""The path that lists every exchange of a root, without its folder."""


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
    if exchange.branch:  # Archives of older versions have none: the same exchange stays the same.
        fields["branch"] = exchange.branch
    return fields_to_json(fields)


class ExchangeTexts(NamedTuple):
    """The two texts of an exchange."""

    question: str
    answer: str


def decode_texts(encoded_exchange: bytes) -> ExchangeTexts:
    """Return question and answer of a stored exchange."""
    fields = json.loads(encoded_exchange)
    return ExchangeTexts(fields["question"], fields["answer"])


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
        The document, or a problem if neither question nor answer has a word. Of a question or an
        answer with more than `MAX_TEXT_CHARS` it has the beginning, and says so.
    """
    fields = json.loads(data)
    question = fields["question"].strip("\n")
    answer = fields["answer"].strip("\n")
    problem = _problem_of_lengths(question, answer)
    question = question[:MAX_TEXT_CHARS].rstrip("\n")
    answer = answer[:MAX_TEXT_CHARS].rstrip("\n")
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
        tools="\n".join(map(_as_line, fields["tools"])),
        files="\n".join(map(_as_line, fields["files"])),
        branch=_as_line(fields.get("branch", "")),
    )
    return Document(
        text=text,
        kind=fields["kind"],
        problem=problem,
        title=fields["title"] or _folder_name(fields["project"]),
        question_line_count=question.count("\n") + 1 if question.strip() else 0,
        exchange_metadata=metadata,
    )


def _problem_of_lengths(question: str, answer: str) -> Problem | None:
    """Return what is left out of an exchange with a question or an answer that is too long."""
    too_long = [
        f"{len(text):,} characters of the {name}"
        for name, text in (("question", question), ("answer", answer))
        if len(text) > MAX_TEXT_CHARS
    ]
    if not too_long:
        return None
    return Problem(
        f"the first {MAX_TEXT_CHARS:,} of {' and of '.join(too_long)} are indexed; "
        "the archive has all of it",
        is_partial=True,
    )


def _as_line(value: str) -> str:
    """Return a value without line ends: in a row, a line end separates two values."""
    return value.replace("\n", "\\u{a}")


def exchange_of_rows(rows: Sequence[Row]) -> tuple[SessionInfo, Exchange]:
    """Return an exchange and its session as the rows of the index tell them.

    The words are all there. What rows do not have is lost: blank lines between some of them, and
    the end of a question of over 300 characters, if it has several paragraphs.

    Args:
        rows: All rows of the exchange, in their order.
    """
    first = rows[0]
    lines = "\n".join(row.text for row in rows).split("\n")
    title, question_count = _find_question(lines, first.header_path)
    exchange = Exchange(
        session=first.session,
        id=first.exchange_id,
        number=0,
        question="\n".join(lines[:question_count]).strip("\n"),
        answer="\n".join(lines[question_count:]).strip("\n"),
        kind=first.kind,
        at=first.at,
        until=first.until,
        model=first.model,
        tools=tuple(filter(None, first.tools.split("\n"))),
        files=tuple(filter(None, first.files.split("\n"))),
        branch=first.branch,
    )
    if title == _folder_name(first.project):
        title = ""
    return SessionInfo(
        session=first.session,
        title=title,
        project=first.project,
    ), exchange


def _find_question(lines: Sequence[str], header_path: str) -> tuple[str, int]:
    """Return the session's title, and how many lines are the question.

    Args:
        lines: The lines of the exchange, the question first.
        header_path: The title, and the beginning of the question; either may be missing.
    """
    parts = header_path.split(_HEADING_SEPARATOR)
    for count in range(len(parts)):
        heading = _HEADING_SEPARATOR.join(parts[count:])
        line_count = _line_count_of(heading, lines)
        if line_count:
            return _HEADING_SEPARATOR.join(parts[:count]), line_count
    return header_path, 0


def _line_count_of(heading: str, lines: Sequence[str]) -> int:
    """Return how many lines a heading stands for; 0 if it is not their beginning."""
    words = ""
    is_cut = len(heading) >= _LONGEST_WHOLE_HEADING
    for count, line in enumerate(lines, 1):
        words = " ".join(f"{words} {line}".split())
        if heading and words == heading:
            return count
        if is_cut and words.startswith(heading) and (count == len(lines) or not lines[count]):
            return count
        if not heading.startswith(words) and not words.startswith(heading):
            break
    return 0


def question_line(data: bytes) -> str:
    """Return the question of an exchange in one line.

    Args:
        data: JSON as `Archive.read` returns it.
    """
    return " ".join(str(json.loads(data)["question"]).split())


def _folder_name(project: str) -> str:
    r"""Return the last part of a project's path; both "/" and "\\" separate."""
    return project.replace("\\", "/").rstrip("/").rpartition("/")[2]
