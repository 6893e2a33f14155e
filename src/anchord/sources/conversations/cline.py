"""Cline and Roo Code: a folder a task, in which `ui_messages.json` is what was seen in the chat, rewritten as a whole.

`api_conversation_history.json` beside it is the same as it went to the model, with wrappers: it and the other files of a task
are known, and give nothing. What goes back to a checkpoint is cut off in the file itself.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.records import Record, items, table, text, time_of, tool_line, words

SOURCE = "cline"

_SEEN = ("ui_messages.json", "claude_messages.json")
_UNREAD = {"api_conversation_history.json": b'"role"', "task_metadata.json": b'"files_in_context"'}
"""Other files of a task, and what is in them."""
_PROSE = {"followup": "question", "plan_mode_respond": "response", "act_mode_respond": "response"}
"""Asks that the assistant puts in prose, and under which name if that is in JSON."""
_CHANGING = words("editedExistingFile newFileCreated fileDeleted appliedDiff insertContent searchAndReplace")
_QUIET = words(
    "error error_retry api_req_started api_req_finished api_req_retried api_req_retry_delayed api_req_rate_limited "
    "api_req_deleted api_req_failed deleted_api_reqs reasoning user_feedback_diff command_output shell_integration_warning "
    "shell_integration_warning_with_suggestion browser_action_result browser_session_status mcp_server_request_started "
    "mcp_server_response mcp_notification diff_error clineignore_error rooignore_error command_permission_denied "
    "checkpoint_created checkpoint_saved load_mcp_documentation generate_explanation info task_progress hook_status "
    "hook_output_stream subagent subagent_usage conditional_rules_applied image subtask_result condense_context "
    "condense_context_error sliding_window_truncation codebase_search_result user_edit_todos resume_task "
    "resume_completed_task mistake_limit_reached auto_approval_max_req_reached new_task condense summarize_task report_bug"
)
_CALLS = words("tool command browser_action_launch browser_action use_mcp_server use_subagents")
_FLAGS = {"completion_result": "HAS_CHANGES", "command": "REQ_APP"}
"""What the program writes behind a text for itself."""
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.{1,1000}?)\) Files")


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is one of a task's: by its name, and what it begins with."""
    name = path.rpartition("/")[2]
    if name in _SEEN:
        return head.removeprefix(BOM_UTF8).lstrip().startswith(b"[") and (b'"say"' in head or b'"ask"' in head)
    return name in _UNREAD and _UNREAD[name] in head


@dataclass(slots=True)
class _State:
    session: str
    project: str = ""
    begun: bool = False
    completed: str = ""
    """What was last said to be the result: it is said and then asked."""
    used: set[str] = field(default_factory=set)


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a task, whose id is its folder's name."""
    folder, _, name = carrier.path.rpartition("/")
    if name in _UNREAD:
        return
    state = _State(folder.rpartition("/")[2] or name)
    yield Head(state.session)
    for number, message in enumerate(conversations(carrier)):
        if isinstance(message, Unknown):
            yield message
        else:
            yield from _told(state, number, message)


def _told(state: _State, number: int, message: Record) -> Iterator[Event]:
    kind = text(message.get("say" if message.get("type") == "say" else "ask"))
    said = text(message.get("text")).removesuffix(_FLAGS.get(kind, ""))
    key = _key(state, number, message.get("ts"))
    at, model = time_of(message.get("ts")), text(table(message.get("modelInfo")).get("modelId"))
    if kind in ("task", "user_feedback") or (kind == "text" and not state.begun):
        parts = [said, *("[image]" for _ in items(message.get("images")))]
        state.begun = True
        if any(part.strip() for part in parts):
            yield Turn(key, Role.QUESTION, "\n\n".join(part for part in parts if part.strip()), at=at)
    elif kind in _PROSE:
        yield from _asked(state, kind, Turn(key, Role.ANSWER, said, at=at, model=model))
    elif kind in ("text", "completion_result"):
        repeated = kind == "completion_result" and said == state.completed
        state.completed = said if kind == "completion_result" else ""
        if said.strip() and not repeated:
            yield Turn(key, Role.ANSWER, said, at=at, model=model)
    elif kind in _CALLS:
        lines, files = _called(kind, said)
        yield Turn(key, Role.ANSWER, "", at=at, model=model, tools=lines, files=files)
    elif kind in _QUIET:
        yield from _project(state, kind, said)
    else:
        yield Unknown("message", str(kind)) if kind else Unknown("message without a kind")


def _key(state: _State, number: int, given: object) -> str:
    """Return a message's time, which is its name in the program, or its position where that is taken."""
    key = str(given) if isinstance(given, int | float) and str(given) not in state.used else f"message-{number}"
    state.used.add(key)
    return key


def _asked(state: _State, kind: str, turn: Turn) -> Iterator[Turn]:
    """Tell of a question to the person; of the options, the chosen one is the person's answer."""
    state.begun = True
    given = _json(turn.text)
    said = text(given.get(_PROSE[kind])) if isinstance(given, dict) else turn.text
    if said.strip():
        yield replace(turn, text=said)
    chosen = text(table(given).get("selected"))
    if chosen.strip():
        yield Turn(f"{turn.id}-selected", Role.QUESTION, chosen, at=turn.at)


def _called(kind: str, said: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    given = _json(said)
    if not isinstance(given, dict) or kind == "command":
        return (tool_line(kind, said),), ()
    if kind == "use_mcp_server":
        name = "/".join(part for part in (text(given.get("serverName")), text(given.get("toolName"))) if part)
        return (tool_line(name or kind, _json(given.get("arguments"))),), ()
    name = text(given.get("tool")) or text(given.get("action")) or kind
    line = tool_line(name, {key: value for key, value in given.items() if key not in ("tool", "action")})
    parts = [given, *(table(each) for each in items(given.get("batchDiffs")))]
    paths = [text(part.get("path")) for part in parts] if name in _CHANGING else []
    return (line,), tuple(path for path in paths if path)


def _json(given: object) -> object:
    """Return what a text holds in JSON; what holds none is returned as it is."""
    try:
        return json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given


def _project(state: _State, kind: str, said: str) -> Iterator[Head]:
    """Tell of the folder, which stands in what goes to the model alone."""
    if kind != "api_req_started" or state.project:
        return
    found = _FOLDER.search(text(table(_json(said)).get("request")))
    if found:
        state.project = found[1]
        yield Head(state.session, project=state.project)
