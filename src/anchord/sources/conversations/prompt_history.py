"""Reads what users typed into Claude Code and Codex, of sessions whose transcripts are gone.

Both programs append each prompt to `history.jsonl` beside their transcripts, and do not delete it
with them. It has no answers. Nothing of it is stored: it is read when sessions are listed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from anchord.config.roots import covers
from anchord.core.dates import format_utc

_NAME = "history.jsonl"
_MAX_BYTES = 64 << 20
"""Of a longer file, the end is read."""
_NO_PROMPT = (ValueError, TypeError, LookupError, OverflowError, RecursionError, AttributeError)
"""Errors of a line that is torn, or of another form: it is skipped."""


@dataclass(slots=True, kw_only=True)
class PromptSession:
    """The prompts of a session."""

    source: str
    """The program, such as `claude-code`."""
    name: str
    """The session's id."""
    project: str = ""
    """The project's folder; "" if the file does not say."""
    file: str
    """Absolute path of the file."""
    prompts: list[tuple[str, str]] = field(default_factory=list)
    """Time (ISO 8601 in UTC) and text of each, oldest first; with the secrets in them."""
    redact: Callable[[str], str] = str
    """Replaces secrets."""

    def shown_prompts(self) -> list[tuple[str, str]]:
        """Return time and text of each prompt, without secrets."""
        return [(at, self.redact(text)) for at, text in self.prompts]


def read_prompt_sessions(
    root_folders: Collection[str],
    known: Collection[str],
    forgotten_paths: Sequence[str],
    redact: Callable[[str], str],
) -> list[PromptSession]:
    """Return the sessions of the programs' prompt histories that are not known otherwise.

    Args:
        root_folders: Absolute paths of the roots of conversations; the histories are beside them.
        known: Ids of the sessions that the archive has.
        forgotten_paths: Absolute paths that `forget` deleted. The sessions of these stay out.
        redact: Replaces secrets.
    """
    sessions: dict[str, PromptSession] = {}
    for home in sorted({os.path.dirname(folder.rstrip("/")) for folder in root_folders}):
        forgotten = [path for path in forgotten_paths if covers(home, path)]
        for source, name, project, prompt in _read(os.path.join(home, _NAME)):
            if name in known or _is_forgotten(source, name, project, forgotten):
                continue
            if name not in sessions:
                file = os.path.join(home, _NAME)
                sessions[name] = PromptSession(
                    source=source,
                    name=name,
                    project=redact(project),
                    file=file,
                    redact=redact,
                )
            sessions[name].prompts.append(prompt)
    return list(sessions.values())


def _read(file: str) -> Iterator[tuple[str, str, str, tuple[str, str]]]:
    """Yield program, session, project, and time and text of each prompt in a history."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            stream.seek(max(0, os.fstat(descriptor).st_size - _MAX_BYTES))
            for line in stream:
                with suppress(*_NO_PROMPT):
                    entry = _parse(json.loads(line))
                    if entry[1] and entry[3][1].strip():
                        yield entry


def _parse(record: dict[str, Any]) -> tuple[str, str, str, tuple[str, str]]:
    if "session_id" in record:
        at = format_utc(int(record["ts"]) * 10**9)
        return "codex", str(record["session_id"]), "", (at, str(record.get("text", "")))
    at = format_utc(int(record["timestamp"]) * 10**6)
    session, project = str(record.get("sessionId", "")), str(record.get("project", ""))
    return "claude-code", session, project, (at, str(record.get("display", "")))


def _is_forgotten(source: str, name: str, project: str, forgotten: Sequence[str]) -> bool:
    """Return whether a session may be of a transcript, or in a folder, that was forgotten."""
    encoded = "".join(each if each.isascii() and each.isalnum() else "-" for each in project)
    for path in forgotten:
        if name in path or (source == "claude-code" and encoded and encoded in path.split("/")):
            return True
        if source == "codex" and not path.endswith((".jsonl", ".zst")):
            return True  # A folder of days: the history does not say which sessions were in it.
    return False
