"""One writer per index, by a lock of the system: any crash releases it, and reading it blocks no writer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anchord.errors import AlreadyRunningError
from anchord.store.writer_lock import WriterLock, lock_holder_pid

_HOLD = """
import sys
from pathlib import Path
from anchord.store.writer_lock import WriterLock
lock = WriterLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a lock that does not exist yet."""
    return tmp_path / "anchord.lock"


@contextmanager
def held_elsewhere(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a block while another process has the lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


def test_a_lock_nobody_holds_has_no_holder(file: Path) -> None:
    assert lock_holder_pid(file) is None
    assert not file.exists()


def test_the_holder_is_known_while_it_holds_and_not_after(file: Path) -> None:
    lock = WriterLock(file)
    assert lock_holder_pid(file) == os.getpid()
    lock.release()
    assert lock_holder_pid(file) is None


def test_asking_for_the_holder_takes_nothing(file: Path) -> None:
    lock = WriterLock(file)
    lock_holder_pid(file)
    with pytest.raises(AlreadyRunningError):
        WriterLock(file)
    lock.release()
    lock_holder_pid(file)
    WriterLock(file).release()


def test_a_lock_can_be_taken_again_after_its_release(file: Path) -> None:
    WriterLock(file).release()
    WriterLock(file).release()


def test_the_file_is_for_its_owner_alone(file: Path) -> None:
    lock = WriterLock(file)
    assert file.stat().st_mode & 0o777 == 0o600
    lock.release()


def test_g1_a_second_process_is_refused_with_the_first_ones_id_and_what_to_do(file: Path) -> None:
    with held_elsewhere(file) as holder:
        assert lock_holder_pid(file) == holder.pid
        with pytest.raises(AlreadyRunningError, match=f"process {holder.pid}\\b") as refused:
            WriterLock(file)
    assert "anchord stop" in refused.value.hint
    assert refused.value.exit_code == 1


def test_the_lock_ends_with_its_process_however_that_ends(file: Path) -> None:
    with held_elsewhere(file) as holder:
        holder.kill()
        holder.wait()
        assert lock_holder_pid(file) is None
        WriterLock(file).release()


def test_g4_the_id_of_a_dead_holder_means_nothing(file: Path) -> None:
    file.write_text(f"{os.getpid()}\n", "ascii")
    assert lock_holder_pid(file) is None
    lock = WriterLock(file)
    assert file.read_text("ascii") == f"{os.getpid()}\n"
    lock.release()


@pytest.mark.parametrize("left", ["", "no number", "99999999999999999999999999999999999", "1\n2\n"])
def test_whatever_a_dead_holder_left_in_the_file_is_replaced(file: Path, left: str) -> None:
    file.write_text(left, "utf-8")
    lock = WriterLock(file)
    assert file.read_text("ascii") == f"{os.getpid()}\n"
    lock.release()


def test_a_holder_that_did_not_write_its_id_yet_is_a_holder(file: Path) -> None:
    lock = WriterLock(file)
    file.write_bytes(b"")
    assert lock_holder_pid(file) == 0
    with pytest.raises(AlreadyRunningError, match="process unknown"):
        WriterLock(file)
    lock.release()


def test_g3_deleting_the_file_lets_no_second_writer_in(file: Path) -> None:
    lock = WriterLock(file)
    file.unlink()
    with pytest.raises(AlreadyRunningError):
        WriterLock(file)
    lock.release()


def test_a_file_deleted_between_open_and_lock_is_opened_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    open_file = os.open

    def open_and_lose(path: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = open_file(path, flags, mode)
        opened.append(descriptor)
        if path == file and len(opened) == 1:
            file.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose)
    lock = WriterLock(file)
    monkeypatch.undo()
    assert lock_holder_pid(file) == os.getpid()
    lock.release()


def test_a_link_in_the_files_place_is_not_followed(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("words", "utf-8")
    file.symlink_to(target)
    with pytest.raises((OSError, AlreadyRunningError)):
        WriterLock(file)
    assert target.read_text("utf-8") == "words"


def test_a_refused_writer_and_a_look_leave_no_file_open(file: Path, tmp_path: Path) -> None:
    lock = WriterLock(file)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(AlreadyRunningError):
        WriterLock(file)
    assert lock_holder_pid(file) == os.getpid()
    lock.release()
    assert lock_holder_pid(file) is None
    file.unlink()
    file.symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic"):
        WriterLock(file)
    assert len(os.listdir("/proc/self/fd")) == before - 1


def test_a_holder_is_known_though_the_pid_file_is_lost(file: Path) -> None:
    lock = WriterLock(file)
    file.unlink()
    assert lock_holder_pid(file) == 0
    lock.release()


def test_the_lock_is_not_inherited_by_programs_that_are_started(file: Path) -> None:
    lock = WriterLock(file)
    assert not os.get_inheritable(lock.descriptor)
    lock.release()


def test_asking_for_the_holder_all_the_time_refuses_no_writer(file: Path) -> None:
    WriterLock(file).release()
    ending = threading.Event()

    def ask() -> None:
        while not ending.is_set():
            lock_holder_pid(file)

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    try:
        for _ in range(300):
            WriterLock(file).release()
    finally:
        ending.set()
        for thread in asking:
            thread.join()
