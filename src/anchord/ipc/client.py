"""A Python client of the daemon: `Client().search("...", k=3)`.

It blocks, has one connection, and makes one call at a time.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from anchord.config.paths import find_paths
from anchord.errors import NotRunningError, UsageError
from anchord.ipc.callers import BlockingMethods
from anchord.ipc.messages.status import Progress
from anchord.ipc.patience import Patience, answers_hello, connect, not_answering_error
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

_RECEIVED_BYTES = 1 << 18
"""Maximum length of what is received at once."""


class Client(BlockingMethods):
    """A connection to the daemon, also as a context manager that closes it.

    Every method of the socket is a method of this object. Only one thread may use a client at a
    time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        find_pid: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Connect to a daemon. While its queue of connections is full this waits up to 5 s.

        Args:
            path: Its socket; None for the daemon of this user and of ANCHORD_HOME.
            find_pid: Returns the daemon's process, for the error that says it does not answer.

        Raises:
            NotRunningError: No daemon accepts the connection.
        """
        self._path = Path(path) if path is not None else find_paths(os.environ).socket_file
        self._socket = connect(self._path)
        self._find_pid = find_pid
        self._received = bytearray()
        self._patience = Patience("", None)
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
        self._socket.close()

    def ask(self, call: Call[A], /) -> A:
        """Send a call and wait for its answer, for as long as the daemon is alive.

        Args:
            call: What one of `ipc.requests` returned.

        Returns:
            The answer of the method.

        Raises:
            NotRunningError: The daemon ended before it answered.
            NotAnsweringError: It does not even answer `hello`: it is stopped or stuck.
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
        if self._is_streaming or self._socket.fileno() < 0:
            raise UsageError("this connection is closed or streams progress", "open another Client")
        self._last_call_id += 1
        self._patience = Patience(method, params)
        line = encode_request(self._last_call_id, method, params)
        # A daemon that refuses a call may close the connection before it reads all of the request.
        # The send then fails, and the reason can still be read.
        with suppress(OSError):
            self._socket.settimeout(self._patience.silence_s)
            self._socket.sendall(line)
        while (response := self._read_response()) is not None:
            # Any other id belongs to an earlier call that an exception interrupted.
            if response.id in {self._last_call_id, None}:
                return response
        raise NotRunningError("the daemon ended before it answered this call", START_HINT)

    def _read_response(self) -> Response | None:
        """Return the next line; None when the connection ended."""
        try:
            line = self._read_line()
        except (OSError, ValueError):  # Also where `close` was called meanwhile.
            return None
        return decode_answer(line) if line else None

    def _read_line(self) -> bytes:
        """Return the next line; b"" when the connection ended."""
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            chunk = self._receive()
            if not chunk:
                return b""
            self._received += chunk
        line = bytes(self._received[: end + 1])
        del self._received[: end + 1]
        return line

    def _receive(self) -> bytes:
        """Wait for bytes; b"" when the connection ended.

        Raises:
            NotAnsweringError: None came, and none on a new connection either.
        """
        while True:
            wait_s, hello_wait_s = self._patience.next_steps_s()
            self._socket.settimeout(wait_s)
            try:
                return self._socket.recv(_RECEIVED_BYTES)
            except TimeoutError:
                if not answers_hello(self._path, hello_wait_s) and not self._has_more():
                    raise not_answering_error(self._find_pid()) from None

    def _has_more(self) -> bool:
        """Whether bytes, or the connection's end, arrived meanwhile."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))
