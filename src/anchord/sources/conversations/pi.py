"""pi: one JSONL file a session; its entries are a tree that only ever grows, and the last entry is on the active branch.

Files of the first version have neither ids nor parents: they are one line of conversation. Forks are files of their own that
begin with copies of the entries of the session that they come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations import branches
from anchord.sources.conversations.noise import Noise
from anchord.sources.conversations.records import (
    Record,
    block_texts,
    first_records,
    items,
    records,
    table,
    text,
    time_of,
    tool_line,
    words,
)  # fmt: skip

SOURCE = "pi"

_QUIET = words(
    "thinking_level_change compaction branch_summary custom custom_message label context_transform ephemeral "
    "active_tools_change"
)
_SILENT = words("toolResult custom hookMessage compactionSummary branchSummary")
"""Roles of messages that nobody typed and the model did not say."""
_CHANGING = frozenset({"edit", "write"})
_NOISE = Noise(["skill"], [])
_FILE = re.compile(r'\s*<file name="([^"\n]*)">\n?(.*?)\n?</file>', re.DOTALL)
"""What `@file` on the command line becomes, before what was typed."""


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a session: by its header, which need not have a version."""
    if not path.endswith(".jsonl"):
        return False
    first = next(iter(first_records(head)), {})
    return first.get("type") == "session" and ("cwd" in first or ("id" in first and "timestamp" in first))


@dataclass(slots=True)
class _State:
    session: str
    named: bool = False
    title: str = ""
    project: str = ""
    model: str = ""
    above: dict[str, str] = field(default_factory=dict)
    """Entry -> the entry above it, in the file's order."""
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    last: str = ""


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a session; all of it is read before, as only its last entry says which branch is the active one."""
    name = carrier.path.rpartition("/")[2].removesuffix(".jsonl")
    state = _State(name.rpartition("_")[2])
    for found in records(carrier.lines()):
        if isinstance(found, Unknown):
            yield found
        else:
            yield from _entered(state, *found)
    yield Head(state.session, title=state.title, project=state.project)
    yield from branches.told(state.above, state.turns, state.last)


def _entered(state: _State, offset: int, record: Record) -> Iterator[Unknown]:
    kind = text(record.get("type"))
    if kind == "session":
        if not state.named:  # A header that comes later is that of the session that this one was copied from.
            state.named = True
            state.session, state.project = text(record.get("id")) or state.session, text(record.get("cwd"))
        return
    key = text(record.get("id")) or f"at-{offset}"
    if key in state.above:
        return
    parent = text(record.get("parentId"))
    is_root = "parentId" in record and record["parentId"] is None
    # An entry after a lost one goes on where the file is, so that a bad line does not make a branch of all before it.
    state.above[key] = "" if is_root else parent if parent in state.above else state.last
    state.last = key
    if kind == "message":
        yield from _said(state, key, offset, record)
    elif kind == "model_change":
        state.model = text(record.get("modelId"))
    elif kind == "session_info":
        state.title = text(record.get("name")).strip() or state.title
    elif kind not in _QUIET:
        yield Unknown("", kind) if kind else Unknown("entry without a type")


def _said(state: _State, key: str, offset: int, record: Record) -> Iterator[Unknown]:
    message = table(record.get("message"))
    role, at = text(message.get("role")), time_of(record.get("timestamp")) or time_of(message.get("timestamp"))
    if role == "user":
        state.turns[key] = list(_asked(key, offset, message, at))
    elif role == "assistant":
        state.turns[key] = list(_answered(state, key, offset, message, at))
    elif role == "bashExecution":
        line = tool_line("bash", {"command": text(message.get("command"))})
        state.turns[key] = [Turn(key, Role.ANSWER, "", at=at, tools=(line,), offset=offset)]
    elif role not in _SILENT:
        yield Unknown("role", str(role)) if role else Unknown("message without a role")


def _asked(key: str, offset: int, message: Record, at: str) -> Iterator[Turn]:
    content = message.get("content")
    said, files = _without_files(block_texts(content, "text"))
    said = _NOISE.removed(said)
    attached = [table(each) for each in items(message.get("attachments"))]
    files += [(text(each.get("fileName")) or "attachment", text(each.get("extractedText"))) for each in attached]
    images = ["[image]" for block in items(content) if table(block).get("type") == "image"]
    parts = [part for part in (said, *images) if part] or [f"[{name}]" for name, _ in files]
    if not parts:
        return
    yield Turn(key, Role.QUESTION, "\n\n".join(parts), at=at, offset=offset)
    for place, (name, content_of) in enumerate(files, 1):
        yield Turn(f"{key}+{place}", Role.ATTACHMENT, f"{name}\n{content_of}", at=at, offset=offset)


def _without_files(said: str) -> tuple[str, list[tuple[str, str]]]:
    files: list[tuple[str, str]] = []
    start = 0
    while found := _FILE.match(said, start):
        files.append((found[1], found[2]))
        start = found.end()
    return said[start:], files


def _answered(state: _State, key: str, offset: int, message: Record, at: str) -> Iterator[Turn]:
    content = message.get("content")
    calls = [table(block) for block in items(content) if table(block).get("type") == "toolCall"]
    said = block_texts(content, "text")
    state.model = text(message.get("model")) or state.model
    if said or calls:
        yield Turn(
            key, Role.ANSWER, said, at=at, model=state.model,
            tools=tuple(tool_line(text(call.get("name")), call.get("arguments")) for call in calls),
            files=tuple(file for call in calls if (file := _changed(call))), offset=offset,
        )  # fmt: skip


def _changed(call: Record) -> str:
    return text(table(call.get("arguments")).get("path")) if text(call.get("name")) in _CHANGING else ""
