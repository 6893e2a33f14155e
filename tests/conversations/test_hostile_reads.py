"""Transcript files that end, hang or exhaust their reader: each costs itself alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conversations.conftest import Talks, claude
from conversations.test_carriers import MANY, TURNS, export
from sources.conversations.test_reader_process import ENDLESS_VIEW, database, worker

from anchord.sources.conversations.reader_process import ReaderProcess, WholeReads
from anchord.store.crash_journal import CrashJournal

HUNGRY_COLUMN = (
    "CREATE TABLE cursorDiskKV(a, value); INSERT INTO cursorDiskKV(a) VALUES (1);"
    "ALTER TABLE cursorDiskKV ADD COLUMN key AS "
    "(instr(zeroblob(200000000), zeroblob(100000000) || x'01'))"
)
"""One call of a function that does not end: no progress handler is called in it."""


def test_a_database_without_end_holds_up_nobody(talks: Talks) -> None:
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
