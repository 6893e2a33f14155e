"""Codex CLI, desktop and IDE: one JSONL rollout a session, later compressed.

The same message stands there twice, as an event and as a response item: the events are used where there are any. What was
rolled back is superseded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from anchord.conversation import Carrier, Earlier, Event, Head, Line, Role, Superseded, Turn, Unknown
from anchord.sources.conversations.noise import Noise
from anchord.sources.conversations.records import (
    Record,
    block_texts,
    first_records,
    items,
    parsed,
    table,
    text,
    time_of,
    tool_line,
    words,
)  # fmt: skip

SOURCE = "codex"

_QUIET = frozenset({"turn_context", "world_state", "compacted", "event_msg", "response_item", "session_meta", "state"})
_EVENTS = words(
    "agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break token_count task_started turn_started "
    "task_complete turn_complete turn_aborted context_compacted patch_apply_begin patch_apply_end mcp_tool_call_begin "
    "mcp_tool_call_end web_search_begin web_search_end item_started item_completed sub_agent_activity entered_review_mode "
    "exited_review_mode exec_command_begin exec_command_end exec_command_output_delta agent_message user_message "
    "thread_rolled_back error stream_error plan_update turn_diff background_event thread_name_updated"
)
_ITEMS = words(
    "message reasoning function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call "
    "web_search_call ghost_snapshot compaction compaction_summary tool_search_call tool_search_output "
    "image_generation_call"
)
_MESSAGES = frozenset({"user_message", "agent_message"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_NOISE = Noise(
    ["user_instructions", "environment_context", "INSTRUCTIONS", "turn_aborted", "skill", "subagent_notification",
     "ide_context", "permissions instructions", "collaboration_mode", "user_action"],
    [("# AGENTS.md instructions for ", "</INSTRUCTIONS>")],
)  # fmt: skip
_IDE, _REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_TORN = b'{"timestamp":'


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a rollout; very old ones are bare items after a bare header."""
    name = path.rpartition("/")[2].removesuffix(".zst")
    if not name.endswith(".jsonl"):
        return False
    for record in first_records(head)[:50]:
        payload = table(record.get("payload"))
        if record.get("type") == "session_meta" and "id" in payload:
            return True
        if record.get("type") in ("response_item", "event_msg", "turn_context") and payload:
            return True
    if b"\n" not in head and b'"session_meta"' in head[:200] and b'"payload"' in head[:400]:
        return True  # Its first line has long instructions.
    return name.startswith("rollout-") and any(_is_bare(record) for record in first_records(head)[:50])


def _is_bare(record: Record) -> bool:
    return text(record.get("type")) in _ITEMS and "payload" not in record


@dataclass(slots=True)
class _State:
    session: str
    named: bool = False
    events: frozenset[str] = frozenset()
    """Whose messages come as events; then those among the response items are the same again."""
    turn: str = ""
    turn_offset: int = -1
    """Where the present turn was announced, until its question comes."""
    model: str = ""
    asked: list[str] = field(default_factory=list)
    rolled_back: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    resumed: bool = False


def read(carrier: Carrier, start: int = 0) -> Iterator[Event]:
    """Tell of a session, from a byte on."""
    name = carrier.path.rpartition("/")[2].removesuffix(".zst").removesuffix(".jsonl")
    state = _State(name[-36:] if name.startswith("rollout-") and len(name) > 44 else name)
    state.resumed = state.named = start > 0  # What names the file comes first of all.
    first = _events(carrier)
    state.events = frozenset(first)
    yield Head(state.session)
    if start and any(offset >= start for offset in first.values()):
        yield Earlier()  # What was told before the start by another way is told anew.
    for line in carrier.lines(start):
        record = _record(line)
        if record is not None:
            yield from _told(state, line.offset, record)
        elif line.data.strip():
            yield Unknown("broken line")
    if state.rolled_back:
        yield Superseded(frozenset(state.rolled_back))


def _record(line: Line) -> Record | None:
    """Return the record of a line; of one that was torn and written again behind itself the second."""
    record = parsed(line.data)
    if record is None and _TORN in line.data[1:]:
        return parsed(line.data[line.data.rindex(_TORN) :])
    return record


def _events(carrier: Carrier) -> dict[str, int]:
    """Return which kinds of messages are among the events, and where first; known before the first is told."""
    found: dict[str, int] = {}
    for line in carrier.lines():
        for kind in _MESSAGES - found.keys():
            if f'"{kind}"'.encode() in line.data and table((_record(line) or {}).get("payload")).get("type") == kind:
                found[kind] = line.offset
        if len(found) == len(_MESSAGES):
            break
    return found


