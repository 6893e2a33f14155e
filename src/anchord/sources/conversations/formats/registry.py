"""The formats of conversations, and which of them a transcript file has.

To add a format, write a module for it and add a line to `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from anchord.sources.conversations.events import Event, TranscriptFile
from anchord.sources.conversations.formats import (
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
    markdown_transcript,
    open_webui,
    opencode,
    pi,
    slack,
    specstory,
    vscode_copilot,
)

FORMATS_VERSION = "5"
"""Raise it with any change that makes other exchanges of the same file: all are read again."""

HEAD_BYTES = 65_536
"""How much of a file's beginning decides on its format."""

PROSE_SUFFIXES = (".md", ".markdown", ".txt", ".text", ".rst", ".org")
"""Suffixes of texts that people write. Such a file is a document if it is no conversation."""
TRANSCRIPT_SUFFIXES = (*PROSE_SUFFIXES, ".jsonl", ".json", ".jsonl.zst", ".zip", ".vscdb", ".db")
"""Suffixes of files that can hold conversations. Google's AI Studio names its files without any."""
HIDDEN_TRANSCRIPTS = (".aider.chat.history.md", ".specstory")
"""Hidden files and folders that hold conversations."""
IGNORED_FILES = frozenset(
    {
        "sessions-index.json",
        "session_index.jsonl",
        "history.jsonl",
        "logs.json",
        "chat.html",
        "settings.json",
        "installation_id",
        "google_accounts.json",
        "oauth_creds.json",
        "state.json",
    }
)
IGNORED_SUFFIXES = (".meta.json", ".lock", ".tmp", ".bak", ".swp")
IGNORED_FOLDERS = frozenset(
    {"tool-results", "file-history", "shell-snapshots", "todos", "statsig", "debug", "log"}
)
"""Files and folders beside conversations that repeat them or hold nothing that was said."""


def may_be_transcript(name: str) -> bool:
    """Return whether a file of a conversation folder can hold conversations, by its name alone."""
    lower = name.lower()
    if lower in IGNORED_FILES or lower.endswith(IGNORED_SUFFIXES):
        return False
    return lower.endswith(TRANSCRIPT_SUFFIXES) or "." not in lower


def has_prose_suffix(path: str) -> bool:
    """Return whether a file that is no conversation counts as a document."""
    return path.lower().endswith(PROSE_SUFFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptFormat:
    """A format of one program, or several formats that one module reads."""

    source: str
    """The program's name, as stored with each exchange."""
    matches: Callable[[bytes, str], bool]
    """Whether a file has the format: (its first `HEAD_BYTES` bytes, its path)."""
    read_events: Callable[..., Iterator[Event]]
    """Yields the events of (a file), with `can_resume` of (a file, a byte offset)."""
    can_resume: bool
    """Whether reading can start at the byte offset of an exchange."""
    has_unique_ids: bool
    """Whether exchange ids are unique among all sessions: one id in two sessions is a copy."""
    transcript_folder: Callable[[str], str]
    """The folder that a file's path belongs to where a session has several files; "" for none."""
    matches_folder: Callable[[Sequence[str]], bool]
    """Whether a folder or archive has the format as a whole, by its members' relative paths."""


def _make_format(module: ModuleType, *, can_resume: bool = False) -> TranscriptFormat:
    return TranscriptFormat(
        source=module.SOURCE,
        matches=module.matches,
        read_events=module.read_events,
        can_resume=can_resume,
        has_unique_ids=module is claude_code,
        transcript_folder=getattr(module, "transcript_folder", lambda _: ""),
        matches_folder=getattr(module, "matches_folder", lambda _: False),
    )


FORMATS = (
    _make_format(claude_code, can_resume=True),
    _make_format(codex, can_resume=True),
    _make_format(chatgpt),
    _make_format(claude_ai),
    _make_format(gemini_cli),
    _make_format(vscode_copilot),
    _make_format(copilot_cli, can_resume=True),
    _make_format(cursor),
    _make_format(opencode),
    _make_format(pi),
    _make_format(cline),
    _make_format(open_webui),
    _make_format(lm_studio),
    _make_format(continue_dev),
    _make_format(ai_studio),
    _make_format(slack),
    _make_format(aider, can_resume=True),
    _make_format(specstory),
    _make_format(markdown_transcript),
)
"""In the order in which they are tried: the specific formats first, plain transcripts last."""


def detect_format(head: bytes, path: str) -> TranscriptFormat | None:
    """Return a file's format, None if no format matches.

    Args:
        head: the first `HEAD_BYTES` bytes of the file.
        path: the file's path, with "/".
    """
    return next((each for each in FORMATS if each.matches(head, path)), None)


def detect_folder_format(member_names: Sequence[str]) -> TranscriptFormat | None:
    """Return the format of a folder or archive as a whole.

    Args:
        member_names: paths relative to the folder or archive, with "/".

    Returns:
        The format; None where each file is read by itself.
    """
    return next((each for each in FORMATS if each.matches_folder(member_names)), None)


def read_events(
    transcript_format: TranscriptFormat, transcript_file: TranscriptFile, start: int = 0
) -> Iterator[Event]:
    """Yield the events of a transcript file.

    Args:
        transcript_format: the file's format.
        transcript_file: the file.
        start: the byte offset to read from; ignored by formats without `can_resume`.
    """
    if transcript_format.can_resume:
        return transcript_format.read_events(transcript_file, start)
    return transcript_format.read_events(transcript_file)
