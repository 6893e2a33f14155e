"""The socket's methods from Python: `Client().search(query="...")`. Blocking, one connection, one call at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import msgspec

from anchord.errors import NotRunningError
from anchord.ipc.protocol import encode, raised
from anchord.places import find_places

_CONNECT_TIMEOUT_S = 5.0
_HINT = "`anchord start` starts it; `anchord run` shows what it does"


class Client:
    """A connection to the daemon; use it as a context, or call `close`."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Connect to a socket, by default that of this user's daemon.

        Raises:
            NotRunningError: nobody answers there.
        """
        self._path = Path(path) if path is not None else find_places(os.environ).socket
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_CONNECT_TIMEOUT_S)
            self._socket.connect(str(self._path))
        except ConnectionRefusedError as error:
            self._socket.close()
            raise NotRunningError("anchord is not running (its socket is left over from one that died)", _HINT) from error
        except OSError as error:
            self._socket.close()
            raise NotRunningError("anchord is not running", _HINT) from error
        self._socket.settimeout(None)
        self._lines = self._socket.makefile("rb")
        self._calls = 0

    def __enter__(self) -> Self:
        """Use as a context that closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - a function that takes the method's parameters
        """Return a method of the socket as a function; `roots_add` stands for `roots.add`."""
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda **params: self.call(method.replace("_", "."), **params)

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._socket.close()

    def call(self, method: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
        """Call a method and return its result.

        Raises:
            AnchordError: what the daemon answered. NotRunningError: it ended before it answered.
        """
        self._calls += 1
        try:
            self._socket.sendall(encode({"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params}))
            line = self._lines.readline()
        except OSError:
            line = b""
        if not line:
            raise NotRunningError("anchord ended before it answered", _HINT)
        answer = msgspec.json.decode(line)
        if "error" in answer:
            raise raised(answer["error"])
        return answer["result"]

    def progress(self) -> Iterator[dict[str, Any]]:
        """Yield the daemon's progress, several times a second, until it ends or the connection is closed."""
        self.call("subscribe")
        for line in self._lines:
            yield msgspec.json.decode(line)["params"]
