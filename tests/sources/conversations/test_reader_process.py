"""A crashing reader does not stop the indexer, and the process reads the same as this process."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from conversations.conftest import claude
from conversations.test_carriers import MANY, TURNS, export, zipped

from anchord.errors import StoreError
from anchord.sources.conversations.events import Exchange, TooLongError, UnknownRecord
from anchord.sources.conversations.reader_process import (
    ReaderEndedError,
    ReaderProcess,
    UnreadableTranscriptError,
)
from anchord.sources.conversations.reader_worker import MAX_MEMORY_BYTES
from anchord.sources.conversations.whole_read import ReadItem, ReadRequest, read_whole

ENDLESS_VIEW = (
    "CREATE VIEW cursorDiskKV(key, value) AS WITH RECURSIVE c(x) AS "
    "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT 'composerData:' || x, x FROM c WHERE x < 0"
)


@pytest.fixture
def reader() -> Iterator[ReaderProcess]:
    """Give a reader whose process ends with the test."""
    made = ReaderProcess()
    yield made
    made.close()


def request_for(file: Path, **others: object) -> ReadRequest:
    """Return the request to read a file."""
    return ReadRequest(root_path=str(file.parent), path=file.name, size=0, **others)  # type: ignore[arg-type]


def separated(items: Iterable[ReadItem]) -> tuple[list[ReadItem], Counter[tuple[str, str]]]:
    """Return what was read, in order, and how many unknown records of each kind: the process counts these."""
    known: list[ReadItem] = []
    unknown: Counter[tuple[str, str]] = Counter()
    for item in items:
        if isinstance(item, UnknownRecord):
            unknown[item.kind, item.name] += item.count
        else:
            known.append(item)
    return known, unknown


def database(file: Path, schema: str) -> Path:
    """Make a database."""
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(file)
    connection.executescript(schema)
    connection.close()
    return file


def worker(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> str:
    """Write a program for the child process that appends a line to `starts` and does something; return its name."""
    (folder / "odd_worker.py").write_text(
        f"import os, sys, time\nopen({str(folder / 'starts')!r}, 'a').write('x')\n"
        f"from anchord.ipc.framing import read_frame, write_frame\nread_frame(sys.stdin.buffer)\n{body}\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path]))
    return "odd_worker"


@pytest.mark.parametrize("kind", ["export", "zip", "torn", "surrogates", "prose", "empty"])
def test_the_process_reads_what_is_read_here(
    tmp_path: Path, reader: ReaderProcess, kind: str
) -> None:
    data = {
        "export": export(*MANY),
        "zip": zipped(**{"conversations.json": export(*MANY), "s1.jsonl": claude(*TURNS)}),
        "torn": export(*MANY)[:-500],
        "surrogates": json.dumps(json.loads(export(*MANY))).replace("How", "\\ud800 How").encode(),
        "prose": b"# Notes\n\nNothing that was said.\n",
        "empty": b"",
    }[kind]
    file = tmp_path / "caf\udce9.json"
    file.write_bytes(data)
    assert separated(reader(request_for(file))) == separated(read_whole(request_for(file)))


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_file_is_opened_by_its_path_on_disk_and_named_by_the_other(
    tmp_path: Path, reader: ReaderProcess, *, is_folder: bool
) -> None:
    file = tmp_path / "token=on-disk.jsonl"
    if is_folder:
        file.mkdir()
    (file / "s.jsonl" if is_folder else file).write_bytes(claude(*TURNS))
    request = ReadRequest(
        root_path=str(tmp_path),
        path="token=[REDACTED:assigned].jsonl",
        disk_path=file.name,
        member_names=("s.jsonl",) if is_folder else (),
        size=0,
    )
    assert list(reader(request)) == list(read_whole(request))
    assert is_folder or any(isinstance(item, Exchange) for item in read_whole(request))
    with request.open("s.jsonl" if is_folder else "") as stream:
        assert stream.read() == claude(*TURNS)


def test_the_process_reads_a_folder_and_a_database_as_is_done_here(
    tmp_path: Path, reader: ReaderProcess
) -> None:
    value = json.dumps(
        {"name": "A", "conversation": [{"bubbleId": "b", "type": 1, "text": "Why?"}]}
    )
    file = database(
        tmp_path / "Cursor" / "state.vscdb",
        "CREATE TABLE cursorDiskKV(key UNIQUE, value);"
        f"INSERT INTO cursorDiskKV VALUES ('composerData:c', '{value}')",
    )
    items = list(reader(request_for(file)))
    assert items == list(read_whole(request_for(file)))
    assert any(getattr(item, "question", "") == "Why?" for item in items)
    folder = tmp_path / "storage"
    for name, content in {
        "session/p/s1.json": {"id": "s1", "title": "T"},
        "message/s1/m1.json": {"id": "m1", "role": "user", "sessionID": "s1"},
        "part/m1/p1.json": {"id": "p1", "type": "text", "text": "Where?", "messageID": "m1"},
    }.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(json.dumps(content))
    names = ("session/p/s1.json", "message/s1/m1.json", "part/m1/p1.json")
    asked = request_for(folder, member_names=names, recorded_source="opencode")
    assert any(getattr(item, "question", "") == "Where?" for item in reader(asked))


def test_a_broken_file_is_named_by_its_error_and_the_process_lives_on(
    tmp_path: Path, reader: ReaderProcess
) -> None:
    file = database(tmp_path / "Cursor" / "state.vscdb", ENDLESS_VIEW)
    with pytest.raises(UnreadableTranscriptError, match="BrokenError"):
        list(reader(request_for(file)))
    first = reader._child
    with pytest.raises(UnreadableTranscriptError, match="FileNotFoundError"):
        list(reader(request_for(file.with_name("gone.json"))))
    assert reader._child is first


def test_a_part_that_is_too_long_is_named_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "write_frame(sys.stdout.buffer, {'error': 'TooLongError', 'reason': 'too long'})"
    reader = ReaderProcess(worker(tmp_path, monkeypatch, body))
    with pytest.raises(TooLongError, match="too long"):
        list(reader(request_for(tmp_path / "a")))
    reader.close()


def test_a_process_that_cannot_be_started_is_not_held_against_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "there is no such program"))
    with pytest.raises(StoreError):
        list(ReaderProcess()(request_for(tmp_path / "a")))


def test_a_read_that_is_given_up_leaves_no_answers_for_the_next(
    tmp_path: Path, reader: ReaderProcess
) -> None:
    many = tmp_path / "many.json"
    many.write_bytes(export(*((f"c{n}", "What?", "x" * 2_000) for n in range(2_000))))
    reading = reader(request_for(many))
    next(reading)
    reading.close()
    few = tmp_path / "few.json"
    few.write_bytes(export(*MANY))
    assert list(reader(request_for(few))) == list(read_whole(request_for(few)))


def test_the_process_is_limited_by_the_system(tmp_path: Path, reader: ReaderProcess) -> None:
    (tmp_path / "a.json").write_bytes(export(*MANY))
    list(reader(request_for(tmp_path / "a.json")))
    assert reader._child is not None
    process = psutil.Process(reader._child.popen.pid)
    assert process.rlimit(psutil.RLIMIT_AS) == (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES)
    assert process.rlimit(psutil.RLIMIT_NPROC) == (0, 0)
    assert process.rlimit(psutil.RLIMIT_CPU)[0] < 1_000


@pytest.mark.parametrize(
    "body",
    [
        "os._exit(3)",
        "time.sleep(1_000)",
        "write_frame(sys.stdout.buffer, {'items': [['format', 'cursor']]}); time.sleep(1_000)",
        "while True: write_frame(sys.stdout.buffer, {'items': []})",
    ],
    ids=["ends", "hangs", "hangs in the middle", "goes on for ever"],
)
def test_a_process_that_ends_or_hangs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    reader = ReaderProcess(worker(tmp_path, monkeypatch, body), base_timeout_s=1.0)
    monkeypatch.setattr("anchord.sources.conversations.reader_process._LONGEST_READ", 1)
    with pytest.raises(ReaderEndedError):
        list(reader(request_for(tmp_path / "a")))
    assert reader._child is None
