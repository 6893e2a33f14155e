"""The program of the process that reads transcript files, with memory, CPU time and files limited.

A zip, a database or an export can be made by a stranger. In this process it can write no file, read
none outside the one root that its argument names, start no process and open no socket
(`ipc.confinement`). No key is in its environment, and the system bounds its memory and CPU time.
It ends when its input ends.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import BinaryIO

import msgspec

from anchord.ipc.confinement import confine_to_reading, limit_resources, reset_cpu_limit
from anchord.ipc.framing import read_frame, write_frame
from anchord.ipc.worker_process import die_with_parent
from anchord.sources.conversations.events import Exchange, TooLongError, UnknownRecord
from anchord.sources.conversations.formats.registry import TranscriptFormat
from anchord.sources.conversations.whole_read import ReadItem, ReadRequest, read_whole

MAX_MEMORY_BYTES = 2 << 30
"""The largest text that is read as a whole takes a third of it."""
_MAX_OPEN_FILES = 256
_BATCH_ITEMS = 100
_BATCH_CHARS = 200_000
_MAX_UNKNOWN_KINDS = 1_000
_UNKNOWN_PER_FRAME = 50_000
_OTHER_KINDS = "other kinds"


def main() -> None:
    """Answer each request with the items of its file, until the input ends."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What a library prints must not get between the frames.
    limit_resources(
        {
            "AS": MAX_MEMORY_BYTES,
            "FSIZE": 0,
            "NPROC": 0,
            "NOFILE": _MAX_OPEN_FILES,
            "CORE": 0,
        }
    )
    confine_to_reading(sys.argv[1:])
    while isinstance(request := read_frame(sys.stdin.buffer), dict):
        _answer(answers, request)


def _answer(answers: BinaryIO, request: dict[str, object]) -> None:
    """Write frames of items, and a last one that says how the read ended."""
    reset_cpu_limit(msgspec.convert(request["cpu_s"], int))
    batch = _Batch(lambda frame: write_frame(answers, frame))
    try:
        for item in read_whole(_decode_request(request)):
            batch.add(item)
    except Exception as error:  # noqa: BLE001 - whatever a reader raises becomes an answer
        reason = str(error) if isinstance(error, TooLongError) else ""
        ending = {"error": type(error).__name__, "reason": reason}
    else:
        ending = {"error": "", "reason": ""}
    batch.finish()
    write_frame(answers, ending)


def _decode_request(request: dict[str, object]) -> ReadRequest:
    names = msgspec.convert(request["member_names"], list[bytes])
    return ReadRequest(
        root_path=os.fsdecode(msgspec.convert(request["root_path"], bytes)),
        path=os.fsdecode(msgspec.convert(request["path"], bytes)),
        disk_path=os.fsdecode(msgspec.convert(request["disk_path"], bytes)),
        member_names=tuple(map(os.fsdecode, names)),
        recorded_source=str(request["recorded_source"]),
        size=msgspec.convert(request["size"], int),
        resume_offset=msgspec.convert(request["resume_offset"], int),
        resume_number=msgspec.convert(request["resume_number"], int),
    )


class _Batch:
    """Items that are sent in one frame."""

    def __init__(self, send: Callable[[dict[str, object]], None]) -> None:
        self._send = send
        self._items: list[tuple[str, object]] = []
        self._chars = 0
        self._unknown_counts: Counter[str] = Counter()
        self._unknown_total = 0

    def add(self, item: ReadItem) -> None:
        if isinstance(item, UnknownRecord):
            self._count(item)
            return
        if isinstance(item, TranscriptFormat):
            self._items.append(("format", item.source))
        else:
            self._items.append((type(item).__name__, item))
        if isinstance(item, Exchange):
            self._chars += len(item.question) + len(item.answer)
        if len(self._items) >= _BATCH_ITEMS or self._chars > _BATCH_CHARS:
            self.flush()

    def _count(self, record: UnknownRecord) -> None:
        """Count a record and send none of its own: a file can have millions."""
        is_listed = record.kind in self._unknown_counts
        is_listed = is_listed or len(self._unknown_counts) < _MAX_UNKNOWN_KINDS
        self._unknown_counts[record.kind if is_listed else _OTHER_KINDS] += record.count
        self._unknown_total += record.count
        if self._unknown_total >= _UNKNOWN_PER_FRAME:
            self.finish()  # A sign of life, too.

    def finish(self) -> None:
        """Send everything, the counts of unknown records included."""
        for kind, count in self._unknown_counts.items():
            record = UnknownRecord(kind, count=count)
            self._items.append((type(record).__name__, record))
        self._unknown_counts.clear()
        self._unknown_total = 0
        self.flush()

    def flush(self) -> None:
        if not self._items:
            return
        try:
            self._send({"items": self._items})
        except UnicodeEncodeError:  # MessagePack has no surrogates, which JSON of a file can have.
            tagged = [
                (tag, item if isinstance(item, str) else asdict(item))  # type: ignore[call-overload]  # a dataclass
                for tag, item in self._items
            ]
            self._send({"json_items": json.dumps(tagged, default=sorted)})
        self._items, self._chars = [], 0


if __name__ == "__main__":
    main()
