"""opencode: a SQLite database since 1.2 (2026), before that a tree of JSON files under `storage/`.

A session has messages, and these have parts; ids are made so that their order is that of time. What a revert has left stays
there until the next question: it is told as superseded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations import branches
from anchord.sources.conversations.records import Record, items, parsed, table, text, time_of, tool_line, words

SOURCE = "opencode"

_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_QUIET = words("reasoning step-start step-finish snapshot compaction retry agent")
_CHANGING = frozenset({"edit", "write", "multiedit"})
_TABLE = rb'CREATE TABLE\s+(?:IF NOT EXISTS\s+)?[`"\[]?%s[`"\]]?\s*\('
_COLUMNS = ("id", "title", "directory", "parent_id", "revert", "time_updated", "project_id")
_MESSAGES = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id"
_FOLDER = re.compile(r"(?:.*/)?storage(?=/(?:session|message|part)/.+\.json$)")
_SESSION = re.compile(r"(?:.*/)?session/(?!message/|part/)[^/]+/([^/]+)\.json")
_MESSAGE = re.compile(r"(?:.*/)?message/([^/]+)/([^/]+)\.json")
_PART = re.compile(r"(?:.*/)?part/(?:[^/]+/)?([^/]+)/([^/]+)\.json")
"""The oldest trees have all below `session/`, and parts below their session too."""


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is opencode's database, by its tables, or of its tree."""
    if head.startswith(b"SQLite format 3\0"):
        named = re.search(r"(?:^|/)opencode[^/]*\.db$", path) is not None
        return named or all(re.search(_TABLE % name, head) for name in (b"session", b"message", b"part"))
    return folder(path) != "" and head.lstrip().startswith(b"{")


def folder(path: str) -> str:
    """Return the `storage` that a file of the tree is in."""
    found = _FOLDER.match(path)
    return found[0] if found else ""


def claims(names: Sequence[str]) -> bool:
    """Whether a folder or archive is such a tree."""
    return any(map(_SESSION.fullmatch, names)) and any(map(_MESSAGE.fullmatch, names))


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of each session."""
    names = carrier.names()
    return _tree(carrier, names) if names else _database(carrier)


def _database(carrier: Carrier) -> Iterator[Event]:
    known = {row[0] for row in carrier.query("SELECT name FROM pragma_table_info('session')")}
    columns = ", ".join(column if column in known else "NULL" for column in _COLUMNS)
    worktrees = {row[0]: text(row[1]) for row in carrier.query("SELECT id, worktree FROM project")}
    for row in list(carrier.query(f"SELECT {columns} FROM session ORDER BY rowid")):
        session, title, directory, parent = map(text, row[:4])
        project = directory or worktrees.get(row[6], "")
        yield Head(session, title, project, parent, time_of(row[5]))
        parts: dict[str, _Parts] = {}
        for message, data in carrier.query(_PARTS, session):
            yield from parts.setdefault(text(message), _Parts()).take(_object(data))
        messages = [(text(name), _object(data), time_of(at)) for name, at, data in carrier.query(_MESSAGES, session)]
        yield from _told(messages, parts, table(_object(row[4])))


def _object(value: object) -> Record | None:
    return parsed(value if isinstance(value, bytes) else text(value).encode("utf-8", "surrogatepass"))


def _tree(carrier: Carrier, names: Sequence[str]) -> Iterator[Event]:
    sessions, messages, parts = dict[str, str](), dict[str, dict[str, str]](), dict[str, list[str]]()
    for name in sorted(names):
        if found := _PART.fullmatch(name):
            parts.setdefault(found[1], []).append(name)
        elif found := _MESSAGE.fullmatch(name):
            messages.setdefault(found[1], {})[found[2]] = name
        elif found := _SESSION.fullmatch(name):
            sessions[found[1]] = name
    for session in {**sessions, **messages}:
        info = _member(carrier, sessions[session]) if session in sessions else {}
        yield from [Unknown("broken session")] if info is None else []
        about = table(info)
        updated = time_of(table(about.get("time")).get("updated"))
        yield Head(session, text(about.get("title")), text(about.get("directory")), text(about.get("parentID")), updated)
        said: dict[str, _Parts] = {}
        found_messages = []
        for message, name in messages.get(session, {}).items():
            record = _member(carrier, name)
            found_messages.append((message, record, time_of(table(table(record).get("time")).get("created"))))
            for part in parts.get(message, ()):
                yield from said.setdefault(message, _Parts()).take(_member(carrier, part))
        found_messages.sort(key=lambda each: (each[2], each[0]))
        yield from _told(found_messages, said, table(about.get("revert")))


def _member(carrier: Carrier, name: str) -> Record | None:
    with carrier.member(name) as stream:
        return parsed(stream.read())


@dataclass(slots=True)
class _Parts:
    """What is kept of the parts of a message."""

    said: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def take(self, part: Record | None) -> Iterator[Unknown]:
        """Take a part; what opencode wrote in the user's name is nothing."""
        if part is None:
            yield Unknown("broken part")
            return
        kind = text(part.get("type"))
        if kind in ("text", "subtask"):
            said = text(part.get("text" if kind == "text" else "prompt"))
            self.said += [said] if said.strip() and not part.get("synthetic") and not part.get("ignored") else []
        elif kind == "file":
            self.images += ["[image]"] if text(part.get("mime")).startswith("image/") else []
        elif kind == "patch":
            self.files += [file for file in map(text, items(part.get("files"))) if file]
        elif kind == "tool":
            yield from self._call(text(part.get("tool")), table(table(part.get("state")).get("input")))
        elif kind not in _QUIET:
            yield Unknown("part", str(kind)) if kind else Unknown("part without a type")

    def _call(self, tool: str, given: Record) -> Iterator[Unknown]:
        try:
            self.tools.append(tool_line(tool, given))
        except RecursionError:
            yield Unknown("part beyond measure")
        self.files += [file] if tool in _CHANGING and (file := text(given.get("filePath"))) else []


def _told(
    messages: Iterable[tuple[str, Record | None, str]], parts: Mapping[str, _Parts], revert: Record
) -> Iterator[Turn | Unknown]:
    above, turns, last = dict[str, str](), dict[str, tuple[Turn, ...]](), ""
    for name, message, at in messages:
        above[name], last = last, name
        role = text(table(message).get("role"))
        if role in _ROLES:
            turns[name] = tuple(_turn(name, _ROLES[role], table(message), parts.get(name, _Parts()), at))
        else:
            yield Unknown("role", str(role)) if role else Unknown("broken message")
    left = text(revert.get("messageID"))
    if left in above:
        last = left if revert.get("partID") else above[left]
    yield from branches.told(above, turns, last)


def _turn(name: str, role: Role, message: Record, parts: _Parts, at: str) -> Iterator[Turn]:
    said = "\n\n".join([*parts.said, *(parts.images if role is Role.QUESTION else [])])
    is_summary = role is Role.ANSWER and bool(message.get("summary"))
    if not is_summary and (said or parts.tools or parts.files):
        yield Turn(name, role, said, at, text(message.get("modelID")), tuple(parts.tools), tuple(parts.files))
