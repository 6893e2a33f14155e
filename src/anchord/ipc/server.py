"""The socket's server. Bounded in every direction: clients, the length of a line, the time that half a line may take.

Only the user's own processes are served: the folder is 0700, and each peer's uid is asked of the kernel. A left-over socket
of a daemon that died is replaced; the caller holds the writer's lock, so nobody else can be serving it.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import structlog

from anchord.errors import AlreadyRunningError, AnchordError, UsageError
from anchord.ipc.protocol import (
    FAILED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_LINE,
    PARSE_ERROR,
    UNKNOWN_METHOD,
    Params,
    Request,
    answer,
    encode,
    failure,
    read_params,
)

log = structlog.get_logger()

Method = Callable[[dict[str, Any]], Awaitable[object]]

_MAX_CLIENTS = 32
_HALF_LINE_S = 5.0
_IDLE_S = 6.0
"""Only where all places are taken, one that was idle for so long is given away."""
_PROGRESS_S = 0.25
_BACKLOG = 128


class Server:
    """Serves methods on a socket."""

    def __init__(
        self,
        path: Path,
        methods: Mapping[str, Method],
        progress: Callable[[], dict[str, Any]],
        inherited: socket.socket | None = None,
    ) -> None:
        """Prepare; `progress` gives what `subscribe` streams. An `inherited` socket is another's, and stays."""
        self._path = path
        self._methods = methods
        self._progress = progress
        self._inherited = inherited
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._waits: dict[asyncio.StreamWriter, float] = {}
        """Clients that are waited for, to say something or to read what they asked for; since when."""
        self._server: asyncio.Server | None = None
        self._closing = False

    async def start(self) -> None:
        """Listen. Between bind and chmod the folder, which is 0700, keeps others out."""
        self._server = await asyncio.start_unix_server(
            self._connected, sock=self._inherited or self._listening(), limit=MAX_LINE
        )

    def _listening(self) -> socket.socket:
        if _answers(self._path):
            raise AlreadyRunningError(
                f"systemd or the daemon of another index answers on {self._path}", "stop that, or set ANCHORD_HOME for this one"
            )
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(self._path))
            self._path.chmod(0o600)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener

    async def close(self) -> None:
        """Stop listening, drop the clients, remove the socket."""
        if self._server is None:
            return
        self._closing = True
        for listener in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        await asyncio.sleep(0)  # asyncio loses a connection, unclosed, that it took just before its server closes.
        self._server.close()
        clients = dict(self._clients)
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        for writer in clients.values():
            writer.transport.abort()  # `close` would wait for a client that does not read.
        if self._inherited is None:
            self._path.unlink(missing_ok=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a client in. No coroutine: until one runs, `close` would not know of the client."""
        if self._closing:
            writer.transport.abort()
            return
        if len(self._clients) >= _MAX_CLIENTS:
            self._drop_the_gone()
        if len(self._clients) >= _MAX_CLIENTS:
            self._drop_the_idlest()
        full = len(self._clients) >= _MAX_CLIENTS
        task = asyncio.get_running_loop().create_task(self._talk(reader, writer, full=full))
        self._clients[task] = writer
        task.add_done_callback(self._drop)

    def _drop(self, task: asyncio.Task[None]) -> None:
        writer = self._clients.pop(task, None)
        if writer:
            self._waits.pop(writer, None)
            writer.close()

    def _drop_the_gone(self) -> None:
        """Drop clients that hung up while their call went on. One that only ended its sending still reads its answer."""
        for task, writer in list(self._clients.items()):
            descriptor, poll = writer.get_extra_info("socket").fileno(), select.poll()
            if descriptor >= 0:  # One that was just closed has none.
                poll.register(descriptor, 0)
            if descriptor < 0 or poll.poll(0):
                task.cancel()
                self._drop(task)

    def _drop_the_idlest(self) -> None:
        """Make room: the client goes that has said nothing, or read nothing, for longest. One whose call is at work stays."""
        idle = {task: self._waits[writer] for task, writer in self._clients.items() if writer in self._waits}
        task = min(idle, key=lambda each: idle[each], default=None)
        if task and time.monotonic() - idle[task] >= _IDLE_S:
            writer = self._clients[task]
            task.cancel()
            self._drop(task)
            writer.transport.abort()  # What it did not read is not worth a wait.

    async def _read_first(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Wait until the client says something."""
        self._waits[writer] = time.monotonic()
        first = await reader.read(1)
        self._waits.pop(writer, None)
        return first

    async def _sent(self, writer: asyncio.StreamWriter) -> None:
        """Wait until the client has read enough of what it asked for."""
        self._waits[writer] = time.monotonic()
        await writer.drain()
        self._waits.pop(writer, None)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, full: bool) -> None:
        try:
            if _peer_uid(writer.get_extra_info("socket")) != os.geteuid():
                log.warning("socket.refused", reason="another user")
            elif full:
                writer.write(failure(None, AnchordError(f"over {_MAX_CLIENTS} clients at once", "close some, or try again")))
                await writer.drain()
            else:
                await self._serve(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # The client went away or fell silent in the middle of a line; there is nobody to tell.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while first := await self._read_first(reader, writer):
            try:
                # Not `wait_for`: before Python 3.12 it can swallow a cancellation, and `close` would wait for ever.
                async with asyncio.timeout(_HALF_LINE_S):
                    line = first if first == b"\n" else first + await reader.readuntil(b"\n")
            except asyncio.LimitOverrunError:
                writer.write(failure(None, UsageError(f"a line of over {MAX_LINE} bytes", "send less"), INVALID_REQUEST))
                await writer.drain()
                return
            if line.strip():
                await self._handle(line, writer)

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
            else:
                writer.write(await self._answer(request))
        await self._sent(writer)

    async def _answer(self, request: Request) -> bytes:
        method = self._methods.get(request.method)
        if method is None:
            error = UsageError(f"no method `{request.method}`", f"there are: {', '.join(sorted(self._methods))}")
            return failure(request, error, UNKNOWN_METHOD)
        try:
            return answer(request, await method(request.params))
        except Exception as error:  # noqa: BLE001 - whatever a method raises is answered
            return _failed(request, error)

    async def _stream(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Send progress until the client leaves."""
        try:
            read_params(Params, request.params)
        except UsageError as error:
            writer.write(_failed(request, error))
            return
        writer.write(answer(request, {"every_s": _PROGRESS_S}))
        more = True
        while more:
            line, more = self._progress_line(request)
            writer.write(line)
            await self._sent(writer)
            await asyncio.sleep(_PROGRESS_S)

    def _progress_line(self, request: Request) -> tuple[bytes, bool]:
        """Return the next line, and whether more can follow."""
        try:
            return encode({"jsonrpc": "2.0", "method": "progress", "params": self._progress()}), True
        except Exception as error:  # noqa: BLE001 - likewise
            return _failed(request, error), False


def _answers(path: Path) -> bool:
    """Whether somebody listens on a socket: one that was left over does not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(str(path))
        except BlockingIOError:  # Its queue is full.
            return True
        except OSError:
            return False
    return True


def _failed(request: Request, error: Exception) -> bytes:
    """Return the line of what a method raised; what is not ours goes to the log with its traceback."""
    if isinstance(error, AnchordError):
        return failure(request, error, INVALID_PARAMS if isinstance(error, UsageError) else FAILED)
    log.error("socket.failed", method=request.method, exc_info=error)
    return failure(request, AnchordError(f"internal error: {type(error).__name__}", "see the log"))


def _peer_uid(connection: socket.socket) -> int:
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[1])
    # macOS: struct xucred {version; uid; ...} by LOCAL_PEERCRED (1) at level SOL_LOCAL (0).
    credentials = connection.getsockopt(0, 1, 76)
    return int(struct.unpack("2I", credentials[:8])[1])
