"""Continue: one JSON file per session, rewritten whole; each history item wraps a message.

The prompts that were sent to the model repeat the messages, so this reader skips them. It keeps the
names of files that were given as context.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator

from anchord.sources.conversations.events import (
    Event,
    Role,
    SessionInfo,
    TranscriptFile,
    Turn,
    UnknownRecord,
)
from anchord.sources.conversations.formats.json_fields import (
    decode_json_text,
    first_str,
    get_dict,
    get_dicts,
    get_str,
    iter_strs,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    join_text_blocks,
    word_set,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations

SOURCE = "continue"

_IGNORED_ROLES = word_set("system tool thinking")
_FILE_EDIT_TOOLS = word_set(
    "builtin_edit_existing_file builtin_create_new_file builtin_single_find_and_replace "
    "builtin_multi_edit edit_existing_file create_new_file single_find_and_replace multi_edit "
    "Edit MultiEdit Write"
)
_INDEX_FILE = "sessions.json"
_KEYS = (b'"contextItems"', b'"editorState"', b'"promptLogs"', b'"workspaceDirectory"')


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a session, or the index of sessions, which holds no conversation.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    if path.rpartition("/")[2] == _INDEX_FILE:
        is_list = head.removeprefix(BOM_UTF8).lstrip().startswith(b"[")
        return is_list and b'"sessionId"' in head and b'"workspaceDirectory"' in head
    is_candidate = path.endswith(".json") and b'"history"' in head
    return is_candidate and any(key in head for key in _KEYS)


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the events of a session; nothing for the index of sessions."""
    name = transcript_file.path.rpartition("/")[2]
    if name == _INDEX_FILE:
        return
    for record in stream_conversations(transcript_file):
        if isinstance(record, UnknownRecord):
            yield record
        elif isinstance(record.get("history"), list):
            session = get_str(record, "sessionId") or name.removesuffix(".json")
            yield from _read_session(session, record)
        else:
            yield UnknownRecord("no conversation")


def _read_session(session: str, record: Record) -> Iterator[Event]:
    yield SessionInfo(
        session=session,
        title=get_str(record, "title"),
        project=get_str(record, "workspaceDirectory"),
    )
    model = get_str(record, "chatModelTitle")
    used_ids = set[str]()
    for number, item in enumerate(get_dicts(record, "history")):
        turn_id = get_str(get_dict(item, "message"), "id")
        if not turn_id or turn_id in used_ids:
            turn_id = f"message-{number}"
        used_ids.add(turn_id)
        yield from _read_item(turn_id, item, model)


def _read_item(turn_id: str, item: Record, session_model: str) -> Iterator[Turn | UnknownRecord]:
    role = get_str(get_dict(item, "message"), "role")
    if role == "user":
        yield from _question_turns(turn_id, item)
    elif role == "assistant":
        yield from _answer_turns(turn_id, item, session_model)
    elif not role:
        yield UnknownRecord("item without a message")
    elif role not in _IGNORED_ROLES:
        yield UnknownRecord("role", role)


def _question_turns(turn_id: str, item: Record) -> Iterator[Turn]:
    """Yield a question; one of context files alone has their names as its text."""
    message = get_dict(item, "message")
    context_names = list(iter_strs(get_dicts(item, "contextItems"), "name"))
    named = "\n\n".join(f"[{name}]" for name in context_names)
    question = _typed_text(message) or named
    if question:
        yield Turn(
            id=turn_id,
            role=Role.QUESTION,
            text=question,
            tools=tuple(format_tool_call("context", name) for name in context_names),
        )


def _typed_text(message: Record) -> str:
    """Return what the person typed, then "[image]" for each image."""
    typed = join_text_blocks(message.get("content"), "text")
    blocks = get_dicts(message, "content")
    images = ["[image]" for block in blocks if block.get("type") == "imageUrl"]
    return "\n\n".join([typed, *images] if typed.strip() else images)


def _answer_turns(turn_id: str, item: Record, session_model: str) -> Iterator[Turn]:
    message = get_dict(item, "message")
    answer = join_text_blocks(message.get("content"), "text")
    calls = [_parse_call(call) for call in _tool_calls(item, message)]
    if answer.strip() or calls:
        yield Turn(
            id=turn_id,
            role=Role.ANSWER,
            text=answer,
            model=_last_prompted_model(item) or session_model,
            tools=tuple(format_tool_call(tool, arguments) for tool, arguments in calls),
            files=tuple(_edited_files(calls)),
        )


def _last_prompted_model(item: Record) -> str:
    """Return the model of the item's last prompt that names one, "" for none."""
    models = list(iter_strs(get_dicts(item, "promptLogs"), "modelTitle"))
    return models[-1] if models else ""


def _tool_calls(item: Record, message: Record) -> list[Record]:
    """Return the calls of a message, else those that the item keeps with their states."""
    calls = get_dicts(message, "toolCalls")
    if calls:
        return calls
    return [get_dict(state, "toolCall") for state in get_dicts(item, "toolCallStates")]


def _parse_call(call: Record) -> tuple[str, object]:
    """Return a tool's name and its arguments, decoded where they are a JSON text."""
    function = get_dict(call, "function")
    return get_str(function, "name"), decode_json_text(function.get("arguments"))


def _edited_files(calls: list[tuple[str, object]]) -> Iterator[str]:
    for tool, arguments in calls:
        file = first_str(dict_or_empty(arguments), "filepath", "file_path")
        if file and tool in _FILE_EDIT_TOOLS:
            yield file
