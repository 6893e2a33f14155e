"""After a failed step the writer backs off exponentially; some errors ask for a new process."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import pytest

from anchord.config.paths import Paths, find_paths
from anchord.daemon.writer.backoff import Backoff
from anchord.errors import AnchordError, StoreDamagedError, StoreUnavailableError


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    tmp_path.chmod(0o700)
    found = find_paths({"ANCHORD_HOME": str(tmp_path)})
    found.create_folders()
    return found


def test_the_pause_doubles_from_one_second_up_to_a_minute(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    backoff, pauses = Backoff(paths), []
    assert backoff.resume_at < 100
    assert backoff.reason == ""
    for _ in range(8):
        backoff.start_pause()
        pauses.append(backoff.resume_at - 100)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    backoff.clear_reason()
    backoff.start_pause()
    assert backoff.resume_at == 101


def test_the_fourth_unexpected_error_in_a_row_asks_for_a_new_process(paths: Paths) -> None:
    backoff = Backoff(paths)
    assert [backoff.record_error(ValueError("x")) for _ in range(3)] == [False] * 3
    assert backoff.reason == "internal error: ValueError"
    backoff.clear_reason()
    assert backoff.reason == ""
    assert not backoff.record_error(AnchordError("the disk is full", "make room"))
    assert (backoff.reason, backoff.unexpected_errors) == ("the disk is full", 3)
    assert backoff.record_error(ValueError("x"))
    backoff.reset()
    assert (backoff.reason, backoff.unexpected_errors) == ("", 0)
    assert not backoff.record_error(ValueError("x"))


def test_damage_asks_for_a_new_process_at_once_and_the_end_is_no_clean_one(paths: Paths) -> None:
    backoff = Backoff(paths)
    error = StoreDamagedError(f"{paths.archive_file} is damaged", "")
    assert backoff.record_error(error)
    assert (backoff.reason, backoff.unexpected_errors) == (error.message, 1)
    assert Path(f"{paths.archive_file}-damaged").exists()


@pytest.mark.parametrize(
    ("error", "reason", "is_unexpected"),
    [
        (AnchordError("the model is gone", "get it"), "the model is gone", False),
        (
            StoreUnavailableError("the disk is full", "make room"),
            "the disk is full: make room",
            False,
        ),
        (
            StoreUnavailableError("the disk is full", "make room; then try again"),
            "the disk is full: make room",
            False,
        ),
        (
            OSError(errno.ENOSPC, "no space", "/data/x"),
            "the disk of /data/x is full (ENOSPC): free some space",
            False,
        ),
        (OSError(errno.ENOENT, "no file", "/data/x"), "internal error: FileNotFoundError", True),
        (ValueError("x"), "internal error: ValueError", True),
    ],
)
def test_an_error_of_the_machine_comes_with_what_helps_and_any_other_counts_as_unexpected(
    paths: Paths,
    error: Exception,
    reason: str,
    is_unexpected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    backoff = Backoff(paths)
    assert backoff.record_error(error) is False
    assert (backoff.reason, backoff.unexpected_errors) == (reason, is_unexpected)


def test_damage_after_other_errors_does_not_hide_how_many_came(paths: Paths) -> None:
    backoff = Backoff(paths)
    for _ in range(3):
        backoff.record_error(ValueError("x"))
    assert backoff.record_error(StoreDamagedError("the table is damaged", "")) is True
    assert backoff.unexpected_errors == 3
    assert backoff.record_error(AnchordError("x", "")) is False


def test_a_pause_that_is_ended_is_over_and_the_next_is_twice_as_long(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    backoff = Backoff(paths)
    backoff.start_pause()
    backoff.end_pause()
    assert backoff.resume_at <= 100.0
    backoff.start_pause()
    assert backoff.resume_at == 102.0


def test_steps_that_fail_for_ten_seconds_are_a_lasting_failure(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    backoff = Backoff(paths)
    assert not backoff.is_lasting
    backoff.record_error(ValueError("x"))
    clock[0] = 109.9
    backoff.record_error(ValueError("x"))
    assert not backoff.is_lasting
    clock[0] = 110.0
    assert backoff.is_lasting
    backoff.clear_reason()
    assert not backoff.is_lasting
    backoff.record_error(ValueError("x"))
    assert not backoff.is_lasting
