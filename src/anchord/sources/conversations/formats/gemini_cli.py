"""Reads Gemini CLI: a JSON document for each session; since 2026 a log that has to be replayed.

In the log, a message that is written again replaces its first version in place. `$set.messages` is
the context that the model sees from then on, such as a compressed conversation. It is not what was
said, so it counts only in a log that has no messages of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from anchord.sources.conversations.formats import branches
from anchord.sources.conversations.formats.boilerplate import BoilerplateFilter
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
    format_tool_call,
    parse_head_lines,
    parse_lines,
    unknown_record,
    word_set,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations

SOURCE = "gemini-cli"

_REWIND_OFFSET = 0
"""The first message that a rewind discards, counted from the one it names.

0 is that message itself, as in Gemini CLI 0.61.
"""
_ROLES = {"user": Role.QUESTION, "gemini": Role.ANSWER, "model": Role.ANSWER, "qwen": Role.ANSWER}
_IGNORED_TYPES = word_set("info warning error")
_FILE_EDIT_TOOLS = frozenset({"write_file", "replace", "edit", "edit_file"})
_FAILED_STATUSES = frozenset({"error", "cancelled"})
_BOILERPLATE = BoilerplateFilter(
    ["session_context", "hook_context", "state_snapshot"],
    ["This is the Gemini CLI. We are setting up the context"],
)
_SLASH_COMMAND = lazy_re(r"/[a-z][\w:-]*(?:[ \t]+\S+)?")
"""A slash command with at most one argument. With more it is prose; a path has a second slash."""
_FILES_START, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"
_CHAT_PATH = lazy_re(r"(?:(?:.*/)?([^/]+)/)?chats/(?:([^/]+)/)?[^/]+")
_PROJECT_HASH = lazy_re(r"[0-9a-f]{64}")


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a session of Gemini CLI.

    Args:
        head: the file's first bytes.
        path: the file's path, with "/".
    """
    if path.endswith(".jsonl"):
        records = parse_head_lines(head)
        return any(map(_is_log_head, records))
    if not path.endswith(".json"):
        return False
    if b'"messages"' not in head:
        return False
    if b'"projectHash"' in head:
        return True
    return "/chats/session-" in f"/{path}"


def _is_log_head(record: Record) -> bool:
    return "projectHash" in record and "sessionId" in record and "type" not in record


@dataclass(slots=True)
class _MessageTree:
    """Messages as a tree. What follows a rewind is a branch beside the discarded messages."""

    parents: dict[str, str] = field(default_factory=dict)
    turns: dict[str, tuple[Turn, ...]] = field(default_factory=dict)
    active: dict[str, None] = field(default_factory=dict)
    """Ids of the messages that were not rewound, in the order of their first versions."""

    def put_message(self, message_id: str, turn: Turn | None) -> None:
        """Append a message, or replace it in place if it is active.

        `turn` is None for a message without text and calls.
        """
        if message_id not in self.active:
            self.parents[message_id] = self.leaf
            self.active[message_id] = None
        self.turns[message_id] = (turn,) if turn else ()

    @property
    def leaf(self) -> str:
        """The last active message, "" for none."""
        return next(reversed(self.active), "")

    def rewind(self, message_id: str) -> None:
        """Deactivate an active message and all after it.

        Raises:
            ValueError: the message is not active.
        """
        ids = list(self.active)
        end = ids.index(message_id) + _REWIND_OFFSET
        kept_ids = ids[:end]
        self.active = dict.fromkeys(kept_ids)

    def make_turns(self) -> Iterator[Turn]:
        """Yield the turns of the active branch, then those of the others as superseded."""
        return branches.flatten_tree(self.parents, self.turns, self.leaf)


