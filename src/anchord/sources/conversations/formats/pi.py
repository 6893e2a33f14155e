"""Reads pi: one JSONL file for each session, an append-only tree of entries.

The last entry is on the active branch. Files of the first version have neither ids nor parents:
they are one branch. A fork is a file of its own that begins with copies of the original session's
entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import (
    Event,
    Role,
    SessionInfo,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats import branches
from anchord.sources.conversations.formats.boilerplate import BoilerplateFilter
from anchord.sources.conversations.formats.json_fields import get_dict, get_dicts, get_str, get_time
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    join_text_blocks,
    list_or_empty,
    parse_head_lines,
    parse_lines,
    unknown_record,
    word_set,
)

SOURCE = "pi"

_IGNORED_TYPES = word_set(
    "thinking_level_change compaction branch_summary custom custom_message label context_transform "
    "ephemeral active_tools_change"
)
_IGNORED_ROLES = word_set("toolResult custom hookMessage compactionSummary branchSummary")
"""Roles of messages that are neither typed by a person nor written by the model."""
_FILE_EDIT_TOOLS = frozenset({"edit", "write"})
_BOILERPLATE = BoilerplateFilter(["skill"], [])
_FILE_BLOCK = lazy_re(r'\s*<file name="([^"\n]*)">\n?(.*?)\n?</file>', re.DOTALL)
"""A file that `@file` on the command line put before the typed text."""


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a session of pi, by its header, which may lack a version.

    Args:
        head: the file's first bytes.
        path: the file's path, with "/".
    """
    if not path.endswith(".jsonl"):
        return False
    records = parse_head_lines(head)
    header = next(iter(records), {})
    if header.get("type") != "session":
        return False
    return "cwd" in header or ("id" in header and "timestamp" in header)


@dataclass(slots=True)
class _State:
    session: str
    has_header: bool = False
    title: str = ""
    project: str = ""
    model: str = ""
    parents: dict[str, str] = field(default_factory=dict)
    """Entry -> its parent, in the file's order."""
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    last_entry_id: str = ""


class _Entry(NamedTuple):
    """What the turns of an entry have in common."""

    id: str
    timestamp: str
    offset: int


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield a session and its turns.

    The whole file is read first, because only the last entry shows which branch is active.
    """
    _, _, file_name = transcript_file.path.rpartition("/")
    stem = file_name.removesuffix(".jsonl")
    _, _, session = stem.rpartition("_")
    state = _State(session)
    for line in parse_lines(transcript_file.lines()):
        if isinstance(line, UnknownRecord):
            yield line
        else:
            offset, record = line
            yield from _read_record(state, offset, record)
    yield SessionInfo(
        session=state.session,
        title=state.title,
        project=state.project,
    )
    yield from branches.flatten_tree(state.parents, state.turns, state.last_entry_id)


def _read_record(state: _State, offset: int, record: Record) -> Iterator[UnknownRecord]:
    kind = get_str(record, "type")
    if kind == "session":
        _read_header(state, record)
        return
    entry_id = get_str(record, "id") or f"at-{offset}"
    if entry_id in state.parents:
        return
    state.parents[entry_id] = _parent_of(state, record)
    state.last_entry_id = entry_id
    if kind == "message":
        yield from _read_message(state, entry_id, offset, record)
    elif kind == "model_change":
        state.model = get_str(record, "modelId")
    elif kind == "session_info":
        name = get_str(record, "name")
        title = name.strip()
        if title:
            state.title = title
    elif kind not in _IGNORED_TYPES:
        yield unknown_record("", kind, unnamed="entry without a type")


def _read_header(state: _State, record: Record) -> None:
    # A second header is a copy from the session that this one was forked from.
    if not state.has_header:
        state.has_header = True
        state.session = get_str(record, "id") or state.session
        state.project = get_str(record, "cwd")


def _parent_of(state: _State, record: Record) -> str:
    """Return the id of an entry's parent, "" for a root."""
    if "parentId" in record and record["parentId"] is None:
        return ""
    parent = get_str(record, "parentId")
    # An entry whose parent is lost continues the last entry. Otherwise one broken line would turn
    # everything before it into a branch that was left.
    if parent in state.parents:
        return parent
    return state.last_entry_id


