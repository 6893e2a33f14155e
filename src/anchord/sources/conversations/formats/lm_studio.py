"""Reads LM Studio: a JSON file for each chat, rewritten as a whole.

Each message has versions, one of them selected. The others are answers that were regenerated; they
are superseded. Messages have neither times nor ids.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence

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
    list_or_empty,
    unknown_record,
    word_set,
)
from anchord.sources.conversations.formats.json_stream import stream_conversations

SOURCE = "lm-studio"

_SUFFIX = ".conversation.json"
_ROLES = {"user": Role.QUESTION, "assistant": Role.ANSWER}
_IGNORED_ROLES = frozenset({"system", "tool"})
_IGNORED_STEPS = word_set("debugInfoBlock citationBlock toolStatus status")
_TIME_KEYS = ("createdAt", "userLastMessagedAt", "assistantLastMessagedAt")
_BOILERPLATE = BoilerplateFilter(["think", "thinking"], [])


def matches(head: bytes, path: str) -> bool:
    """Return whether a file is a chat of LM Studio: by its suffix or its messages' versions.

    Args:
        head: the file's first bytes.
        path: the file's path, with "/".
    """
    without_bom = head.removeprefix(BOM_UTF8)
    is_object = without_bom.lstrip().startswith(b"{")
    if not is_object or b'"messages"' not in head:
        return False
    if path.endswith(_SUFFIX):
        return True
    if not path.endswith(".json"):
        return False
    return b'"currentlySelected"' in head and b'"versions"' in head


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield a chat and its turns. The file's name is the session's id."""
    _, _, file_name = transcript_file.path.rpartition("/")
    without_suffix = file_name.removesuffix(".json")
    session = without_suffix.removesuffix(".conversation")
    for chat in stream_conversations(transcript_file):
        if isinstance(chat, UnknownRecord):
            yield chat
            continue
        title = get_str(chat, "name")
        updated = max(get_time(chat, key) for key in _TIME_KEYS)
        yield SessionInfo(session=session, title=title, updated=updated)
        messages = get_list(chat, "messages")
        yield from _read_messages(messages)


def _read_messages(messages: Sequence[object]) -> Iterator[Event]:
    parents: dict[str, str] = {}
    turns: dict[str, list[Turn]] = {}
    leaf = ""
    for number, message in enumerate(map(dict_or_empty, messages)):
        versions = _versions(message)
        if not versions:
            yield UnknownRecord("message without versions")
            continue
        selected = _selected_index(message, len(versions))
        message_id = f"message-{number}"
        for index, version in enumerate(versions):
            key = message_id
            if index != selected:
                key = f"{message_id}-version-{index}"
            parents[key] = leaf
            role_name = get_str(version, "role")
            role = _ROLES.get(role_name)
            if role is not None:
                yield from _unknown_steps(version)
                version_turns = _make_turns(key, role, version)
                turns[key] = list(version_turns)
            elif role_name not in _IGNORED_ROLES:
                yield unknown_record(
                    "role",
                    role_name,
                    unnamed="version without a role",
                )
        # The next message answers the selected version.
        leaf = message_id
    yield from branches.flatten_tree(parents, turns, leaf)


def _versions(message: Record) -> list[Record]:
    """Return the versions of a message; in the oldest chats it is its own only version."""
    versions = get_dicts(message, "versions")
    if versions:
        return versions
    if "role" in message:
        return [message]
    return []


def _selected_index(message: Record, version_count: int) -> int:
    """Return the index of the selected version, the last one where the message names none."""
    selected = message.get("currentlySelected")
    if isinstance(selected, int) and 0 <= selected < version_count:
        return selected
    return version_count - 1


def _make_turns(turn_id: str, role: Role, version: Record) -> Iterator[Turn]:
    is_answer = role is Role.ANSWER
    steps = get_dicts(version, "steps")
    blocks = [step for step in steps if step.get("type") == "contentBlock"]
    text = _version_text(version, blocks)
    if is_answer:
        text = _BOILERPLATE.remove_from(text)
    parts = [
        dict_or_empty(part)
        for container in (version, *blocks)
        for part in get_list(container, "content")
    ]
    images = ["[image]" for part in parts if _is_image(part)]
    tools = tuple(
        format_tool_call(get_str(part, "name"), part.get("parameters"))
        for part in parts
        if part.get("type") == "toolCallRequest"
    )
    if text or images or tools:
        yield Turn(
            id=turn_id,
            role=role,
            text="\n\n".join(each for each in (text, *images) if each),
            model=_model_name(version, blocks) if is_answer else "",
            tools=tools,
        )


def _version_text(version: Record, blocks: Sequence[Record]) -> str:
    """Return the prose of a version and of its blocks, thoughts and results of tools left out."""
    texts: list[str] = []
    for container in (version, *filter(_is_answer_block, blocks)):
        content = container.get("content")
        text = _message_text(content)
        if text.strip():
            texts.append(text)
    return "\n\n".join(texts)


def _is_image(part: Record) -> bool:
    if part.get("type") != "file":
        return False
    return part.get("fileType") == "image"


def _model_name(version: Record, blocks: Sequence[Record]) -> str:
    if sender := get_str(get_dict(version, "senderInfo"), "senderName"):
        return sender
    for container in (version, *blocks):
        generation = get_dict(container, "genInfo")
        if model := get_str(generation, "indexedModelIdentifier"):
            return model
    return ""


def _is_answer_block(block: Record) -> bool:
    if block.get("role") == "tool":
        return False
    style = get_dict(block, "style")
    return style.get("type") != "thinking"


def _message_text(content: object) -> str:
    """Return the text of a content, its parts joined directly.

    With a draft model, LM Studio stores an answer in pieces of a few letters.
    """
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for value in list_or_empty(content):
        part = dict_or_empty(value)
        if part.get("type") != "text":
            continue
        text = get_str(part, "text")
        texts.append(text)
    return "".join(texts)


def _unknown_steps(version: Record) -> Iterator[UnknownRecord]:
    for step in get_dicts(version, "steps"):
        kind = get_str(step, "type")
        if kind != "contentBlock" and kind not in _IGNORED_STEPS:
            yield unknown_record("step", kind, unnamed="step without a type")
