"""A program of our own in a process below this one, asked over a pipe: one frame there, one frame back."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, cast

import psutil

from anchord.adapters.frames import read_frame, write_frame

_END_S = 2.0
_PR_SET_PDEATHSIG = 1


class ChildError(Exception):
    """It cannot be started, ended, or gave no answer in time; the message says which."""


class Child:
    """A running process. It ends when its input does, so it never outlives this one for long."""

    def __init__(
        self, program: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None, inherits: Sequence[int] = ()
    ) -> None:
        """Start a module as a program; it keeps the open files `inherits`.

        Raises:
            ChildError: it cannot be started.
        """
        # In a session of its own, so that Ctrl-C reaches only the parent, which ends it in good order.
        try:
            self.running = subprocess.Popen(
                [sys.executable, "-m", program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=inherits,
                start_new_session=True,
            )
        except OSError as error:
            raise ChildError(f"cannot be started: {error}") from error
        self._requests = cast("BinaryIO", self.running.stdin)
        self._answers = cast("BinaryIO", self.running.stdout)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.running.poll() is None

    @property
    def memory(self) -> int:
        """Bytes that it holds; 0 once it is gone."""
        with suppress(psutil.Error):
            return int(psutil.Process(self.running.pid).memory_info().rss)
        return 0

    def answer(self, timeout_s: float, request: object = None) -> dict[str, object]:
        """Send a request, if there is one, and return the next answer.

        Raises:
            ChildError: the whole of it did not come in time, or the process ended.
        """
        overdue = threading.Event()

        def give_up() -> None:
            overdue.set()
            self.running.kill()  # Which ends the pipe, and with it the wait.

        timer = threading.Timer(timeout_s, give_up)
        timer.start()
        try:
            if request is not None:
                write_frame(self._requests, request)
            answer = read_frame(self._answers)
        except OSError:
            answer = None
        finally:
            timer.cancel()
        if isinstance(answer, dict):
            return answer
        raise ChildError(f"gave no answer in {timeout_s:.0f} s" if overdue.is_set() else "ended before it answered")

    def end(self) -> None:
        """Close the pipe, which ends the process; kill it when it does not."""
        for stream in (self._requests, self._answers):
            with suppress(OSError):
                stream.close()
        try:
            self.running.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()


def die_with_parent() -> None:
    """Be killed at once when the thread that started this process is gone (Linux); else the end of the input has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:  # It was gone before.
            os.kill(os.getpid(), signal.SIGKILL)
