"""ChatGPT's export: a conversation is a tree of messages; the branch up from `current_node` is the one that was seen last.

Answers that were asked for again and questions that were edited are told as superseded; no child is ever taken by its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from anchord.conversation import Carrier, Event, Head, Role, Turn, Unknown
from anchord.sources.conversations.exported import conversations
from anchord.sources.conversations.records import Record, items, table, text, time_of, words

SOURCE = "chatgpt"

_PROSE = frozenset({"text", "multimodal_text"})
_SILENT = words(
    "code execution_output tether_browsing_display tether_quote tether_browsing_code thoughts reasoning_recap "
    "user_editable_context model_editable_context system_error sonic_webpage computer_output "
    "app_pairing_content"
)
_CITATIONS = re.compile("\ue200[^\ue200\ue201]*\ue201|[\ue200-\ue206]|【\\d{1,6}†[^【】]{0,500}】")

Nodes = Mapping[str, Record]


def recognises(head: bytes, path: str) -> bool:
    """Whether a file is an export, a shard of one, or a single conversation."""
    return path.endswith(".json") and all(key in head for key in (b'"mapping"', b'"parent"', b'"children"', b'"message"'))


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of each conversation."""
    for conversation in conversations(carrier):
        if isinstance(conversation, Unknown):
            yield conversation
        elif isinstance(conversation.get("mapping"), dict):
            yield from told(conversation)
        elif isinstance(table(conversation.get("raw_provider_payload")).get("mapping"), dict):  # What a browser extension kept.
            yield from told(table(conversation.get("raw_provider_payload")))
        else:
            yield Unknown("no conversation")


def told(conversation: Record) -> Iterator[Event]:
    """Tell of one conversation: the active branch first, then what was superseded, branch by branch."""
    nodes: Nodes = {key: table(node) for key, node in table(conversation.get("mapping")).items()}
    session = text(conversation.get("conversation_id")) or text(conversation.get("id"))
    yield Head(
        session or f"untitled {text(conversation.get('title'))} {time_of(conversation.get('create_time'))}",
        title=text(conversation.get("title")),
        project=text(conversation.get("gizmo_id")),
        updated=time_of(conversation.get("update_time")),
    )
    parents = {text(node.get("parent")) for node in nodes.values()}
    leaves = [key for key in nodes if key not in parents]
    current = text(conversation.get("current_node"))
    if current not in nodes:
        current = max(leaves, key=lambda key: _at(nodes[key]), default="")
    active = _up_from(current, nodes)
    yield from _turns(active, nodes)
    told_of = set(active)
    for leaf in leaves:
        branch = _up_from(leaf, nodes)
        fresh = [key for key in branch if key not in told_of]
        told_of.update(fresh)
        if fresh:
            yield from _superseded(branch, fresh, nodes)


def _up_from(key: str, nodes: Nodes) -> list[str]:
    """Return the keys from the root down to one; a circle ends where it closes."""
    path: dict[str, None] = {}
    while key in nodes and key not in path:
        path[key] = None
        key = text(nodes[key].get("parent"))
    return list(path)[::-1]


def _turns(keys: Sequence[str], nodes: Nodes) -> Iterator[Turn | Unknown]:
    for key in keys:
        turn = _turn(key, table(nodes[key].get("message")))
        if turn is not None:
            yield turn


def _superseded(branch: Sequence[str], fresh: Sequence[str], nodes: Nodes) -> Iterator[Turn | Unknown]:
    """Tell of what only this branch has; where that begins with an answer, its question is told again under another name."""
    turns = [turn for turn in _turns(fresh, nodes) if isinstance(turn, Turn)]
    if turns and turns[0].role is not Role.QUESTION:
        before = [turn for turn in _turns(branch[: branch.index(fresh[0])], nodes) if isinstance(turn, Turn)]
        asked = next((turn for turn in reversed(before) if turn.role is Role.QUESTION), None)
        if asked is not None:
            turns = [replace(asked, id=f"{asked.id}~{turns[0].id}"), *turns]
    yield from (replace(turn, superseded=True) for turn in turns)


def _turn(key: str, message: Record) -> Turn | Unknown | None:
    author, content, about = table(message.get("author")), table(message.get("content")), table(message.get("metadata"))
    role, kind = author.get("role"), text(content.get("content_type"))
    hidden = about.get("is_visually_hidden_from_conversation") or about.get("is_user_system_message")
    if not message or role not in ("user", "assistant") or hidden or message.get("weight") == 0 or kind in _SILENT:
        return None
    if role == "assistant" and message.get("recipient", "all") not in ("all", None):
        return None
    parts = [part for part in map(_part, items(content.get("parts"))) if part.strip()] or [text(content.get("text"))]
    said = _CITATIONS.sub("", "\n\n".join(parts))
    if role == "user" and not said.strip():
        names = [text(table(each).get("name")) or "attachment" for each in items(about.get("attachments"))]
        said = " ".join(f"[{name}]" for name in names)
    if not said.strip():
        return None if kind in _PROSE else Unknown("content", str(kind))
    who = Role.QUESTION if role == "user" else Role.ANSWER
    return Turn(key, who, said, at=time_of(message.get("create_time")), model=text(about.get("model_slug")))


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    kind = text(table(part).get("content_type"))
    if kind == "audio_transcription":
        return text(table(part).get("text"))
    return "[image]" if kind == "image_asset_pointer" else ""


def _at(node: Record) -> float:
    at = table(node.get("message")).get("create_time")
    try:
        return float(at) if isinstance(at, int | float) else 0.0
    except OverflowError:
        return 0.0
