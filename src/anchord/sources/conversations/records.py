"""What the readers of JSON share: a line as an object, texts of content blocks, times in one form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from anchord.conversation import Line, Unknown

Record = Mapping[str, Any]

_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?$")
_MILLISECONDS = 100_000_000_000
"""Numbers above it are milliseconds: as seconds it is the year 5138."""
_TOOL_CHARS = 200


def records(lines: Iterable[Line]) -> Iterator[tuple[int, Record] | Unknown]:
    """Yield each line's offset and object; a line that is none is told of. Blank lines are nothing."""
    for line in lines:
        record = parsed(line.data)
        if record is not None:
            yield line.offset, record
        elif line.data.strip():
            yield Unknown("broken line")


def parsed(data: bytes) -> Record | None:
    """Return a JSON object, None for anything else."""
    try:
        value = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def first_records(head: bytes) -> list[Record]:
    """Return the objects of the whole lines at the beginning of a file."""
    found = (parsed(line) for line in head.split(b"\n"))
    return [record for record in found if record is not None]


def words(listed: str) -> frozenset[str]:
    """Return the words of a text as a set: names of records that a reader knows and passes over."""
    return frozenset(listed.split())


def table(value: object) -> Record:
    """Return a value that should be an object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return a value that should be a list; anything else is an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a value that should be a text; anything else is an empty one."""
    return value if isinstance(value, str) else ""


def block_texts(content: object, *kinds: str) -> str:
    """Return the prose of a message: a text, or the texts of its blocks of these kinds, with blank lines between."""
    if isinstance(content, str):
        return content
    found = [text(table(block).get("text")) for block in items(content) if table(block).get("type") in kinds]
    return "\n\n".join(each for each in found if each.strip())


def time_of(value: object) -> str:
    """Return a time of any form that sources use as UTC in ISO 8601 with milliseconds, "" for what is none."""
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, int | float) or (isinstance(value, str) and re.fullmatch(r"\d{9,14}(\.\d+)?", value)):
        try:
            number = float(value)
            moment = datetime.fromtimestamp(number / 1000 if number > _MILLISECONDS else number, UTC)
        except (ValueError, OverflowError, OSError):
            return ""
        return _written(moment)
    found = _ISO.match(value.strip()) if isinstance(value, str) else None
    if not found:
        return ""
    day, clock, fraction, zone = found.groups()
    zone = "+00:00" if zone in (None, "Z") else zone
    try:
        return _written(datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0'):0<6.6}{zone}").astimezone(UTC))
    except (ValueError, OverflowError):
        return ""


def _written(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def tool_line(name: str, given: object) -> str:
    """Return a call of a tool in one line: `[Bash] git status`."""
    values = table(given)
    named = (values.get(key) for key in ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url"))
    chosen = next((value for value in named if value), None)
    if chosen is None:
        chosen = next((value for value in values.values() if isinstance(value, str)), given if isinstance(given, str) else "")
    try:
        said = " ".join(map(str, chosen)) if isinstance(chosen, list) else str(chosen)
    except RecursionError:
        said = "..."
    return f"[{name}] {' '.join(said.split())}"[:_TOOL_CHARS].rstrip()
