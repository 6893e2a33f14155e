"""Reads what users typed into Claude Code and Codex, of sessions whose transcripts are gone.

Both programs append each prompt to `history.jsonl` beside their transcripts, and do not delete it
with them. It has no answers. Nothing of it is stored: it is read when sessions are listed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from anchord.core.dates import format_utc
from anchord.core.ports import PathFilter
from anchord.core.types import Root
from anchord.sources.conversations.gone_transcripts import GoneTranscripts, PromptSource

_NAME = "history.jsonl"
_MAX_BYTES = 64 << 20
"""Of a longer file, the end is read."""
_ID = re.compile(r"[\w-]+")
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
    roots: Sequence[Root],
    known: Collection[str],
    match: PathFilter,
    forgotten_paths: Sequence[str],
    redact: Callable[[str], str],
) -> list[PromptSession]:
    """Return the sessions of the programs' prompt histories whose transcripts are gone.

    Args:
        roots: The roots of conversations; the histories are beside them.
        known: Ids of the sessions that the archive has.
        match: Applies the rules of the roots: sessions that they exclude stay out.
        forgotten_paths: Absolute paths that `forget` deleted. The sessions of these stay out.
        redact: Replaces secrets.
    """
    sessions: list[PromptSession] = []
    for home in sorted({os.path.dirname(root.path) for root in roots}):
        gone = GoneTranscripts(home=home, roots=roots, match=match, forgotten_paths=forgotten_paths)
        sessions += _read_home(home, known, gone, redact)
    return sessions


def _read_home(
    home: str, known: Collection[str], gone: GoneTranscripts, redact: Callable[[str], str]
) -> Iterable[PromptSession]:
    """Return the sessions of one history whose transcripts are gone, with all of their prompts."""
    file = os.path.join(home, _NAME)
    sessions: dict[str, PromptSession] = {}
    projects: dict[str, str] = {}
    hidden = set(known)
    for source, prompt in _read(file):
        name = source.session
        if name in hidden:
            continue
        if name not in sessions or source.project != projects[name]:
            projects[name] = source.project
            if not gone.may_show(source):
                hidden.add(name)
                sessions.pop(name, None)
                continue
        if name not in sessions:
            sessions[name] = PromptSession(
                source=source.program,
                name=redact(name),
                project=redact(source.project),
                file=file,
                redact=redact,
            )
        sessions[name].prompts.append(prompt)
    return sessions.values()


def _read(file: str) -> Iterator[tuple[PromptSource, tuple[str, str]]]:
    """Yield the session, and time and text, of each prompt in a history."""
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            stream.seek(max(0, os.fstat(descriptor).st_size - _MAX_BYTES))
            for line in stream:
                with suppress(*_NO_PROMPT):
                    source, text = _parse(json.loads(line))
                    if _is_possible(source) and text.strip():
                        yield source, (source.at, text)


def _is_possible(source: PromptSource) -> bool:
    """Return whether a session has an id that a file name can have, and a time with a local one."""
    return bool(_ID.fullmatch(source.session)) and "1970" <= source.at < "9999"


def _parse(record: dict[str, Any]) -> tuple[PromptSource, str]:
    """Return the session and the text of a prompt."""
    if "session_id" in record:
        source = PromptSource(
            program="codex",
            session=str(record["session_id"]),
            project="",
            at=format_utc(int(record["ts"]) * 10**9),
        )
        return source, str(record.get("text", ""))
    source = PromptSource(
        program="claude-code",
        session=str(record.get("sessionId", "")),
        project=str(record.get("project", "")),
        at=format_utc(int(record["timestamp"]) * 10**6),
    )
    return source, str(record.get("display", ""))
