"""Claude.ai's export: `conversations.json`, an array of conversations with their messages in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.records import Record, block_texts, items, table, text, time_of, tool_line

SOURCE = "claude-ai"

_KINDS = frozenset({"text", "thinking", "tool_use", "tool_result", "token_budget", "voice_note", "flag"})
_UNSUPPORTED = "This block is not supported on your current device yet"
_MOST_ATTACHED = 200_000
"""Characters of a pasted document."""


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is an export."""
    return path.endswith(".json") and b'"chat_messages"' in head


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of each conversation."""
    for conversation in conversations(carrier):
        if isinstance(conversation, Unknown):
            yield conversation
        elif "chat_messages" in conversation:
            yield from told(conversation)
        else:
            yield Unknown("no conversation")


def told(conversation: Record) -> Iterator[Event]:
    """Tell of one conversation. Retries are siblings where messages name their parents; the last of them is the active one."""
    created = time_of(conversation.get("created_at"))
    session = text(conversation.get("uuid")) or f"untitled {text(conversation.get('name'))} {created}"
    project = text(table(conversation.get("project")).get("name"))
    yield Head(session, text(conversation.get("name")), project, updated=time_of(conversation.get("updated_at")))
    messages = [table(message) for message in items(conversation.get("chat_messages"))]
    left = _left(messages, text(conversation.get("current_leaf_message_uuid")))
    model = text(conversation.get("model"))
    if summary := text(conversation.get("summary")):
        yield Turn("summary", Role.SUMMARY, summary, at=time_of(conversation.get("updated_at")))
    for number, message in enumerate(messages):
        yield from _message(message, number, model, superseded=text(message.get("uuid")) in left)


def _left(messages: list[Record], leaf: str) -> set[str]:
    """Return the messages that are not on the branch of the newest one, where the export has branches at all."""
    above = {text(message.get("uuid")): text(message.get("parent_message_uuid")) for message in messages}
    siblings = [parent for parent in above.values() if parent]
    if len(set(siblings)) == len(siblings):
        return set()
    at, active = leaf if leaf in above else text(messages[-1].get("uuid")), set[str]()
    while at in above and at not in active:
        active.add(at)
        at = above[at]
    return above.keys() - active


def _message(message: Record, number: int, model: str, *, superseded: bool) -> Iterator[Event]:
    uuid, at = text(message.get("uuid")) or f"message-{number}", time_of(message.get("created_at"))
    sender = text(message.get("sender"))
    if sender not in ("human", "assistant"):
        yield Unknown("sender", str(sender))
        return
    role = Role.QUESTION if sender == "human" else Role.ANSWER
    blocks = [table(block) for block in items(message.get("content"))]
    for kind in (text(block.get("type")) for block in blocks):
        if kind not in _KINDS:
            yield Unknown("block", str(kind))
    said = block_texts(blocks, "text") or _flat(text(message.get("text")), role)
    calls = tuple(tool_line(text(b.get("name")), b.get("input")) for b in blocks if b.get("type") == "tool_use")
    attached = [table(each) for each in items(message.get("attachments"))]
    named = [*attached, *(table(each) for each in items(message.get("files")))]
    if said.strip() or calls or (role is Role.QUESTION and named):
        names = " ".join(f"[{text(each.get('file_name')) or 'attachment'}]" for each in named)
        answered = model if role is Role.ANSWER else ""
        yield Turn(uuid, role, said if said.strip() else names, at, answered, calls, superseded=superseded)
    for each in attached:
        content = text(each.get("extracted_content"))[:_MOST_ATTACHED]
        if content.strip():
            name = text(each.get("file_name")) or "attachment"
            yield Turn(f"{uuid}+", Role.ATTACHMENT, f"{name}\n{content}", at, superseded=superseded)


def _flat(said: str, role: Role) -> str:
    """Return a flattened copy of an answer without what stands in it for blocks that it cannot hold, and their fences."""
    if role is Role.QUESTION or _UNSUPPORTED not in said:
        return said
    fenced = re.sub(rf"^```[^\n]*\n{re.escape(_UNSUPPORTED)}[^\n]*\n```[^\S\n]*$\n?", "", said, flags=re.MULTILINE)
    return "\n".join(line for line in fenced.split("\n") if not line.startswith(_UNSUPPORTED))
