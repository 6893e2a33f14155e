"""Daemons that are forked from a process that has loaded anchord: a start costs a second of CPU less.

What is told of a start from the command line (`python -m anchord run`) is tested with such a start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.simulator.program import Workers

_workers = Workers()


class PreloadedDaemon:
    """`anchord run` in a process of its own, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        prepare: Callable[[], None] | None = None,
        command: str = "run",
    ) -> None:
        """Start it; its output is appended to a file.

        A function of a module can prepare the process; it can run another command.
        """
        log.touch()  # Read if the process ends before it can write.
        self._process: Any = _workers.start_process(
            _be_a_daemon,
            [command, *arguments],
            dict(environment),
            str(log),
            str(Path.cwd()),
            prepare,
        )
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; negative is a signal; None while the process runs."""
        return self.poll()

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        code: int | None = self._process.exitcode
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(["anchord", "run"], timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def _be_a_daemon(
    arguments: list[str],
    environment: dict[str, str],
    log: str,
    folder: str,
    prepare: Callable[[], None] | None,
) -> None:
    """Run the command in the process that was forked."""
    import anchord.cli  # noqa: PLC0415 - the process that forks has loaded it with the simulator's worker

    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if prepare:
        prepare()
    sys.argv = ["anchord", *arguments]
    # With these the daemon starts itself again.
    sys.orig_argv = [sys.executable, "-m", "anchord", *arguments]
    anchord.cli.main()
