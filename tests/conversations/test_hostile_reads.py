"""Transcript files that crash, hang or exhaust their reader: the other files are still read."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from conversations.conftest import Talks, answer, claude
from conversations.test_carriers import MANY, TURNS, export
from sources.conversations.test_reader_process import ENDLESS_VIEW, database, worker

from anchord.sources.conversations.containers import make_transcript_file
from anchord.sources.conversations.reader_process import ReaderProcess, WholeReads
from anchord.sources.conversations.whole_read import ReadItem, ReadRequest
from anchord.store.crash_journal import CrashJournal

HUNGRY_COLUMN = (
    "CREATE TABLE cursorDiskKV(a, value); INSERT INTO cursorDiskKV(a) VALUES (1);"
    "ALTER TABLE cursorDiskKV ADD COLUMN key AS "
    "(instr(zeroblob(200000000), zeroblob(100000000) || x'01'))"
)
"""One SQL function call that does not end: SQLite calls no progress handler meanwhile."""


def test_a_database_without_end_blocks_no_one(talks: Talks) -> None:
    reader = ReaderProcess()
    talks.conversations.whole_reads = WholeReads(reader)
    database(talks.folder / "Cursor" / "state.vscdb", ENDLESS_VIEW)
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    assert {row.session for row in talks.rows()} == {"s1"}
    assert "BrokenError" in talks.problems()["Cursor/state.vscdb"]
    reader.close()


def test_a_file_that_ends_its_reader_twice_is_quarantined_also_after_a_restart_until_it_changes(
    talks: Talks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = worker(tmp_path, monkeypatch, "os._exit(3)")
    talks.write("export.json", export(*MANY))
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    for starts in ("xx", "xx"):
        talks.conversations.whole_reads = WholeReads(ReaderProcess(name), CrashJournal(tmp_path))
        talks.sync()
        assert {row.session for row in talks.rows()} == {"s1"}
        assert "crashed or hung twice" in talks.problems()["export.json"]
        assert (tmp_path / "starts").read_text() == starts
        os.utime(talks.folder / "export.json")
    talks.write("export.json", export(*MANY, ("new", "And?", "Then.")))
    talks.sync()
    assert (tmp_path / "starts").read_text() == "xxxx"


def test_a_function_that_does_not_end_costs_its_file_alone(talks: Talks) -> None:
    reader = ReaderProcess(base_timeout_s=2.0)
    talks.conversations.whole_reads = WholeReads(reader)
    database(talks.folder / "Cursor" / "state.vscdb", HUNGRY_COLUMN)
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    assert {row.session for row in talks.rows()} == {"s1"}
    assert "crashed or hung twice" in talks.problems()["Cursor/state.vscdb"]
    reader.close()


LONG = [(f"What of number {n}?", answer(f"number{n}", 4)) for n in range(80)]


def test_a_long_session_is_read_by_a_worker_and_costs_itself_alone(
    talks: Talks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = worker(tmp_path, monkeypatch, "os._exit(3)")
    talks.conversations.whole_reads = WholeReads(ReaderProcess(name))
    talks.write("long.jsonl", claude(*LONG, session="long"))
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    assert {row.session for row in talks.rows()} == {"s1"}
    assert "crashed or hung twice" in talks.problems()["long.jsonl"]


def test_a_worker_resumes_a_long_session_as_it_is_resumed_here(talks: Talks) -> None:
    requests: list[ReadRequest] = []
    with closing(ReaderProcess()) as reader:

        def read(request: ReadRequest) -> Generator[ReadItem]:
            requests.append(request)
            return reader(request)

        talks.conversations.whole_reads = WholeReads(read)
        for count in (1, 2, 80):
            talks.write("s1.jsonl", claude(*LONG[:count]))
            talks.sync()
    assert [(each.resume_offset > 0, each.resume_number) for each in requests] == [(True, 1)]
    assert len({row.exchange_id for row in talks.rows()}) == 80
    assert talks.is_right()


def test_a_file_that_grows_faster_than_it_is_read_ends_where_it_ended_at_first() -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            buffer[:] = (b"{}\n" * len(buffer))[: len(buffer)]
            return len(buffer)

    file = make_transcript_file(
        "s1.jsonl", lambda: io.BufferedReader(Endless(), 3 << 10), "", end_offset=3_000
    )
    assert len(list(file.lines())) == 1_000


def test_records_of_unknown_kinds_are_counted_by_the_worker(talks: Talks) -> None:
    with closing(ReaderProcess()) as reader:
        talks.conversations.whole_reads = WholeReads(reader)
        names = ["".join(letters) for letters in itertools.product("abcdefghijkl", repeat=3)]
        kinds = "".join(f'{{"type":"{name}"}}\n' for name in names * 10).encode()
        talks.write("s1.jsonl", claude(*TURNS[:2]) + kinds)
        talks.sync()
    assert (
        "skipped 17280 records of unknown kinds: other kinds (7280)" in talks.problems()["s1.jsonl"]
    )
