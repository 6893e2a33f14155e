"""Cline and Roo Code: one folder per task; `ui_messages.json` in it is the chat, rewritten whole.

`api_conversation_history.json` beside it repeats the chat as the model saw it, with wrappers. This
reader recognises it and the task's other files, and skips them. Going back to a checkpoint cuts
the chat file itself.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from anchord.core.lazy_re import lazy_re
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
    get_list,
    get_str,
    get_time,
    iter_strs,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    word_set,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations

SOURCE = "cline"

_UI_FILES = ("ui_messages.json", "claude_messages.json")
_IGNORED_FILES = {
    "api_conversation_history.json": b'"role"',
    "task_metadata.json": b'"files_in_context"',
}
"""Name of another file of a task -> a key that it holds."""
_QUESTION_TYPES = word_set("task user_feedback")
_ANSWER_TYPES = word_set("text completion_result")
_PROSE_KEYS = {
    "followup": "question",
    "plan_mode_respond": "response",
    "act_mode_respond": "response",
}
"""Type of a question from the assistant -> the key of its prose, where the text is JSON."""
_FILE_EDIT_TOOLS = word_set(
    "editedExistingFile newFileCreated fileDeleted appliedDiff insertContent searchAndReplace"
)
_REQUEST_TYPE = "api_req_started"
_IGNORED_TYPES = word_set(
    "error error_retry api_req_finished api_req_retried api_req_retry_delayed api_req_rate_limited "
    "api_req_deleted api_req_failed deleted_api_reqs reasoning user_feedback_diff command_output "
    "shell_integration_warning shell_integration_warning_with_suggestion browser_action_result "
    "browser_session_status mcp_server_request_started mcp_server_response mcp_notification "
    "diff_error clineignore_error rooignore_error command_permission_denied checkpoint_created "
    "checkpoint_saved load_mcp_documentation generate_explanation info task_progress hook_status "
    "hook_output_stream subagent subagent_usage conditional_rules_applied image subtask_result "
    "condense_context condense_context_error sliding_window_truncation codebase_search_result "
    "user_edit_todos resume_task resume_completed_task mistake_limit_reached "
    "auto_approval_max_req_reached new_task condense summarize_task report_bug"
)
_TOOL_CALL_TYPES = word_set(
    "tool command browser_action_launch browser_action use_mcp_server use_subagents"
)
_TEXT_SUFFIXES = {"completion_result": "HAS_CHANGES", "command": "REQ_APP"}
"""Type of a message -> a mark that the program appends to its text."""
_FOLDER = lazy_re(r"# Current (?:Working|Workspace) Directory \((.{1,1000}?)\) Files")


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is one of a task's, judged by its name and its first bytes.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    name = path.rpartition("/")[2]
    if name in _IGNORED_FILES:
        return _IGNORED_FILES[name] in head
    if name not in _UI_FILES or not head.removeprefix(BOM_UTF8).lstrip().startswith(b"["):
        return False
    return b'"say"' in head or b'"ask"' in head


@dataclass(slots=True)
class _State:
    """What the messages read so far say about the next one."""

    session: str
    project: str = ""
    has_started: bool = False
    """The first text is the person's task; every later one is the assistant's."""
    last_result: str = ""
    """The last completion result: the program writes it as a statement, then as a question."""
    used_ids: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """A message of the chat, with its fields in the form of a turn's."""

    id: str
    kind: str
    text: str
    timestamp: str
    model: str
    image_count: int


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the events of a task; its session is the name of its folder."""
    folder, _, name = transcript_file.path.rpartition("/")
    if name in _IGNORED_FILES:
        return
    state = _State(folder.rpartition("/")[2] or name)
    yield SessionInfo(session=state.session)
    for number, record in enumerate(stream_conversations(transcript_file)):
        if isinstance(record, UnknownRecord):
            yield record
        else:
            yield from _read_message(state, _parse_message(state, number, record))


def _parse_message(state: _State, number: int, record: Record) -> _Message:
    kind = get_str(record, "say" if record.get("type") == "say" else "ask")
    return _Message(
        id=_unique_id(state, number, record.get("ts")),
        kind=kind,
        text=get_str(record, "text").removesuffix(_TEXT_SUFFIXES.get(kind, "")),
        timestamp=get_time(record, "ts"),
        model=get_str(get_dict(record, "modelInfo"), "modelId"),
        image_count=len(get_list(record, "images")),
    )


def _unique_id(state: _State, number: int, message_time: object) -> str:
    """Return a message's time, which is its id in the program, else its position if that is taken.

    Adds the id to the used ones.
    """
    message_id = str(message_time) if isinstance(message_time, int | float) else ""
    if not message_id or message_id in state.used_ids:
        message_id = f"message-{number}"
    state.used_ids.add(message_id)
    return message_id


def _read_message(state: _State, message: _Message) -> Iterator[Event]:
    kind = message.kind
    is_task = kind == "text" and not state.has_started
    if is_task or kind in _QUESTION_TYPES:
        yield from _read_question(state, message)
    elif kind in _PROSE_KEYS:
        yield from _read_assistant_question(state, message)
    elif kind in _ANSWER_TYPES:
        yield from _read_answer(state, message)
    elif kind in _TOOL_CALL_TYPES:
        yield _tool_call_turn(message)
    elif kind == _REQUEST_TYPE:
        yield from _read_project(state, message)
    elif not kind:
        yield UnknownRecord("message without a kind")
    elif kind not in _IGNORED_TYPES:
        yield UnknownRecord("message", kind)


def _read_question(state: _State, message: _Message) -> Iterator[Turn]:
    state.has_started = True
    parts = [message.text] if message.text.strip() else []
    parts += ["[image]"] * message.image_count
    if parts:
        yield Turn(
            id=message.id,
            role=Role.QUESTION,
            text="\n\n".join(parts),
            at=message.timestamp,
        )


def _read_assistant_question(state: _State, message: _Message) -> Iterator[Turn]:
    """Yield a question of the assistant; the option that the person chose is a turn of theirs."""
    state.has_started = True
    content = decode_json_text(message.text)
    fields = dict_or_empty(content)
    prose = message.text
    if isinstance(content, dict):
        prose = get_str(fields, _PROSE_KEYS[message.kind])
    if prose.strip():
        yield replace(_answer_turn(message), text=prose)
    selected = get_str(fields, "selected")
    if selected.strip():
        yield Turn(
            id=f"{message.id}-selected",
            role=Role.QUESTION,
            text=selected,
            at=message.timestamp,
        )


def _read_answer(state: _State, message: _Message) -> Iterator[Turn]:
    """Yield an answer, unless it repeats the completion result right before it."""
    is_result = message.kind == "completion_result"
    is_repeated = is_result and message.text == state.last_result
    state.last_result = message.text if is_result else ""
    if message.text.strip() and not is_repeated:
        yield _answer_turn(message)


def _answer_turn(message: _Message) -> Turn:
    return Turn(
        id=message.id,
        role=Role.ANSWER,
        text=message.text,
        at=message.timestamp,
        model=message.model,
    )


def _tool_call_turn(message: _Message) -> Turn:
    tool, arguments = _parse_tool_call(message)
    # A server's tool can have the name of one of the program's.
    is_edit = tool in _FILE_EDIT_TOOLS and message.kind != "use_mcp_server"
    return replace(
        _answer_turn(message),
        text="",
        tools=(format_tool_call(tool, arguments),),
        files=tuple(_edited_files(arguments)) if is_edit else (),
    )


def _parse_tool_call(message: _Message) -> tuple[str, object]:
    """Return a tool's name and its arguments."""
    call = decode_json_text(message.text)
    if not isinstance(call, dict) or message.kind == "command":
        return message.kind, message.text
    if message.kind == "use_mcp_server":
        names = filter(None, (get_str(call, "serverName"), get_str(call, "toolName")))
        return "/".join(names) or message.kind, decode_json_text(call.get("arguments"))
    tool = first_str(call, "tool", "action") or message.kind
    arguments = {key: call[key] for key in call if key not in ("tool", "action")}
    return tool, arguments


def _edited_files(arguments: object) -> Iterator[str]:
    fields = dict_or_empty(arguments)
    return iter_strs([fields, *get_dicts(fields, "batchDiffs")], "path")


def _read_project(state: _State, message: _Message) -> Iterator[SessionInfo]:
    """Yield the task's working folder once; only requests to the model name it."""
    if state.project:
        return
    request = get_str(dict_or_empty(decode_json_text(message.text)), "request")
    folder = _FOLDER.search(request)
    if folder:
        state.project = folder[1]
        yield SessionInfo(session=state.session, project=state.project)
