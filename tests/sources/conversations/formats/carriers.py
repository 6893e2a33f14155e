"""Transcripts in memory for the tests of the readers, and the result of reading one."""

from __future__ import annotations

import io
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import BinaryIO

from anchord.sources.conversations.events import (
    Exchange,
    Line,
    SessionInfo,
    SupersededQuestions,
    UnknownRecord,
)
from anchord.sources.conversations.exchanges import build_exchanges

HEAD_BYTES = 65_536


@dataclass
class MemoryTranscript:
    """A file, or a folder of `members`, or a `database`."""

    path: str
    data: bytes = b""
    members: Mapping[str, bytes] = field(default_factory=dict)
    database: sqlite3.Connection | None = None

    def lines(self, start_offset: int = 0) -> Iterator[Line]:
        """Yield the lines that have an end."""
        at = start_offset
        while (end := self.data.find(b"\n", at)) >= 0:
            yield Line(at, self.data[at:end].removesuffix(b"\r"))
            at = end + 1

    def open(self) -> BinaryIO:
        """Return the file."""
        return io.BytesIO(self.data)

    def member_names(self) -> list[str]:
        """Return the members' names."""
        return list(self.members)

    def open_member(self, name: str) -> BinaryIO:
        """Return a member."""
        return io.BytesIO(self.members[name])

    def query(
        self, sql: str, *values: str | int
    ) -> Iterator[tuple[str | int | float | bytes | None, ...]]:
        """Query the database."""
        assert self.database is not None
        try:
            yield from self.database.execute(sql, values)
        except sqlite3.OperationalError:
            return


@dataclass
class ParsedTranscript:
    """The exchanges and other events of a transcript."""

    exchanges: list[Exchange] = field(default_factory=list)
    heads: list[SessionInfo] = field(default_factory=list)
    superseded: set[str] = field(default_factory=set)
    unknown: Counter[str] = field(default_factory=Counter)

    @property
    def active(self) -> list[Exchange]:
        """The exchanges of active branches, without attachments."""
        said = (exchange for exchange in self.exchanges if exchange.kind == "exchange")
        return [
            exchange
            for exchange in said
            if not exchange.superseded and exchange.id not in self.superseded
        ]

    @property
    def said(self) -> list[tuple[str, str]]:
        """(question, answer) of the active exchanges."""
        return [(exchange.question, exchange.answer) for exchange in self.active]

    @property
    def title(self) -> str:
        """The last title in the transcript."""
        return next((head.title for head in reversed(self.heads) if head.title), "")

    @property
    def project(self) -> str:
        """The last project in the transcript."""
        return next((head.project for head in reversed(self.heads) if head.project), "")


def parse_transcript(reader: ModuleType, carrier: MemoryTranscript) -> ParsedTranscript:
    """Read a transcript with the reader of a format."""
    parsed = ParsedTranscript()
    for each in build_exchanges(reader.read_events(carrier)):
        match each:
            case Exchange():
                parsed.exchanges.append(each)
            case SessionInfo():
                parsed.heads.append(each)
            case SupersededQuestions(ids):
                parsed.superseded |= ids
            case UnknownRecord(kind):
                parsed.unknown[kind] += 1
    return parsed


def jsonl(*records: object) -> bytes:
    """Write records as lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def recognised(reader: ModuleType, carrier: MemoryTranscript) -> bool:
    """Whether the reader of a format recognises a transcript."""
    return bool(reader.matches(carrier.data[:HEAD_BYTES], carrier.path))


def questions(parsed: ParsedTranscript) -> Sequence[str]:
    """Return the active questions."""
    return [question for question, _ in parsed.said]
