"""What the payloads of Codex's records say: typed texts, tool calls, parent sessions."""

from __future__ import annotations

from collections.abc import Iterator

from anchord.sources.conversations.events import Role, Turn
from anchord.sources.conversations.formats.boilerplate import BoilerplateFilter
from anchord.sources.conversations.formats.json_fields import (
    decode_json_text,
    get_dict,
    get_list,
    get_str,
)
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    list_or_empty,
    str_or_empty,
)

_BOILERPLATE = BoilerplateFilter(
    tags=[
        "user_instructions",
        "environment_context",
        "INSTRUCTIONS",
        "turn_aborted",
        "skill",
        "subagent_notification",
        "ide_context",
        "permissions instructions",
        "collaboration_mode",
        "user_action",
    ],
    prefixes=[("# AGENTS.md instructions for ", "</INSTRUCTIONS>")],
)
_IDE_CONTEXT = "# Context from my IDE setup:"
_REQUEST_HEADING = "## My request for Codex:"
_PATCHED_FILE_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ")


def parent_session(payload: Record) -> str:
    """Return the session that spawned the one of a `session_meta` payload, "" for none."""
    subagent = get_dict(get_dict(payload, "source"), "subagent")
    spawn = get_dict(subagent, "thread_spawn")
    parent = get_str(spawn, "parent_thread_id")
    return parent or get_str(payload, "parent_thread_id")


def event_question(payload: Record) -> str:
    """Return the question of a `user_message` event, without what the program wrote around it.

    Returns:
        The typed text, "[image]" for a message of images alone, "" for neither.
    """
    typed = _typed_text(get_str(payload, "message"))
    if typed:
        return typed
    images = get_list(payload, "images") or get_list(payload, "local_images")
    return "[image]" if images else ""


def item_question(content: object) -> str:
    """Return the question of a user's response item, without what the program wrote around it.

    Args:
        content: The item's `content`: a text or a list of blocks.

    Returns:
        The typed texts, "[image]" for a message of images alone, "" for neither.
    """
    if isinstance(content, str):
        return _typed_text(content)
    blocks = [dict_or_empty(block) for block in list_or_empty(content)]
    texts = [_typed_text(get_str(block, "text")) for block in blocks]
    typed = "\n\n".join(filter(None, texts))
    if typed:
        return typed
    return "[image]" if any(block.get("type") == "input_image" for block in blocks) else ""


def tool_call_turn(kind: str, offset: int, payload: Record, timestamp: str) -> Turn:
    """Return a tool call as an answer without text; a patch names the files that it changes.

    Args:
        kind: The item's type; it names a tool that has no name (`web_search_call`).
        offset: Byte offset of the record.
        payload: The item.
        timestamp: The record's time, "" for none.
    """
    tool = get_str(payload, "name") or kind.removesuffix("_call")
    arguments = _parse_arguments(payload)
    return Turn(
        id=f"at-{offset}",
        role=Role.ANSWER,
        text="",
        at=timestamp,
        tools=(format_tool_call(tool, arguments),),
        files=tuple(_patched_files(arguments)) if tool == "apply_patch" else (),
        offset=offset,
    )


def _typed_text(raw_text: str) -> str:
    """Return what the person typed of a message, without the context that the IDE puts before."""
    if raw_text.lstrip().startswith(_IDE_CONTEXT):
        raw_text = raw_text.partition(_REQUEST_HEADING)[2]
    return _BOILERPLATE.remove_from(raw_text)


def _parse_arguments(payload: Record) -> object:
    arguments = payload.get("arguments") or payload.get("input") or payload.get("action")
    return decode_json_text(arguments or "")


def _patched_files(arguments: object) -> Iterator[str]:
    """Yield the files that a patch adds, changes and deletes."""
    is_bare = isinstance(arguments, str)
    patch = arguments if is_bare else dict_or_empty(arguments).get("input")
    for line in str_or_empty(patch).splitlines():
        for mark in _PATCHED_FILE_MARKS:
            if line.startswith(mark):
                yield line.removeprefix(mark).strip()
