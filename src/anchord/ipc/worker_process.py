"""A child process that runs a module of anchord and answers requests over its pipes.

Every request is one frame on its standard input, and every answer one frame on its output.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, cast

import psutil

from anchord.ipc.confinement import environment_without_keys
from anchord.ipc.framing import read_frame, write_frame

_SHUT_DOWN_TIMEOUT_S = 2.0
_IDLE_S = 60.0
_PR_SET_PDEATHSIG = 1


class WorkerProcessError(Exception):
    """The process failed. The message completes a sentence that begins with its name."""


class WorkerProcess:
    """A running worker.

    It ends when its standard input closes, so it does not outlive this process for long. One
    thread may use it at a time.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        inherited_fds: Sequence[int] = (),
    ) -> None:
        """Start the process. Its standard error is discarded.

        Args:
            module: Full name of the module to run, as `python -m` takes it.
            arguments: Its command-line arguments.
            environment: All of its environment variables; None passes on those of this process.
            inherited_fds: File descriptors that stay open in it, under the same numbers.

        Raises:
            WorkerProcessError: The process cannot be started.
        """
        try:
            self.popen = subprocess.Popen(
                # -P: a module in the current folder must not be loaded instead of a library.
                [sys.executable, "-P", "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=inherited_fds,
                # In a session of its own, so that Ctrl-C reaches the parent only, which ends it.
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerProcessError(f"cannot be started: {error}") from error
        self._requests = cast("BinaryIO", self.popen.stdin)
        self._answers = cast("BinaryIO", self.popen.stdout)

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self.popen.poll() is None

    @property
    def memory_bytes(self) -> int:
        """Resident memory in bytes; 0 after the process ended."""
        with suppress(psutil.Error):
            return int(psutil.Process(self.popen.pid).memory_info().rss)
        return 0

    def call_or_kill(self, timeout_s: float, request: object = None) -> dict[str, object]:
        """Send a request and wait for the answer. On a timeout the process is killed.

        Args:
            timeout_s: Seconds for the whole exchange.
            request: Anything that MessagePack can encode; None only waits for the next answer,
                such as the one that a worker sends when it is ready.

        Raises:
            WorkerProcessError: No complete answer came in time, the process ended, or the answer
                is not a map.
        """
        timed_out = threading.Event()

        def kill_on_timeout() -> None:
            timed_out.set()
            self.popen.kill()  # Closes the pipe, which ends the blocking read below.

        timer = threading.Timer(timeout_s, kill_on_timeout)
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
        if timed_out.is_set():
            raise WorkerProcessError(f"gave no answer in {timeout_s:.0f} s")
        raise WorkerProcessError("ended before it answered")

    def shut_down(self) -> None:
        """Close the pipes and wait for the process to end; kill it after 2 s."""
        for stream in (self._requests, self._answers):
            with suppress(OSError):
                stream.close()
        try:
            self.popen.wait(timeout=_SHUT_DOWN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class OnDemandWorker:
    """A worker that is started at its first use, and ended by `stop_if_idle` or `close`.

    It has no keys in its environment. One thread may use it at a time: the one that holds `_lock`.
    """

    def __init__(self, worker_module: str) -> None:
        """Start nothing yet.

        Args:
            worker_module: Full name of the module that the process runs.
        """
        self._worker_module = worker_module
        self._lock = threading.Lock()
        self._child: WorkerProcess | None = None
        self._child_is_for: Hashable = ()
        self._last_used = 0.0

    def stop_if_idle(self) -> None:
        """End the process if it was not used for 60 s. Call it from time to time."""
        if self._child and time.monotonic() - self._last_used > _IDLE_S:
            self.close()

    def close(self) -> None:
        """End the process; the next use starts a new one."""
        with self._lock:
            self._end()

    def _running_child(self, arguments: Sequence[str] = (), is_for: Hashable = ()) -> WorkerProcess:
        """Return the process; start it unless it runs.

        Args:
            arguments: The command-line arguments of a new process.
            is_for: What the process may serve. One that runs for something else is ended first.

        Raises:
            WorkerProcessError: It cannot be started.
        """
        if self._child is None or not self._child.is_alive or self._child_is_for != is_for:
            self._end()
            self._child = WorkerProcess(self._worker_module, arguments, environment_without_keys())
            self._child_is_for = is_for
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child:
            child.popen.kill()  # It may not read its input any more. It has nothing to save.
            child.shut_down()


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent thread ends. Workers call it at the start.

    It works on Linux only. Elsewhere a worker ends with its standard input.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:  # The parent ended before the call, so no signal will come.
        os.kill(os.getpid(), signal.SIGKILL)
