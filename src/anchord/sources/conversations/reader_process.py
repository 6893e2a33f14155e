"""Reads transcript files in a child process, so that no file can stop or crash the indexer."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from anchord.errors import StoreError
from anchord.ipc.confinement import environment_without_keys
from anchord.ipc.worker_process import WorkerProcess, WorkerProcessError
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
_IDLE_S = 60.0
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


class ReaderProcess:
    """A `WholeReader` that reads in a child process. One thread may use it at a time.

    The process is started at the first file and ended by `stop_if_idle` or `close`.
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
        self._worker_module = worker_module
        self._base_timeout_s = base_timeout_s
        self._lock = threading.Lock()
        self._child: WorkerProcess | None = None
        self._last_used = 0.0

    def __call__(self, request: ReadRequest) -> Generator[ReadItem]:
        """Yield what `read_whole` yields for a file.

        Raises:
            TooLongError: A part of the file is too long.
            UnreadableTranscriptError: The file is broken.
            ReaderEndedError: The process ended, or gave no items for too long.
            StoreError: The process cannot be started.
        """
        with self._lock:
            child = self._running_child()
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

    def stop_if_idle(self) -> None:
        """End the process if it was not used for 60 s. Call it from time to time."""
        if self._child and time.monotonic() - self._last_used > _IDLE_S:
            self.close()

    def close(self) -> None:
        """End the process; the next file starts a new one."""
        with self._lock:
            self._end()

    def _running_child(self) -> WorkerProcess:
        if self._child is not None and self._child.is_alive:
            return self._child
        self._end()
        try:
            self._child = WorkerProcess(self._worker_module, (), environment_without_keys())
        except WorkerProcessError as error:
            # This is not the file's fault: the writer tries again later.
            raise StoreError(
                f"the process that reads conversations {error}", "check the free memory"
            ) from error
        return self._child

    def _read(self, child: WorkerProcess, request: ReadRequest) -> Iterator[ReadItem]:
        timeout_s = self._base_timeout_s + request.size / _BYTES_PER_TIMEOUT_S
        longest_s = timeout_s * _LONGEST_READ
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

    def _end(self) -> None:
        child, self._child = self._child, None
        if child:
            child.popen.kill()  # It may not read its input any more. It has nothing to save.
            child.shut_down()


def _encode_request(request: ReadRequest, cpu_s: int) -> dict[str, object]:
    # Paths are bytes: MessagePack has no surrogates.
    return {
        "root_path": os.fsencode(request.root_path),
        "path": os.fsencode(request.path),
        "member_names": [os.fsencode(name) for name in request.member_names],
        "recorded_source": request.recorded_source,
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
