"""The socket's methods from Python: `Client().search("...", k=3)`. Blocking, one connection, one call at a time."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from anchord.errors import AnchordError, NotRunningError, UsageError
from anchord.ipc.protocol import encode, raised
from anchord.places import find_places

_CONNECT_TIMEOUT_S = 5.0
_AGAIN_S = 0.02
_HINT = "`anchord start` starts it; `anchord run` shows what it does"


class Client:
    """A connection to the daemon; use it as a context, or call `close`."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Connect to a socket, by default that of this user's daemon.

        Raises:
            NotRunningError: nobody answers there.
        """
        self._path = Path(path) if path is not None else find_places(os.environ).socket
        self._socket = _connected(self._path)
        self._lines = self._socket.makefile("rb")
        self._calls = 0
        self._streams = False

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

        def call(*unnamed: object, **params: object) -> Any:  # noqa: ANN401 - any JSON value
            if unnamed:
                raise UsageError(f"the parameters of `{method}` have names", f"write `{method}(name=...)`")
            return self.call(method.replace("_", "."), **params)

        return call

    def search(self, query: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
        """Call `search`; the other parameters are those of the socket.

        Raises:
            AnchordError: as `call` does.
        """
        return self.call("search", query=query, **params)

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._socket.close()

    def call(self, method: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
        """Call a method and return its result.

        Raises:
            AnchordError: what the daemon answered. NotRunningError: it ended before it answered.
        """
        if self._streams or self._lines.closed:
            raise UsageError("this connection is closed or gives progress", "make another Client")
        self._calls += 1
        try:
            line = encode({"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params})
        except UnicodeEncodeError as error:
            raise UsageError(f"a parameter of `{method}` is not UTF-8", "give a name of UTF-8") from error
        with suppress(OSError):  # A daemon that refuses a call may hang up before it has read it; its reason still waits.
            self._socket.sendall(line)
        while (answer := self._read()) is not None:
            if answer.get("id") in (self._calls, None):  # Not the answer to a call that was broken off.
                return _result(answer)
        raise NotRunningError("anchord ended before it answered", _HINT)

    def progress(self) -> Iterator[dict[str, Any]]:
        """Yield the daemon's progress, several times a second, until it ends or the connection is closed."""
        self.call("subscribe")
        self._streams = True
        while (said := self._read()) is not None and "params" in said:
            yield said["params"]

    def _read(self) -> dict[str, Any] | None:
        """Return the next line; None when there is no whole one left."""
        try:
            line = self._lines.readline()
        except (OSError, ValueError):  # ValueError: it was closed here.
            return None
        if not line.endswith(b"\n"):
            return None
        try:
            return msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise AnchordError(f"{self._path} gave no answer of anchord's", _HINT) from None


def _connected(path: Path) -> socket.socket:
    """Connect; a daemon whose queue is full for a moment is asked again."""
    deadline = time.monotonic() + _CONNECT_TIMEOUT_S
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except ConnectionRefusedError as error:
            connection.close()
            raise NotRunningError("anchord is not running (its socket is left over from one that died)", _HINT) from error
        except BlockingIOError as error:
            connection.close()
            if time.monotonic() > deadline:
                raise NotRunningError(f"anchord does not take the call on {path}", "see what it does: its log") from error
            time.sleep(_AGAIN_S)
        except (FileNotFoundError, ValueError) as error:
            connection.close()
            raise NotRunningError("anchord is not running", _HINT) from error
        except OSError as error:
            connection.close()
            raise NotRunningError(
                f"anchord is not running, or not to be reached at {path} ({error.strerror or error})", _HINT
            ) from error
        else:
            return connection


def _result(answer: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(answer.get("error"), dict):
        raise raised(answer["error"])
    if "result" not in answer:
        raise AnchordError("what answered is not anchord", _HINT)
    return answer["result"]
