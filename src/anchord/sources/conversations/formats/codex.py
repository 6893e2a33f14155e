"""Codex CLI, desktop app and IDE: one JSONL rollout per session, compressed later (`.jsonl.zst`).

A rollout holds each message twice: as an event and as a response item. This reader uses the events
where the file has any, else the items. Questions that were rolled back are superseded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.sources.conversations.events import (
    Event,
    Line,
    NeedsFullRead,
    Role,
    SessionInfo,
    SupersededQuestions,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats.codex_payloads import (
    event_question,
    item_question,
    parent_session,
    tool_call_turn,
)
from anchord.sources.conversations.formats.json_fields import (
    get_dict,
    get_str,
    get_time,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    join_text_blocks,
    parse_head_lines,
    parse_object,
    word_set,
)

SOURCE = "codex"

_IGNORED_TYPES = word_set("world_state state")
_IGNORED_TYPE_PREFIX = "inter_agent_communication"
_IGNORED_EVENT_TYPES = word_set(
    "agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break token_count "
    "task_complete turn_complete turn_aborted context_compacted patch_apply_begin patch_apply_end "
    "mcp_tool_call_begin mcp_tool_call_end web_search_begin web_search_end item_started "
    "item_completed sub_agent_activity entered_review_mode exited_review_mode exec_command_begin "
    "exec_command_end exec_command_output_delta error stream_error plan_update turn_diff "
    "background_event"
)
_ITEM_TYPES = word_set(
    "message reasoning function_call function_call_output custom_tool_call "
    "custom_tool_call_output local_shell_call web_search_call ghost_snapshot compaction "
    "compaction_summary tool_search_call tool_search_output image_generation_call"
)
_MESSAGE_EVENTS = word_set("user_message agent_message")
_TOOL_CALL_TYPES = word_set("function_call custom_tool_call local_shell_call web_search_call")
_RECORD_START = b'{"timestamp":'
_MAX_HEAD_RECORDS = 50
_UUID_CHARS = 36


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a rollout. Very old ones are bare items after a bare header.

    Args:
        head: The first bytes of the file, decompressed; at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    name = path.rpartition("/")[2].removesuffix(".zst")
    if not name.endswith(".jsonl"):
        return False
    records = parse_head_lines(head)[:_MAX_HEAD_RECORDS]
    if any(_is_own_record(record) for record in records) or _head_is_cut_header(head):
        return True
    return name.startswith("rollout-") and any(map(_is_bare_item, records))


def _is_own_record(record: Record) -> bool:
    payload = get_dict(record, "payload")
    kind = record.get("type")
    if kind == "session_meta":
        return "id" in payload
    return kind in ("response_item", "event_msg", "turn_context") and bool(payload)


def _head_is_cut_header(head: bytes) -> bool:
    """Return whether the head is the beginning of a header whose instructions are longer still."""
    if b"\n" in head:
        return False
    return b'"session_meta"' in head[:200] and b'"payload"' in head[:400]


def _is_bare_item(record: Record) -> bool:
    return get_str(record, "type") in _ITEM_TYPES and "payload" not in record


@dataclass(slots=True)
class _State:
    """What the records read so far say about the next one."""

    session: str
    branch: str = ""
    resumed: bool = False
    """Reading began in the middle of the file."""
    has_header: bool = False
    event_message_kinds: frozenset[str] = frozenset()
    """The kinds of messages that come as events; as response items they are skipped."""
    turn_id: str = ""
    turn_offset: int = -1
    """Where the present turn was announced, until its question or an answer comes; -1 for none."""
    model: str = ""
    question_ids: list[str] = field(default_factory=list)
    rolled_back: set[str] = field(default_factory=set)
    used_turn_ids: set[str] = field(default_factory=set)


def read_events(transcript_file: TranscriptFile, start: int = 0) -> Iterator[Event]:
    """Yield the events of a session.

    Args:
        transcript_file: A rollout. It is read twice: first to see which messages come as events.
        start: Byte offset of the record to begin with; 0 reads the whole file.

    Yields:
        The session and its turns; at the end the questions that were rolled back.
        `NeedsFullRead` where a record depends on something before `start`.
    """
    # The header that names the session is the file's first record, so a resumed read has none.
    resumed = start > 0
    state = _State(
        _session_of_path(transcript_file.path),
        resumed=resumed,
        has_header=resumed,
    )
    state.branch = _branch_of(transcript_file)
    first_offsets = _find_event_messages(transcript_file)
    state.event_message_kinds = frozenset(first_offsets)
    yield SessionInfo(session=state.session)
    if resumed and any(offset >= start for offset in first_offsets.values()):
        # Messages before the start were read from items; now the events replace those.
        yield NeedsFullRead()
    for line in transcript_file.lines(start):
        record = _parse_line(line)
        if record is not None:
            yield from _read_record(state, line.offset, record)
        elif line.data.strip():
            yield UnknownRecord("broken line")
    if state.rolled_back:
        yield SupersededQuestions(frozenset(state.rolled_back))


def _branch_of(transcript_file: TranscriptFile) -> str:
    """Return the git branch that the file's header names, also for a read from later on."""
    first = next(iter(transcript_file.lines()), None)
    kind, payload = _unwrap((_parse_line(first) or {}) if first else {})
    return get_str(get_dict(payload, "git"), "branch") if kind == "session_meta" else ""


