"""What recall has said: the chunks of each session, and a log without any text."""

from __future__ import annotations

import fcntl
import hashlib
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from anchord.agents.recall.settings import recall_folder

ADDED, SHORT, NO_STRONG_MATCH, NO_ANSWER = "added", "short", "no strong match", "no answer"
_MAX_LOG_BYTES = 1 << 20
_SESSION_AGE_S = 7 * 86_400.0
_FILE_NAME = re.compile(r"[0-9a-z][0-9a-z-]{0,63}")


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt; nothing of its text."""

    at: str
    """ISO 8601 in UTC."""
    session: str
    """The session's id as a file name."""
    outcome: str
    """"added", or why nothing was: "short", "no strong match" or "no answer" (in time)."""
    ms: int
    """From the start of the hook until its answer."""
    tokens: int = 0
    bytes: int = 0
    hits: tuple[str, ...] = ()
    """The places of the passages: a file with lines, or a conversation."""

    def with_context(self, context: str, tokens: int, hits: tuple[str, ...]) -> LogEntry:
        """Return the entry for a prompt that got a context."""
        count = len(context.encode())
        return msgspec.structs.replace(self, tokens=tokens, bytes=count, hits=hits)


def entry_of(session: str, outcome: str, began: float) -> LogEntry:
    """Return the entry for a prompt that got nothing, as of now.

    Args:
        session: The session's id.
        outcome: What became of the prompt.
        began: When the hook began: monotonic time in seconds.
    """
    return LogEntry(
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        session=_file_name(session),
        outcome=outcome,
        ms=round((time.monotonic() - began) * 1_000),
    )


class Journal:
    """The files of one home."""

    def __init__(self, data_folder: Path) -> None:
        """Name the files; nothing is created."""
        self._folder = recall_folder(data_folder)
        self._sessions = self._folder / "sessions"
        self._log = self._folder / "log.jsonl"
        self._older_log = self._folder / "log.1.jsonl"

    def shown(self, session: str) -> set[str]:
        """Return the ids of the chunks that a session has seen."""
        with suppress(OSError):
            return set(self._file(session).read_text("utf-8").split())
        return set()

    def add_shown(self, session: str, ids: Iterable[str]) -> None:
        """Note chunks that a session has seen; forget sessions of more than a week ago."""
        lines = "".join(f"{chunk_id}\n" for chunk_id in ids)
        if not lines:
            return
        file = self._file(session)
        if not file.exists():
            self._sessions.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._prune()
        with file.open("a", encoding="utf-8") as stream:
            stream.write(lines)

    def forget(self, session: str) -> None:
        """Forget which chunks a session has seen."""
        with suppress(OSError):
            self._file(session).unlink()

    def log(self, entry: LogEntry) -> None:
        """Append an entry; over 1 MB the log becomes the older one."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._is_log_full():
            with suppress(OSError), (self._folder / "log.lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_log_full():  # Another hook may have rotated it.
                    self._log.replace(self._older_log)
        with self._log.open("ab") as stream:
            stream.write(msgspec.json.encode(entry) + b"\n")

    def entries(self) -> list[LogEntry]:
        """Return the entries, oldest first; lines that were torn are left out."""
        found: list[LogEntry] = []
        for file in (self._older_log, self._log):
            lines: list[bytes] = []
            with suppress(OSError):
                lines = file.read_bytes().splitlines()
            for line in lines:
                with suppress(msgspec.DecodeError):
                    found.append(msgspec.json.decode(line, type=LogEntry))
        return found

    def _file(self, session: str) -> Path:
        return self._sessions / _file_name(session)

    def _is_log_full(self) -> bool:
        with suppress(OSError):
            return self._log.stat().st_size > _MAX_LOG_BYTES
        return False

    def _prune(self) -> None:
        now = time.time()
        with suppress(OSError):
            for file in self._sessions.iterdir():
                if now - file.stat().st_mtime > _SESSION_AGE_S:
                    file.unlink()


def _file_name(session: str) -> str:
    """Return a session's id as a file name: no two ids have the same one."""
    if _FILE_NAME.fullmatch(session):
        return session
    return f"_{hashlib.sha256(session.encode()).hexdigest()[:32]}"
