"""JSON with comments and trailing commas, parsed with the position of everything in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_MAX_DEPTH = 200

Path = tuple[str | int, ...]
"""The way to a value: keys of objects and positions in arrays."""


class JsonTextError(ValueError):
    """A text is not JSON, or cannot be edited; has the place."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        """Create it.

        Args:
            text: The whole text.
            at: Offset of the problem.
            problem: What is wrong there.
        """
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1
        self.problem = problem
        super().__init__(f"line {self.line}, column {self.column}: {problem}")


class Member(NamedTuple):
    """A member of an object, or an item of an array."""

    start: int
    """Offset of its key, or of the item."""
    key: str | int
    """Its key, or its position."""
    node: Node


@dataclass(slots=True)
class Node:
    """A value and where it is: `text[start:end]`."""

    start: int
    end: int = 0
    kind: str = "scalar"
    """"object", "array" or "scalar"."""
    members: list[Member] = field(default_factory=list)
    scalar: Any = None

    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value; of equal keys the last one counts, as for JavaScript."""
        if self.kind == "object":
            return {member.key: member.node.value() for member in self.members}
        if self.kind == "array":
            return [member.node.value() for member in self.members]
        return self.scalar

    def find(self, path: Path) -> Node | None:
        """Return the value at a path below this one; None if there is none."""
        node = self
        for key in path:
            found = node.named(key)
            if not found:
                return None
            node = found[-1].node
        return node

    def named(self, key: str | int) -> Sequence[Member]:
        """Return all members of a key: an object can have several of one key."""
        return [member for member in self.members if member.key == key]


def parse(text: str) -> Node | None:
    """Parse a text.

    Args:
        text: JSON, also with comments, trailing commas and a byte order mark.

    Returns:
        The root; None if the text is blank but for comments.

    Raises:
        JsonTextError: It is no JSON.
    """
    at = skip_blank(text, 0)
    if at == len(text):
        return None
    node = _parse_value(text, at, 0)
    rest = skip_blank(text, node.end)
    if rest != len(text):
        raise JsonTextError(text, rest, "something follows the value")
    return node


def skip_blank(text: str, at: int) -> int:
    """Return the offset behind white space and comments."""
    match = _BLANK.match(text, at)
    end = match.end() if match else at
    if text.startswith("/*", end):
        raise JsonTextError(text, end, "a comment does not end")
    return end


def comments(text: str, start: int, end: int) -> str:
    """Return a part of a text that is blank but for comments, up to the end of the last one."""
    found = [match.end() for match in _COMMENT.finditer(text, start, end)]
    return text[start : found[-1]] if found else ""


def ends_in_line_comment(between: str) -> bool:
    """Return whether the last comment of what `comments` returned goes on until the line ends."""
    found = _COMMENT.findall(between)
    return bool(found) and found[-1].startswith("//")


def _parse_value(text: str, at: int, depth: int) -> Node:
    if depth > _MAX_DEPTH:
        raise JsonTextError(text, at, f"nested deeper than {_MAX_DEPTH} levels")
    if text.startswith("{", at):
        return _parse_members(text, Node(at, kind="object"), "}", depth)
    if text.startswith("[", at):
        return _parse_members(text, Node(at, kind="array"), "]", depth)
    match = (_STRING if text.startswith('"', at) else _SCALAR).match(text, at)
    if not match:
        raise JsonTextError(text, at, "a value is expected" if at < len(text) else "it ends early")
    return Node(at, match.end(), scalar=json.loads(match[0]))


def _parse_members(text: str, node: Node, closing: str, depth: int) -> Node:
    at = skip_blank(text, node.start + 1)
    while not text.startswith(closing, at):
        start = at
        key: str | int = len(node.members)
        if node.kind == "object":
            key, at = _parse_key(text, at)
        value = _parse_value(text, at, depth + 1)
        node.members.append(Member(start, key, value))
        at = skip_blank(text, value.end)
        if text.startswith(",", at):
            at = skip_blank(text, at + 1)
        elif not text.startswith(closing, at):
            raise JsonTextError(text, at, f"a comma or {closing} is expected")
    node.end = at + 1
    return node


def _parse_key(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if not match:
        raise JsonTextError(text, at, "a key in double quotes is expected")
    colon = skip_blank(text, match.end())
    if not text.startswith(":", colon):
        raise JsonTextError(text, colon, "a colon is expected")
    return json.loads(match[0]), skip_blank(text, colon + 1)
