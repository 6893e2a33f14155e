"""A Python client of the daemon: `Client().search("...", k=3)`.

It blocks, has one connection, and makes one call at a time.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from anchord.config.paths import find_paths
from anchord.errors import NotRunningError, UsageError
from anchord.ipc.callers import BlockingMethods
from anchord.ipc.messages.status import Progress
from anchord.ipc.protocol import (
    START_HINT,
    Response,
    decode_answer,
    encode_request,
    progress_of,
    result_of,
)
from anchord.ipc.requests import Call

A = TypeVar("A")

_CONNECT_TIMEOUT_S = 5.0
_RETRY_PAUSE_S = 0.02


class Client(BlockingMethods):
    """A connection to the daemon, also as a context manager that closes it.

    Every method of the socket is a method of this object. Only one thread may use a client at a
    time.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Connect to a daemon. While its queue of connections is full this waits up to 5 s.

        Args:
            path: Its socket; None for the daemon of this user and of ANCHORD_HOME.

        Raises:
            NotRunningError: No daemon accepts the connection.
        """
        self._path = Path(path) if path is not None else find_paths(os.environ).socket_file
        self._socket = connect(self._path)
        self._lines = self._socket.makefile("rb")
        self._last_call_id = 0
        self._is_streaming = False

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection. Closing twice is no error."""
        self._lines.close()
        self._socket.close()

    def ask(self, call: Call[A], /) -> A:
        """Send a call and wait for its answer, without a time limit.

        Args:
            call: What one of `ipc.requests` returned.

        Returns:
            The answer of the method.

        Raises:
            NotRunningError: The daemon ended before it answered.
            UsageError: The connection is closed, or a parameter is wrong.
            AnchordError: The daemon answered with an error; its class follows from the code.
        """
        response = self._exchange(call.method.name, call.params)
        return result_of(response, call.method.answer)

    def call(self, method: str, **params: object) -> object:
        """Call a method by its name, such as "roots.add", with JSON values.

        For programs that do not know the method when they are written; the others have a function
        for each.

        Returns:
            The result, decoded from JSON.

        Raises:
            AnchordError: As for `ask`.
        """
        return result_of(self._exchange(method, params), object)

    def progress(self) -> Iterator[Progress]:
        """Yield the daemon's progress about four times a second, until the daemon ends.

        The connection serves nothing else afterwards.

        Raises:
            AnchordError: As for `ask`.
        """
        self.call("subscribe")
        self._is_streaming = True
        while (message := self._read_response()) is not None and message.params:
            yield progress_of(message)

    def _exchange(self, method: str, params: object) -> Response:
        """Send a call and return the response to it."""
        if self._is_streaming or self._lines.closed:
            raise UsageError("this connection is closed or streams progress", "open another Client")
        self._last_call_id += 1
        line = encode_request(self._last_call_id, method, params)
        # A daemon that refuses a call may close the connection before it reads all of the request.
        # The send then fails, and the reason can still be read.
        with suppress(OSError):
            self._socket.sendall(line)
        while (response := self._read_response()) is not None:
            # Any other id belongs to an earlier call that an exception interrupted.
            if response.id in {self._last_call_id, None}:
                return response
        raise NotRunningError("the daemon ended before it answered this call", START_HINT)

    def _read_response(self) -> Response | None:
        """Return the next line; None when the connection ended."""
        try:
            line = self._lines.readline()
        except (OSError, ValueError):  # ValueError: `close` was called meanwhile.
            return None
        return decode_answer(line) if line.endswith(b"\n") else None


def connect(path: Path) -> socket.socket:
    """Connect to a daemon; retry for up to 5 s while its queue of connections is full.

    Args:
        path: Its socket.

    Raises:
        NotRunningError: No daemon accepts the connection.
    """
    deadline = time.monotonic() + _CONNECT_TIMEOUT_S
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
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
            return connection


def _why_not_connected(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "anchord is not running (its socket is left over from a crash)"
    if isinstance(error, (FileNotFoundError, ValueError)):  # ValueError: a NUL in the path.
        return "anchord is not running"
    return f"anchord is not running, or cannot be reached at {path} ({error.strerror or error})"
