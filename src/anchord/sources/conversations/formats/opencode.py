"""Reads opencode: a SQLite database since version 1.2 (2026), before that a tree of JSON files.

A session has messages, and a message has parts; their ids sort by time. Messages after a revert
stay stored until the next question: they are superseded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
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
from anchord.sources.conversations.formats.json_fields import get_dict, get_list, get_str, get_time
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    normalize_timestamp,
    parse_object,
    str_or_empty,
    unknown_record,
    word_set,
)

SOURCE = "opencode"

_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_TEXT_KEY_BY_TYPE = {"text": "text", "subtask": "prompt"}
_IGNORED_TYPES = word_set("reasoning step-start step-finish snapshot compaction retry agent")
_FILE_EDIT_TOOLS = frozenset({"edit", "write", "multiedit"})
_DATABASE_PATH = lazy_re(r"(?:^|/)opencode[^/]*\.db$")
_CREATE_TABLE = rb'CREATE TABLE\s+(?:IF NOT EXISTS\s+)?[`"\[]?%s[`"\]]?\s*\('
_COLUMNS = ("id", "title", "directory", "parent_id", "revert", "time_updated", "project_id")
_MESSAGES_SQL = (
    "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
)
_PARTS_SQL = "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id"
_STORAGE_PATH = lazy_re(r"(?:.*/)?storage(?=/(?:session|message|part)/.+\.json$)")
_SESSION_PATH = lazy_re(r"(?:.*/)?session/(?!message/|part/)[^/]+/([^/]+)\.json")
_MESSAGE_PATH = lazy_re(r"(?:.*/)?message/([^/]+)/([^/]+)\.json")
_PART_PATH = lazy_re(r"(?:.*/)?part/(?:[^/]+/)?([^/]+)/([^/]+)\.json")
"""The oldest trees have everything below `session/`, and parts below their session too."""


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is opencode's database (by name or tables) or of its JSON tree.

    Args:
        head: the file's first bytes.
        path: the file's path, with "/".
    """
    if not head.startswith(b"SQLite format 3\0"):
        is_object = head.lstrip().startswith(b"{")
        return is_object and transcript_folder(path) != ""
    if _DATABASE_PATH.search(path):
        return True
    for table in (b"session", b"message", b"part"):
        if not re.search(_CREATE_TABLE % table, head):
            return False
    return True


def transcript_folder(path: str) -> str:
    """Return the `storage` folder that a file of the JSON tree is in, "" for any other file."""
    match = _STORAGE_PATH.match(path)
    return match[0] if match else ""


