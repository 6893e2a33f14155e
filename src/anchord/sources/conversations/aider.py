"""Aider: `.aider.chat.history.md` in a repository, one file for all its sessions, only ever appended to.

A session has a time and nothing in it has one. Questions are numbered in their session.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.conversation import Carrier, Event, Head, Role, Turn
from anchord.sources.conversations.aider_lines import Block, answered, blocks, is_marked
from anchord.sources.conversations.noise import Noise
from anchord.sources.conversations.records import time_of

SOURCE = "aider"

_NAME = ".aider.chat.history.md"
_STARTED = b"# aider chat started at "
_SESSION = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"
_COMMAND = re.compile(r"(?:/([a-z][a-z_-]*)|!\S*)(?:\s+(.*))?$", re.DOTALL)
_ASKING = frozenset({"ask", "code", "architect", "context", "help"})
"""The commands whose text goes to the model: it is repeated as a question of its own."""
_NOISE = Noise([], ["# Fix any errors below, if possible."])


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a chat history: by its name, or as Markdown that begins with a session or has several."""
    if path.rpartition("/")[2] == _NAME:
        return True
    return path.endswith(".md") and (
        bool(_SESSION.match(head.removeprefix(_BOM).lstrip())) or len(_SESSION.findall(head)) > 1
    )  # fmt: skip


@dataclass(slots=True)
class _Session:
    id: str
    at: str = ""
    lines: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)


def read(carrier: Carrier, start: int = 0) -> Iterator[Event]:
    """Tell of each session, from a byte on, which is that of a question; a session's earlier questions are counted."""
    for session in _sessions(carrier, start):
        yield Head(session.id)
        yield from (turn for turn in _turns(session) if turn.offset >= start)


def _sessions(carrier: Carrier, start: int) -> Iterator[_Session]:
    """Yield the sessions that do not end before a byte. What was cut off at the beginning is one without a time."""
    session, seen, offset = _Session(carrier.path), Counter[str](), 0
    with carrier.open() as stream:
        for raw in stream:
            line = raw.removeprefix(_BOM) if not offset else raw
            if line.startswith(_STARTED) and _SESSION.match(line) and not _quoted(session):
                if offset > start and _is_told(session):
                    yield session
                time = line[len(_STARTED) :].decode("utf-8", "replace").strip()
                seen[time] += 1
                session = _Session(time if seen[time] == 1 else f"{time} #{seen[time]}", time_of(time))
            else:
                session.lines.append(line.decode("utf-8", "replace").rstrip("\r\n"))
                session.offsets.append(offset)
            offset += len(raw)
    if _is_told(session):
        yield session


def _quoted(session: _Session) -> bool:
    """Whether a fence begins in the line above: a history that somebody shows."""
    return bool(session.lines) and session.lines[-1].startswith(("```", "~~~"))


def _is_told(session: _Session) -> bool:
    return bool(session.at) or any(line.strip() for line in session.lines)


def _turns(session: _Session) -> Iterator[Turn]:
    lines, number, model, command, begin = session.lines, 0, "", "", 0
    for block in [*blocks(lines), Block(len(lines), len(lines), "")]:
        answer = answered(lines[begin : block.first], marked=is_marked(lines, begin, block.first))
        model = answer.model or model
        if answer.text or answer.tools or answer.files:
            command = "" if answer.text else command
            said = answer.text, session.at, model, answer.tools, answer.files
            yield Turn(f"{number}.{begin}", Role.ANSWER, *said, offset=session.offsets[begin])
        begin, asked = block.after, _typed(block.text)
        if asked and not _repeats(asked, command):
            number += 1
            command = _argument(asked)
            yield Turn(str(number), Role.QUESTION, asked, session.at, offset=session.offsets[block.first])


def _typed(block: str) -> str:
    """Return what is a question of what was typed: of commands only what goes to the model."""
    text = block.strip("\n").rstrip()
    found = _COMMAND.match(text)
    if found and not (found[1] in _ASKING and found[2]):
        return ""
    return "" if text == "<blank>" else _NOISE.removed(text)


def _argument(asked: str) -> str:
    found = _COMMAND.match(asked)
    return found[2].strip() if found else ""


def _repeats(asked: str, command: str) -> bool:
    """Whether a question is what a command before it said; that of `/help` comes with pages of documentation."""
    return bool(command) and command in (asked.strip(), asked.partition("\n")[0].removeprefix("# Question:").strip())
