"""The socket's server. Bounded in every direction: clients, the length of a line, the time that half a line may take.

Only the user's own processes are served: the folder is 0700, and each peer's uid is asked of the kernel. A left-over socket
of a daemon that died is replaced; the caller holds the writer's lock, so nobody else can be serving it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import structlog

from anchord.errors import AnchordError, UsageError
from anchord.ipc.protocol import (
    FAILED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_LINE,
    PARSE_ERROR,
    UNKNOWN_METHOD,
    Request,
    answer,
    encode,
    failure,
)

log = structlog.get_logger()

Method = Callable[[dict[str, Any]], Awaitable[object]]

_MAX_CLIENTS = 32
_IDLE_S = 3600.0
_HALF_LINE_S = 5.0
_PROGRESS_S = 0.25
_BACKLOG = 128


class Server:
    """Serves methods on a socket."""

    def __init__(self, path: Path, methods: Mapping[str, Method], progress: Callable[[], dict[str, Any]]) -> None:
        """Prepare; `progress` gives what `subscribe` streams."""
        self._path = path
        self._methods = methods
        self._progress = progress
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen."""
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listener.bind(str(self._path))
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
        self._server = await asyncio.start_unix_server(self._accepted, sock=listener, limit=MAX_LINE)

    async def close(self) -> None:
        """Stop listening, drop the clients, remove the socket."""
        if self._server is None:
            return
        self._server.close()
        for client in list(self._clients):
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:  # pragma: no cover - a coroutine of a server always runs in a task
            return
        self._clients.add(task)
        try:
            if _peer_uid(writer.get_extra_info("socket")) != os.geteuid():
                log.warning("socket.refused", reason="another user")
            elif len(self._clients) > _MAX_CLIENTS:
                writer.write(failure(None, AnchordError(f"over {_MAX_CLIENTS} clients at once", "close some, or try again")))
                await writer.drain()
            else:
                await self._serve(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # The client went away or fell silent in the middle of a line; there is nobody to tell.
        except asyncio.CancelledError:
            pass  # The server closes.
        finally:
            self._clients.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while first := await asyncio.wait_for(reader.read(1), _IDLE_S):
            try:
                rest = b"" if first == b"\n" else await asyncio.wait_for(reader.readuntil(b"\n"), _HALF_LINE_S)
            except asyncio.LimitOverrunError:
                writer.write(failure(None, UsageError(f"a line of over {MAX_LINE} bytes", "send less"), INVALID_REQUEST))
                await writer.drain()
                return
            if (first + rest).strip():
                await self._handle(first + rest, writer)

    async def _handle(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            request = msgspec.json.decode(line, type=Request)
        except msgspec.ValidationError as error:
            writer.write(failure(None, UsageError(str(error), "send a JSON-RPC 2.0 request"), INVALID_REQUEST))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            writer.write(failure(None, UsageError("no JSON", "send one JSON object a line"), PARSE_ERROR))
        else:
            if request.method == "subscribe":
                await self._stream(request, writer)
                return
            reply = await self._answer(request)
            if request.id is not None:
                writer.write(reply)
        await writer.drain()

    async def _answer(self, request: Request) -> bytes:
        method = self._methods.get(request.method)
        if method is None:
            error = UsageError(f"no method `{request.method}`", f"there are: {', '.join(sorted(self._methods))}")
            return failure(request.id, error, UNKNOWN_METHOD)
        try:
            return answer(request.id, await method(request.params))
        except UsageError as error:
            return failure(request.id, error, INVALID_PARAMS)
        except AnchordError as error:
            return failure(request.id, error, FAILED)
        except Exception as error:
            log.exception("socket.failed", method=request.method)
            return failure(request.id, AnchordError(f"internal error: {type(error).__name__}", "see the log"))

    async def _stream(self, request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(request.id, {"every_s": _PROGRESS_S}))
        while True:
            writer.write(encode({"jsonrpc": "2.0", "method": "progress", "params": self._progress()}))
            await writer.drain()
            await asyncio.sleep(_PROGRESS_S)


def _peer_uid(connection: socket.socket) -> int:
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[1])
    # macOS: struct xucred {version; uid; ...} by LOCAL_PEERCRED (1) at level SOL_LOCAL (0).
    credentials = connection.getsockopt(0, 1, 76)
    return int(struct.unpack("2I", credentials[:8])[1])