def _told(state: _State, offset: int, record: Record) -> Iterator[Event]:
    kind, payload, at = text(record.get("type")), table(record.get("payload")), time_of(record.get("timestamp"))
    if "payload" not in record and (kind in _ITEMS or "id" in record):
        kind, payload = ("response_item", record) if kind in _ITEMS else ("session_meta", record)
    if kind == "session_meta":
        yield from _meta(state, payload)
    elif kind == "turn_context":
        state.model = text(payload.get("model")) or state.model
        if state.resumed and state.asked and text(payload.get("turn_id")) not in {state.turn, *state.used}:
            yield Earlier()  # It may name a turn that had its question before the start.
        _announce(state, offset, payload)
    elif kind == "event_msg":
        yield from _event(state, offset, payload, at)
    elif kind == "response_item":
        yield from _item(state, offset, payload, at)
    elif kind == "compacted":
        yield Turn(f"at-{offset}", Role.SUMMARY, text(payload.get("message")), at=at, offset=offset)
    elif kind not in _QUIET and not kind.startswith("inter_agent_communication"):
        yield Unknown("", kind) if kind else Unknown("record without a type")


def _meta(state: _State, payload: Record) -> Iterator[Event]:
    if state.named:
        return  # A fork brings its parent's along: the first names this file.
    state.named = True
    spawned = table(table(table(payload.get("source")).get("subagent")).get("thread_spawn"))
    parent = text(spawned.get("parent_thread_id")) or text(payload.get("parent_thread_id"))
    state.session = text(payload.get("id")) or state.session
    yield Head(state.session, project=text(payload.get("cwd")), parent=parent)


def _event(state: _State, offset: int, payload: Record, at: str) -> Iterator[Event]:
    kind = text(payload.get("type"))
    if kind == "user_message":
        images = "[image]" if items(payload.get("images")) or items(payload.get("local_images")) else ""
        yield from _question(state, offset, _asked(text(payload.get("message"))) or images, at)
    elif kind == "agent_message":
        yield from _answer(state, offset, text(payload.get("message")), at)
    elif kind in ("task_started", "turn_started"):
        _announce(state, offset, payload)
    elif kind == "thread_rolled_back":
        count = payload.get("num_turns")
        gone = state.asked[-count:] if isinstance(count, int) and count > 0 else []
        if state.resumed and isinstance(count, int) and count > len(state.asked):
            yield Earlier()
        state.rolled_back.update(gone)
        del state.asked[len(state.asked) - len(gone) :]
    elif kind == "thread_name_updated":
        yield Head(state.session, title=text(payload.get("thread_name")))
    elif kind not in _EVENTS:
        yield Unknown("event", str(kind)) if kind else Unknown("event without a type")


def _item(state: _State, offset: int, payload: Record, at: str) -> Iterator[Event]:
    kind, role = text(payload.get("type")) or ("message" if "role" in payload else ""), payload.get("role")
    if kind == "message" and "user_message" not in state.events and role == "user":
        content = payload.get("content")
        blocks = [{"text": content}] if isinstance(content, str) else [table(block) for block in items(content)]
        said = "\n\n".join(each for each in (_asked(text(block.get("text"))) for block in blocks) if each)
        images = "[image]" if any(block.get("type") == "input_image" for block in blocks) else ""
        yield from _question(state, offset, said or images, at)
    elif kind == "message" and "agent_message" not in state.events and role == "assistant":
        yield from _answer(state, offset, block_texts(payload.get("content"), "output_text", "text"), at)
    elif kind in _CALLS:
        name = text(payload.get("name")) or kind.removesuffix("_call")
        given = _arguments(payload)
        state.turn_offset = -1
        files = tuple(_patched(given)) if name == "apply_patch" else ()
        yield Turn(f"at-{offset}", Role.ANSWER, "", at=at, tools=(tool_line(name, given),), files=files, offset=offset)
    elif kind not in _ITEMS:
        yield Unknown("item", str(kind)) if kind else Unknown("item without a type")


def _announce(state: _State, offset: int, payload: Record) -> None:
    """Remember where a turn was announced first."""
    name = text(payload.get("turn_id"))
    if name and name not in state.used:
        state.turn_offset = offset if state.turn_offset < 0 or name != state.turn else state.turn_offset
        state.turn = name


def _question(state: _State, offset: int, said: str, at: str) -> Iterator[Turn]:
    if not said:
        return
    announced = state.turn_offset >= 0 and state.turn and state.turn not in state.used
    name = state.turn if announced else f"at-{offset}"
    state.used.add(name)
    state.asked.append(name)
    begun = state.turn_offset if announced else offset
    state.turn_offset = -1
    yield Turn(name, Role.QUESTION, said, at=at, offset=begun)


def _answer(state: _State, offset: int, said: str, at: str) -> Iterator[Turn | Earlier]:
    state.turn_offset = -1
    if said.strip() and state.resumed and not state.model:
        yield Earlier()  # The model was named before the start, if at all.
    if said.strip():
        yield Turn(f"at-{offset}", Role.ANSWER, said, at=at, model=state.model, offset=offset)


def _asked(said: str) -> str:
    if said.lstrip().startswith(_IDE):
        said = said.partition(_REQUEST)[2]
    return _NOISE.removed(said)


def _arguments(payload: Record) -> object:
    given = payload.get("arguments") or payload.get("input") or payload.get("action") or ""
    if isinstance(given, str):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given
    return given


def _patched(given: object) -> Iterator[str]:
    patch = given if isinstance(given, str) else text(table(given).get("input"))
    for line in patch.splitlines():
        for mark in ("*** Add File: ", "*** Update File: ", "*** Delete File: "):
            if line.startswith(mark):
                yield line.removeprefix(mark).strip()
