"""Edits of one table of a TOML text that keep everything else, to the byte.

The edits work on lines. Each result is parsed and compared with what it has to say; where the text
is written in a form that lines do not show, the edit is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")


class TomlTextError(ValueError):
    """A text is not TOML, or is written in a form that is not edited."""


def parse(text: str) -> dict[str, Any]:
    """Parse a text; a byte order mark and line ends of Windows are allowed.

    Raises:
        TomlTextError: It is no TOML; the message has the line.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        where = f"line {place[1]}, column {place[2]}" if place and place[1] else "at its end"
        raise TomlTextError(f"{where}: {_PLACE.sub('', str(error)).strip().lower()}") from None
    except RecursionError:
        raise TomlTextError("nested too deeply") from None


def add_table(text: str, name: tuple[str, str], values: Mapping[str, Any]) -> str:
    """Append a table.

    Args:
        text: The text.
        name: The two parts of its name; bare keys.
        values: Strings, lists of strings, and tables of strings.

    Raises:
        TomlTextError: The text is no TOML, or the table cannot be in it.
    """
    newline = _newline(text)
    table = newline.join(_table_lines(".".join(name), values))
    separator = newline if text.removeprefix("\ufeff") else ""
    if text and not text.endswith("\n"):
        longer = f"{text}{separator}{newline}{table}" if separator else text + table + newline
    else:
        longer = f"{text}{separator}{table}{newline}"
    wanted = parse(text)
    group = wanted.setdefault(name[0], {})
    if not isinstance(group, dict):
        raise TomlTextError(f"`{name[0]}` is no table")
    group[name[1]] = dict(values)
    return _checked(longer, wanted, name)


def remove_table(text: str, name: tuple[str, str]) -> str:
    """Cut a table and those below it, with the blank lines before it; the same text without one.

    Raises:
        TomlTextError: The text is no TOML, or the table is not written as one.
    """
    wanted = parse(text)
    group = wanted.get(name[0])
    if not isinstance(group, dict) or name[1] not in group:
        return text
    del group[name[1]]
    lines = text.splitlines(keepends=True)
    first, end = _table_range(lines, name)
    is_last = end == len(lines)
    if first and not lines[first - 1].strip("\r\n\ufeff"):
        first -= 1
    kept = lines[:first]
    if is_last and kept and not lines[-1].endswith("\n"):
        kept[-1] = kept[-1].rstrip("\r\n")
    shorter = "".join(kept + lines[end:])
    return _checked(shorter, wanted, name, may_lack_group=not group)


def set_values(text: str, name: tuple[str, str], values: Mapping[str, Any]) -> str:
    """Give keys of a table other values; its other keys and its comments stay.

    Args:
        text: The text.
        name: The table's; it is in the text.
        values: As for `add_table`. A table of strings is merged with the one that is there.

    Raises:
        TomlTextError: The text is no TOML, or the table is not written as one.
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            for inner, string in value.items():
                text = _set_value(text, (*name, key), inner, string)
        else:
            text = _set_value(text, name, key, value)
    return text


def remove_value(text: str, table: tuple[str, ...], key: str) -> str:
    """Cut a key of a table; the same text without one.

    Raises:
        TomlTextError: As `set_values`.
    """
    wanted = parse(text)
    values = _inner(wanted, table)
    if key not in values:
        return text
    del values[key]
    return _with_key_lines(text, table, key, [], wanted)


def _set_value(text: str, table: tuple[str, ...], key: str, value: Any) -> str:  # noqa: ANN401 - a TOML value
    wanted = parse(text)
    values = _inner(wanted, table)
    if values.get(key) == value:
        return text
    is_there = key in values
    values[key] = value
    newline = _newline(text)
    line = f"{key} = {_value(value)}{newline}"
    if is_there:
        return _with_key_lines(text, table, key, [line], wanted)
    lines = text.splitlines(keepends=True)
    try:
        first, _ = _table_range(lines, table)
    except TomlTextError:  # The table itself is new.
        _, end = _table_range(lines, table[:-1])
        piece = [newline, f"[{'.'.join(table)}]{newline}", line]
        if end and not lines[end - 1].endswith("\n"):
            lines[end - 1] += newline
        return _checked("".join(lines[:end] + piece + lines[end:]), wanted, table)
    if not lines[first].endswith("\n"):
        lines[first] += newline
    return _checked("".join([*lines[: first + 1], line, *lines[first + 1 :]]), wanted, table)


def _with_key_lines(
    text: str, table: tuple[str, ...], key: str, new: list[str], wanted: dict[str, Any]
) -> str:
    """Replace the lines of a key: the fewest with which the text says what it has to."""
    lines = text.splitlines(keepends=True)
    first, end = _table_range(lines, table)
    starts = (n for n in range(first, end) if re.match(rf'\s*"?{re.escape(key)}"?\s*=', lines[n]))
    for start in starts:
        for stop in range(start + 1, end + 1):
            candidate = "".join(lines[:start] + new + lines[stop:])
            if _says(candidate, wanted):
                return candidate
    raise _refusal(table)


def _table_range(lines: list[str], name: tuple[str, ...]) -> tuple[int, int]:
    """Return the first line of a table, and the one behind it and the tables below it."""
    parts = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in name)
    own = re.compile(rf"\ufeff?\s*\[\s*{parts}\s*\]")
    below = re.compile(rf"\s*\[\s*{parts}\s*\.")
    headers = [number for number, line in enumerate(lines) if own.match(line)]
    if not headers:
        raise _refusal(name)
    first = headers[-1]  # Others are lines of a string.
    end = first + 1
    while end < len(lines) and (not lines[end].lstrip().startswith("[") or below.match(lines[end])):
        end += 1
    # Blank lines and comments at the end belong to what follows.
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return first, end


def _inner(values: dict[str, Any], table: tuple[str, ...]) -> dict[str, Any]:
    for part in table:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise _refusal(table)
    return values


def _checked(
    text: str, wanted: dict[str, Any], name: tuple[str, ...], *, may_lack_group: bool = False
) -> str:
    without_group = {key: value for key, value in wanted.items() if key != name[0]}
    if _says(text, wanted) or (may_lack_group and _says(text, without_group)):
        return text
    raise _refusal(name)


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return parse(text) == wanted
    except TomlTextError:
        return False


def _refusal(name: tuple[str, ...]) -> TomlTextError:
    return TomlTextError(f"`{'.'.join(name)}` is not written as a table of its own")


def _table_lines(name: str, values: Mapping[str, Any]) -> list[str]:
    lines = [f"[{name}]"]
    lines += [f"{k} = {_value(v)}" for k, v in values.items() if not isinstance(v, Mapping)]
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += ["", *_table_lines(f"{name}.{key}", value)]
    return lines


def _value(value: Any) -> str:  # noqa: ANN401 - a TOML value
    """Return a string or a list of strings: JSON's escapes are TOML's but for U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
