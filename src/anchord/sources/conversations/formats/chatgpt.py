"""ChatGPT's export: conversations are trees of messages. The branch above `current_node` is active.

Regenerated answers and edited questions are superseded. The order of a node's children says
nothing, so this reader ignores it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
    str_or_empty,
    word_set,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations

SOURCE = "chatgpt"

_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_EXPORT_KEYS = (b'"mapping"', b'"parent"', b'"children"', b'"message"')
_PROSE_TYPES = frozenset({"text", "multimodal_text"})
_IGNORED_TYPES = word_set(
    "code execution_output tether_browsing_display tether_quote tether_browsing_code thoughts "
    "reasoning_recap user_editable_context model_editable_context system_error sonic_webpage "
    "computer_output app_pairing_content"
)
_CITATIONS = lazy_re("\ue200[^\ue200\ue201]*\ue201|[\ue200-\ue206]|【\\d{1,6}†[^【】]{0,500}】")

Nodes = Mapping[str, Record]


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is an export, one shard of it, or a single conversation.

    Args:
        head: The first bytes of the file, at most `registry.HEAD_BYTES`.
        path: The path relative to its root, with "/".
    """
    return path.endswith(".json") and all(key in head for key in _EXPORT_KEYS)


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the events of each conversation, in the export's order."""
    for conversation in stream_conversations(transcript_file):
        if isinstance(conversation, UnknownRecord):
            yield conversation
            continue
        # A browser extension wraps what it saved of ChatGPT's answer.
        wrapped = get_dict(conversation, "raw_provider_payload")
        if isinstance(conversation.get("mapping"), dict):
            yield from read_conversation(conversation)
        elif isinstance(wrapped.get("mapping"), dict):
            yield from read_conversation(wrapped)
        else:
            yield UnknownRecord("no conversation")


def read_conversation(conversation: Record) -> Iterator[Event]:
    """Yield one conversation: the active branch first, then each superseded branch."""
    yield _session_info(conversation)
    mapping = get_dict(conversation, "mapping")
    nodes: Nodes = {key: dict_or_empty(node) for key, node in mapping.items()}
    parents = {get_str(node, "parent") for node in nodes.values()}
    leaves = [key for key in nodes if key not in parents]
    current = get_str(conversation, "current_node")
    if current not in nodes:
        current = max(
            leaves,
            key=lambda key: _created_at(nodes[key]),
            default="",
        )
    active = _path_from_root(current, nodes)
    yield from _make_turns(active, nodes)
    visited = set(active)
    for leaf in leaves:
        branch = _path_from_root(leaf, nodes)
        new_keys = [key for key in branch if key not in visited]
        visited.update(new_keys)
        if new_keys:
            yield from _superseded_turns(branch, new_keys, nodes)


def _session_info(conversation: Record) -> SessionInfo:
    title = get_str(conversation, "title")
    created = get_time(conversation, "create_time")
    session = get_str(conversation, "conversation_id")
    session = session or get_str(conversation, "id")
    return SessionInfo(
        session=session or f"untitled {title} {created}",
        title=title,
        project=get_str(conversation, "gizmo_id"),
        updated=get_time(conversation, "update_time"),
    )


def _path_from_root(key: str, nodes: Nodes) -> list[str]:
    """Return the keys from the root down to one; a circle ends where it closes."""
    path: dict[str, None] = {}
    while key in nodes and key not in path:
        path[key] = None
        key = str_or_empty(nodes[key].get("parent"))
    return list(path)[::-1]


def _make_turns(keys: Sequence[str], nodes: Nodes) -> Iterator[Turn | UnknownRecord]:
    for key in keys:
        message = dict_or_empty(nodes[key].get("message"))
        if _is_prose(message):
            yield from _message_turns(key, message)


def _superseded_turns(
    branch: Sequence[str], new_keys: Sequence[str], nodes: Nodes
) -> Iterator[Turn]:
    """Yield what only this branch has.

    Where that begins with an answer, its question comes first, as a copy with an id of its own:
    so the answer is not lost, and the active branch's question does not get it.

    Args:
        branch: All keys of the branch, from the root down.
        new_keys: The keys of the branch that no earlier branch had.
        nodes: All nodes of the conversation.
    """
    turns = _known_turns(new_keys, nodes)
    if turns and turns[0].role is not Role.QUESTION:
        shared = _known_turns(branch[: branch.index(new_keys[0])], nodes)
        questions = [turn for turn in shared if turn.role is Role.QUESTION]
        if questions:
            question = questions[-1]
            copy_id = f"{question.id}~{turns[0].id}"
            turns.insert(0, replace(question, id=copy_id))
    yield from (replace(turn, superseded=True) for turn in turns)


def _known_turns(keys: Sequence[str], nodes: Nodes) -> list[Turn]:
    return [turn for turn in _make_turns(keys, nodes) if isinstance(turn, Turn)]


def _is_prose(message: Record) -> bool:
    """Return whether a person saw a message in the chat and wrote it or was its addressee."""
    role = get_dict(message, "author").get("role")
    if role not in ("user", "assistant"):
        return False
    metadata = get_dict(message, "metadata")
    if metadata.get("is_visually_hidden_from_conversation"):
        return False
    if metadata.get("is_user_system_message") or message.get("weight") == 0:
        return False
    if role == "assistant" and message.get("recipient") not in ("all", None):
        return False  # The model called a tool.
    return _content_type(message) not in _IGNORED_TYPES


def _content_type(message: Record) -> str:
    return get_str(get_dict(message, "content"), "content_type")


def _message_turns(key: str, message: Record) -> Iterator[Turn | UnknownRecord]:
    role = _ROLES[get_dict(message, "author")["role"]]
    metadata = get_dict(message, "metadata")
    text = _message_text(get_dict(message, "content"))
    if role is Role.QUESTION and not text.strip():
        text = _attachment_names(metadata)
    if text.strip():
        yield Turn(
            id=key,
            role=role,
            text=text,
            at=get_time(message, "create_time"),
            model=get_str(metadata, "model_slug"),
        )
    elif _content_type(message) not in _PROSE_TYPES:
        yield UnknownRecord("content", _content_type(message))


def _message_text(content: Record) -> str:
    parts = [part for part in map(_part_text, get_list(content, "parts")) if part.strip()]
    text = "\n\n".join(parts) if parts else get_str(content, "text")
    return _CITATIONS.sub("", text)


def _part_text(part: object) -> str:
    """Return what a part of a message says; "" for one without words."""
    if isinstance(part, str):
        return part
    fields = dict_or_empty(part)
    kind = get_str(fields, "content_type")
    if kind == "audio_transcription":
        return get_str(fields, "text")
    return "[image]" if kind == "image_asset_pointer" else ""


def _attachment_names(metadata: Record) -> str:
    files = get_dicts(metadata, "attachments")
    names = [get_str(file, "name") or "attachment" for file in files]
    return " ".join(f"[{name}]" for name in names)


def _created_at(node: Record) -> float:
    """Return a message's time in seconds since 1970, 0 where it has none that a float can hold."""
    created = get_dict(node, "message").get("create_time")
    if not isinstance(created, int | float):
        return 0.0
    try:
        return float(created)
    except OverflowError:
        return 0.0
