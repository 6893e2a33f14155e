"""Google AI Studio: a JSON file a prompt, kept in Drive without an ending; its chunks are in order, with siblings among them.

A chunk that names the chunk that it branched from is one of several answers or questions: the last of them is active. Such a
name of another prompt, which is what Drive has, means that the whole file is a branch of that. Old files have no times.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations import branches
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.records import Record, items, table, text, time_of, tool_line

SOURCE = "ai-studio"

_CHUNKED = re.compile(rb'"chunkedPrompt"\s*:\s*[{\[]')
_BEFORE = (re.compile(rb'"runSettings"\s*:\s*\{'), re.compile(rb'"systemInstruction"\s*:\s*\{'))
"""What stands before the chunks; instructions can be longer than a head."""
_ROLES = {"user": Role.QUESTION, "model": Role.ANSWER}
_GIVEN = {
    "driveDocument": "document", "driveImage": "image", "driveVideo": "video", "driveAudio": "audio", "inlineFile": "file",
    "inlineImage": "image", "inlineData": "file", "inlineAudio": "audio", "inlineVideo": "video", "youtubeVideo": "video",
}  # fmt: skip
"""What a chunk can hold in place of a text."""


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a prompt; its name says nothing, as it is the prompt's title."""
    if path.endswith(".jsonl") or not head.removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
        return False
    return bool(_CHUNKED.search(head)) or all(pattern.search(head) for pattern in _BEFORE)


@dataclass(slots=True)
class _State:
    model: str
    above: dict[str, str] = field(default_factory=dict)
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    last: str = ""
    asking: str = ""
    """The question to which what is given without a text belongs."""
    marks: list[str] = field(default_factory=list)
    """What was given before its question."""


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a prompt."""
    name = carrier.path.rpartition("/")[2].removesuffix(".json")
    for prompt in conversations(carrier):
        if isinstance(prompt, Unknown):
            yield prompt
            continue
        title = text(prompt.get("displayName")) or text(prompt.get("title")) or name
        yield Head(text(prompt.get("id")) or name, title=title, updated=time_of(prompt.get("updateTime")))
        state = _State(text(table(prompt.get("runSettings")).get("model")).removeprefix("models/"))
        chunked = table(prompt.get("chunkedPrompt"))
        for number, chunk in enumerate(map(table, items(chunked.get("chunks")))):
            yield from _placed(state, f"chunk-{number}", chunk)
        for number, chunk in enumerate(map(table, items(chunked.get("pendingInputs")))):  # Typed, and not yet sent.
            yield from _placed(state, f"pending-{number}", {**chunk, "role": "user"})
        _given_alone(state, state.last)
        yield from branches.told(state.above, state.turns, state.last)


def _placed(state: _State, key: str, chunk: Record) -> Iterator[Unknown]:
    name = text(chunk.get("id"))
    key = name if name and name not in state.above else key
    parent = text(table(chunk.get("branchParent")).get("id"))
    role = _ROLES.get(text(chunk.get("role")))
    if role is not Role.QUESTION:
        _given_alone(state, state.last)
    state.above[key] = parent if parent in state.above else state.last
    state.last = key
    if role is Role.ANSWER:
        state.asking = ""
    if chunk.get("isThought"):
        return
    if role is Role.QUESTION:
        _asked(state, key, chunk)
    elif role is Role.ANSWER:
        _answered(state, key, chunk)
    else:
        kind = text(chunk.get("role"))
        yield Unknown("role", str(kind)) if kind else Unknown("chunk without a role")


def _asked(state: _State, key: str, chunk: Record) -> None:
    """Add a question. What was given along stands in chunks of its own, before or after the text: it is no question."""
    marks = [f"[{text(table(chunk[given]).get('name')) or kind}]" for given, kind in _GIVEN.items() if chunk.get(given)]
    said = _said(chunk)
    if said.strip():
        parts = "\n\n".join([said, *state.marks, *marks])
        state.turns[key] = [Turn(key, Role.QUESTION, parts, at=time_of(chunk.get("createTime")))]
        state.asking, state.marks = key, []
    elif state.asking:
        asked = state.turns[state.asking][0]
        state.turns[state.asking] = [replace(asked, text="\n\n".join([asked.text, *marks]))]
    else:
        state.marks += marks


def _given_alone(state: _State, key: str) -> None:
    """Make a question of what was given without any text."""
    if state.marks:
        state.turns[key] = [Turn(key, Role.QUESTION, "\n\n".join(state.marks))]
        state.marks = []


def _answered(state: _State, key: str, chunk: Record) -> None:
    said, code = _said(chunk), table(chunk.get("executableCode"))
    tools = (tool_line("code", {"command": text(code.get("code"))}),) if code else ()
    if said.strip() or tools:
        at = time_of(chunk.get("createTime"))
        state.turns[key] = [Turn(key, Role.ANSWER, said, at=at, model=state.model, tools=tools)]


def _said(chunk: Record) -> str:
    """Return a chunk's text; its parts are the pieces in which it came, with thoughts among them."""
    pieces = [table(part) for part in items(chunk.get("parts"))]
    return text(chunk.get("text")) or "".join(text(piece.get("text")) for piece in pieces if not piece.get("thought"))
