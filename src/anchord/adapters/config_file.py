"""The configuration's file: read it, add a root, remove a root. The only user of tomlkit, which keeps comments and order."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from anchord.config import Config, parse_config
from anchord.errors import ConfigError, UsageError
from anchord.model import printable

_ROOT_HEAD = re.compile(r"\s*\[\[\s*root\s*\]\]")


def load_config(file: Path) -> Config:
    """Read the configuration; a missing file is an empty one.

    Raises:
        ConfigError: it cannot be read or is wrong.
    """
    return parse_config(_text(file), str(file))


def written_keys(file: Path) -> frozenset[str]:
    """Return the keys that the file sets, as `table.key`."""
    tables = {name: table for name, table in tomlkit.parse(_text(file)).unwrap().items() if isinstance(table, dict)}
    return frozenset(f"{name}.{key}" for name, table in tables.items() for key in table)


def add_root(file: Path, path: str, kind: str, name: str) -> None:
    """Write a `[[root]]` at the end.

    Raises:
        UsageError: the path is no text, which TOML alone can hold. ConfigError: the file cannot take a table.
    """
    if printable(path) != path:
        raise UsageError(f"{printable(path)}: its name is not UTF-8", "rename it, or give it to `anchord run` as PATH")
    document = tomlkit.parse(_text(file))
    if document.body:
        document.add(tomlkit.nl())
    table = tomlkit.table()
    table["path"] = path
    if kind != "project":
        table["kind"] = kind
    table["name"] = name
    roots = document.setdefault("root", tomlkit.aot())
    if not isinstance(roots, AoT):
        raise ConfigError(f"{file}: `root` is written as an inline array", "write each root as a [[root]] table")
    roots.append(table)
    _replace(file, tomlkit.dumps(document))


def remove_root(file: Path, index: int) -> None:
    """Take out the `[[root]]` at a place, counted from 0."""
    text = _text(file)
    document = tomlkit.parse(text)
    roots = document["root"]
    if len(roots) == 1:
        del document["root"]  # tomlkit would write `root = []`, which no [[root]] may follow
    else:
        del roots[index]
    lines = _without_table(text, index)
    # tomlkit takes the comments above the next table along; the lines alone do not, but know no TOML.
    _replace(file, lines if _values(lines) == document.unwrap() else tomlkit.dumps(document))


def _without_table(text: str, index: int) -> str:
    """Leave out the lines from a `[[root]]` to its last key."""
    lines = text.splitlines(keepends=True)
    heads = [number for number, line in enumerate(lines) if line.lstrip().startswith("[")]
    roots = [number for number in heads if _ROOT_HEAD.match(lines[number])]
    if index >= len(roots):
        return ""
    first = roots[index]
    last = min((number for number in heads if number > first), default=len(lines))
    while not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#"):
        last -= 1
    while first and last < len(lines) and not lines[first - 1].strip() and not lines[last].strip():
        last += 1
    return "".join(lines[:first] + lines[last:])


def _values(text: str) -> dict[str, Any] | None:
    try:
        return tomlkit.parse(text).unwrap()
    except TOMLKitError:
        return None


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "mend the file or its permissions") from None


def _replace(file: Path, text: str) -> None:
    """Write a new file beside the old one and swap: a crash leaves one of the two, whole. A link stays one."""
    parse_config(text, str(file))
    file = file.resolve()
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(file)