def matches_folder(member_names: Sequence[str]) -> bool:
    """Return whether a folder or archive is a JSON tree: it has a session and a message."""
    if not any(map(_SESSION_PATH.fullmatch, member_names)):
        return False
    return any(map(_MESSAGE_PATH.fullmatch, member_names))


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield each session and its turns.

    A transcript file with members is read as a JSON tree, one without as a database.
    """
    member_names = transcript_file.member_names()
    if member_names:
        return _read_tree(transcript_file, member_names)
    return _read_database(transcript_file)


class _Message(NamedTuple):
    id: str
    record: Record | None
    """None where it is broken."""
    created: str


@dataclass(slots=True)
class _MessageParts:
    """The parts of a message that are indexed."""

    texts: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def add_part(self, part: Record | None) -> Iterator[UnknownRecord]:
        """Add a part, None for a broken one; yield what cannot be read.

        A generator: nothing is added until it is iterated.
        """
        if part is None:
            yield UnknownRecord("broken part")
            return
        kind = get_str(part, "type")
        if kind in _TEXT_KEY_BY_TYPE:
            text_key = _TEXT_KEY_BY_TYPE[kind]
            text = get_str(part, text_key)
            self._add_text(part, text)
        elif kind == "file":
            mime = get_str(part, "mime")
            if mime.startswith("image/"):
                self.images.append("[image]")
        elif kind == "patch":
            listed = get_list(part, "files")
            files = map(str_or_empty, listed)
            self.files += filter(None, files)
        elif kind == "tool":
            tool = get_str(part, "tool")
            state = get_dict(part, "state")
            arguments = get_dict(state, "input")
            yield from self._add_tool_call(tool, arguments)
        elif kind not in _IGNORED_TYPES:
            yield unknown_record("part", kind, unnamed="part without a type")

    def _add_text(self, part: Record, text: str) -> None:
        # opencode writes texts in the user's name and marks them as synthetic or ignored.
        if part.get("synthetic") or part.get("ignored"):
            return
        if text.strip():
            self.texts.append(text)

    def _add_tool_call(self, tool: str, arguments: Record) -> Iterator[UnknownRecord]:
        try:
            self.tools.append(format_tool_call(tool, arguments))
        except RecursionError:
            yield UnknownRecord("part nested too deeply")
        file = get_str(arguments, "filePath")
        if file and tool in _FILE_EDIT_TOOLS:
            self.files.append(file)


# The database


def _read_database(transcript_file: TranscriptFile) -> Iterator[Event]:
    columns = _select_columns(transcript_file)
    projects = transcript_file.query("SELECT id, worktree FROM project")
    worktrees = {row[0]: row[1] for row in projects}
    sessions_sql = f"SELECT {columns} FROM session ORDER BY rowid"
    for row in list(transcript_file.query(sessions_sql)):
        session, title, directory, parent, revert, updated, project_id = row
        session_id = str_or_empty(session)
        project = str_or_empty(directory)
        if not project:
            worktree = worktrees.get(project_id)
            project = str_or_empty(worktree)
        yield SessionInfo(
            session=session_id,
            title=str_or_empty(title),
            project=project,
            parent=str_or_empty(parent),
            updated=normalize_timestamp(updated),
        )
        parts: dict[str, _MessageParts] = {}
        for message_id, data in transcript_file.query(_PARTS_SQL, session_id):
            parts_key = str_or_empty(message_id)
            message_parts = parts.setdefault(parts_key, _MessageParts())
            part = _parse_value(data)
            yield from message_parts.add_part(part)
        messages: list[_Message] = []
        for message_row in transcript_file.query(_MESSAGES_SQL, session_id):
            message = _message_of_row(*message_row)
            messages.append(message)
        revert_value = _parse_value(revert)
        revert_record = dict_or_empty(revert_value)
        yield from _make_turns(messages, parts, revert_record)


def _select_columns(transcript_file: TranscriptFile) -> str:
    """Return the expressions to select for `_COLUMNS`; older databases lack some of them."""
    existing = set[object]()
    for (name,) in transcript_file.query("SELECT name FROM pragma_table_info('session')"):
        existing.add(name)
    expressions: list[str] = []
    for column in _COLUMNS:
        if column in existing:
            expressions.append(column)
        else:
            expressions.append("NULL")
    return ", ".join(expressions)


def _message_of_row(message_id: object, created: object, data: object) -> _Message:
    record = _parse_value(data)
    created_at = normalize_timestamp(created)
    return _Message(str_or_empty(message_id), record, created_at)


def _parse_value(value: object) -> Record | None:
    """Return the JSON object in a column, None for anything else."""
    if isinstance(value, bytes):
        return parse_object(value)
    json_text = str_or_empty(value)
    return parse_object(json_text.encode("utf-8", "surrogatepass"))


# The JSON tree


@dataclass(slots=True)
class _TreeMembers:
    """The names of a tree's members, in the order of their ids."""

    sessions: dict[str, str] = field(default_factory=dict)
    """Session id -> member."""
    messages: dict[str, dict[str, str]] = field(default_factory=dict)
    """Session id -> message id -> member."""
    parts: dict[str, list[str]] = field(default_factory=dict)
    """Message id -> members."""


