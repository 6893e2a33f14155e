"""LM Studio: a JSON file a chat, rewritten as a whole; every message has versions, of which one is selected.

Versions that are not selected are answers that were asked for again: superseded. Messages have neither times nor names.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations import branches
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.noise import Noise
from anchord.sources.conversations.records import Record, items, table, text, time_of, tool_line, words

SOURCE = "lm-studio"

_ENDING = ".conversation.json"
_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_SILENT = frozenset({"system", "tool"})
_STEPS = words("debugInfoBlock citationBlock toolStatus status")
_NOISE = Noise(["think", "thinking"], [])


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is a chat: by its ending, or by the versions of its messages."""
    if not head.removeprefix(BOM_UTF8).lstrip().startswith(b"{") or b'"messages"' not in head:
        return False
    return path.endswith(_ENDING) or (path.endswith(".json") and b'"currentlySelected"' in head and b'"versions"' in head)


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of a chat, whose id is its file's name."""
    session = carrier.path.rpartition("/")[2].removesuffix(".json").removesuffix(".conversation")
    for chat in conversations(carrier):
        if isinstance(chat, Unknown):
            yield chat
            continue
        times = [time_of(chat.get(key)) for key in ("createdAt", "userLastMessagedAt", "assistantLastMessagedAt")]
        yield Head(session, title=text(chat.get("name")), updated=max(times))
        yield from _told(items(chat.get("messages")))


def _told(messages: list[object]) -> Iterator[Event]:
    above: dict[str, str] = {}
    turns: dict[str, list[Turn]] = {}
    last = ""
    for number, message in enumerate(map(table, messages)):
        versions = items(message.get("versions")) or ([message] if "role" in message else [])  # Very old chats have one.
        chosen = message.get("currentlySelected")
        selected = chosen if isinstance(chosen, int) and 0 <= chosen < len(versions) else len(versions) - 1
        for place, version in enumerate(map(table, versions)):
            key = f"message-{number}" if place == selected else f"message-{number}-version-{place}"
            above[key] = last
            role = text(version.get("role"))
            if role in _ROLES:
                yield from _unknown(version)
                turns[key] = list(_turn(key, _ROLES[role], version))
            elif role not in _SILENT:
                yield Unknown("role", str(role)) if role else Unknown("version without a role")
        if versions:
            last = f"message-{number}"
        else:
            yield Unknown("message without versions")
    yield from branches.told(above, turns, last)


def _turn(key: str, role: Role, version: Record) -> Iterator[Turn]:
    blocks = [table(step) for step in items(version.get("steps")) if table(step).get("type") == "contentBlock"]
    parts = [_said(version.get("content")), *(_said(block.get("content")) for block in blocks if _is_prose(block))]
    said = "\n\n".join(part for part in parts if part.strip())
    said = _NOISE.removed(said) if role is Role.ANSWER else said
    found = [table(each) for block in (version, *blocks) for each in items(block.get("content"))]
    images = ["[image]" for each in found if each.get("type") == "file" and each.get("fileType") == "image"]
    calls = [each for each in found if each.get("type") == "toolCallRequest"]
    tools = tuple(tool_line(text(call.get("name")), call.get("parameters")) for call in calls)
    named = [text(table(block.get("genInfo")).get("indexedModelIdentifier")) for block in (version, *blocks)]
    model = text(table(version.get("senderInfo")).get("senderName")) or next((name for name in named if name), "")
    if said or images or tools:
        text_of = "\n\n".join([*([said] if said else []), *images])
        yield Turn(key, role, text_of, model=model if role is Role.ANSWER else "", tools=tools)


def _is_prose(block: Record) -> bool:
    return table(block.get("style")).get("type") != "thinking" and block.get("role") != "tool"


def _said(content: object) -> str:
    """Return the text of a content: with a draft model, the answer stands there in pieces of a few letters."""
    if isinstance(content, str):
        return content
    return "".join(text(table(part).get("text")) for part in items(content) if table(part).get("type") == "text")


def _unknown(version: Record) -> Iterator[Unknown]:
    for step in map(table, items(version.get("steps"))):
        kind = text(step.get("type"))
        if kind != "contentBlock" and kind not in _STEPS:
            yield Unknown("step", str(kind)) if kind else Unknown("step without a type")