def _session_of_path(path: str) -> str:
    """Return the id in a file's name, `rollout-TIME-UUID.jsonl`, else the name without endings."""
    name = path.rpartition("/")[2].removesuffix(".zst").removesuffix(".jsonl")
    has_uuid = name.startswith("rollout-") and len(name) > len("rollout-") + _UUID_CHARS
    return name[-_UUID_CHARS:] if has_uuid else name


def _parse_line(line: Line) -> Record | None:
    """Return a line's record. A torn record can be followed by its second writing: use that."""
    record = parse_object(line.data)
    if record is None and _RECORD_START in line.data[1:]:
        return parse_object(line.data[line.data.rindex(_RECORD_START) :])
    return record


def _find_event_messages(transcript_file: TranscriptFile) -> dict[str, int]:
    """Return the byte offset of the first event of each kind of message, where there is one."""
    first_offsets: dict[str, int] = {}
    for line in transcript_file.lines():
        for kind in _MESSAGE_EVENTS - first_offsets.keys():
            # The substring test spares decoding nearly all lines of a file.
            quoted = f'"{kind}"'.encode()
            if quoted in line.data and _payload_type(line) == kind:
                first_offsets[kind] = line.offset
        if len(first_offsets) == len(_MESSAGE_EVENTS):
            break
    return first_offsets


def _payload_type(line: Line) -> object:
    record = _parse_line(line) or {}
    return get_dict(record, "payload").get("type")


def _read_record(state: _State, offset: int, record: Record) -> Iterator[Event]:
    kind, payload = _unwrap(record)
    timestamp = get_time(record, "timestamp")
    match kind:
        case "session_meta":
            yield from _read_session_meta(state, payload)
        case "turn_context":
            yield from _read_turn_context(state, offset, payload)
        case "event_msg":
            yield from _read_event(state, offset, payload, timestamp)
        case "response_item":
            yield from _read_response_item(state, offset, payload, timestamp)
        case "compacted":
            yield _summary_turn(offset, payload, timestamp)
        case "":
            yield UnknownRecord("record without a type")
        case _:
            if kind not in _IGNORED_TYPES and not kind.startswith(_IGNORED_TYPE_PREFIX):
                yield UnknownRecord("", kind)


def _unwrap(record: Record) -> tuple[str, Record]:
    """Return a record's type and payload; very old records are bare, without that envelope."""
    kind = get_str(record, "type")
    if "payload" not in record:
        if kind in _ITEM_TYPES:
            return "response_item", record
        if "id" in record:
            return "session_meta", record
    return kind, get_dict(record, "payload")


def _read_session_meta(state: _State, payload: Record) -> Iterator[SessionInfo]:
    if state.has_header:
        return  # A fork repeats its parent's header; the first header is the file's own.
    state.has_header = True
    state.session = get_str(payload, "id") or state.session
    yield SessionInfo(
        session=state.session,
        project=get_str(payload, "cwd"),
        parent=parent_session(payload),
    )


def _read_turn_context(state: _State, offset: int, payload: Record) -> Iterator[NeedsFullRead]:
    state.model = get_str(payload, "model") or state.model
    turn_id = get_str(payload, "turn_id")
    is_known_turn = turn_id == state.turn_id or turn_id in state.used_turn_ids
    if state.resumed and state.question_ids and not is_known_turn:
        yield NeedsFullRead()  # It may name a turn whose question is before the start.
    _remember_turn_start(state, offset, payload)