@dataclass(slots=True)
class _State:
    head: SessionInfo
    conversation: _MessageTree = field(default_factory=_MessageTree)
    model_context: _MessageTree = field(default_factory=_MessageTree)
    """What `$set.messages` gave the model as its context."""


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield a session and its turns; the whole file is read first."""
    path = transcript_file.path
    _, _, file_name = path.rpartition("/")
    session, _, _ = file_name.rpartition(".")
    project, parent = _project_and_parent(path)
    head = SessionInfo(session=session, project=project, parent=parent)
    state = _State(head)
    for record in _read_records(transcript_file):
        if isinstance(record, UnknownRecord):
            yield record
        else:
            yield from _replay_record(state, record)
    yield state.head
    tree = state.conversation
    if not any(tree.turns.values()):
        tree = state.model_context
    yield from tree.make_turns()


def _read_records(transcript_file: TranscriptFile) -> Iterator[Record | UnknownRecord]:
    if not transcript_file.path.endswith(".jsonl"):
        yield from stream_conversations(transcript_file)
        return
    for line in parse_lines(transcript_file.lines()):
        yield line if isinstance(line, UnknownRecord) else line[1]


def _project_and_parent(path: str) -> tuple[str, str]:
    """Return the project's name and, for a sub-agent's session, the parent session; "" for none."""
    match = _CHAT_PATH.fullmatch(path)
    if match is None:
        return "", ""
    project, parent = match.groups("")
    # Older versions name the folder by a hash of the project's path, which says nothing to a
    # reader.
    if _PROJECT_HASH.fullmatch(project):
        project = ""
    return project, parent


def _replay_record(state: _State, record: Record) -> Iterator[UnknownRecord]:
    if "$rewindTo" in record:
        message_id = get_str(record, "$rewindTo")
        if not _rewind(state, message_id):
            yield UnknownRecord("rewind to an unknown message")
    elif "$set" in record:
        changes = get_dict(record, "$set")
        _update_head(state, changes)
        messages = get_list(changes, "messages")
        yield from _put_messages(state.model_context, messages)
    elif "type" not in record and ("sessionId" in record or "projectHash" in record):
        _update_head(state, record)
        messages = get_list(record, "messages")
        yield from _put_messages(state.conversation, messages)
    else:
        yield from _put_messages(state.conversation, [record])


def _rewind(state: _State, message_id: str) -> bool:
    """Rewind both trees to a message; return False if no tree has it."""
    conversation = state.conversation
    model_context = state.model_context
    target = _find_rewound(conversation, model_context, message_id)
    if target:
        conversation.rewind(target)
    has_target = target != ""
    if message_id not in model_context.active:
        return has_target
    model_context.rewind(message_id)
    # A log without messages of its own is replayed from the model's context alone.
    return has_target or not any(conversation.turns.values())


def _find_rewound(conversation: _MessageTree, model_context: _MessageTree, message_id: str) -> str:
    """Return the conversation's message that a rewind names, "" for none.

    A compression gives the messages new ids in the model's context, but leaves their texts. So an
    id of the context stands for the last active message with the same text.
    """
    if message_id in conversation.active:
        return message_id
    copied_texts = [turn.text for turn in model_context.turns.get(message_id, ())]
    if not copied_texts:
        return ""
    for candidate, turns in reversed(conversation.turns.items()):
        if candidate in conversation.active and [turn.text for turn in turns] == copied_texts:
            return candidate
    return ""


def _update_head(state: _State, record: Record) -> None:
    head = state.head
    state.head = replace(
        head,
        session=get_str(record, "sessionId") or head.session,
        title=get_str(record, "summary") or head.title,
        updated=get_time(record, "lastUpdated") or head.updated,
    )


def _put_messages(tree: _MessageTree, messages: Sequence[object]) -> Iterator[UnknownRecord]:
    for message in map(dict_or_empty, messages):
        kind = get_str(message, "type")
        message_id = get_str(message, "id") or f"message-{len(tree.parents)}"
        if kind in _ROLES:
            try:
                tree.put_message(message_id, _make_turn(message_id, _ROLES[kind], message))
            except RecursionError:
                yield UnknownRecord("message nested too deeply")
        elif kind in _IGNORED_TYPES:
            tree.put_message(message_id, None)
        else:
            yield unknown_record(
                "message",
                kind,
                unnamed="message without a type",
            )


def _make_turn(message_id: str, role: Role, message: Record) -> Turn | None:
    content = message.get("content")
    if role is Role.QUESTION:
        text = _typed_text(message.get("displayContent") or content)
        calls = []
    else:
        text = _message_text(content)
        calls = _tool_calls(message)
    if not text.strip() and not calls:
        return None
    return Turn(
        id=message_id,
        role=role,
        text=text,
        at=get_time(message, "timestamp"),
        model=get_str(message, "model"),
        tools=tuple(format_tool_call(get_str(call, "name"), call.get("args")) for call in calls),
        files=tuple(file for call in calls if (file := _edited_file(call))),
    )


def _tool_calls(message: Record) -> list[Record]:
    """Return a message's calls of tools, from its list or else from the parts of its content."""
    listed = get_dicts(message, "toolCalls")
    if listed:
        return listed
    calls: list[Record] = []
    for part in get_dicts(message, "content"):
        if "functionCall" in part:
            call = get_dict(part, "functionCall")
            calls.append(call)
    return calls


def _edited_file(call: Record) -> str:
    """Return the path of the file that a call of a tool changed, "" for none."""
    if get_str(call, "name") not in _FILE_EDIT_TOOLS:
        return ""
    if get_str(call, "status") in _FAILED_STATUSES:
        return ""
    arguments = get_dict(call, "args")
    return first_str(arguments, "file_path", "path")


def _typed_text(content: object) -> str:
    """Return what a person typed, without parts that hold contexts or the files named by `@`."""
    kept: list[str] = []
    in_files = False
    for part in _part_texts(content):
        mark = part.strip()
        if mark == _FILES_START:
            in_files = True
        elif mark == _FILES_END:
            in_files = False
        elif not in_files:
            typed = _BOILERPLATE.remove_from(part)
            # The filter strips line ends; a part without boilerplate keeps them.
            kept.append(part if typed == part.strip("\n") else typed)
    text = "".join(kept)
    return "" if _SLASH_COMMAND.fullmatch(text.strip()) else text


def _message_text(content: object) -> str:
    return "".join(_part_texts(content))


def _part_texts(content: object) -> Iterator[str]:
    """Yield the texts of a content, which is a string, a part, or a list of both."""
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        record = dict_or_empty(part)
        if isinstance(part, str):
            yield part
        elif "inlineData" in record or "fileData" in record:
            yield "[image]"
        elif not record.get("thought"):
            yield get_str(record, "text")
