"""Details of the writer lock: what it gives back, and what it reads of a pid file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from anchord.store.writer_lock import WriterLock, lock_holder_pid


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_waiting_writer_holds_no_shared_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two writers that wait for one reader would block each other for ever."""
    reader = os.open(tmp_path, os.O_RDONLY)
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH)
    waits: list[bool] = []

    def look_meanwhile(_seconds: float) -> None:
        fcntl.flock(reader, fcntl.LOCK_UN)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits.append(False)
        else:
            waits.append(True)
            fcntl.flock(other, fcntl.LOCK_UN)

    monkeypatch.setattr("anchord.store.writer_lock.time", SimpleNamespace(sleep=look_meanwhile))
    lock = WriterLock(tmp_path / "pid")
    lock.release()
    os.close(reader)
    os.close(other)
    assert waits == [True]


def test_a_writer_keeps_the_folder_open_and_not_the_pid_file(tmp_path: Path) -> None:
    before = open_files()
    lock = WriterLock(tmp_path / "pid")
    assert open_files() == before + 1
    lock.release()
    assert open_files() == before


@pytest.mark.parametrize(("digits", "read"), [(31, 31), (32, 32), (33, 32), (99, 32)])
def test_the_first_32_bytes_of_a_pid_file_count(tmp_path: Path, digits: int, read: int) -> None:
    lock = WriterLock(tmp_path / "pid")
    (tmp_path / "pid").write_text("1" * digits, "ascii")
    assert lock_holder_pid(tmp_path / "pid") == int("1" * read)
    lock.release()


def test_a_locked_file_in_the_place_of_the_folder_is_no_writer(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with file.open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        assert lock_holder_pid(file / "pid") is None
