"""Which family of formats a carrier is of, by its content and path. Adding a family is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from anchord.conversation import Carrier, Event
from anchord.sources.conversations import (
    ai_studio,
    aider,
    chatgpt,
    claude_ai,
    claude_code,
    cline,
    codex,
    continue_dev,
    copilot_cli,
    cursor,
    gemini_cli,
    lm_studio,
    open_webui,
    opencode,
    pi,
    slack,
    specstory,
    transcript,
    vscode_copilot,
)

VERSION = "2"
"""Raise it with any change that gives other exchanges for the same carrier: all are read again."""

HEAD_BYTES = 65_536

PROSE = (".md", ".markdown", ".txt", ".text", ".rst", ".org")
"""Endings of texts that people write: what is no conversation among them is a document."""
CARRIERS = (*PROSE, ".jsonl", ".json", ".jsonl.zst", ".zip", ".vscdb", ".db")
"""Endings of what can hold conversations; Google's AI Studio gives its files none."""
HIDDEN = (".aider.chat.history.md", ".specstory")
"""Hidden files and folders that hold conversations."""
NOISE = frozenset({"sessions-index.json", "session_index.jsonl", "history.jsonl", "logs.json", "chat.html", "settings.json",
                   "installation_id", "google_accounts.json", "oauth_creds.json", "state.json"})  # fmt: skip
NOISE_ENDINGS = (".meta.json", ".lock", ".tmp", ".bak", ".swp")
NOISE_FOLDERS = frozenset({"tool-results", "file-history", "shell-snapshots", "todos", "statsig", "debug", "log"})
"""What lies beside conversations and repeats them, or says nothing that was said."""


def may_carry(name: str) -> bool:
    """Whether a file of this name in a root of conversations is worth a look."""
    lower = name.lower()
    if lower in NOISE or lower.endswith(NOISE_ENDINGS):
        return False
    return lower.endswith(CARRIERS) or "." not in lower


def is_prose(path: str) -> bool:
    """Whether a file is a document where it is no conversation."""
    return path.lower().endswith(PROSE)


@dataclass(frozen=True, slots=True)
class Family:
    """A format, or several of one program."""

    source: str
    recognises: Callable[[bytes, str], bool]
    """By the first `HEAD_BYTES` and the path."""
    read: Callable[..., Iterator[Event]]
    resumes: bool
    """Whether it can be read on from where an exchange started: `read(carrier, start)`."""
    unique: bool
    """Whether the ids of its exchanges are unique among all sessions, and one in another session is a copy."""
    folder: Callable[[str], str]
    """The folder that is the carrier of a file with this path, where a session is spread over several files; "" for none."""
    claims: Callable[[Sequence[str]], bool]
    """Whether a folder or archive with these names (relative, with "/") is one as a whole."""


def _family(module: ModuleType, *, resumes: bool = False) -> Family:
    folder, claims = getattr(module, "folder", lambda _: ""), getattr(module, "claims", lambda _: False)
    return Family(module.SOURCE, module.recognises, module.read, resumes, module is claude_code, folder, claims)


FAMILIES = (
    _family(claude_code, resumes=True),
    _family(codex, resumes=True),
    _family(chatgpt),
    _family(claude_ai),
    _family(gemini_cli),
    _family(vscode_copilot),
    _family(copilot_cli, resumes=True),
    _family(cursor),
    _family(opencode),
    _family(pi),
    _family(cline),
    _family(open_webui),
    _family(lm_studio),
    _family(continue_dev),
    _family(ai_studio),
    _family(slack),
    _family(aider, resumes=True),
    _family(specstory),
    _family(transcript),
)
"""The first that recognises a carrier reads it: the narrow ones come first, plain transcripts last."""


def recognise(head: bytes, path: str) -> Family | None:
    """Return the family of a carrier, None where none is known."""
    return next((family for family in FAMILIES if family.recognises(head, path)), None)


def recognise_folder(names: Sequence[str]) -> Family | None:
    """Return the family of a folder or archive that is one carrier, None where its files are carriers by themselves."""
    return next((family for family in FAMILIES if family.claims(names)), None)


def told(family: Family, carrier: Carrier, start: int = 0) -> Iterator[Event]:
    """Read a carrier."""
    return family.read(carrier, start) if family.resumes else family.read(carrier)
