"""Continue: a JSON file a session, rewritten as a whole; each item of its history holds its message one level down.

What was sent to the model stands in it once more and is left out; of files that were given along, the names are kept.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.records import Record, block_texts, items, table, text, tool_line, words

SOURCE = "continue"

_SILENT = words("system tool thinking")
_CHANGING = words(
    "builtin_edit_existing_file builtin_create_new_file builtin_single_find_and_replace builtin_multi_edit edit_existing_file "
    "create_new_file single_find_and_replace multi_edit Edit MultiEdit Write"
)
_INDEX = "sessions.json"
_KEYS = (b'"contextItems"', b'"editorState"', b'"promptLogs"', b'"workspaceDirectory"')


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a session, or the index of them, which gives nothing."""
    if path.rpartition("/")[2] == _INDEX:
        return (
            head.removeprefix(BOM_UTF8).lstrip().startswith(b"[") and b'"sessionId"' in head and b'"workspaceDirectory"' in head
        )
    return path.endswith(".json") and b'"history"' in head and any(key in head for key in _KEYS)


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a session."""
    name = carrier.path.rpartition("/")[2]
    if name == _INDEX:
        return
    for session in conversations(carrier):
        if isinstance(session, Unknown):
            yield session
        elif isinstance(session.get("history"), list):
            yield from _told(text(session.get("sessionId")) or name.removesuffix(".json"), session)
        else:
            yield Unknown("no conversation")


def _told(session: str, record: Record) -> Iterator[Event]:
    yield Head(session, title=text(record.get("title")), project=text(record.get("workspaceDirectory")))
    used = set[str]()
    for number, item in enumerate(map(table, items(record.get("history")))):
        message = table(item.get("message"))
        role, key = text(message.get("role")), text(message.get("id"))
        key = key if key and key not in used else f"message-{number}"
        used.add(key)
        if role == "user":
            yield from _question(key, item, message)
        elif role == "assistant":
            yield from _answer(key, item, message, text(record.get("chatModelTitle")))
        elif role not in _SILENT:
            yield Unknown("role", str(role)) if role else Unknown("item without a message")


def _question(key: str, item: Record, message: Record) -> Iterator[Turn]:
    content = message.get("content")
    images = ["[image]" for part in items(content) if table(part).get("type") == "imageUrl"]
    names = [text(table(each).get("name")) for each in items(item.get("contextItems"))]
    parts = [part for part in (block_texts(content, "text"), *images) if part.strip()] or [
        f"[{name}]" for name in names if name
    ]
    if parts:
        yield Turn(key, Role.QUESTION, "\n\n".join(parts), tools=tuple(tool_line("context", name) for name in names if name))


def _answer(key: str, item: Record, message: Record, model: str) -> Iterator[Turn]:
    logs = [table(log) for log in items(item.get("promptLogs"))]
    model = next((name for log in reversed(logs) if (name := text(log.get("modelTitle")))), model)
    calls = [table(call) for call in items(message.get("toolCalls"))]
    calls = calls or [table(table(state).get("toolCall")) for state in items(item.get("toolCallStates"))]
    called = [(text(table(call.get("function")).get("name")), _arguments(call)) for call in calls]
    said = block_texts(message.get("content"), "text")
    if said.strip() or called:
        tools = tuple(tool_line(name, given) for name, given in called)
        files = tuple(file for name, given in called if name in _CHANGING and (file := _file(given)))
        yield Turn(key, Role.ANSWER, said, model=model, tools=tools, files=files)


def _arguments(call: Record) -> object:
    given = table(call.get("function")).get("arguments")
    try:
        return json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given


def _file(given: object) -> str:
    return text(table(given).get("filepath")) or text(table(given).get("file_path"))
