"""Reads Open WebUI's export: an array of chats, each a tree of messages.

`currentId` is the last message of the active branch. Regenerated answers, and those of several
models side by side, are siblings: one is active, the others are superseded. Thoughts and calls of
tools are part of the answer's text, as `<details>` at the start of a line.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

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
from anchord.sources.conversations.formats.fences import open_fence_after
from anchord.sources.conversations.formats.json_fields import (
    first_str,
    get_dict,
    get_dicts,
    get_str,
    get_time,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    join_text_blocks,
    unknown_record,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations

SOURCE = "open-webui"

_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_IGNORED_ROLES = frozenset({"system", "tool"})
_DETAILS = lazy_re(
    r'<details\s(?=[^>]*\btype="(?P<type>reasoning|tool_calls|code_interpreter)")'
    r"(?P<attributes>[^>]*)>"
)
_ATTRIBUTE = lazy_re(r'(\w+)="([^"]*)"')
_BOILERPLATE = BoilerplateFilter(["think", "thinking"], [])
_MESSAGE_KEYS = (b'"childrenIds"', b'"parentId"', b'"role"')
_MAX_ATTACHMENT_CHARS = 200_000


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is an export of Open WebUI, or a single chat.

    Args:
        head: the file's first bytes.
        path: the file's path, with "/".
    """
    if not path.endswith(".json"):
        return False
    return all(key in head for key in _MESSAGE_KEYS)


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield each chat of an export and its turns."""
    for exported in stream_conversations(transcript_file):
        if isinstance(exported, UnknownRecord):
            yield exported
            continue
        chat = exported.get("chat")
        if not isinstance(chat, dict):
            chat = exported
        if _has_messages(chat):
            yield from read_conversation(exported, chat)
        else:
            yield UnknownRecord("no conversation")


def _has_messages(chat: Record) -> bool:
    if isinstance(chat.get("history"), dict):
        return True
    return isinstance(chat.get("messages"), list)


def read_conversation(exported: Record, chat: Record) -> Iterator[Event]:
    """Yield one chat and its turns.

    Args:
        exported: the chat's entry in the export, with its id, title and times.
        chat: the entry's `chat`, with the messages; the entry itself where it has none.
    """
    yield _session_info(exported, chat)
    history = get_dict(chat, "history")
    messages, parents = _read_tree(history, chat)
    turns: dict[str, list[Turn]] = {}
    for key, message in messages.items():
        role_name = get_str(message, "role")
        role = _ROLES.get(role_name)
        if role is not None:
            message_turns = _make_turns(key, role, message)
            turns[key] = list(message_turns)
        elif role_name not in _IGNORED_ROLES:
            yield unknown_record(
                "role",
                role_name,
                unnamed="message without a role",
            )
    leaf = _active_leaf(history, messages)
    yield from branches.flatten_tree(parents, turns, leaf)


def _session_info(exported: Record, chat: Record) -> SessionInfo:
    title = get_str(exported, "title")
    if not title:
        title = get_str(chat, "title")
    session = get_str(exported, "id")
    if not session:
        session = get_str(chat, "id")
    if not session:
        created = get_time(exported, "created_at")
        session = f"untitled {title} {created}"
    updated = get_time(exported, "updated_at")
    return SessionInfo(session=session, title=title, updated=updated)


def _read_tree(history: Record, chat: Record) -> tuple[dict[str, Record], dict[str, str]]:
    """Return the messages by key, and the key of each one's parent."""
    messages: dict[str, Record] = {}
    parents: dict[str, str] = {}
    for key, value in get_dict(history, "messages").items():
        message = dict_or_empty(value)
        messages[key] = message
        parents[key] = get_str(message, "parentId")
    if messages:
        return messages, parents
    # The list beside the tree holds the active branch alone.
    parent = ""
    for number, message in enumerate(get_dicts(chat, "messages")):
        key = f"message-{number}"
        messages[key] = message
        parents[key] = parent
        parent = key
    return messages, parents


