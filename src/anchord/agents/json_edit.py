"""Edits of JSON texts that keep everything else: comments, order, formatting, line ends.

An edit inserts or cuts one piece of text. What `insert` or `append` added, `remove` cuts again to
the byte; for that it needs the text of before, which says what of the path was there already.
"""

from __future__ import annotations

import json
import re
from typing import Any

from anchord.agents.json_text import (
    JsonTextError,
    Node,
    Path,
    comments,
    ends_in_line_comment,
    parse,
    skip_blank,
)

_COMMENTS_OF_THE_LINE = re.compile(r"(?:[ \t]*(?:/\*(?:[^*\r\n]|\*(?!/))*\*/|//[^\r\n]*))*")
_INDENTED = re.compile(r"\n([ \t]+)[^ \t\r\n]")
_MARGIN = re.compile(r"[ \t]*")
_DEFAULT_INDENT = "  "


def insert(text: str, path: Path, value: object) -> str:
    """Set the member at a path; objects on the way are created.

    Args:
        text: JSON; or a blank text, or only comments, for a new object.
        path: Keys of objects.
        value: Any JSON value.

    Returns:
        The text with a new last member of the object, or with another value of the member.

    Raises:
        JsonTextError: The text is no JSON, a key on the path occurs twice, or something on the way
            is no object.
    """
    root = parse(text)
    style = _Style(text)
    if root is None:
        line_end = style.newline if text.strip("\ufeff") and not text.endswith("\n") else ""
        return text + line_end + style.render(_nest(path, value), "") + style.newline
    node, rest = _descend(text, root, path)
    if not rest:
        body = style.render(value, style.margin(node.start))
        return text[: node.start] + body + text[node.end :]
    if node.kind != "object":
        raise JsonTextError(text, node.start, f"an object is expected, for {json.dumps(rest[0])}")
    label = json.dumps(rest[0], ensure_ascii=False) + ": "
    return _add(text, node, label, _nest(rest[1:], value), style)


def append(text: str, path: Path, value: object) -> str:
    """Add an item to the array at a path; the array is created if need be.

    Raises:
        JsonTextError: As `insert`, or the value at the path is no array.
    """
    array = _find(text, parse(text), path)
    if array is None:
        return insert(text, path, [value])
    if array.kind != "array":
        raise JsonTextError(text, array.start, f"an array is expected at {json.dumps(path[-1])}")
    return _add(text, array, "", value, _Style(text))


def remove(text: str, path: Path, before: str | None = None) -> str:
    """Cut the member or item at a path, and the objects and arrays around it that are then empty.

    Args:
        text: JSON, also blank.
        path: Keys and positions.
        before: The text before the member was added; what it has on the path stays. None if that
            is not known.

    Returns:
        The text without it; the same text if there is no such member. If `before` is blank and
        nothing else is left, `before`.

    Raises:
        JsonTextError: The text is no JSON, or a key on the path occurs twice.
    """
    root = parse(text)
    if root is None or _find(text, root, path) is None:
        return text
    earlier = _parse_or_none(before)
    length = len(path)
    while length > 1 and not (earlier and earlier.find(path[: length - 1])):
        around = root.find(path[: length - 1])
        if around is None or len(around.members) > 1:
            break
        length -= 1
    shorter = _cut(text, root, path[:length])
    if before is not None and earlier is None and find_value(shorter, ()) == {}:
        return before
    return shorter