def _group_members(member_names: Sequence[str]) -> _TreeMembers:
    members = _TreeMembers()
    for name in sorted(member_names):
        if match := _PART_PATH.fullmatch(name):
            parts = members.parts.setdefault(match[1], [])
            parts.append(name)
        elif match := _MESSAGE_PATH.fullmatch(name):
            session = match[1]
            message_id = match[2]
            messages = members.messages.setdefault(session, {})
            messages[message_id] = name
        elif match := _SESSION_PATH.fullmatch(name):
            session = match[1]
            members.sessions[session] = name
    return members


def _read_tree(transcript_file: TranscriptFile, member_names: Sequence[str]) -> Iterator[Event]:
    members = _group_members(member_names)
    # Messages of a session whose own file is missing are read too.
    for session in {**members.sessions, **members.messages}:
        yield from _read_tree_session(transcript_file, members, session)


def _read_tree_session(
    transcript_file: TranscriptFile, members: _TreeMembers, session: str
) -> Iterator[Event]:
    info: Record | None = {}
    if session in members.sessions:
        session_member = members.sessions[session]
        info = _read_member(transcript_file, session_member)
    if info is None:
        yield UnknownRecord("broken session")
        info = {}
    session_times = get_dict(info, "time")
    yield SessionInfo(
        session=session,
        title=get_str(info, "title"),
        project=get_str(info, "directory"),
        parent=get_str(info, "parentID"),
        updated=get_time(session_times, "updated"),
    )
    messages: list[_Message] = []
    parts: dict[str, _MessageParts] = {}
    message_members = members.messages.get(session, {})
    for message_id, name in message_members.items():
        record = _read_member(transcript_file, name)
        known_record = record or {}
        times = get_dict(known_record, "time")
        created = get_time(times, "created")
        message = _Message(message_id, record, created)
        messages.append(message)
        for part_member in members.parts.get(message_id, ()):
            message_parts = parts.setdefault(message_id, _MessageParts())
            part = _read_member(transcript_file, part_member)
            yield from message_parts.add_part(part)
    messages.sort(key=attrgetter("created", "id"))
    revert = get_dict(info, "revert")
    yield from _make_turns(messages, parts, revert)


def _read_member(transcript_file: TranscriptFile, name: str) -> Record | None:
    with transcript_file.open_member(name) as stream:
        return parse_object(stream.read())


# Turns


def _make_turns(
    messages: Iterable[_Message], parts: Mapping[str, _MessageParts], revert: Record
) -> Iterator[Turn | UnknownRecord]:
    """Yield a session's turns. Those that `revert` took back are superseded."""
    parents: dict[str, str] = {}
    turns: dict[str, list[Turn]] = {}
    leaf = ""
    for message in messages:
        parents[message.id] = leaf
        leaf = message.id
        record = dict_or_empty(message.record)
        role_name = get_str(record, "role")
        role = _ROLES.get(role_name)
        if role is None:
            yield unknown_record("role", role_name, unnamed="broken message")
            continue
        message_parts = parts.get(message.id, _MessageParts())
        turns[message.id] = _message_turns(message, role, message_parts)
    reverted = get_str(revert, "messageID")
    if reverted in parents:
        # A revert to a part leaves the message's earlier parts: the message stays on the branch.
        leaf = reverted
        if not revert.get("partID"):
            leaf = parents[reverted]
    yield from branches.flatten_tree(parents, turns, leaf)


def _message_turns(message: _Message, role: Role, parts: _MessageParts) -> list[Turn]:
    """Return a message's one turn; none where it says nothing or is a summary by opencode."""
    record = dict_or_empty(message.record)
    if role is Role.ANSWER and record.get("summary"):
        return []
    images = parts.images if role is Role.QUESTION else []
    text = "\n\n".join([*parts.texts, *images])
    if not text and not parts.tools and not parts.files:
        return []
    turn = Turn(
        id=message.id,
        role=role,
        text=text,
        at=message.created,
        model=get_str(record, "modelID"),
        tools=tuple(parts.tools),
        files=tuple(parts.files),
    )
    return [turn]
