"""What VS Code shows of the parts of an answer: Markdown, references, calls of tools."""

from __future__ import annotations

from anchord.sources.conversations.formats.json_fields import first_str, get_dict, get_str
from anchord.sources.conversations.formats.json_records import (
    Record,
    dict_or_empty,
    format_tool_call,
    str_or_empty,
)


def markdown_text(value: object) -> str:
    """Return the text of Markdown: a string, or an object that holds it in `value` or `content`."""
    if isinstance(value, str):
        return value
    record = dict_or_empty(value)
    inner = record.get("value", record.get("content"))
    return str_or_empty(inner) or get_str(dict_or_empty(inner), "value")


def reference_name(part: Record) -> str:
    """Return what VS Code shows of a reference to a symbol or a file: its name."""
    target = get_dict(part, "inlineReference")
    name = get_str(part, "name")
    if not name:
        name = get_str(target, "name")
    if name:
        return name
    uri = get_dict(target, "uri")
    if not uri:
        location = get_dict(target, "location")
        uri = get_dict(location, "uri")
    path = path_of_uri(uri or target)
    return path.rpartition("/")[2]


def path_of_uri(uri: Record) -> str:
    """Return the path of a URI as VS Code stores it, "" for none."""
    return first_str(uri, "path", "fsPath")


def format_call(part: Record) -> str:
    """Return the line of a call of a tool: its command, or else the message that VS Code shows."""
    tool_data = get_dict(part, "toolSpecificData")
    command_line = get_dict(tool_data, "commandLine")
    descriptions = (
        get_str(command_line, "userEdited"),
        get_str(command_line, "original"),
        get_str(tool_data, "command"),
        markdown_text(part.get("pastTenseMessage")),
        markdown_text(part.get("invocationMessage")),
    )
    description = next(filter(None, descriptions), "")
    return format_tool_call(get_str(part, "toolId") or "tool", description)
