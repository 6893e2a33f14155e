"""Bytes that a client sends -> lines that come back: the server's loop and its protocol, on a real pair of sockets.

An input's first line says in pieces of how many bytes the rest is sent. The longest line is short here, so that inputs
reach it.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from tools.fuzz.inputs import headed, number
from tools.fuzz.laws import hold

from anchord.errors import StoreError
from anchord.ipc import server as under_test
from anchord.ipc.messages.base import Params
from anchord.ipc.protocol import Request, parse_params
from anchord.ipc.server import RpcMethod, Server

LONGEST = 512
_PARAMS: Sequence[type[Params]] = (Params, *Params.__subclasses__())
_KINDS: Mapping[str, type[Params]] = {
    kind.__name__.removesuffix("Params").lower() or "hello": kind for kind in _PARAMS
}
_PROGRESS = b'"method":"progress"'


def sockets(data: bytes) -> None:
    """Say anything to the server: each line has one answer, or the connection is closed, and nothing else happens."""
    head, body = headed(data)
    size = number(head, 1, 4_096)
    with patch.object(under_test, "_PROGRESS_S", 0.0):
        heard = asyncio.run(_Talk().hold(body, size))
    wanted = expected(body)
    answers = [json.loads(line) for line in heard.lines]
    hold(all(line.endswith(b"\n") for line in heard.lines), "an answer is a line", heard.lines)
    hold(heard.failures == [], "nothing leaves the server's loop", heard.failures)
    hold(
        heard.most <= 2 * LONGEST + (1 << 18),
        "no more is held than a line and a packet",
        heard.most,
    )
    streamed = [each for each in answers if each.get("method") == "progress"]
    replies = [each for each in answers if each.get("method") != "progress"]
    hold(bool(streamed) == wanted.streams, "progress comes to who subscribed", replies, wanted)
    hold(len(replies) == len(wanted.ids), "each line has one answer", replies, wanted)
    for reply, identity in zip(replies, wanted.ids, strict=True):
        hold(
            reply.get("jsonrpc") == "2.0" and ("result" in reply) != ("error" in reply),
            "an answer is JSON-RPC",
            reply,
        )
        hold(reply["id"] == identity, "an answer has the id of its request", reply, identity)
        error = reply.get("error", {"message": "", "data": {"code": "-", "hint": "-"}})
        hold("internal error" not in error["message"], "no request breaks a method", reply)
        hold(error["data"]["code"] and error["data"]["hint"], "an error says what to do", reply)


# What should be answered


@dataclass
class Wanted:
    """The ids of the answers in their order, and whether progress is streamed after them."""

    ids: list[object] = field(default_factory=list)
    streams: bool = False


def expected(body: bytes) -> Wanted:
    """Say what a client should hear, line by line. A last line without an end is none, but a long one is too long."""
    wanted = Wanted()
    *lines, rest = body.split(b"\n")
    for line in lines:
        if len(line) - 1 > LONGEST:
            wanted.ids.append(None)
            return wanted
        if line.strip():
            _expect(line, wanted)
        if wanted.streams:
            return wanted
    if len(rest) - 1 > LONGEST:
        wanted.ids.append(None)
    return wanted


def _expect(line: bytes, wanted: Wanted) -> None:
    try:
        request = msgspec.json.decode(line, type=Request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        wanted.ids.append(None)
        return
    wanted.streams = request.method == "subscribe" and not request.params
    if request.id is not msgspec.UNSET:
        wanted.ids.append(request.id)


# A server and a client in one loop


@dataclass
class _Talk:
    """One connection, what came back, and what went wrong on the server's side."""

    lines: list[bytes] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    most: int = 0
    """The most that was held of what the client sent."""

    async def hold(self, body: bytes, size: int) -> _Talk:
        """Send a body in pieces, and read until the server closes, or begins to stream."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(
            lambda _, context: self.failures.append(
                repr(context.get("exception", context["message"]))
            )
        )
        server = Server(Path("/nowhere"), _methods(), lambda: {"pending": 3})
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        reader = asyncio.StreamReader(limit=LONGEST, loop=loop)
        await loop.connect_accepted_socket(
            lambda: asyncio.StreamReaderProtocol(reader, server._accept, loop=loop), theirs
        )
        tasks = list(server._connections._writers)
        with ours:
            sending = asyncio.ensure_future(self._send(ours, body, size, reader))
            await self._hear(ours)
            sending.cancel()  # To a server that streams nothing more can be said.
            await asyncio.gather(sending, return_exceptions=True)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        self.failures += [repr(error) for error in ended if error is not None]
        await asyncio.sleep(0)
        return self

    async def _send(
        self, ours: socket.socket, body: bytes, size: int, reader: asyncio.StreamReader
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            for at in range(0, len(body), size):
                await loop.sock_sendall(ours, body[at : at + size])
                self.most = max(self.most, len(reader._buffer))  # type: ignore[attr-defined] # what is held, nobody else says
            ours.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The server closed first, as it does behind a line that is too long.

    async def _hear(self, ours: socket.socket) -> None:
        loop, heard = asyncio.get_running_loop(), b""
        try:
            while data := await loop.sock_recv(ours, 1 << 16):
                heard += data
                if _PROGRESS in heard and heard.endswith(b"\n"):
                    break
        except OSError:
            pass  # Likewise: what was sent after it is lost, and what was answered before it is not.
        self.lines = heard.splitlines(keepends=True)


def _methods() -> dict[str, RpcMethod]:
    async def full(_: dict[str, Any]) -> object:
        raise StoreError("no room", "make some")

    async def echo(params: dict[str, Any]) -> object:
        return params

    return {**{name: _reading(kind) for name, kind in _KINDS.items()}, "full": full, "echo": echo}


def _reading(kind: type[Params]) -> RpcMethod:
    """Return a method that takes its parameters as the daemon's do, and gives them back."""

    async def run(params: dict[str, Any]) -> object:
        return msgspec.to_builtins(parse_params(kind, params))

    return run
