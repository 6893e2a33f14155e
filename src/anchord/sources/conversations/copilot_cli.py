"""Copilot CLI: one JSONL file of events a session, appended to; and an early form, the same with other names of events.

VS Code's Copilot Chat writes transcripts of the same events: those are left to the family that has the chats themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.conversation import Carrier, Earlier, Event, Head, Role, Superseded, Turn, Unknown
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

SOURCE = "copilot-cli"

_QUESTIONS = {"user.message": ("content",), "userpromptsubmitted": ("prompt", "content", "text", "message")}
_ANSWERS = {"assistant.message": ("content",), "assistantresponse": ("result", "content", "text", "message", "response")}
_STARTS = frozenset({"session.start", "session.resume", "session.context_changed", "sessionstart"})
_NAMESPACES = words(
    "session tool hook permission mcp subagent skill skills system commands command custom_notification external_tool canvas "
    "elicitation sampling user_input exit_plan_mode pending_messages model ui factory fusion extensions capabilities "
    "auto_mode_switch session_limits_exhausted managed_settings binary_asset background_tasks tools abort"
)
"""Events that hold no prose, by what their names begin with."""
_QUIET = words(
    "assistant.turn_start assistant.turn_end assistant.intent assistant.idle assistant.usage assistant.reasoning "
    "assistant.reasoning_delta assistant.streaming_delta assistant.tool_call_delta assistant.message_start "
    "assistant.message_delta assistant.server_tool_progress assistant.fusion_phase_started assistant.fusion_phase_completed "
    "assistant.fusion_phase_failed sessionstart sessionend pretooluse posttooluse posttoolusefailure erroroccurred agentstop "
    "notification"
)
_MODELS = words("session.start session.resume session.model_change tool.execution_complete")
_UNTYPED = ("skill", "agent", "autopilot", "system", "schedule")
"""Beginnings of the sources of users' messages that no person typed: `skill-pdf`."""
_MODEL = b'odel"'
"""Stands in every line that says which model it is."""
_CHANGING = frozenset({"edit", "create", "write"})
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_NOISE = Noise(["current_datetime", "reminder", "system_reminder", "system_notification"], [])


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a session: by its events."""
    if not path.endswith(".jsonl") or "copilot-chat" in path.lower():
        return False
    found = first_records(head)[:50]
    if any("vscodeVersion" in table(record.get("data")) for record in found):
        return False
    return any(_is_one(record) for record in found)


def _is_one(record: Record) -> bool:
    kind = text(record.get("type"))
    if kind in ("session.start", "user.message", "assistant.message"):
        return isinstance(record.get("data"), dict)
    return kind.lower() in ("userpromptsubmitted", "assistantresponse")


@dataclass(slots=True)
class _State:
    session: str
    project: str = ""
    model: str = ""
    asked: list[str] = field(default_factory=list)
    place: dict[str, int] = field(default_factory=dict)
    """Event -> how many questions came before it."""
    gone: set[str] = field(default_factory=set)
    resumed: bool = False


def read(carrier: Carrier, start: int = 0) -> Iterator[Event]:
    """Tell of a session, from a byte on."""
    state = _State(_named(carrier), model=_model_before(carrier, start), resumed=start > 0)
    yield Head(state.session)
    for found in records(carrier.lines(start)):
        if isinstance(found, Unknown):
            yield found
        else:
            yield from _told(state, *found)
    if state.gone:
        yield Superseded(frozenset(state.gone))


def _named(carrier: Carrier) -> str:
    """Return the session's id: that of its first event, else of its file or folder; the same wherever reading begins."""
    first = next(iter(records(carrier.lines())), None)
    given = _data(first[1]) if isinstance(first, tuple) else {}
    folder, _, name = carrier.path.rpartition("/")
    name = name.removesuffix(".jsonl")
    by_path = folder.rpartition("/")[2] or name if name == "events" else name
    return text(given.get("sessionId")) or text(given.get("session_id")) or by_path


