"""Reads Copilot Chat in VS Code: a JSON file for each session, since 2026 a log of changes to it.

A request is an exchange. A change can remove requests: a question that was edited, an answer that
was regenerated. They stay in the log until VS Code rewrites it as one line, and are superseded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

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
    first_str,
    get_dict,
    get_dicts,
    get_list,
    get_str,
    get_time,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    list_or_empty,
    parse_lines,
    unknown_record,
    word_set,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations
from anchord.sources.conversations.formats.vscode_copilot_parts import (
    format_call,
    markdown_text,
    path_of_uri,
    reference_name,
)

SOURCE = "vscode-copilot"

_LOG_START = lazy_re(rb'\s*\{\s*"kind"\s*:\s*0\s*,\s*"v"\s*:\s*\{')
"""The first line, which holds the whole session and may be longer than the head."""
_SESSION_KEYS = (
    b'"responderUsername"',
    b'"requesterUsername"',
    b'"initialLocation"',
    b'"creationDate"',
)
_CHAT_FOLDERS = lazy_re(r"(?:^|/)(?:chatSessions|emptyWindowChatSessions)/")
_PROSE_TYPES = frozenset({"", "markdownContent", "markdownVuln"})
_TOOL_CALL_TYPES = frozenset({"toolInvocation", "toolInvocationSerialized"})
_FILE_EDIT_TYPES = frozenset({"textEditGroup", "notebookEditGroup"})
_IGNORED_TYPES = word_set(
    "agentDetection autoModeResolution clearToPreviousToolInvocation codeCitation codeblockUri "
    "command confirmation disabledClaudeHooks elicitation elicitation2 elicitationSerialized "
    "extensions externalEdit externalEdits hook mcpServersStarting move multiDiffData planReview "
    "prepareToolInvocation progressMessage progressTask progressTaskResult progressTaskSerialized "
    "pullRequest reference references thinking treeData undoStop usedContext warning workspaceEdit"
)
_AUTOMATIC_FLAGS = ("isSystemInitiated", "hiddenFromTranscript", "requestHiddenFromTranscript")
_REPLACE, _SET, _APPEND, _DELETE = range(4)
"""Kinds of changes in a log."""
_MAX_ATTACHMENT_CHARS = 200_000


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a session of Copilot Chat.

    Its folder decides too, because a long first request can push the session's keys out of the
    head.

    Args:
        head: the file's first bytes.
        path: the file's path, with "/".
    """
    has_key = any(key in head for key in _SESSION_KEYS)
    if not has_key and not _CHAT_FOLDERS.search(path):
        return False
    if path.endswith(".jsonl"):
        return bool(_LOG_START.match(head))
    return path.endswith(".json") and b'"requests"' in head


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield a session and its turns; the whole file is read first."""
    log = _ChangeLog()
    if transcript_file.path.endswith(".jsonl"):
        yield from _replay_log(log, transcript_file)
    else:
        for record in stream_conversations(transcript_file):
            if isinstance(record, UnknownRecord):
                yield record
            else:
                log.session = dict(record)
    if log.session:
        file_name = transcript_file.path.rpartition("/")[2].rpartition(".")[0]
        yield from _read_session(log, file_name)


# The log of changes


@dataclass(slots=True)
class _ChangeLog:
    """A session, built up change by change."""

    session: dict[str, Any] = field(default_factory=dict)
    removed_requests: dict[str, Record] = field(default_factory=dict)
    """Requests that a change removed, by id."""

    def apply(self, entry: Record) -> bool:
        """Apply a change; return False for one that does not fit the session, which stays as it is.

        A change has a `kind` (0 replaces the session, 1 sets a value, 2 appends to a list, 3 sets a
        value to null), the path `k` of keys and indexes, and the value `v`.
        """
        requests_before = list(get_list(self.session, "requests"))
        kind = entry.get("kind")
        path = get_list(entry, "k")
        value = entry.get("v")
        if kind == _REPLACE and isinstance(value, dict):
            self.session = value
            self._note_removed(requests_before)
            return True
        if kind not in (_SET, _APPEND, _DELETE) or not path:
            return False
        if not _change_value(self.session, path, entry):
            return False
        if path == ["requests"]:
            self._note_removed(requests_before)
        return True

    def _note_removed(self, requests_before: list[Any]) -> None:
        requests = get_list(self.session, "requests")
        # By identity: a request that was edited is another object with the same id.
        kept = set(map(id, requests))
        for request in requests_before:
            if id(request) in kept:
                continue
            record = dict_or_empty(request)
            request_id = get_str(record, "requestId")
            self.removed_requests[request_id] = record


def _replay_log(log: _ChangeLog, transcript_file: TranscriptFile) -> Iterator[UnknownRecord]:
    for line in parse_lines(transcript_file.lines()):
        if isinstance(line, UnknownRecord):
            yield line
        elif not log.apply(line[1]):
            yield UnknownRecord("change that does not fit")


def _change_value(session: dict[str, Any], path: list[Any], entry: Record) -> bool:
    """Change the value at a path; return False where the path does not exist."""
    *parents, last = path
    value = entry.get("v")
    container: Any = session
    try:
        for key in parents:
            container = container[key]
        if entry["kind"] == _APPEND:
            old = container.get(last) if isinstance(container, dict) else container[last]
            # `i`, if it is there, is the length that the list keeps.
            value = [*(old or [])[: entry.get("i")], *list_or_empty(value)]
        elif entry["kind"] == _DELETE:
            value = None
        if isinstance(container, list) and last == len(container):
            container.append(value)
        else:
            container[last] = value
    except (KeyError, IndexError, TypeError):
        return False
    return True


# Sessions


def _read_session(log: _ChangeLog, file_name: str) -> Iterator[Event]:
    session = log.session
    title = first_str(session, "customTitle", "computedTitle")
    yield SessionInfo(
        session=get_str(session, "sessionId") or file_name,
        title=title,
        updated=get_time(session, "lastMessageDate"),
    )
    requests = _requests_by_id(session)
    for request_id, request in requests.items():
        yield from _read_request(request_id, request, superseded=_is_hidden(request))
    for request_id, request in log.removed_requests.items():
        if request_id and request_id not in requests:
            yield from _read_request(request_id, request, superseded=True)


def _requests_by_id(session: Record) -> dict[str, Record]:
    requests: dict[str, Record] = {}
    for number, request in enumerate(get_dicts(session, "requests")):
        request_id = get_str(request, "requestId")
        if not request_id or request_id in requests:
            request_id = f"request-{number}"
        requests[request_id] = request
    return requests


def _is_hidden(request: Record) -> bool:
    """Return whether the user undid a request, so that VS Code hides it."""
    if request.get("isHidden"):
        return True
    undone = request.get("shouldBeRemovedOnSend")
    if not undone:
        return False
    undo = dict_or_empty(undone)
    return not undo.get("afterUndoStop")


# Requests


@dataclass(slots=True)
class _TurnFactory:
    """Makes the turns of one request."""

    turn_id: str
    superseded: bool

    def question(self, text: str, timestamp: str = "") -> Turn:
        return Turn(
            id=self.turn_id,
            role=Role.QUESTION,
            text=text,
            at=timestamp,
            superseded=self.superseded,
        )

    def attachment(self, text: str, timestamp: str) -> Turn:
        return Turn(
            id=f"{self.turn_id}+",
            role=Role.ATTACHMENT,
            text=text,
            at=timestamp,
            superseded=self.superseded,
        )

    def answer(self, answer: _Answer, timestamp: str = "") -> Turn:
        return Turn(
            id=f"{self.turn_id}+",
            role=Role.ANSWER,
            text="".join(answer.texts),
            at=timestamp,
            model=answer.model,
            tools=tuple(answer.tools),
            files=tuple(answer.files),
            superseded=self.superseded,
        )


@dataclass(slots=True)
class _Answer:
    """The parts of an answer since the question before it."""

    model: str
    texts: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def add_part(self, kind: str, part: Record) -> bool:
        """Add a part; return False for a kind that is not read."""
        if kind in _PROSE_TYPES and ("value" in part or "content" in part):
            self.texts.append(markdown_text(part))
        elif kind == "inlineReference":
            self.texts.append(reference_name(part))
        elif kind in _TOOL_CALL_TYPES:
            self.tools.append(format_call(part))
        elif kind in _FILE_EDIT_TYPES:
            if path := path_of_uri(get_dict(part, "uri")):
                self.files.append(path)
        else:
            return False
        return True


def _read_request(
    request_id: str, request: Record, *, superseded: bool
) -> Iterator[Turn | UnknownRecord]:
    """Yield the question, its attachments and the answer of a request."""
    turns = _TurnFactory(request_id, superseded)
    try:
        yield from _question_turns(turns, request)
        yield from _read_response(turns, request)
    except RecursionError:
        yield UnknownRecord("request nested too deeply")


def _question_turns(turns: _TurnFactory, request: Record) -> Iterator[Turn]:
    """Yield a request's question and its pasted texts.

    A request that VS Code made by itself has no question: its answer belongs to the question
    before.
    """
    at = get_time(request, "timestamp")
    variable_data = get_dict(request, "variableData")
    attached = get_dicts(variable_data, "variables")
    is_automatic = any(request.get(flag) for flag in _AUTOMATIC_FLAGS)
    # A superseded answer needs a question of its own, so as not to join that of another branch.
    if turns.superseded or not is_automatic:
        parts = ["[image]" for variable in attached if variable.get("kind") == "image"]
        text = _request_text(request)
        if text and not is_automatic:
            parts.insert(0, text)
        question = "\n\n".join(parts)
        yield turns.question(question, at)
    for variable in attached:
        if variable.get("kind") != "paste":
            continue
        code = get_str(variable, "code")
        pasted = code[:_MAX_ATTACHMENT_CHARS]
        if not pasted.strip():
            continue
        name = get_str(variable, "name")
        if not name:
            name = "pasted text"
        yield turns.attachment(f"{name}\n{pasted}", at)


def _request_text(request: Record) -> str:
    message = request.get("message")
    if isinstance(message, str):
        return message
    record = dict_or_empty(message)
    return get_str(record, "text")


def _read_response(turns: _TurnFactory, request: Record) -> Iterator[Turn | UnknownRecord]:
    """Yield a request's answer, and the questions and answers of what was typed in between.

    The parts of an answer are cut where VS Code showed a file or a tool; they are joined directly.
    """
    model = get_str(request, "modelId")
    answer = _Answer(model)
    for part in get_dicts(request, "response"):
        kind = get_str(part, "kind")
        if answer.add_part(kind, part):
            continue
        if kind == "questionCarousel":
            typed = _typed_text(part)
            if not typed:
                continue
            yield turns.answer(answer)
            answer = _Answer(model)
            resolve_id = get_str(part, "resolveId")
            turns.turn_id = f"{turns.turn_id}~{resolve_id}"
            yield turns.question(typed)
        elif kind not in _IGNORED_TYPES:
            yield unknown_record("part", kind, unnamed="part without a kind")
    model_state = get_dict(request, "modelState")
    completed = get_time(model_state, "completedAt")
    yield turns.answer(answer, completed)


def _typed_text(carousel: Record) -> str:
    """Return what a person typed in answer to the assistant's questions; choices are left out."""
    answers = get_dict(carousel, "data")
    typed: list[str] = []
    for value in answers.values():
        answer = dict_or_empty(value)
        text = get_str(answer, "freeformValue")
        if text.strip():
            typed.append(text)
    return "\n\n".join(typed)
