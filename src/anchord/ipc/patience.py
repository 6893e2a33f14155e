"""Connecting to the daemon, and how long a client waits for one that says nothing.

A call may take hours, but a daemon that is alive answers `hello` on a new connection at once. So a
client that has heard nothing for a while asks that, and gives up only if this gets no answer.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from anchord.errors import NotRunningError, TimeoutExpiredError
from anchord.ipc.protocol import START_HINT, encode_request
from anchord.ipc.requests import hello

_CONNECT_TIMEOUT_S = 5.0
_RETRY_PAUSE_S = 0.02
_SHORT_SILENCE_S = 10.0
"""How long the daemon may be silent in a call that it answers at once, and after a timeout.

A start by systemd's socket takes some seconds, in which nothing answers.
"""
_LONG_SILENCE_S = 30.0
"""How long it may be silent in any other call."""
_HELLO_AFTER_S = 5.0
"""Seconds of silence after which `hello` is asked, at the latest."""
_SHORT_METHODS = frozenset({"hello", "ping", "status"})


class NotAnsweringError(TimeoutExpiredError):
    """The daemon accepts connections, and says nothing: its process is stopped or stuck."""


class Patience:
    """How long one call waits for a daemon that says nothing."""

    def __init__(self, method: str, params: object) -> None:
        """Begin to wait.

        Args:
            method: Name of the method.
            params: Its parameters. The `timeout` of "sync" also limits the wait.
        """
        self.silence_s = _SHORT_SILENCE_S if method in _SHORT_METHODS else _LONG_SILENCE_S
        self._deadline = math.inf
        values = params if isinstance(params, Mapping) else {}
        timeout_s = values.get("timeout", getattr(params, "timeout", None))
        if method == "sync" and isinstance(timeout_s, int | float):
            self._deadline = time.monotonic() + timeout_s + _SHORT_SILENCE_S

    def next_steps_s(self) -> tuple[float, float]:
        """Return how many seconds to wait from now, and then for the answer to `hello`."""
        left_s = max(_SHORT_SILENCE_S, self._deadline - time.monotonic())
        silence_s = min(self.silence_s, left_s)
        wait_s = min(_HELLO_AFTER_S, silence_s / 2)
        return wait_s, silence_s - wait_s


def connect(path: Path, timeout_s: float | None = None) -> socket.socket:
    """Connect to a daemon; retry while its queue of connections is full.

    Args:
        path: Its socket.
        timeout_s: For how long to retry; None for 5 s.

    Raises:
        NotRunningError: No daemon accepts the connection.
    """
    deadline = time.monotonic() + (_CONNECT_TIMEOUT_S if timeout_s is None else timeout_s)
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # While the queue is full, a blocking socket would wait for ever on Linux.
        connection.setblocking(False)
        try:
            connection.connect(str(path))
        except BlockingIOError as error:
            connection.close()
            if time.monotonic() > deadline:
                raise NotRunningError(
                    f"anchord accepts no connection on {path}", "see its log for what it does"
                ) from error
            time.sleep(_RETRY_PAUSE_S)
        except (OSError, ValueError) as error:
            connection.close()
            raise NotRunningError(_why_not_connected(path, error), START_HINT) from error
        else:
            connection.setblocking(True)
            return connection


def hello_request() -> bytes:
    """Return the line that asks for `hello`. Any answer, also an error, is a sign of life."""
    call = hello()
    return encode_request(1, call.method.name, call.params)


def answers_hello(path: Path, timeout_s: float) -> bool:
    """Return whether the daemon says anything on a new connection.

    Args:
        path: Its socket.
        timeout_s: How long to wait for it.
    """
    try:
        with connect(path, timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(hello_request())
            return bool(connection.recv(1))
    except (OSError, NotRunningError):
        return False


def not_answering_error(pid: int | None) -> NotAnsweringError:
    """Return (not raise) the error for a daemon that does not answer.

    Args:
        pid: Its process; None or 0 if that is not known.
    """
    hint = "`anchord restart` ends it and starts a new one"
    if not pid:
        return NotAnsweringError("the daemon does not answer", hint)
    return NotAnsweringError(
        f"the daemon (process {pid}) does not answer",
        f"{hint}; it may be stopped: `kill -CONT {pid}`",
    )


def _why_not_connected(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "anchord is not running (its socket is left over from a crash)"
    if isinstance(error, (FileNotFoundError, ValueError)):  # ValueError: a NUL in the path.
        return "anchord is not running"
    return f"anchord is not running, or cannot be reached at {path} ({error.strerror or error})"