def _model_before(carrier: Carrier, start: int) -> str:
    """Return the model that was in use at a byte: most answers do not name theirs."""
    state = _State("")
    for found in records(line for line in carrier.lines() if _MODEL in line.data) if start else ():
        if isinstance(found, Unknown):
            continue
        if found[0] >= start:
            break
        for _ in _told(state, *found):
            pass  # Only what it leaves behind is wanted.
    return state.model


def _data(record: Record) -> Record:
    """Return what an event holds: the early form has no envelope."""
    return table(record["data"]) if "data" in record else record


def _told(state: _State, offset: int, record: Record) -> Iterator[Event]:
    kind, data, key = text(record.get("type")).lower(), _data(record), text(record.get("id")) or f"at-{offset}"
    if key in state.place:
        return
    state.place[key] = len(state.asked)
    if kind in _QUESTIONS:
        yield from _question(state, key, offset, record)
    elif kind in _ANSWERS:
        yield from _answer(state, key, offset, record, _first(data, _ANSWERS[kind]))
    elif kind == "session.task_complete":
        yield from _answer(state, key, offset, record, text(data.get("summary")))
    elif kind == "tool.user_requested":
        line = tool_line(text(data.get("toolName")), data.get("arguments"))
        yield Turn(key, Role.ANSWER, "", at=time_of(record.get("timestamp")), tools=(line,), offset=offset)
    elif kind == "session.snapshot_rewind":
        if state.resumed and text(data.get("upToEventId")) not in state.place:
            yield Earlier()  # It goes back beyond the start.
        place = state.place.get(text(data.get("upToEventId")), len(state.asked))
        state.gone.update(state.asked[place:])
        del state.asked[place:]
    elif kind in _QUIET or kind.partition(".")[0] in _NAMESPACES:
        yield from _about(state, kind, record)
    else:
        yield Unknown("", kind) if kind else Unknown("event without a type")


def _first(data: Record, keys: tuple[str, ...]) -> str:
    return next((said for key in keys if (said := block_texts(data.get(key), "text"))), "")


def _about(state: _State, kind: str, record: Record) -> Iterator[Head]:
    data = _data(record)
    if kind in _MODELS and not _of_agent(record):
        named = (text(data.get(key)) for key in ("newModel", "selectedModel", "model"))
        state.model = next((name for name in named if name), state.model)
    if kind == "session.title_changed":
        yield Head(state.session, title=text(data.get("title")))
    elif kind in _STARTS and not state.project:
        state.project = text(table(data.get("context")).get("cwd")) or text(data.get("cwd"))
        if state.project:
            yield Head(state.session, project=state.project)


def _question(state: _State, key: str, offset: int, record: Record) -> Iterator[Turn]:
    data = _data(record)
    said = _NOISE.removed(_first(data, _QUESTIONS[text(record.get("type")).lower()]))
    untyped = text(data.get("source")).startswith(_UNTYPED) or data.get("isAutopilotContinuation")
    if said and not untyped and not _of_agent(record):
        state.asked.append(key)
        yield Turn(key, Role.QUESTION, said, at=time_of(record.get("timestamp")), offset=offset)


def _answer(state: _State, key: str, offset: int, record: Record, said: str) -> Iterator[Turn]:
    data = _data(record)
    if _of_agent(record):
        return
    said = "" if data.get("phase") == "thinking" else said
    calls = [table(call) for call in items(data.get("toolRequests"))]
    state.model = text(data.get("model")) or state.model
    if said.strip() or calls:
        yield Turn(
            key, Role.ANSWER, said, at=time_of(record.get("timestamp")), model=state.model,
            tools=tuple(tool_line(text(call.get("name")), call.get("arguments")) for call in calls),
            files=tuple(file for call in calls for file in _changed(call)), offset=offset,
        )  # fmt: skip


def _of_agent(record: Record) -> bool:
    """Whether an event is that of a sub-agent."""
    return bool(record.get("agentId") or _data(record).get("parentToolCallId"))


def _changed(call: Record) -> list[str]:
    name, given = text(call.get("name")), call.get("arguments")
    if name == "apply_patch":
        return [found.strip() for found in _PATCHED.findall(text(given) or text(table(given).get("input")))]
    path = text(table(given).get("path")) or text(table(given).get("file_path"))
    return [path] if path and name in _CHANGING else []
