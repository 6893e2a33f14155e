"""Transcripts in three formats, written as the assistants write them and parsed by the simulator's own few lines.

Every exchange has a number. Its question contains the word `quest00007`, its answer the word `reply00007`, and no other
exchange contains either: what an archive, a table or a file on the disk holds can be compared as sets of words.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

WORDS = re.compile(r"(?:quest|reply)\d{5}")
_FILLER = "amber basalt cedar delta ember fjord garnet harbor island juniper kelp lagoon".split()  # noqa: SIM905 - a list of words


def question_of(number: int) -> str:
    """Return the question of an exchange."""
    return f"Please say what quest{number:05} means for {_FILLER[number % len(_FILLER)]}?"


def answer_of(number: int) -> str:
    """Return the answer of an exchange, in two paragraphs."""
    return f"It means reply{number:05}.\n\nThat is all about {_FILLER[number % 7]} here."


def words_of(number: int) -> set[str]:
    """Return the two words that only this exchange contains."""
    return {f"quest{number:05}", f"reply{number:05}"}


def kind_of(path: Path) -> str:
    """Return the format of a transcript, by its name."""
    if path.suffix == ".json":
        return "chatgpt"
    return "codex" if path.name.startswith("rollout-") else "claude"


def new_name(rng: Random) -> str:
    """Draw the name of a new transcript."""
    session = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    names = (
        f"{session}.jsonl",
        f"rollout-2026-01-02T10-00-00-{session}.jsonl",
        f"conversations-{session[:4]}.json",
    )
    return rng.choice(names)


def say(path: Path, number: int) -> None:
    """Add an exchange to a transcript; create the transcript if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _WRITERS[kind_of(path)](path, number)


def readable_words(path: Path) -> set[str]:
    """Return the words of all questions and answers that a reader of this file must find.

    Records that are torn or overwritten are not counted, and nothing of a file whose first record is.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return set()
    if path.suffix == ".json":
        whole = _parse(data)
        return set(WORDS.findall(json.dumps(whole))) if whole is not None else set()
    lines = data.split(b"\n")[:-1]  # What follows the last line feed is still being written.
    if not lines or _parse(lines[0]) is None:
        return set()
    found: set[str] = set()
    for line in lines:
        record = _parse(line)
        found.update(WORDS.findall(json.dumps(record)) if record is not None else ())
    return found


def _parse(data: bytes) -> Any:  # noqa: ANN401 - any JSON value, None for none
    try:
        return json.loads(data)
    except ValueError:
        return None


def _time(number: int, second: int = 0) -> str:
    hours, minutes = divmod(number, 60)
    return f"2026-01-{2 + hours // 24:02}T{hours % 24:02}:{minutes:02}:{second:02}.000Z"


def _append(path: Path, records: list[dict[str, Any]]) -> None:
    with path.open("ab") as file:
        file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))
        file.flush()
        os.fsync(file.fileno())


def _records(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    parsed = [_parse(line) for line in path.read_bytes().split(b"\n")]
    return [record for record in parsed if isinstance(record, dict)]


def _end_torn_line(path: Path) -> None:
    """Begin a new line after a torn one, as programs do that append whole lines after a crash."""
    if path.exists() and (data := path.read_bytes()) and not data.endswith(b"\n"):
        path.write_bytes(data + b"\n")


def _say_claude(path: Path, number: int) -> None:
    _end_torn_line(path)
    uuids = [record["uuid"] for record in _records(path) if "uuid" in record]
    session = path.name.partition(".")[0]
    common = {"sessionId": session, "cwd": "/home/me/app", "isSidechain": False}
    asked = {
        "type": "user",
        "uuid": f"q{number}",
        "parentUuid": uuids[-1] if uuids else None,
        "timestamp": _time(number),
        "message": {"role": "user", "content": question_of(number)},
        **common,
    }
    said = {
        "id": f"m{number}",
        "model": "opus",
        "role": "assistant",
        "content": [{"type": "text", "text": answer_of(number)}],
    }
    answered = {
        "type": "assistant",
        "uuid": f"a{number}",
        "parentUuid": asked["uuid"],
        "timestamp": _time(number, 30),
        "message": said,
        **common,
    }
    _append(path, [asked, answered])


def _say_codex(path: Path, number: int) -> None:
    _end_torn_line(path)
    records: list[dict[str, Any]] = []

    def record(kind: str, second: int, **payload: object) -> None:
        records.append({"timestamp": _time(number, second), "type": kind, "payload": payload})

    if not path.exists() or not path.stat().st_size:
        record("session_meta", 0, id=path.stem[-36:], cwd="/home/me/app", cli_version="0.50.0")
    record("event_msg", 1, type="task_started", turn_id=f"turn-{number}")
    record("turn_context", 1, turn_id=f"turn-{number}", model="gpt-5", cwd="/home/me/app")
    record("event_msg", 2, type="user_message", message=question_of(number))
    record("event_msg", 30, type="agent_message", message=answer_of(number))
    _append(path, records)


def _say_chatgpt(path: Path, number: int) -> None:
    """Write the whole export again, with one conversation more: nobody appends to an export."""
    past = _parse(path.read_bytes()) if path.exists() else None
    conversations = past if isinstance(past, list) else []
    created = 1_767_000_000 + 60 * number

    def node(key: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        message = {
            "id": key,
            "author": {"role": role},
            "create_time": created,
            "content": content,
            "recipient": "all",
        }
        return {"id": key, "parent": parent, "children": [], "message": message}

    asked = node(f"q{number}", "top", "user", question_of(number))
    answered = node(f"a{number}", f"q{number}", "assistant", answer_of(number))
    top = {"id": "top", "parent": None, "children": [f"q{number}"], "message": None}
    asked["children"] = [f"a{number}"]
    mapping = {"top": top, f"q{number}": asked, f"a{number}": answered}
    conversation = {
        "title": f"Talk {number}",
        "create_time": created,
        "update_time": created,
        "conversation_id": f"talk-{number}",
        "current_node": f"a{number}",
        "mapping": mapping,
    }
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(json.dumps([*conversations, conversation]))
    draft.replace(path)


_WRITERS: dict[str, Callable[[Path, int], None]] = {
    "claude": _say_claude,
    "codex": _say_codex,
    "chatgpt": _say_chatgpt,
}
