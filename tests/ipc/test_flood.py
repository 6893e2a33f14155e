"""Connections while others disconnect: each client is either served or dropped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from ipc.conftest import Talk, in_loop, turns

from anchord.ipc.server import Server

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
CLIENTS = 32
_TURNS = 400


async def pong(_: dict[str, Any]) -> object:
    return "pong"


def test_a_client_that_comes_while_all_others_are_being_lost_is_answered_or_refused(
    path: Path,
) -> None:
    forgotten: list[int] = []
    unhandled: list[dict[str, Any]] = []

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: unhandled.append(context)
        )
        for waited in range(8):
            server = Server(path, {"ping": pong}, dict)
            await server.start()
            others = [await asyncio.open_unix_connection(path) for _ in range(CLIENTS)]
            for reader, writer in others:
                writer.write(PING)
                assert json.loads(await reader.readline())["result"] == "pong"
            before = list(server._connections._writers.values())
            with Talk(path) as talk:
                talk.socket.sendall(PING)
                talk.socket.setblocking(False)
                await turns(waited)
                for writer in before:
                    writer.transport.abort()
                await turns(_TURNS)
                try:
                    talk.socket.recv(1)
                except BlockingIOError:
                    forgotten.append(waited)
                except ConnectionResetError:
                    pass  # It was dropped.
            for _, writer in others:
                writer.close()
            await server.close()

    in_loop(story)
    assert unhandled == []
    assert forgotten == []
