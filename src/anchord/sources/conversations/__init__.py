"""Which family of formats a carrier is of, by its content and path. Adding a family is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from anchord.conversation import Carrier, Event
from anchord.sources.conversations import chatgpt, claude_ai, claude_code, codex

VERSION = "1"
"""Raise it with any change that gives other exchanges for the same carrier: all are read again."""

HEAD_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Family:
    """A format, or several of one program."""

    source: str
    recognises: Callable[[bytes, str], bool]
    """By the first `HEAD_BYTES` and the path."""
    read: Callable[..., Iterator[Event]]
    resumes: bool
    """Whether it can be read on from where an exchange started: `read(carrier, start)`."""
    folder: Callable[[str], str]
    """The folder that is the carrier of a file with this path, where a session is spread over several files; "" for none."""
    claims: Callable[[Sequence[str]], bool]
    """Whether a folder or archive with these names (relative, with "/") is one as a whole."""


def _family(module: ModuleType, *, resumes: bool = False) -> Family:
    folder = getattr(module, "folder", lambda _: "")
    return Family(module.SOURCE, module.recognises, module.read, resumes, folder, getattr(module, "claims", lambda _: False))


FAMILIES = (
    _family(claude_code, resumes=True),
    _family(codex, resumes=True),
    _family(chatgpt),
    _family(claude_ai),
)


def recognise(head: bytes, path: str) -> Family | None:
    """Return the family of a carrier, None where none is known."""
    return next((family for family in FAMILIES if family.recognises(head, path)), None)


def told(family: Family, carrier: Carrier, start: int = 0) -> Iterator[Event]:
    """Read a carrier."""
    return family.read(carrier, start) if family.resumes else family.read(carrier)
