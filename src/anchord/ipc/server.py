"""The server of the socket. Everything is bounded: clients, the length of a line, its duration.

Only processes of the same user are served: the socket's folder has mode 0700, and the server asks
the kernel for the uid of each client.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec
import structlog

from anchord.core.os_errors import from_os_error
from anchord.errors import AlreadyRunningError, AnchordError, UsageError
from anchord.ipc.connections import MAX_CONNECTIONS, Connections, is_hung_up
from anchord.ipc.messages.base import Params
from anchord.ipc.protocol import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_REQUEST_BYTES,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SERVER_ERROR,
    Request,
    encode_error,
    encode_line,
    encode_result,
    parse_params,
)

log = structlog.get_logger()

RpcMethod = Callable[[dict[str, Any]], Coroutine[Any, Any, object]]
"""Executes a call: takes its parameters and returns a result that can be encoded as JSON.

It is cancelled when its client leaves.
"""

_HALF_LINE_S = 5.0
"""Seconds that the rest of a line may take after its first byte."""
_PROGRESS_S = 0.25
_HANG_UP_CHECK_S = 0.25
"""How often a call that takes longer looks whether its client is still there."""
_BACKLOG = 128


class Server:
    """Answers calls on a socket.

    The method "subscribe" is built in: it streams progress until the client disconnects.
    """

    def __init__(
        self,
        path: Path,
        methods: Mapping[str, RpcMethod],
        get_progress: Callable[[], object],
        inherited_socket: socket.socket | None = None,
        *,
        owns_path: bool = True,
    ) -> None:
        """Create a server that does not listen yet.

        Args:
            path: Path of the socket.
            methods: Name of a method -> the function that executes it.
            get_progress: Returns what a subscriber receives every 0.25 s.
            inherited_socket: A socket that listens on the path already. The server then creates
                none.
            owns_path: Whether the file at `path` is deleted when the server closes. It is not
                systemd's.
        """
        self._path = path
        self._methods = methods
        self._get_progress = get_progress
        self._inherited_socket = inherited_socket
        self._owns_path = owns_path
        self._connections = Connections()
        self._server: asyncio.Server | None = None
        self._listener: socket.socket | None = None
        self._file_id: tuple[int, int] | None = None
        """Device and inode of the socket's file."""
        self._is_closing = False

    async def start(self) -> None:
        """Start listening. A socket that a crashed daemon left behind is replaced.

        The caller holds the writer lock, so no other daemon of this index serves the socket. A
        daemon of another index, or systemd, may.

        Raises:
            AlreadyRunningError: Another process answers on the path.
            OSError: The socket cannot be created.
        """
        listener = self._inherited_socket or self._listen()
        self._listener = listener
        self._file_id = _file_id(self._path)
        self._server = await asyncio.start_unix_server(
            self._accept, sock=listener, limit=MAX_REQUEST_BYTES
        )

    async def listen_again_if_lost(self) -> bool:
        """Listen anew if the socket's file was deleted or replaced: no client could connect.

        Connections that are open stay open.

        Returns:
            Whether it was lost.

        Raises:
            AlreadyRunningError: Another process answers on the path.
            OSError: The socket cannot be created, or the home is gone.
        """
        if self._server is None or not self._owns_path or self._is_closing:
            return False
        if self._file_id == _file_id(self._path):
            return False
        # Not the folders above: a home that was moved away must be able to return.
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._inherited_socket = None
        # Those that connected just before are accepted first. Closing ends no connection.
        await asyncio.sleep(0)
        self._server.close()
        await self.start()
        return True

    async def close(self, hand_over: Callable[[socket.socket], None] | None = None) -> None:
        """Stop listening, cancel all calls, drop the clients and delete the socket.

        Args:
            hand_over: Called with the listening socket, so that another server can go on with it:
                its file stays then. It is not called where the file is systemd's, or is gone.
        """
        if self._server is None or self._listener is None:
            return
        self._is_closing = True
        deletes_file = self._owns_path
        if hand_over and self._owns_path and self._file_id == _file_id(self._path):
            hand_over(self._listener)
            deletes_file = False
        for listener in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        # asyncio forgets to close a connection that it accepted just before its server closes. One
        # turn of the loop passes such a connection to `_accept`.
        await asyncio.sleep(0)
        self._server.close()
        await self._connections.close()
        if deletes_file:
            self._path.unlink(missing_ok=True)

    def _listen(self) -> socket.socket:
        if _has_listener(self._path):
            raise AlreadyRunningError(
                f"systemd or the daemon of another index answers on {self._path}",
                "stop that one, or set ANCHORD_HOME for this one",
            )
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Between `bind` and `chmod` the folder, which has mode 0700, keeps other users out.
            listener.bind(str(self._path))
            self._path.chmod(0o600)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Start serving a client.

        This is not a coroutine: until a coroutine runs, `close` would not see the connection.
        """
        if self._is_closing:
            writer.transport.abort()
            return
        self._connections.make_room()
        is_full = self._connections.is_full
        conversation = self._greet(reader, writer, is_full=is_full)
        task = asyncio.get_running_loop().create_task(conversation)
        self._connections.add(task, writer)

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_full: bool
    ) -> None:
        """Serve a client, or refuse it."""
        try:
            if _peer_uid(writer.get_extra_info("socket")) != os.geteuid():
                log.warning("socket.refused", reason="another user")
            elif is_full:
                error = AnchordError(
                    f"over {MAX_CONNECTIONS} clients at once", "close some, or try again"
                )
                writer.write(encode_error(None, error))
                await writer.drain()
            else:
                await self._serve(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # The client left, or stopped in the middle of a line: nobody reads an answer.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while first_byte := await self._read_first_byte(reader, writer):
            try:
                line = await _read_rest_of_line(reader, first_byte)
            except asyncio.LimitOverrunError:
                error = UsageError(f"a line of over {MAX_REQUEST_BYTES} bytes", "send less")
                writer.write(encode_error(None, error, INVALID_REQUEST))
                await writer.drain()
                return
            if line.strip():
                await self._handle_line(line, writer)

    async def _read_first_byte(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        """Wait for the next request; b"" when the client disconnected."""
        with self._connections.idle(writer):
            return await reader.read(1)

    async def _drain(self, writer: asyncio.StreamWriter) -> None:
        """Wait until the client has read enough of its answers."""
        with self._connections.idle(writer):
            await writer.drain()

    async def _handle_line(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            request = msgspec.json.decode(line, type=Request)
        except msgspec.ValidationError as error:
            refusal = UsageError(str(error), "send a JSON-RPC 2.0 request")
            writer.write(encode_error(None, refusal, INVALID_REQUEST))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            refusal = UsageError("the line is not JSON", "send one JSON object a line")
            writer.write(encode_error(None, refusal, PARSE_ERROR))
        else:
            if request.method == "subscribe":
                await self._stream_progress(request, writer)
            else:
                writer.write(await self._answer(request, writer))
        await self._drain(writer)

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bytes:
        method = self._methods.get(request.method)
        if method is None:
            hint = f"there are: {', '.join(sorted(self._methods))}"
            error = UsageError(f"no method `{request.method}`", hint)
            return encode_error(request, error, METHOD_NOT_FOUND)
        try:
            result = await _run_until_client_leaves(method(request.params), writer)
            return encode_result(request, result)
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a method raises becomes an answer
            return _encode_failure(request, error)

    async def _stream_progress(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Send progress until the client leaves or progress cannot be computed."""
        try:
            parse_params(Params, request.params)
        except UsageError as error:
            writer.write(_encode_failure(request, error))
            return
        writer.write(encode_result(request, {"every_s": _PROGRESS_S}))
        while True:
            try:
                line = self._progress_line()
            except Exception as error:  # noqa: BLE001 - whatever it raises becomes an answer
                writer.write(_encode_failure(request, error))
                return
            writer.write(line)
            await self._drain(writer)
            await asyncio.sleep(_PROGRESS_S)

    def _progress_line(self) -> bytes:
        return encode_line({"jsonrpc": "2.0", "method": "progress", "params": self._get_progress()})