def _read_message(
    state: _State, turn_id: str, offset: int, record: Record
) -> Iterator[UnknownRecord]:
    message = get_dict(record, "message")
    timestamp = get_time(record, "timestamp")
    if not timestamp:
        timestamp = get_time(message, "timestamp")
    entry = _Entry(turn_id, timestamp, offset)
    role = get_str(message, "role")
    if role == "user":
        questions = _question_turns(entry, message)
        state.turns[turn_id] = list(questions)
    elif role == "assistant":
        model = get_str(message, "model")
        if model:
            state.model = model
        answers = _answer_turns(entry, message, state.model)
        state.turns[turn_id] = list(answers)
    elif role == "bashExecution":
        command = _command_turn(entry, message)
        state.turns[turn_id] = [command]
    elif role not in _IGNORED_ROLES:
        yield unknown_record("role", role, unnamed="message without a role")


def _command_turn(entry: _Entry, message: Record) -> Turn:
    """Return the turn of a command that the user ran in pi."""
    command = get_str(message, "command")
    return Turn(
        id=entry.id,
        role=Role.ANSWER,
        text="",
        at=entry.timestamp,
        tools=(format_tool_call("bash", {"command": command}),),
        offset=entry.offset,
    )


def _question_turns(entry: _Entry, message: Record) -> Iterator[Turn]:
    """Yield a question, and a turn for each file that came with it."""
    content = message.get("content")
    text, files = _split_files(join_text_blocks(content, "text"))
    text = _BOILERPLATE.remove_from(text)
    for attachment in get_dicts(message, "attachments"):
        name = get_str(attachment, "fileName")
        if not name:
            name = "attachment"
        extracted_text = get_str(attachment, "extractedText")
        files.append((name, extracted_text))
    blocks = map(dict_or_empty, list_or_empty(content))
    images = ["[image]" for block in blocks if block.get("type") == "image"]
    parts = [part for part in (text, *images) if part]
    if not parts:
        # A question of files alone consists of their names.
        parts = [f"[{name}]" for name, _ in files]
    if not parts:
        return
    yield Turn(
        id=entry.id,
        role=Role.QUESTION,
        text="\n\n".join(parts),
        at=entry.timestamp,
        offset=entry.offset,
    )
    for number, (name, file_text) in enumerate(files, 1):
        yield Turn(
            id=f"{entry.id}+{number}",
            role=Role.ATTACHMENT,
            text=f"{name}\n{file_text}",
            at=entry.timestamp,
            offset=entry.offset,
        )


def _split_files(raw_text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the text below the file blocks that it begins with, and (name, text) of each file."""
    files: list[tuple[str, str]] = []
    start = 0
    while block := _FILE_BLOCK.match(raw_text, start):
        name = block[1]
        file_text = block[2]
        files.append((name, file_text))
        start = block.end()
    rest = raw_text[start:]
    return rest, files


def _answer_turns(entry: _Entry, message: Record, model: str) -> Iterator[Turn]:
    """Yield an answer; nothing for one without text and calls of tools."""
    content = message.get("content")
    text = join_text_blocks(content, "text")
    blocks = map(dict_or_empty, list_or_empty(content))
    calls = [block for block in blocks if block.get("type") == "toolCall"]
    if not text and not calls:
        return
    yield Turn(
        id=entry.id,
        role=Role.ANSWER,
        text=text,
        at=entry.timestamp,
        model=model,
        tools=tuple(map(_format_call, calls)),
        files=tuple(filter(None, map(_edited_file, calls))),
        offset=entry.offset,
    )


def _format_call(call: Record) -> str:
    return format_tool_call(get_str(call, "name"), call.get("arguments"))


def _edited_file(call: Record) -> str:
    """Return the path of the file that a call of a tool changed, "" for none."""
    if get_str(call, "name") not in _FILE_EDIT_TOOLS:
        return ""
    return get_str(get_dict(call, "arguments"), "path")
