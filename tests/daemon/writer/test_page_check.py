"""Database pages are checked after the start and daily; damage is raised once, locked files are skipped."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from anchord.core.sqlite_connection import CheckedConnection, open_sqlite
from anchord.daemon.writer.page_check import PageCheck
from anchord.errors import StoreDamagedError, StoreUnavailableError

DAY_S = 24 * 3600.0


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Give two databases of many pages."""
    made = [tmp_path / "one.sqlite", tmp_path / "two.sqlite"]
    for file in made:
        connection = sqlite3.connect(file)
        connection.execute("CREATE TABLE t (a TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,)] * 200)
        connection.commit()
        connection.close()
    return made


def damage(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: 4096 * 4] + b"\xa5" * (len(content) - 4096 * 4))


def checked(check: PageCheck, now: float) -> None:
    check.run_if_due(now)
    check.wait()


@pytest.mark.parametrize("which", [0, 1])
def test_damage_of_any_file_is_raised_once_and_looked_for_again_a_day_later(
    files: list[Path], which: int
) -> None:
    damage(files[which])
    check = PageCheck(files)
    checked(check, 0.0)
    with pytest.raises(StoreDamagedError, match=files[which].name):
        check.run_if_due(1.0)
    checked(check, DAY_S - 1)
    checked(check, DAY_S - 1)
    checked(check, DAY_S)
    with pytest.raises(StoreDamagedError):
        check.run_if_due(DAY_S)


def test_damage_that_only_the_content_shows_is_raised(files: list[Path]) -> None:
    asked: list[str] = []

    def find(connection: CheckedConnection) -> str:
        asked.append(connection.file)
        return "the text of x"

    check = PageCheck(files, {files[1]: find})
    checked(check, 0.0)
    assert asked == [str(files[1])]
    with pytest.raises(StoreDamagedError, match=r"two\.sqlite is damaged \(the text of x\)"):
        check.run_if_due(1.0)


def test_content_that_is_sound_raises_nothing(files: list[Path]) -> None:
    check = PageCheck(files, {files[1]: lambda _: ""})
    checked(check, 0.0)
    check.run_if_due(1.0)


def test_of_two_damaged_files_the_first_is_named(files: list[Path]) -> None:
    for file in files:
        damage(file)
    check = PageCheck(files)
    checked(check, 0.0)
    with pytest.raises(StoreDamagedError, match=files[0].name):
        check.run_if_due(1.0)


def test_sound_missing_and_locked_files_are_no_damage(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = PageCheck([*files, tmp_path / "missing.sqlite"])
    checked(check, 0.0)
    check.run_if_due(1.0)
    assert not (tmp_path / "missing.sqlite").exists()

    def locked(*_: object, **__: object) -> CheckedConnection:
        raise StoreUnavailableError("database is locked", "")

    monkeypatch.setattr("anchord.daemon.writer.page_check.open_sqlite", locked)
    checked(check, DAY_S)
    check.run_if_due(DAY_S + 1)


def test_a_check_that_is_closed_reads_no_further_file(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    real = open_sqlite
    check = PageCheck(files)

    def opening(file: Path, *, read_only: bool) -> CheckedConnection:
        assert read_only
        read.append(file)
        check._closing = True
        return real(file, read_only=read_only)

    monkeypatch.setattr("anchord.daemon.writer.page_check.open_sqlite", opening)
    checked(check, 0.0)
    check.close()
    assert read == files[:1]
    check.run_if_due(1.0)


def test_a_check_that_runs_is_interrupted_by_the_end(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, interrupted = threading.Event(), threading.Event()

    def is_intact(_: CheckedConnection, **_options: bool) -> bool:
        reading.set()
        assert interrupted.wait(10)
        raise StoreUnavailableError("interrupted", "")

    def interrupt(_: CheckedConnection) -> None:
        interrupted.set()

    monkeypatch.setattr(CheckedConnection, "is_intact", is_intact)
    monkeypatch.setattr(CheckedConnection, "interrupt", interrupt, raising=False)
    check = PageCheck(files)
    check.run_if_due(0.0)
    thread = check._thread
    assert thread is not None
    assert thread.daemon, "it must not keep the process alive"
    assert thread.name == "page check"
    assert reading.wait(10)
    check.close()
    assert interrupted.is_set()
    assert not thread.is_alive(), "the end waits for it"
    check.run_if_due(DAY_S - 1)


def test_only_one_check_runs_at_a_time_however_long_it_takes(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = threading.Event()
    checked_files: list[int] = []

    def is_intact(_: CheckedConnection, **_options: bool) -> bool:
        checked_files.append(1)
        return finish.wait(10)

    monkeypatch.setattr(CheckedConnection, "is_intact", is_intact)
    check = PageCheck(files)
    check.run_if_due(0.0)
    thread = check._thread
    check.run_if_due(DAY_S)
    check.run_if_due(2 * DAY_S)
    assert check._thread is thread
    finish.set()
    check.wait()
    assert len(checked_files) == len(files)
    check.run_if_due(2 * DAY_S)
    check.wait()
    assert len(checked_files) == 2 * len(files)


def test_the_end_of_a_check_that_runs_leaves_out_the_files_that_follow(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, interrupted = threading.Event(), threading.Event()
    read: list[int] = []

    def is_intact(_: CheckedConnection, **_options: bool) -> bool:
        read.append(1)
        reading.set()
        return interrupted.wait(10)

    monkeypatch.setattr(CheckedConnection, "is_intact", is_intact)
    monkeypatch.setattr(CheckedConnection, "interrupt", lambda _: interrupted.set(), raising=False)
    check = PageCheck(files)
    check.run_if_due(0.0)
    assert reading.wait(10)
    check.close()
    assert len(read) == 1


def test_damage_that_shows_when_a_file_is_opened_is_raised(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object, **__: object) -> CheckedConnection:
        raise StoreDamagedError("its header is damaged", "")

    monkeypatch.setattr("anchord.daemon.writer.page_check.open_sqlite", damaged)
    check = PageCheck(files)
    checked(check, 0.0)
    with pytest.raises(StoreDamagedError, match="its header"):
        check.run_if_due(1.0)


def test_a_check_that_is_done_has_no_connection_to_interrupt(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted: list[object] = []
    monkeypatch.setattr(CheckedConnection, "interrupt", interrupted.append, raising=False)
    check = PageCheck(files)
    checked(check, 0.0)
    check.close()
    assert interrupted == []
