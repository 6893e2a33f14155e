"""Claude.ai's export: `conversations.json`, an array of conversations, their messages in order."""

from __future__ import annotations

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
from anchord.sources.conversations.formats.json_fields import (
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
    join_text_blocks,
    normalize_timestamp,
    str_or_empty,
    word_set,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations

SOURCE = "claude-ai"

_ROLES = {"human": Role.QUESTION, "assistant": Role.ANSWER}
_BLOCK_TYPES = word_set("text thinking tool_use tool_result token_budget voice_note flag")
_PLACEHOLDER = "This block is not supported on your current device yet"
_FENCED_PLACEHOLDER = lazy_re(
    rf"^```[^\n]*\n{re.escape(_PLACEHOLDER)}[^\n]*\n```[^\S\n]*$\n?", re.MULTILINE
)
_MAX_ATTACHMENT_CHARS = 200_000
"""Characters kept of a pasted document."""


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a Claude.ai export.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    return path.endswith(".json") and b'"chat_messages"' in head


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the events of each conversation, in the export's order."""
    for conversation in stream_conversations(transcript_file):
        if isinstance(conversation, UnknownRecord):
            yield conversation
        elif "chat_messages" in conversation:
            yield from read_conversation(conversation)
        else:
            yield UnknownRecord("no conversation")


def read_conversation(conversation: Record) -> Iterator[Event]:
    """Yield the session of one conversation, its summary and its messages.

    Messages that are not on the active branch are superseded.
    """
    title = get_str(conversation, "name")
    updated = get_time(conversation, "updated_at")
    yield SessionInfo(
        session=_session_id(conversation, title),
        title=title,
        project=get_str(get_dict(conversation, "project"), "name"),
        updated=updated,
    )
    if summary := get_str(conversation, "summary"):
        yield Turn(
            id="summary",
            role=Role.SUMMARY,
            text=summary,
            at=updated,
        )
    messages = get_dicts(conversation, "chat_messages")
    leaf = get_str(conversation, "current_leaf_message_uuid")
    superseded_ids = _superseded_ids(messages, leaf)
    model = get_str(conversation, "model")
    for number, message in enumerate(messages):
        superseded = get_str(message, "uuid") in superseded_ids
        yield from _read_message(message, number, model, superseded=superseded)


def _session_id(conversation: Record, title: str) -> str:
    uuid = get_str(conversation, "uuid")
    return uuid or f"untitled {title} {normalize_timestamp(conversation.get('created_at'))}"


def _superseded_ids(messages: list[Record], leaf: str) -> set[str]:
    """Return the messages off the active branch; none where no two messages share a parent.

    Args:
        messages: All messages of a conversation.
        leaf: The last message of the active branch; the last of `messages` where it is unknown.
    """
    parent_of = {
        get_str(message, "uuid"): get_str(message, "parent_message_uuid") for message in messages
    }
    parents = [parent for parent in parent_of.values() if parent]
    if len(set(parents)) == len(parents):
        return set()
    uuid = leaf if leaf in parent_of else str_or_empty(messages[-1].get("uuid"))
    active = set[str]()
    while uuid in parent_of and uuid not in active:  # A circle ends where it closes.
        active.add(uuid)
        uuid = parent_of[uuid]
    return parent_of.keys() - active


def _read_message(message: Record, number: int, model: str, *, superseded: bool) -> Iterator[Event]:
    """Yield a message's turn, then one for each attached document with a text."""
    sender = get_str(message, "sender")
    if sender not in _ROLES:
        yield UnknownRecord("sender", sender)
        return
    role = _ROLES[sender]
    turn_id = get_str(message, "uuid") or f"message-{number}"
    timestamp = get_time(message, "created_at")
    blocks = get_dicts(message, "content")
    yield from _unknown_blocks(blocks)
    prose = _prose(message, blocks, role)
    names = _attachment_names(message)
    tools = tuple(_format_calls(blocks))
    # Attachments alone are a question; an answer of attachments alone says nothing.
    if prose or tools or (names and role is Role.QUESTION):
        yield Turn(
            id=turn_id,
            role=role,
            text=prose or names,
            at=timestamp,
            model=model if role is Role.ANSWER else "",
            tools=tools,
            superseded=superseded,
        )
    for document in _pasted_documents(message):
        yield Turn(
            id=f"{turn_id}+",
            role=Role.ATTACHMENT,
            text=document,
            at=timestamp,
            superseded=superseded,
        )


def _unknown_blocks(blocks: list[Record]) -> Iterator[UnknownRecord]:
    for block in blocks:
        kind = get_str(block, "type")
        if kind not in _BLOCK_TYPES:
            yield UnknownRecord("block", kind)


def _prose(message: Record, blocks: list[Record], role: Role) -> str:
    """Return the text of a message, "" where that is blank."""
    prose = join_text_blocks(blocks, "text")
    if not prose:
        # Old exports hold the text alone, without blocks.
        prose = get_str(message, "text")
        if role is Role.ANSWER:
            prose = _strip_placeholders(prose)
    return prose if prose.strip() else ""


def _format_calls(blocks: list[Record]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") == "tool_use":
            yield format_tool_call(get_str(block, "name"), block.get("input"))


def _attachment_names(message: Record) -> str:
    files = [*get_list(message, "attachments"), *get_list(message, "files")]
    return " ".join(f"[{_file_name(dict_or_empty(file))}]" for file in files)


def _file_name(file: Record) -> str:
    return get_str(file, "file_name") or "attachment"


def _pasted_documents(message: Record) -> Iterator[str]:
    """Yield the texts of attached documents, the name in the first line."""
    for file in get_dicts(message, "attachments"):
        content = get_str(file, "extracted_content")[:_MAX_ATTACHMENT_CHARS]
        if content.strip():
            yield f"{_file_name(file)}\n{content}"


def _strip_placeholders(message_text: str) -> str:
    """Return an answer's flattened copy without the placeholders of blocks, and their fences."""
    if _PLACEHOLDER not in message_text:
        return message_text
    unfenced = _FENCED_PLACEHOLDER.sub("", message_text)
    lines = unfenced.split("\n")
    return "\n".join(line for line in lines if not line.startswith(_PLACEHOLDER))
