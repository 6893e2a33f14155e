"""Gemini CLI: one JSON document a session, rewritten at each turn; since 2026 a log of operations, which has to be replayed.

A message that is written again replaces itself in its place. `$set.messages` is what the model is shown from then on, a
compression of the conversation for instance, and not what was said: it counts only where a log has no message of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations import branches
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.noise import Noise
from anchord.sources.conversations.records import Record, first_records, items, records, table, text, time_of, tool_line, words

SOURCE = "gemini-cli"

_REWOUND_FROM = 0
"""Where what a rewind discards begins, counted from the message that it names: at that one (Gemini CLI 0.61)."""
_ROLES = {"user": Role.QUESTION, "gemini": Role.ANSWER, "model": Role.ANSWER, "qwen": Role.ANSWER}
_QUIET = words("info warning error")
_CHANGING = frozenset({"write_file", "replace", "edit", "edit_file"})
_FAILED = frozenset({"error", "cancelled"})
_NOISE = Noise(["session_context", "hook_context", "state_snapshot"], ["This is the Gemini CLI. We are setting up the context"])
_COMMAND = re.compile(r"/[a-z][\w:-]*(?:[ \t]+\S+)?")
"""A slash command with one argument at most: with more it is prose, and a path has a second slash."""
_REFERENCED, _END_OF_REFERENCED = "--- Content from referenced files ---", "--- End of content ---"
_PATH = re.compile(r"(?:(?:.*/)?([^/]+)/)?chats/(?:([^/]+)/)?[^/]+")
_HASH = re.compile(r"[0-9a-f]{64}")


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a session: a document with a project's hash, or a log that begins with such a head."""
    if path.endswith(".jsonl"):
        return any("projectHash" in record and "sessionId" in record and "type" not in record for record in first_records(head))
    return path.endswith(".json") and b'"messages"' in head and (b'"projectHash"' in head or "/chats/session-" in f"/{path}")


@dataclass(slots=True)
class _Thread:
    """Messages as a tree: what follows a rewind is a branch beside what the rewind discarded."""

    above: dict[str, str] = field(default_factory=dict)
    turns: dict[str, tuple[Turn, ...]] = field(default_factory=dict)
    active: dict[str, None] = field(default_factory=dict)
    """The messages that were not rewound, in the order in which they came first."""

    def take(self, name: str, turn: Turn | None) -> None:
        """Take a message, or another version of it in its place."""
        if name not in self.active:
            self.above[name] = next(reversed(self.active), "")
            self.active[name] = None
        self.turns[name] = (turn,) if turn else ()

    def rewind(self, target: str) -> None:
        """Leave what a rewind to a message discards."""
        names = list(self.active)
        self.active = dict.fromkeys(names[: names.index(target) + _REWOUND_FROM])

    def told(self) -> Iterator[Turn]:
        """Tell of all of it."""
        return branches.told(self.above, self.turns, next(reversed(self.active), ""))


@dataclass(slots=True)
class _State:
    head: Head
    said: _Thread = field(default_factory=_Thread)
    shown: _Thread = field(default_factory=_Thread)
    """What the model was shown."""


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a session."""
    name = carrier.path.rpartition("/")[2].rpartition(".")[0]
    project, parent = _where(carrier.path)
    state = _State(Head(name, project=project, parent=parent))
    is_log = carrier.path.endswith(".jsonl")
    for found in records(carrier.lines()) if is_log else conversations(carrier):
        if isinstance(found, Unknown):
            yield found
        else:
            yield from _replay(state, found[1] if isinstance(found, tuple) else found)
    yield state.head
    yield from (state.said if any(state.said.turns.values()) else state.shown).told()


def _where(path: str) -> tuple[str, str]:
    """Return the project (older versions have a hash for it, which says nothing) and, for a sub-agent's, the session above."""
    found = _PATH.fullmatch(path)
    project, parent = found.groups("") if found else ("", "")
    return "" if _HASH.fullmatch(project) else project, parent


