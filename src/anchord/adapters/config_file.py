"""The configuration's file: read it, add a root, remove a root. The only user of tomlkit, which keeps comments and order."""

from __future__ import annotations

import os
from pathlib import Path

import tomlkit
from tomlkit.items import AoT

from anchord.config import Config, parse_config
from anchord.errors import ConfigError


def load_config(file: Path) -> Config:
    """Read the configuration; a missing file is an empty one.

    Raises:
        ConfigError: it cannot be read or is wrong.
    """
    return parse_config(_text(file), str(file))


def add_root(file: Path, path: str, kind: str, name: str) -> None:
    """Write a `[[root]]` at the end."""
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
    document = tomlkit.parse(_text(file))
    roots = document["root"]
    if len(roots) == 1:
        del document["root"]  # tomlkit would write `root = []`, which no [[root]] may follow
    else:
        del roots[index]
    _replace(file, tomlkit.dumps(document))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "mend the file or its permissions") from None


def _replace(file: Path, text: str) -> None:
    """Write a new file beside the old one and swap: a crash leaves one of the two, whole."""
    parse_config(text, str(file))
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(file)
