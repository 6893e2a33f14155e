"""A Python client of the daemon whose methods are awaited: `await client.search("...", k=3)`.

It has one connection. Calls of several tasks wait for one another.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from anchord.config.paths import find_paths
from anchord.errors import NotRunningError, UsageError
from anchord.ipc.callers import AwaitedMethods
from anchord.ipc.patience import Patience, connect, hello_request, not_answering_error
from anchord.ipc.protocol import START_HINT, Response, decode_answer, encode_request, result_of
from anchord.ipc.requests import Call

A = TypeVar("A")

_MAX_LINE_BYTES = 1 << 31
"""An answer may be large: `dump` has all texts."""


class AsyncClient(AwaitedMethods):
    """A connection to the daemon: an asynchronous context manager, which connects.

    Every method of the socket is a method of this object, to be awaited.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Prepare; nothing is connected before `async with`.

        Args:
            path: The daemon's socket; None for the daemon of this user and of ANCHORD_HOME.
        """
        self._path = Path(path) if path is not None else find_paths(os.environ).socket_file
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._last_call_id = 0
        self._patience = Patience("", None)
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Connect to the daemon. While its queue of connections is full this waits up to 5 s.

        Raises:
            NotRunningError: No daemon accepts the connection.
        """
        connection = await asyncio.to_thread(connect, self._path)
        self._reader, self._writer = await asyncio.open_unix_connection(
            sock=connection, limit=_MAX_LINE_BYTES
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        if self._writer:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        self._reader = self._writer = None

    async def ask(self, call: Call[A], /) -> A:
        """Send a call and wait for its answer, for as long as the daemon is alive.

        A call whose task is cancelled goes on in the daemon; its answer is dropped.

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
        async with self._lock:
            return result_of(await self._exchange(call), call.method.answer)

    async def _exchange(self, call: Call[A]) -> Response:
        """Send a call and return the response to it."""
        if self._reader is None or self._writer is None:
            raise UsageError("this connection is not open", "use the client in `async with`")
        self._last_call_id += 1
        self._patience = Patience(call.method.name, call.params)
        # As for `Client`: after a failed send, the reason can still be read.
        with suppress(OSError):
            self._writer.write(encode_request(self._last_call_id, call.method.name, call.params))
            async with asyncio.timeout(self._patience.silence_s):
                await self._writer.drain()
        while (line := await self._read_line()).endswith(b"\n"):
            response = decode_answer(line)
            # Any other id belongs to an earlier call whose task was cancelled.
            if response.id in {self._last_call_id, None}:
                return response
        raise NotRunningError("the daemon ended before it answered this call", START_HINT)

    async def _read_line(self) -> bytes:
        """Return the next line; without its end where the connection ended."""
        reader = self._reader
        if reader is None:
            return b""
        is_alive = True
        while True:
            wait_s, hello_wait_s = self._patience.next_steps_s()
            try:
                # After `hello` failed: only what has arrived meanwhile.
                async with asyncio.timeout(wait_s if is_alive else 0) as limit:
                    return await reader.readline()
            except OSError:
                if not limit.expired():
                    return b""
            if not is_alive:
                raise not_answering_error(None)
            is_alive = await self._answers_hello(hello_wait_s)

    async def _answers_hello(self, timeout_s: float) -> bool:
        """Return whether the daemon says anything on a new connection."""
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(timeout_s):
                connection = await asyncio.to_thread(connect, self._path, timeout_s)
                reader, writer = await asyncio.open_unix_connection(sock=connection)
                writer.write(hello_request())
                return bool(await reader.read(1))
        except (OSError, NotRunningError):
            return False
        finally:
            if writer:
                writer.close()