def find_value(text: str, path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value at a path; None if there is none.

    Raises:
        JsonTextError: The text is no JSON.
    """
    try:
        value = json.loads(text)
    except ValueError:  # Comments, or wrong.
        root = parse(text)
        value = root.value() if root else None
    except RecursionError:
        raise JsonTextError(text, 0, "nested too deeply") from None
    for key in path:
        is_there = isinstance(value, list) if isinstance(key, int) else isinstance(value, dict)
        if not is_there or (key not in value and not isinstance(key, int)):
            return None
        value = value[key]
    return value


class _Style:
    """The indentation and the line ends of a text."""

    def __init__(self, text: str) -> None:
        indented = _INDENTED.search(text)
        indent = indented[1] if indented else _DEFAULT_INDENT
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.indent = "\t" if "\t" in indent else indent

    def margin(self, at: int) -> str:
        """Return the white space with which the line of an offset begins."""
        line = self.text.rfind("\n", 0, at) + 1
        match = _MARGIN.match(self.text, line, at)
        return match[0] if match else ""

    def render(self, value: object, margin: str) -> str:
        """Return a value in lines of its own, the later ones with this margin."""
        lines = json.dumps(value, ensure_ascii=False, indent=self.indent).split("\n")
        return f"{self.newline}{margin}".join(lines)


def _nest(path: Path, value: object) -> object:
    for key in reversed(path):
        value = {key: value}
    return value


def _descend(text: str, root: Node, path: Path) -> tuple[Node, Path]:
    """Return the deepest value that exists on a path, and the rest of the path."""
    node = root
    for number, key in enumerate(path):
        found = node.named(key)
        if len(found) > 1:
            raise JsonTextError(text, found[1].start, f"the key {json.dumps(key)} occurs twice")
        if not found:
            return node, path[number:]
        node = found[0].node
    return node, ()


def _find(text: str, root: Node | None, path: Path) -> Node | None:
    if root is None:
        return None
    node, rest = _descend(text, root, path)
    return None if rest else node


def _add(text: str, node: Node, label: str, value: object, style: _Style) -> str:
    """Write a member behind the last one: in a line of its own if that one has its own."""
    if not node.members:
        outer = style.margin(node.start)
        inner = outer + style.indent
        at = _behind_comments(text, node.start + 1)
        body = label + style.render(value, inner)
        return text[:at] + f"{style.newline}{inner}{body}{style.newline}{outer}" + text[at:]
    last = node.members[-1]
    comma = skip_blank(text, last.node.end)
    has_comma = text.startswith(",", comma)
    at = _behind_comments(text, comma + 1 if has_comma else last.node.end)
    between = text[last.node.end : at]
    margin = style.margin(last.start)
    is_own_line = text[: last.start].endswith(f"\n{margin}")
    if is_own_line or "//" in between:
        body = style.newline + margin + label + style.render(value, margin)
    else:
        body = f" {label}{json.dumps(value, ensure_ascii=False)}"
    if has_comma:
        return text[:at] + body + "," + text[at:]
    return text[: last.node.end] + "," + between + body + text[at:]


def _behind_comments(text: str, at: int) -> int:
    """Return the offset behind the comments that follow in the same line."""
    match = _COMMENTS_OF_THE_LINE.match(text, at)
    return match.end() if match else at


def _cut(text: str, root: Node, path: Path) -> str:
    """Cut a member with its comma, and with the white space before it."""
    around = root.find(path[:-1]) or root
    number = [member.key for member in around.members].index(path[-1])
    member = around.members[number]
    start, previous_comma = around.start + 1, -1
    if number:
        previous_comma = skip_blank(text, around.members[number - 1].node.end)
        start = previous_comma + 1
    between = comments(text, start, member.start)
    start += len(between)
    style = _Style(text)
    end = member.node.end
    comma = skip_blank(text, end)
    left, right = text[:start], text[end:]
    if text.startswith(",", comma):
        right = text[end:comma] + text[comma + 1 :]
    elif number:
        left = text[:previous_comma] + text[previous_comma + 1 : start]
    else:
        right = right.removeprefix(style.newline + style.margin(around.start))  # As `_add` writes.
    if ends_in_line_comment(between) and right[:1] not in {"\r", "\n"}:
        left += style.newline
    return left + right


def _parse_or_none(text: str | None) -> Node | None:
    try:
        return parse(text) if text is not None else None
    except JsonTextError:
        return None
