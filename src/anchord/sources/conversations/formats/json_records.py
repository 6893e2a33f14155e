"""What the readers of JSON share: typed access to records, and timestamps in one form.

Nothing here raises on a transcript's content: what does not fit gives an empty value or None.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import Line, UnknownRecord

Record = Mapping[str, Any]

_ISO = lazy_re(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?$")
_EPOCH = lazy_re(r"\d{9,14}(\.\d+)?")
_MIN_MILLISECONDS = 100_000_000_000
"""A larger number counts milliseconds: in seconds it would be the year 5138."""
_MAX_TOOL_CALL_CHARS = 20_000
"""More than is kept, `exchange_redaction.MAX_TOOL_CHARS`: secrets are replaced before the cut."""
_MAIN_ARGUMENTS = (
    "command",
    "cmd",
    "file_path",
    "path",
    "notebook_path",
    "pattern",
    "query",
    "url",
)
"""The arguments that say most of a tool's call, the first one that is set wins."""


def parse_lines(lines: Iterable[Line]) -> Iterator[tuple[int, Record] | UnknownRecord]:
    """Yield the byte offset and the object of each line.

    Blank lines are skipped; a line that is no JSON object gives `UnknownRecord("broken line")`.
    """
    for line in lines:
        record = parse_object(line.data)
        if record is not None:
            yield line.offset, record
        elif line.data.strip():
            yield UnknownRecord("broken line")


def parse_object(json_bytes: bytes) -> Record | None:
    """Return a JSON object, None for anything else. Invalid UTF-8 is replaced, a BOM is skipped."""
    try:
        value = json.loads(json_bytes.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_head_lines(head: bytes) -> list[Record]:
    """Return the JSON objects among the lines of a file's first bytes; other lines are skipped."""
    parsed = (parse_object(line) for line in head.split(b"\n"))
    return [record for record in parsed if record is not None]


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def dict_or_empty(value: object) -> Record:
    """Return a value that is a dict, and an empty one for any other."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: object) -> list[Any]:
    """Return a value that is a list, and an empty one for any other."""
    return value if isinstance(value, list) else []


def str_or_empty(value: object) -> str:
    """Return a value that is a string, and an empty one for any other."""
    return value if isinstance(value, str) else ""


def unknown_record(noun: str, name: str, unnamed: str) -> UnknownRecord:
    """Return the report of a record that a reader cannot use.

    Args:
        noun: what the record is, such as "message"; "" where its name says it all.
        name: the type that the record itself gives; "" if it gives none.
        unnamed: the report's kind where `name` is "".
    """
    return UnknownRecord(noun, name) if name else UnknownRecord(unnamed)


def join_text_blocks(content: object, *block_types: str) -> str:
    """Return the prose of a message.

    Args:
        content: a string, or a list of blocks with the keys `type` and `text`.
        block_types: the types of the blocks to read; others are skipped.

    Returns:
        The string as it is, or the blocks' texts with a blank line between them.
    """
    if isinstance(content, str):
        return content
    blocks = map(dict_or_empty, list_or_empty(content))
    texts = [
        str_or_empty(block.get("text")) for block in blocks if block.get("type") in block_types
    ]
    return "\n\n".join(text for text in texts if text.strip())


def normalize_timestamp(value: object) -> str:
    """Return a time as UTC in ISO 8601 with milliseconds and "Z".

    Args:
        value: seconds since 1970, or milliseconds above 10^11, as a number or as a string of 9 to
        14
            digits; or a date and time in ISO 8601, which is UTC where it has no zone.

    Returns:
        "2026-01-31T12:00:00.000Z"; "" for anything else, and for a time out of datetime's range.
    """
    if isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        return _format_epoch(value)
    if not isinstance(value, str):
        return ""
    if _EPOCH.fullmatch(value):
        return _format_epoch(value)
    return _format_iso(value.strip())


def _format_epoch(value: float | str) -> str:
    try:
        number = float(value)
        seconds = number / 1000 if number > _MIN_MILLISECONDS else number
        return _format_utc(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return ""


def _format_iso(text: str) -> str:
    match = _ISO.match(text)
    if not match:
        return ""
    day, clock, fraction, zone = match.groups()
    microseconds = f"{fraction or '0':0<6.6}"
    if zone in (None, "Z"):
        zone = "+00:00"
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}.{microseconds}{zone}")
        return _format_utc(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return ""


def _format_utc(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def format_tool_call(name: str, arguments: object) -> str:
    """Return a tool's call in one line, such as `[Bash] git status`.

    Args:
        name: the tool's name.
        arguments: the call's arguments as a dict or a string; a dict is represented by its command,
            path, pattern, query or URL, otherwise by its first string.

    Returns:
        The line, with whitespace collapsed; the name alone where no argument fits. An argument that
        is nested too deeply to be printed becomes "...".
    """
    argument = _main_argument(arguments)
    try:
        words = argument if isinstance(argument, list) else [argument]
        text = " ".join(map(str, words))
    except RecursionError:
        text = "..."
    on_one_line = " ".join(text.split())
    return f"[{name}] {on_one_line}"[:_MAX_TOOL_CALL_CHARS].rstrip()


def _main_argument(arguments: object) -> object:
    values = dict_or_empty(arguments)
    for key in _MAIN_ARGUMENTS:
        if value := values.get(key):
            return value
    for value in values.values():
        if isinstance(value, str):
            return value
    return str_or_empty(arguments)
