"""Editing the configuration file.

This is the only module that uses tomlkit, which preserves the comments and the order of a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from anchord.config.file import read_text
from anchord.config.schema import ModelConfig, parse_config
from anchord.core.quoting import escape_non_utf8
from anchord.errors import ConfigError, UsageError

_ROOT_HEADER = re.compile(r"\s*\[\[\s*root\s*\]\]")
_HEADER_BELOW_ROOT = re.compile(r"\s*\[\s*root\s*\.")


def add_root(file: Path, path: str, kind: str, name: str) -> None:
    """Append a [[root]] table to the file, creating the file when it is missing.

    Args:
        file: The configuration file.
        path: Absolute path of the folder.
        kind: "project" or "conversations".
        name: Name of the root; not in use yet.

    Raises:
        UsageError: The path is not UTF-8, and TOML can hold nothing else.
        ConfigError: The file is wrong, or `root` is an inline array in it.
    """
    if escape_non_utf8(path) != path:
        raise UsageError(
            f"{escape_non_utf8(path)}: its name is not UTF-8",
            "rename it, or pass it to `anchord run` as PATH",
        )
    document = tomlkit.parse(read_text(file))
    if document.body:
        document.add(tomlkit.nl())
    table = tomlkit.table()
    table["path"] = path
    if kind != "project":
        table["kind"] = kind
    table["name"] = name
    roots = document.setdefault("root", tomlkit.aot())
    if not isinstance(roots, AoT):
        raise ConfigError(
            f"{file}: `root` is written as an inline array", "write each root as a [[root]] table"
        )
    roots.append(table)
    _replace_file(file, tomlkit.dumps(document))


def remove_root(file: Path, index: int) -> None:
    """Remove a root from the file, with the comments inside its table.

    Args:
        file: The configuration file.
        index: Position of the [[root]] table in the file, from 0.

    Raises:
        ConfigError: The file cannot be read, or would not be valid without the root; nothing was
            written.
    """
    text = read_text(file)
    document = tomlkit.parse(text)
    roots = document["root"]
    if len(roots) == 1:
        del document["root"]  # tomlkit would write `root = []`, which no [[root]] may follow.
    else:
        del roots[index]
    # tomlkit also removes the comment above the next table; cutting out the lines does not. But the
    # cut works on lines alone, so it counts only where both give the same values.
    shorter_text = _without_root_lines(text, index)
    is_same = _parse_or_none(shorter_text) == document.unwrap()
    _replace_file(file, shorter_text if is_same else tomlkit.dumps(document))


def add_model(file: Path, model: ModelConfig) -> None:
    """Write a [[model]] table, in place of the one of its name if there is one.

    Args:
        file: The configuration file; created when it is missing.
        model: The model.

    Raises:
        UsageError: The path is not UTF-8, and TOML can hold nothing else.
        ConfigError: The file is wrong, or `model` is an inline array in it.
    """
    if escape_non_utf8(model.path + model.name) != model.path + model.name:
        raise UsageError(
            f"{escape_non_utf8(model.path)}: its name is not UTF-8", "rename the folder"
        )
    document = tomlkit.parse(read_text(file))
    if document.body and "model" not in document:
        document.add(tomlkit.nl())
    models = document.setdefault("model", tomlkit.aot())
    if not isinstance(models, AoT):
        raise ConfigError(
            f"{file}: `model` is written as an inline array", "write each one as a [[model]] table"
        )
    files = tomlkit.table()
    files.update(model.files)
    table = tomlkit.table()
    table.update({"name": model.name, "path": model.path, "digest": model.digest, "files": files})
    names = [str(each.get("name", "")) for each in models]
    if model.name in names:
        models[names.index(model.name)] = table
    else:
        models.append(table)
    _replace_file(file, tomlkit.dumps(document))


def remove_model(file: Path, name: str) -> None:
    """Remove the [[model]] table of a name from the file.

    Raises:
        ConfigError: The file cannot be read, or would not be valid without it.
    """
    document = tomlkit.parse(read_text(file))
    models = document["model"]
    names = [str(each.get("name", "")) for each in models]
    if len(models) == 1:
        del document["model"]
    else:
        del models[names.index(name)]
    _replace_file(file, tomlkit.dumps(document))


def move_paths(file: Path, names: Sequence[str], move: Callable[[str], str]) -> None:
    """Replace the folders of all roots, and that of the table.

    A root without a name gets its present one: the name that its new folder would give it may be
    another, and the index knows roots by their names.

    Args:
        file: The configuration file.
        names: The present names of its roots, in their order.
        move: Returns the new path for an old one, or the same path.

    Raises:
        ConfigError: The file cannot be read, or would be wrong.
    """
    document = tomlkit.parse(read_text(file))
    for root, name in zip(document.get("root", ()), names, strict=True):
        root["path"] = move(str(root["path"]))
        root.setdefault("name", name)
    store = document.get("store", {})
    if "uri" in store:
        store["uri"] = move(str(store["uri"]))
    _replace_file(file, tomlkit.dumps(document))


def _without_root_lines(text: str, index: int) -> str:
    """Remove the lines from a [[root]] header to the last key of that table and of those below it.

    Returns:
        The shorter text, or "" when there are not that many headers.
    """
    lines = text.splitlines(keepends=True)
    headers = [number for number, line in enumerate(lines) if line.lstrip().startswith("[")]
    root_headers = [number for number in headers if _ROOT_HEADER.match(lines[number])]
    if index >= len(root_headers):
        return ""
    first = root_headers[index]
    later_tables = [
        number
        for number in headers
        if number > first and not _HEADER_BELOW_ROOT.match(lines[number])
    ]
    end = min(later_tables, default=len(lines))
    # Blank lines and comments at the end belong to the next table.
    while _is_blank_or_comment(lines[end - 1]):
        end -= 1
    # Of blank lines before and after the table only those before it stay.
    is_blank_before = first > 0 and not lines[first - 1].strip()
    while is_blank_before and end < len(lines) and not lines[end].strip():
        end += 1
    return "".join(lines[:first] + lines[end:])


def _is_blank_or_comment(line: str) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith("#")


def _parse_or_none(text: str) -> dict[str, Any] | None:
    try:
        return tomlkit.parse(text).unwrap()
    except TOMLKitError:
        return None


def _replace_file(file: Path, text: str) -> None:
    """Check a text and replace the file with it; a crash leaves the old file or the new one.

    Where the file is a symbolic link, the file behind it is replaced.
    """
    parse_config(text, str(file))
    target = file.resolve()
    new_file = target.with_name(f".{target.name}.{os.getpid()}")
    with new_file.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new_file.replace(target)