def _summary_turn(offset: int, payload: Record, timestamp: str) -> Turn:
    return Turn(
        id=f"at-{offset}",
        role=Role.SUMMARY,
        text=get_str(payload, "message"),
        at=timestamp,
        offset=offset,
    )


def _read_event(state: _State, offset: int, payload: Record, timestamp: str) -> Iterator[Event]:
    kind = get_str(payload, "type")
    match kind:
        case "user_message":
            question = event_question(payload)
            yield from _question_turns(state, offset, question, timestamp)
        case "agent_message":
            answer = get_str(payload, "message")
            yield from _answer_turns(state, offset, answer, timestamp)
        case "task_started" | "turn_started":
            _remember_turn_start(state, offset, payload)
        case "thread_rolled_back":
            yield from _roll_back(state, payload.get("num_turns"))
        case "thread_name_updated":
            title = get_str(payload, "thread_name")
            yield SessionInfo(session=state.session, title=title)
        case "":
            yield UnknownRecord("event without a type")
        case _:
            if kind not in _IGNORED_EVENT_TYPES:
                yield UnknownRecord("event", kind)


def _roll_back(state: _State, count: object) -> Iterator[NeedsFullRead]:
    """Mark the last `count` questions as superseded; anything but a positive number is ignored."""
    if not isinstance(count, int) or count <= 0:
        return
    if state.resumed and count > len(state.question_ids):
        yield NeedsFullRead()  # It goes back beyond the start.
    state.rolled_back.update(state.question_ids[-count:])
    del state.question_ids[-count:]


def _read_response_item(
    state: _State, offset: int, payload: Record, timestamp: str
) -> Iterator[Event]:
    kind = get_str(payload, "type")
    if not kind and "role" in payload:
        kind = "message"
    if kind == "message":
        yield from _read_message_item(state, offset, payload, timestamp)
    elif kind in _TOOL_CALL_TYPES:
        state.turn_offset = -1
        yield tool_call_turn(kind, offset, payload, timestamp)
    elif not kind:
        yield UnknownRecord("item without a type")
    elif kind not in _ITEM_TYPES:
        yield UnknownRecord("item", kind)


def _read_message_item(
    state: _State, offset: int, payload: Record, timestamp: str
) -> Iterator[Turn | NeedsFullRead]:
    """Read a message from its item, unless messages of its role come as events."""
    role = payload.get("role")
    content = payload.get("content")
    if role == "user" and "user_message" not in state.event_message_kinds:
        yield from _question_turns(state, offset, item_question(content), timestamp)
    elif role == "assistant" and "agent_message" not in state.event_message_kinds:
        answer = join_text_blocks(content, "output_text", "text")
        yield from _answer_turns(state, offset, answer, timestamp)


def _remember_turn_start(state: _State, offset: int, payload: Record) -> None:
    """Remember where a turn without a question was announced first."""
    turn_id = get_str(payload, "turn_id")
    if not turn_id or turn_id in state.used_turn_ids:
        return
    if state.turn_offset < 0 or turn_id != state.turn_id:
        state.turn_offset = offset
    state.turn_id = turn_id


def _question_turns(state: _State, offset: int, question: str, timestamp: str) -> Iterator[Turn]:
    """Yield a question under the name and offset of its announced turn, if it has one."""
    if not question:
        return
    turn_id = f"at-{offset}"
    if state.turn_offset >= 0 and state.turn_id and state.turn_id not in state.used_turn_ids:
        turn_id = state.turn_id
        offset = state.turn_offset
    state.used_turn_ids.add(turn_id)
    state.question_ids.append(turn_id)
    state.turn_offset = -1
    yield Turn(
        id=turn_id,
        role=Role.QUESTION,
        text=question,
        at=timestamp,
        branch=state.branch,
        offset=offset,
    )


def _answer_turns(
    state: _State, offset: int, answer: str, timestamp: str
) -> Iterator[Turn | NeedsFullRead]:
    state.turn_offset = -1
    if not answer.strip():
        return
    if state.resumed and not state.model:
        yield NeedsFullRead()  # The model was named before the start, if at all.
    yield Turn(
        id=f"at-{offset}",
        role=Role.ANSWER,
        text=answer,
        at=timestamp,
        model=state.model,
        offset=offset,
    )
