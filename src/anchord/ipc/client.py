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
from typing import Any, Self

import msgspec

from anchord.config.paths import find_paths
from anchord.errors import AnchordError, NotRunningError, UsageError
from anchord.ipc.protocol import encode_line, exception_from_error

_CONNECT_TIMEOUT_S = 5.0
_RETRY_PAUSE_S = 0.02
_START_HINT = "`anchord start` starts it; `anchord run` shows what it does"


class Client:
    """A connection to the daemon, also as a context manager that closes it.

    Every method of the socket can be called as a method of this object, with keyword arguments;
    `client.roots_add(path=...)` calls "roots.add". Only one thread may use a client at a time.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Connect to a daemon. While its queue of connections is full this waits up to 5 s.

        Args:
            path: Its socket; None for the daemon of this user and of ANCHORD_HOME.

        Raises:
            NotRunningError: No daemon accepts the connection.
        """
        self._path = Path(path) if path is not None else find_paths(os.environ).socket_file
        self._socket = _connect(self._path)
        self._lines = self._socket.makefile("rb")
        self._last_call_id = 0
        self._is_streaming = False

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - a function with any parameters
        """Return a function that calls a method of the socket; "_" in the name stands for "."."""
        if method.startswith("_"):
            raise AttributeError(method)

        def call(*positional: object, **params: object) -> Any:  # noqa: ANN401 - any JSON value
            if positional:
                raise UsageError(
                    f"`{method}` takes keyword arguments only", f"write `{method}(name=...)`"
                )
            return self.call(method.replace("_", "."), **params)

        return call

    def search(self, query: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
        """Search the index.

        Args:
            query: Words or a question.
            **params: The other parameters of the method "search" (`ipc.protocol.SearchParams`).

        Raises:
            AnchordError: As for `call`.
        """
        return self.call("search", query=query, **params)

    def close(self) -> None:
        """Close the connection. Closing twice is no error."""
        self._lines.close()
        self._socket.close()

    def call(self, method: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
        """Call a method and wait for its result, without a time limit.

        Args:
            method: Name of the method, such as "roots.add".
            **params: Its parameters; their values must be JSON.

        Returns:
            The result, decoded from JSON.

        Raises:
            NotRunningError: The daemon ended before it answered.
            UsageError: The connection is closed, or a parameter is wrong.
            AnchordError: The daemon answered with an error; its class follows from the code.
        """
        if self._is_streaming or self._lines.closed:
            raise UsageError("this connection is closed or streams progress", "open another Client")
        self._last_call_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_call_id, "method": method, "params": params}
        try:
            line = encode_line(request)
        except UnicodeEncodeError as error:
            raise UsageError(
                f"a parameter of `{method}` is not UTF-8", "pass text that UTF-8 can encode"
            ) from error
        # A daemon that refuses a call may close the connection before it reads all of the request.
        # The send then fails, and the reason can still be read.
        with suppress(OSError):
            self._socket.sendall(line)
        while (answer := self._read_answer()) is not None:
            # Any other id belongs to an earlier call that an exception interrupted.
            if answer.get("id") in (self._last_call_id, None):
                return _result(answer)
        raise NotRunningError("the daemon ended before it answered this call", _START_HINT)

    def progress(self) -> Iterator[dict[str, Any]]:
        """Yield the daemon's progress about four times a second, until the daemon ends.

        The connection serves nothing else afterwards.

        Raises:
            AnchordError: As for `call`.
        """
        self.call("subscribe")
        self._is_streaming = True
        while (message := self._read_answer()) is not None and "params" in message:
            yield message["params"]

    def _read_answer(self) -> dict[str, Any] | None:
        """Return the next line; None when the connection ended."""
        try:
            line = self._lines.readline()
        except (OSError, ValueError):  # ValueError: `close` was called meanwhile.
            return None
        if not line.endswith(b"\n"):
            return None
        try:
            return msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = f"the program that answers on {self._path} is not anchord"
            raise AnchordError(message, _START_HINT) from None


def _connect(path: Path) -> socket.socket:
    """Connect, and retry for a while when the daemon's queue of connections is full."""
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
            raise NotRunningError(_why_not_connected(path, error), _START_HINT) from error
        else:
            return connection


def _why_not_connected(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "anchord is not running (its socket is left over from a crash)"
    if isinstance(error, (FileNotFoundError, ValueError)):  # ValueError: a NUL in the path.
        return "anchord is not running"
    return f"anchord is not running, or cannot be reached at {path} ({error.strerror or error})"


def _result(answer: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(answer.get("error"), dict):
        raise exception_from_error(answer["error"])
    if "result" not in answer:
        raise AnchordError("the program that answered is not anchord", _START_HINT)
    return answer["result"]
