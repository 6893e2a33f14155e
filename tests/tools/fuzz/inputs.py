"""How targets read their input: a first line of options, and a body.

Any bytes are an input. An unknown word selects an option by its hash, so that a mutated first line stays valid; a
person can read and write an input, and a minimised one shows its cause.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MEMBER = b"=== "


def headed(data: bytes) -> tuple[str, bytes]:
    """Take an input apart: its first line, and the rest."""
    head, _, body = data.partition(b"\n")
    return head.decode("utf-8", "replace"), body


def word(words: Sequence[str], place: int) -> str:
    """Return a word of a first line, "" where there are fewer."""
    return words[place] if place < len(words) else ""


def pick(options: Sequence[T], name: str) -> T:
    """Return the option of this name, else one selected by the hash of the word."""
    named = next((option for option in options if str(option) == name), None)
    return (
        options[zlib.crc32(name.encode("utf-8", "replace")) % len(options)]
        if named is None
        else named
    )


def number(name: str, least: int, most: int) -> int:
    """Return a number within bounds: the written one, or one selected by the hash of the word."""
    given = (
        int(name)
        if name.isascii() and name.isdigit() and len(name) < 10
        else zlib.crc32(name.encode("utf-8", "replace"))
    )
    return given if least <= given <= most else least + given % (most - least + 1)


def members(body: bytes) -> dict[str, bytes]:
    """Read a body as the members of a folder: each begins with a line `=== its/name`."""
    found: dict[str, bytes] = {}
    for part in body.removeprefix(_MEMBER).split(b"\n" + _MEMBER):
        name, _, content = part.partition(b"\n")
        found[name.decode("utf-8", "replace")] = content
    return found


def folder(named: dict[str, bytes]) -> bytes:
    """Write the members of a folder as a body."""
    return b"\n".join(_MEMBER + name.encode() + b"\n" + content for name, content in named.items())
