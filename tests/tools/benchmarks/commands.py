"""A command of a program under test: its output, its CPU, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import psutil
from daemons import cpu_s


class Command:
    """A running program; its CPU, with that of the children that it waited for, is known when it has ended."""

    def __init__(self, arguments: list[str], environment: dict[str, str], folder: Path) -> None:
        """Start it in a folder."""
        self.code: int | None = None
        self.cpu_s = 0.0
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this
        self._process = subprocess.Popen(
            arguments, env=environment, cwd=folder, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT,
        )  # fmt: skip

    @property
    def is_ended(self) -> bool:
        """Look, without waiting."""
        return self._wait(os.WNOHANG)

    @property
    def output(self) -> str:
        """What it has printed, errors too."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    @property
    def used_s(self) -> float:
        """The CPU seconds so far, of its living children too."""
        return self.cpu_s if self.is_ended else cpu_s(psutil.Process(self._process.pid))

    def end(self) -> Self:
        """Wait for its end."""
        self._wait(0)
        return self

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End it and its group."""
        if not self.is_ended:
            os.killpg(self._process.pid, number)
            self.end()

    def _wait(self, options: int) -> bool:
        if self.code is None:
            number, status, used = os.wait4(self._process.pid, options)
            if number:
                self.cpu_s = used.ru_utime + used.ru_stime
                self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        return self.code is not None