async def _run_until_client_leaves(
    method: Coroutine[Any, Any, object], writer: asyncio.StreamWriter
) -> object:
    """Run a call; cancel it and raise ConnectionResetError when its client closed the connection.

    asyncio reports no hang-up after a client has ended its sending side, so the socket is polled.
    """
    if is_hung_up(writer):
        # It gave up while this process was stopped or busy, and was told that its call failed.
        method.close()
        raise ConnectionResetError
    task = asyncio.ensure_future(method)
    try:
        while not (await asyncio.wait({task}, timeout=_HANG_UP_CHECK_S))[0]:
            if is_hung_up(writer):
                raise ConnectionResetError
        return task.result()
    finally:
        task.cancel()


async def _read_rest_of_line(reader: asyncio.StreamReader, first_byte: bytes) -> bytes:
    if first_byte == b"\n":
        return first_byte
    # Not `wait_for`: before Python 3.12 it can swallow a cancellation, and `close` would hang.
    async with asyncio.timeout(_HALF_LINE_S):
        return first_byte + await reader.readuntil(b"\n")


def _file_id(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _has_listener(path: Path) -> bool:
    """Whether a process listens on a socket; nobody does on one that a crash left behind."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:  # Somebody listens, with a full queue.
            return True
        except OSError:
            return False
    return True


def _encode_failure(request: Request, error: Exception) -> bytes:
    """Encode what a method raised. Errors that are not anchord's are logged with a traceback."""
    if isinstance(error, OSError):
        error = from_os_error(error) or error
    if isinstance(error, AnchordError):
        code = INVALID_PARAMS if isinstance(error, UsageError) else SERVER_ERROR
        return encode_error(request, error, code)
    log.error("socket.failed", method=request.method, exc_info=error)
    internal = AnchordError(f"internal error: {type(error).__name__}", "see the log")
    return encode_error(request, internal)


def _peer_uid(connection: socket.socket) -> int:
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
        )
        _pid, uid, _gid = struct.unpack("3i", credentials)
        return int(uid)
    # macOS: struct xucred {version; uid; ...} by LOCAL_PEERCRED (1) at level SOL_LOCAL (0).
    credentials = connection.getsockopt(0, 1, 76)
    _version, uid = struct.unpack("2I", credentials[:8])
    return int(uid)
