"""Copilot CLI: one JSONL file of events per session, appended to.

An early form has other event names and no envelope around an event's data. VS Code's Copilot Chat
writes transcripts of the same events: `vscode_copilot` reads the chats themselves, so this reader
does not match those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import (
    Event,
    NeedsFullRead,
    Role,
    SessionInfo,
    SupersededQuestions,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats.boilerplate import BoilerplateFilter
from anchord.sources.conversations.formats.json_fields import (
    first_str,
    get_dict,
    get_dicts,
    get_str,
    get_time,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    join_text_blocks,
    parse_head_lines,
    parse_lines,
    parse_object,
    str_or_empty,
    word_set,
)

SOURCE = "copilot-cli"

_QUESTION_EVENTS = {
    "user.message": ("content",),
    "userpromptsubmitted": ("prompt", "content", "text", "message"),
}
"""Type of a question's event -> the keys that can hold its text."""
_ANSWER_EVENTS = {
    "assistant.message": ("content",),
    "assistantresponse": ("result", "content", "text", "message", "response"),
}
"""Type of an answer's event -> the keys that can hold its text."""
_START_EVENTS = word_set("session.start session.resume session.context_changed sessionstart")
_IGNORED_NAMESPACES = word_set(
    "session tool hook permission mcp subagent skill skills system commands command "
    "custom_notification external_tool canvas elicitation sampling user_input exit_plan_mode "
    "pending_messages model ui factory fusion extensions capabilities auto_mode_switch "
    "session_limits_exhausted managed_settings binary_asset background_tasks tools abort"
)
"""First words of the types of events that hold no prose."""
_IGNORED_TYPES = word_set(
    "assistant.turn_start assistant.turn_end assistant.intent assistant.idle assistant.usage "
    "assistant.reasoning assistant.reasoning_delta assistant.streaming_delta "
    "assistant.tool_call_delta assistant.message_start assistant.message_delta "
    "assistant.server_tool_progress assistant.fusion_phase_started "
    "assistant.fusion_phase_completed assistant.fusion_phase_failed sessionstart sessionend "
    "pretooluse posttooluse posttoolusefailure erroroccurred agentstop notification"
)
_MODEL_EVENTS = word_set(
    "session.start session.resume session.model_change tool.execution_complete"
)
_PROGRAM_SOURCES = ("skill", "agent", "autopilot", "system", "schedule")
"""How the `source` of a user's message begins that no person typed: `skill-pdf`."""
_MODEL_KEY_END = b'odel"'
"""End of every key that names a model: `model`, `newModel`, `selectedModel`."""
_ANY_ID = lazy_re(rb'"id"\s*:\s*"([^"]*)"')
"""An event's id, or one within its data."""
_FILE_EDIT_TOOLS = frozenset({"edit", "create", "write"})
_PATCHED_FILE = lazy_re(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_BOILERPLATE = BoilerplateFilter(
    tags=["current_datetime", "reminder", "system_reminder", "system_notification"], prefixes=[]
)
_MAX_HEAD_RECORDS = 50


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a session, judged by the events in its head.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    if not path.endswith(".jsonl") or "copilot-chat" in path.lower():
        return False
    records = parse_head_lines(head)[:_MAX_HEAD_RECORDS]
    if any("vscodeVersion" in get_dict(record, "data") for record in records):
        return False
    return any(map(_is_own_record, records))


def _is_own_record(record: Record) -> bool:
    kind = get_str(record, "type")
    if kind in ("session.start", "user.message", "assistant.message"):
        return isinstance(record.get("data"), dict)
    return kind.lower() in ("userpromptsubmitted", "assistantresponse")


@dataclass(slots=True)
class _State:
    """What the events read so far say about the next one."""

    session: str
    project: str = ""
    model: str = ""
    question_ids: list[str] = field(default_factory=list)
    """Questions that were not rewound, in order."""
    questions_before: dict[str, int] = field(default_factory=dict)
    """Id of an event -> the number of questions before it."""
    superseded_ids: set[str] = field(default_factory=set)
    resumed: bool = False
    """Reading began in the middle of the file."""
    unread_ids: set[str] = field(default_factory=set)
    """Ids before that place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An event of the file."""

    id: str
    kind: str
    """The type in lower case."""
    offset: int
    data: Record
    timestamp: str
    is_sub_agent: bool


def read_events(transcript_file: TranscriptFile, start: int = 0) -> Iterator[Event]:
    """Yield the events of a session.

    Args:
        transcript_file: A session's file. Its beginning is read too: the first event names the
            session, and most answers use the model that an earlier event named.
        start: Byte offset of the record to begin with; 0 reads the whole file.

    Yields:
        The session and its turns; at the end the questions that were rewound.
        `NeedsFullRead` where a rewind goes back beyond `start`, or an event from there is repeated.
    """
    state = _State(_find_session_id(transcript_file), resumed=start > 0)
    if start:
        _scan_unread(state, transcript_file, start)
    yield SessionInfo(session=state.session)
    for found in parse_lines(transcript_file.lines(start)):
        if isinstance(found, UnknownRecord):
            yield found
        else:
            yield from _read_record(state, *found)
    if state.superseded_ids:
        yield SupersededQuestions(frozenset(state.superseded_ids))


def _find_session_id(transcript_file: TranscriptFile) -> str:
    """Return the id in the file's first event, else the name of the file or its folder."""
    first = next(parse_lines(transcript_file.lines()), None)
    if isinstance(first, tuple):
        named = first_str(_event_data(first[1]), "sessionId", "session_id")
        if named:
            return named
    folder, _, file_name = transcript_file.path.rpartition("/")
    name = file_name.removesuffix(".jsonl")
    # `<id>/events.jsonl`, or `<id>.jsonl`.
    return (folder.rpartition("/")[2] or name) if name == "events" else name


def _scan_unread(state: _State, transcript_file: TranscriptFile, start: int) -> None:
    """Set the model in use at a byte offset and the ids before it, without decoding most lines."""
    unread = _State("")
    for line in transcript_file.lines():
        if line.offset >= start:
            break
        state.unread_ids.update(
            each.decode("utf-8", "replace") for each in _ANY_ID.findall(line.data)
        )
        if _MODEL_KEY_END in line.data:
            record = parse_object(line.data) or {}
            for _ in _read_record(unread, line.offset, record):
                pass  # Only the state matters.
    state.model = unread.model


def _event_data(record: Record) -> Record:
    """Return an event's data; in the early form that is the record itself."""
    return dict_or_empty(record["data"]) if "data" in record else record


def _parse_entry(offset: int, record: Record) -> _Entry:
    data = _event_data(record)
    return _Entry(
        id=get_str(record, "id") or f"at-{offset}",
        kind=get_str(record, "type").lower(),
        offset=offset,
        data=data,
        timestamp=get_time(record, "timestamp"),
        is_sub_agent=bool(record.get("agentId") or data.get("parentToolCallId")),
    )


def _read_record(state: _State, offset: int, record: Record) -> Iterator[Event]:
    entry = _parse_entry(offset, record)
    if entry.id in state.questions_before:
        return  # A repeated event.
    if entry.id in state.unread_ids:
        yield NeedsFullRead()  # It repeats an event from before the start.
    state.questions_before[entry.id] = len(state.question_ids)
    kind = entry.kind
    if kind in _QUESTION_EVENTS:
        yield from _question_turns(state, entry)
    elif kind in _ANSWER_EVENTS:
        answer = _first_text(entry.data, _ANSWER_EVENTS[kind])
        yield from _answer_turns(state, entry, answer)
    elif kind == "session.task_complete":
        yield from _answer_turns(state, entry, get_str(entry.data, "summary"))
    elif kind == "tool.user_requested":
        yield _requested_tool_turn(entry)
    elif kind == "session.snapshot_rewind":
        yield from _rewind(state, get_str(entry.data, "upToEventId"))
    elif kind in _IGNORED_TYPES or kind.partition(".")[0] in _IGNORED_NAMESPACES:
        yield from _read_session_info(state, entry)
    elif kind:
        yield UnknownRecord("", kind)
    else:
        yield UnknownRecord("event without a type")


def _first_text(data: Record, keys: tuple[str, ...]) -> str:
    """Return the first text under these keys that is not empty, "" for none."""
    texts = (join_text_blocks(data.get(key), "text") for key in keys)
    return next(filter(None, texts), "")


def _requested_tool_turn(entry: _Entry) -> Turn:
    """Return the call of a tool that the person ran: an answer without text."""
    call = format_tool_call(get_str(entry.data, "toolName"), entry.data.get("arguments"))
    return Turn(
        id=entry.id,
        role=Role.ANSWER,
        text="",
        at=entry.timestamp,
        tools=(call,),
        offset=entry.offset,
    )


def _rewind(state: _State, event_id: str) -> Iterator[NeedsFullRead]:
    """Mark the questions since an event as superseded; none since an event that was not read."""
    if state.resumed and event_id not in state.questions_before:
        yield NeedsFullRead()  # It goes back beyond the start.
    place = state.questions_before.get(event_id, len(state.question_ids))
    state.superseded_ids.update(state.question_ids[place:])
    del state.question_ids[place:]


def _read_session_info(state: _State, entry: _Entry) -> Iterator[SessionInfo]:
    if entry.kind in _MODEL_EVENTS and not entry.is_sub_agent:
        named = first_str(entry.data, "newModel", "selectedModel", "model")
        state.model = named or state.model
    if entry.kind == "session.title_changed":
        yield SessionInfo(
            session=state.session,
            title=get_str(entry.data, "title"),
        )
    elif entry.kind in _START_EVENTS and not state.project:
        context = get_dict(entry.data, "context")
        state.project = get_str(context, "cwd") or get_str(entry.data, "cwd")
        if state.project:
            yield SessionInfo(session=state.session, project=state.project)


def _question_turns(state: _State, entry: _Entry) -> Iterator[Turn]:
    if entry.is_sub_agent or entry.data.get("isAutopilotContinuation"):
        return
    if get_str(entry.data, "source").startswith(_PROGRAM_SOURCES):
        return
    raw_text = _first_text(entry.data, _QUESTION_EVENTS[entry.kind])
    question = _BOILERPLATE.remove_from(raw_text)
    if question:
        state.question_ids.append(entry.id)
        yield Turn(
            id=entry.id,
            role=Role.QUESTION,
            text=question,
            at=entry.timestamp,
            offset=entry.offset,
        )


def _answer_turns(state: _State, entry: _Entry, answer: str) -> Iterator[Turn]:
    if entry.is_sub_agent:
        return
    data = entry.data
    if data.get("phase") == "thinking":
        answer = ""
    calls = get_dicts(data, "toolRequests")
    state.model = get_str(data, "model") or state.model
    if answer.strip() or calls:
        yield Turn(
            id=entry.id,
            role=Role.ANSWER,
            text=answer,
            at=entry.timestamp,
            model=state.model,
            tools=tuple(map(_format_call, calls)),
            files=tuple(file for call in calls for file in _edited_files(call)),
            offset=entry.offset,
        )


def _format_call(call: Record) -> str:
    return format_tool_call(get_str(call, "name"), call.get("arguments"))


def _edited_files(call: Record) -> list[str]:
    tool = get_str(call, "name")
    arguments = call.get("arguments")
    fields = dict_or_empty(arguments)
    if tool == "apply_patch":
        patch = str_or_empty(arguments) or get_str(fields, "input")
        return [file.strip() for file in _PATCHED_FILE.findall(patch)]
    file = first_str(fields, "path", "file_path")
    return [file] if file and tool in _FILE_EDIT_TOOLS else []
