"""Reads transcript files in a child process, so that no file can stop or crash the indexer."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from anchord.errors import StoreError
from anchord.ipc.worker_process import OnDemandWorker, WorkerProcess, WorkerProcessError
from anchord.sources.conversations.events import (
    Exchange,
    NeedsFullRead,
    SessionInfo,
    SupersededQuestions,
    TooLongError,
    UnknownRecord,
)
from anchord.sources.conversations.whole_read import (
    ReadItem,
    ReadRequest,
    WholeReader,
    format_of_source,
    read_whole,
)

_BASE_TIMEOUT_S = 20.0
"""Until the next items of a small file."""
_BYTES_PER_TIMEOUT_S = 2_000_000
"""The slowest that a file is read, in bytes a second, while nothing is found in it."""
_LONGEST_READ = 10
"""A whole read may take this many times as long as the wait for the next items."""
_LONGEST_READ_S = 800.0
"""For any file, so that the writer stays within its longest step."""
_MAX_CRASHES = 2
_ITEM_TYPES: dict[str, type[ReadItem]] = {
    each.__name__: each
    for each in (SessionInfo, Exchange, SupersededQuestions, UnknownRecord, NeedsFullRead)
}


class UnreadableTranscriptError(OSError):
    """A file cannot be read as a transcript. The message is the name of the error's class."""


class ReaderEndedError(OSError):
    """The process that read a file ended or gave no answer. The message says which."""


class CrashCounts(Protocol):
    """Remembers which contents ended the process that read them."""

    def is_quarantined(self, content_digest: str) -> bool:
        """Return whether reading a content ended the process twice."""

    def count_crash(self, content_digest: str) -> None:
        """Record that reading a content ended the process."""


class CrashCountsInMemory:
    """Crash counts that end with this object."""

    def __init__(self) -> None:
        """Start without crashes."""
        self._counts: Counter[str] = Counter()

    def is_quarantined(self, content_digest: str) -> bool:
        """Return whether reading a content ended the process twice."""
        return self._counts[content_digest] >= _MAX_CRASHES

    def count_crash(self, content_digest: str) -> None:
        """Record that reading a content ended the process."""
        self._counts[content_digest] += 1


@dataclass(frozen=True, slots=True)
class WholeReads:
    """How zips, databases, exports and folders are read."""

    read: WholeReader = read_whole
    crash_counts: CrashCounts = field(default_factory=CrashCountsInMemory)
    """Which contents ended the process that reads."""


class ReaderProcess(OnDemandWorker):
    """A `WholeReader` that reads in a child process. One thread may use it at a time.

    A process can open the files of one root only, so that of another root gets a new one.
    """

    def __init__(
        self,
        worker_module: str = "anchord.sources.conversations.reader_worker",
        base_timeout_s: float = _BASE_TIMEOUT_S,
    ) -> None:
        """Start nothing yet.

        Args:
            worker_module: The module that the child process runs.
            base_timeout_s: Seconds to wait for the next items of a small file; more for larger.
        """
        super().__init__(worker_module)
        self._base_timeout_s = base_timeout_s

    def __call__(self, request: ReadRequest) -> Generator[ReadItem]:
        """Yield what `read_whole` yields for a file.

        Raises:
            TooLongError: A part of the file is too long.
            UnreadableTranscriptError: The file is broken.
            ReaderEndedError: The process ended, or gave no items for too long.
            StoreError: The process cannot be started.
        """
        with self._lock:
            try:
                child = self._running_child((request.root_path,), _identity(request.root_path))
            except WorkerProcessError as error:
                # This is not the file's fault: the writer tries again later.
                raise StoreError(
                    f"conversations cannot be read: the process for it {error}",
                    "free some memory; anchord tries again by itself",
                ) from error
            is_complete = False
            try:
                yield from self._read(child, request)
                is_complete = True
            except WorkerProcessError as error:
                raise ReaderEndedError(str(error)) from error
            except (TooLongError, UnreadableTranscriptError):
                is_complete = True
                raise
            finally:
                self._last_used = time.monotonic()
                if not is_complete:  # The rest of its answers would be taken for the next ones.
                    self._end()

    def _read(self, child: WorkerProcess, request: ReadRequest) -> Iterator[ReadItem]:
        timeout_s = self._base_timeout_s + request.size / _BYTES_PER_TIMEOUT_S
        timeout_s = min(timeout_s, _LONGEST_READ_S)
        longest_s = min(timeout_s * _LONGEST_READ, _LONGEST_READ_S)
        deadline = time.monotonic() + longest_s
        answer = child.call_or_kill(timeout_s, _encode_request(request, int(longest_s) + 1))
        while "error" not in answer:
            yield from _items_of(answer)
            if time.monotonic() > deadline:
                raise WorkerProcessError(f"did not finish in {longest_s:.0f} s")
            answer = child.call_or_kill(timeout_s)
        if answer["error"] == TooLongError.__name__:
            raise TooLongError(str(answer["reason"]))
        if answer["error"]:
            raise UnreadableTranscriptError(str(answer["error"]))


def _identity(root_path: str) -> tuple[str | int, ...]:
    """Return what tells a root's folder from another at its path: the process may open one."""
    try:
        status = os.stat(root_path)
    except OSError:
        return (root_path,)
    return (root_path, status.st_dev, status.st_ino)


def _encode_request(request: ReadRequest, cpu_s: int) -> dict[str, object]:
    # Paths are bytes: MessagePack has no surrogates.
    return {
        "root_path": os.fsencode(request.root_path),
        "path": os.fsencode(request.path),
        "disk_path": os.fsencode(request.disk_path),
        "member_names": [os.fsencode(name) for name in request.member_names],
        "recorded_source": request.recorded_source,
        "size": request.size,
        "resume_offset": request.resume_offset,
        "resume_number": request.resume_number,
        "cpu_s": cpu_s,
    }


def _items_of(answer: Mapping[str, object]) -> Iterator[ReadItem]:
    tagged = answer.get("items")
    if tagged is None:
        tagged = json.loads(msgspec.convert(answer["json_items"], str))
    for tag, value in msgspec.convert(tagged, list[tuple[str, object]]):
        if tag != "format":
            yield msgspec.convert(value, _ITEM_TYPES[tag])
        elif transcript_format := format_of_source(str(value)):
            yield transcript_format


def reason_of(error: BaseException) -> str:
    """Return what is wrong with a file, without any of its content."""
    if isinstance(error, TooLongError) and str(error):
        return str(error)
    is_named = isinstance(error, UnreadableTranscriptError)
    return f"cannot be read as a transcript ({error if is_named else type(error).__name__})"