def _replay(state: _State, record: Record) -> Iterator[Unknown]:
    if "$rewindTo" in record:
        if not _rewind(state, text(record["$rewindTo"])):
            yield Unknown("rewind to an unknown message")
    elif "$set" in record:
        given = table(record["$set"])
        _learn(state, given)
        yield from _take(state.shown, items(given.get("messages")))
    elif "type" not in record and ("sessionId" in record or "projectHash" in record):
        _learn(state, record)
        yield from _take(state.said, items(record.get("messages")))
    else:
        yield from _take(state.said, [record])


def _rewind(state: _State, target: str) -> bool:
    """Rewind; a compression gives what was said other names for the model, but the same texts."""
    copied = [turn.text for turn in state.shown.turns.get(target, ())]
    same = [name for name, turns in state.said.turns.items() if copied and [turn.text for turn in turns] == copied]
    named = next((name for name in (target, *reversed(same)) if name in state.said.active), "")
    if named:
        state.said.rewind(named)
    if target in state.shown.active:
        state.shown.rewind(target)
        return bool(named) or not any(state.said.turns.values())
    return bool(named)


def _learn(state: _State, about: Record) -> None:
    head = state.head
    updated = time_of(about.get("lastUpdated")) or head.updated
    session, title = text(about.get("sessionId")) or head.session, text(about.get("summary")) or head.title
    state.head = replace(head, session=session, title=title, updated=updated)


def _take(into: _Thread, messages: Sequence[object]) -> Iterator[Unknown]:
    for message in messages:
        known = table(message)
        kind = text(known.get("type"))
        name = text(known.get("id")) or f"message-{len(into.above)}"
        if kind in _ROLES:
            try:
                into.take(name, _turn(name, _ROLES[kind], known))
            except RecursionError:
                yield Unknown("message beyond measure")
        elif kind in _QUIET:
            into.take(name, None)
        else:
            yield Unknown("message", str(kind)) if kind else Unknown("message without a type")


def _turn(name: str, role: Role, message: Record) -> Turn | None:
    content = message.get("content")
    said = _typed(message.get("displayContent") or content) if role is Role.QUESTION else _prose(content)
    calls = [table(call) for call in items(message.get("toolCalls"))]
    calls = calls or [table(table(part).get("functionCall")) for part in items(content) if "functionCall" in table(part)]
    calls = calls if role is Role.ANSWER else []
    if not said.strip() and not calls:
        return None
    return Turn(
        name, role, said, at=time_of(message.get("timestamp")), model=text(message.get("model")),
        tools=tuple(tool_line(text(call.get("name")), call.get("args")) for call in calls),
        files=tuple(file for call in calls if (file := _changed(call))),
    )  # fmt: skip


def _changed(call: Record) -> str:
    given = table(call.get("args"))
    done = text(call.get("name")) in _CHANGING and text(call.get("status")) not in _FAILED
    return text(given.get("file_path")) or text(given.get("path")) if done else ""


def _typed(content: object) -> str:
    """Return what a person typed: contexts are parts of their own, and so are the files that `@` named."""
    kept, is_file = list[str](), False
    for part in _parts(content):
        mark = part.strip()
        is_file = mark == _REFERENCED or (is_file and mark != _END_OF_REFERENCED)
        typed = _NOISE.removed(part)
        if not is_file and mark != _END_OF_REFERENCED:
            kept.append(part if typed == part.strip("\n") else typed)
    said = "".join(kept)
    return "" if _COMMAND.fullmatch(said.strip()) else said


def _prose(content: object) -> str:
    return "".join(_parts(content))


def _parts(content: object) -> Iterator[str]:
    """Yield the texts of a content: a text, a part, or a list of both."""
    for part in content if isinstance(content, list) else [content]:
        known = table(part)
        if isinstance(part, str):
            yield part
        elif "inlineData" in known or "fileData" in known:
            yield "[image]"
        elif not known.get("thought"):
            yield text(known.get("text"))