def _active_leaf(history: Record, messages: dict[str, Record]) -> str:
    """Return the key of the active branch's last message, else of the newest one; "" for none."""
    leaf = first_str(history, "currentId", "current_id")
    if leaf in messages:
        return leaf
    # Of several messages with the same time, the last one wins.
    newest_first = reversed(messages)
    return max(
        newest_first,
        key=lambda key: get_time(messages[key], "timestamp"),
        default="",
    )


def _make_turns(turn_id: str, role: Role, message: Record) -> Iterator[Turn]:
    at = get_time(message, "timestamp")
    text = join_text_blocks(message.get("content"), "text")
    tools: tuple[str, ...] = ()
    if role is Role.ANSWER:
        answer, tools = _split_details(text)
        text = _BOILERPLATE.remove_from(answer)
    image_count, documents = _split_files(message)
    if role is not Role.QUESTION:
        documents = []
    parts = ["[image]"] * image_count
    if text.strip():
        parts.insert(0, text)
    if not parts:
        # A question of documents alone consists of their names.
        parts = [f"[{_file_name(document)}]" for document in documents]
    if parts or tools:
        yield Turn(
            id=turn_id,
            role=role,
            text="\n\n".join(parts),
            at=at,
            model=get_str(message, "model"),
            tools=tools,
        )
    for number, document in enumerate(documents, 1):
        name = _file_name(document)
        document_text = _document_text(document)
        yield Turn(
            id=f"{turn_id}+{number}",
            role=Role.ATTACHMENT,
            text=f"{name}\n{document_text}",
            at=at,
        )


def _split_files(message: Record) -> tuple[int, list[Record]]:
    """Return how many images came with a message, and its other files."""
    image_count = 0
    documents: list[Record] = []
    for file in get_dicts(message, "files"):
        if file.get("type") == "image":
            image_count += 1
        else:
            documents.append(file)
    return image_count, documents


def _document_text(document: Record) -> str:
    inner = get_dict(document, "file")
    data = get_dict(inner, "data")
    content = get_str(data, "content")
    return content[:_MAX_ATTACHMENT_CHARS]


def _file_name(file: Record) -> str:
    name = get_str(file, "name")
    if name:
        return name
    inner = get_dict(file, "file")
    file_name = get_str(inner, "filename")
    return file_name or "attachment"


def _split_details(content: str) -> tuple[str, tuple[str, ...]]:
    """Return an answer without its `<details>` blocks, and the calls of tools in them.

    A block inside a code fence is quoted text and stays.
    """
    kept: list[str] = []
    tools: list[str] = []
    open_marker = ""
    in_details = False
    for line in content.split("\n"):
        rest = line
        is_prose = not open_marker and not in_details
        if is_prose and (details := _DETAILS.match(line)):
            rest = line[details.end() :]
            in_details = True
            tools += _parse_tool_calls(details)
        if in_details:
            _, end_tag, rest = rest.partition("</details>")
            in_details = not end_tag
            # Inside a block nothing is kept; below it, what follows the closing tag.
            if not rest.strip():
                continue
        open_marker = open_fence_after(rest, open_marker)
        kept.append(rest)
    return "\n".join(kept), tuple(tools)


def _parse_tool_calls(details: re.Match[str]) -> list[str]:
    """Return the line of a call of a tool; an empty list for a block of reasoning."""
    kind = details["type"]
    if kind == "reasoning":
        return []
    attributes = dict(_ATTRIBUTE.findall(details["attributes"]))
    escaped_name = attributes.get("name", "")
    name = html.unescape(escaped_name)
    if not name:
        name = kind
    escaped_arguments = attributes.get("arguments", "")
    arguments_text = html.unescape(escaped_arguments)
    arguments = _decode_twice(arguments_text)
    return [format_tool_call(name, arguments)]


def _decode_twice(text: str) -> object:
    """Decode JSON that may hold JSON in a string; what cannot be decoded is returned as it is."""
    value: object = text
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value
