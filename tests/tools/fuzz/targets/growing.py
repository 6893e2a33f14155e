"""A growing session: reading on from a resume point gives the same as a full read.

An input's first line is the family (for who reads it), how many bytes of the rest were there first, and the path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.fuzz.inputs import headed, number, word
from tools.fuzz.laws import hold
from tools.fuzz.targets.taking import is_sound, safe_path, taking

from anchord.sources.conversations.formats.registry import PROSE_SUFFIXES

_FIRST = ("title", "project", "question", "answer", "tools", "files")

Archived = Mapping[str, bytes]


def repeats(data: bytes) -> bool:
    """Whether a log has a repeated id, a second session record, or a reference to a later line, which no program writes.

    Resumed reads do not know the lines before, so they read such lines differently than a full read;
    `found/` has them.
    """
    seen = set[str]()
    sessions = set[str]()
    records = list(_records(headed(data)[1]))
    is_codex = any("payload" in record or record.get("type") == "message" for record in records)
    for line, record in enumerate(records):
        message = record.get("message")
        blocks = message.get("content") if isinstance(message, dict) else None
        inner = (
            [block.get("id") for block in blocks if isinstance(block, dict)]
            if isinstance(blocks, list)
            else []
        )
        names = [str(name) for name in (record.get("uuid"), record.get("id"), *inner) if name]
        is_bare = "id" in record and "payload" not in record and (is_codex or "type" not in record)
        is_header = is_bare or record.get("type") == "session_meta"
        if seen & set(names) or (line and (is_header or record.get("type") == "summary")):
            return True
        if record.get("type") in ("user", "assistant") and not record.get("uuid"):
            return True
        seen.update(names)
        sessions.add(str(record.get("sessionId") or ""))
    return len(sessions - {""}) > 1


def _records(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.split(b"\n"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def growing(data: bytes) -> None:
    """Ingest a file, then its grown version: the archive equals that of one full read."""
    head, body = headed(data)
    words = head.split(" ", 2)
    cut, path = number(word(words, 1), 0, len(body)), safe_path(word(words, 2))
    if path.endswith((".zst", *PROSE_SUFFIXES)) or body.startswith((b"PK", b"SQLite")):
        return  # What is packed does not grow; and a text stays a transcript once it was one, whatever becomes of it.
    with taking(path) as fresh:
        is_sound(fresh.take(body))
        whole = fresh.archived()
        is_sound(fresh.again())
        _same(fresh.archived(), whole, "a file that is read again tells the same")
    with taking(path) as grown:
        is_sound(grown.take(body[:cut]))
        is_sound(grown.take(body))
        _same(grown.archived(), whole, "a file that grew tells what a whole reading tells")


def _same(archived: Archived, whole: Archived, law: str) -> None:
    differing = sorted(
        name for name in archived.keys() | whole.keys() if archived.get(name) != whole.get(name)
    )
    seen = [(name, archived.get(name), whole.get(name)) for name in differing[:2]]
    where = (
        f"{differing[0].split('/')[1]}: {_how(archived, whole, differing[0])}" if differing else ""
    )
    hold(not differing, law, *seen, where=where)


def _how(archived: Archived, whole: Archived, name: str) -> str:
    """Name the field in which an exchange differs, which usually identifies the cause."""
    if name not in archived or name not in whole:
        return "missing" if name in whole else "too much"
    now, wanted = json.loads(archived[name]), json.loads(whole[name])
    return str(next(key for key in (*_FIRST, *wanted) if now.get(key) != wanted[key]))
