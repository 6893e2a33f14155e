"""The log on a full disk, and what a process is by its command line."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from anchord.daemon.host.log_stream import DroppingStream
from anchord.daemon.host.processes import is_daemon


def test_a_log_that_cannot_be_written_raises_nothing() -> None:
    full = Mock(spec=io.StringIO)
    full.write.side_effect = full.flush.side_effect = OSError(28, os.strerror(28))
    print("an event", file=DroppingStream(full), flush=True)
    full.flush.assert_called_once_with()


def test_a_log_that_was_closed_raises_nothing() -> None:
    closed = io.StringIO()
    closed.close()
    print("an event", file=DroppingStream(closed), flush=True)


def test_what_can_be_written_is_written() -> None:
    written = io.StringIO()
    print("an event", file=DroppingStream(written), flush=True)
    assert written.getvalue() == "an event\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["run", "/a"], True), (["run"], True), (["index"], False), (["index", "run"], False)],
)
def test_a_daemon_is_known_by_its_command_line(
    tmp_path: Path,
    arguments: list[str],
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    (tmp_path / "anchord.py").write_text("import sys\nprint(flush=True)\nsys.stdin.read()\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "anchord", *arguments],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    process.stdout.readline()
    assert is_daemon(process.pid) == expected
    process.communicate()
    assert not is_daemon(process.pid)


def test_another_program_is_no_daemon() -> None:
    assert not is_daemon(os.getpid())
