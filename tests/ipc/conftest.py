"""A real server on a real socket, in its own event loop; and clients that send any bytes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import select
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from sample_messages import message

from anchord.errors import AnchordError, StoreError
from anchord.ipc import patience
from anchord.ipc.messages.roots import RootNameParams
from anchord.ipc.messages.status import Progress
from anchord.ipc.protocol import parse_params
from anchord.ipc.server import Server

PATIENCE_S = 20.0
"""Seconds after which a hanging test fails. No test asserts a duration."""
_HELLOS = 4
"""Connections, the first included, after which a `frozen` one that says hello answers the first."""


class Running:
    """A server in a thread, with controls for tests."""

    def __init__(self, path: Path) -> None:
        """Start it."""
        self.path = path
        self.figures: object = message(Progress, {"pending": 3})
        self.figures_fail = False
        self.holding = threading.Semaphore(0)
        self.seen: list[dict[str, Any]] = []
        self.unhandled: list[dict[str, Any]] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main()), name="the server's loop"
        )
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, context: self.unhandled.append(context))
        self._gate, self._ending = asyncio.Event(), asyncio.Event()
        methods = {
            "ping": self._ping, "echo": self._echo, "hold": self._hold, "big": self._big, "odd": self._odd,
            "full": self._full, "misused": self._misused, "broken": self._broken, "undecodable": self._undecodable,
        }  # fmt: skip
        server = Server(self.path, methods, self._progress)
        await server.start()
        self._ready.set()
        await self._ending.wait()
        await server.close()
        await turns(20)  # Let the loop process the clients that have just disconnected.

    def run_in_loop(self, function: Callable[[], object]) -> None:
        """Have the server's loop call a function; it serves nobody meanwhile."""
        self._loop.call_soon_threadsafe(function)

    def release(self) -> None:
        """Let every `hold` return."""
        self._loop.call_soon_threadsafe(self._gate.set)

    def stop(self) -> None:
        """Close the server and wait until it is."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the server does not close"

    def talk(self) -> Talk:
        """Return a connection."""
        return Talk(self.path)

    def _progress(self) -> object:
        if self.figures_fail:
            raise ZeroDivisionError
        return self.figures

    async def _ping(self, _: dict[str, Any]) -> object:
        return "pong"

    async def _echo(self, params: dict[str, Any]) -> object:
        self.seen.append(params)
        return params

    async def _hold(self, _: dict[str, Any]) -> object:
        self.holding.release()
        await self._gate.wait()
        return "held"

    async def _big(self, params: dict[str, Any]) -> object:
        return "x" * int(params["size"])

    async def _odd(self, _: dict[str, Any]) -> object:
        return {"path": "caf\udce9"}

    async def _full(self, _: dict[str, Any]) -> object:
        raise StoreError("no room", "make some")

    async def _misused(self, params: dict[str, Any]) -> object:
        return parse_params(RootNameParams, params)

    async def _broken(self, _: dict[str, Any]) -> object:
        raise ValueError("the words of a document")

    async def _undecodable(self, _: dict[str, Any]) -> object:
        raise AnchordError("caf\udce9 is away", "mount caf\udce9")


class Talk:
    """A connection that sends any bytes."""

    def __init__(self, path: Path) -> None:
        """Connect."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))
        self._lines = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        """Use as a context that closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close."""
        self._lines.close()
        self.socket.close()

    def say(self, *lines: bytes) -> None:
        """Send lines."""
        self.socket.sendall(b"".join(line + b"\n" for line in lines))

    def request(self, method: str, **others: object) -> None:
        """Send a request."""
        self.say(json.dumps({"jsonrpc": "2.0", "method": method, **others}).encode())

    def ask(self, method: str, **others: object) -> Any:  # noqa: ANN401 - any JSON value
        """Send a request and return its answer."""
        self.request(method, id=others.pop("id", 1), **others)
        return self.hear()

    def hear(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the next line's value, None when there is none."""
        line = self._lines.readline()
        return json.loads(line) if line else None

    def end(self) -> None:
        """Shut down the sending side."""
        self.socket.shutdown(socket.SHUT_WR)

    def rest(self) -> list[Any]:
        """Return all bytes until the server closes."""
        return [json.loads(line) for line in self._lines]


@contextmanager
def frozen(path: Path, *, saying_hello: bool = False) -> Iterator[None]:
    """Accept connections and read nothing; with `saying_hello`, answer all but the first one."""

    def accept() -> None:
        while not ending.is_set():
            with contextlib.suppress(TimeoutError):
                connections.append(listener.accept()[0])
                if saying_hello and len(connections) > 1:
                    connections[-1].sendall(b"{}\n")
                if len(connections) == _HELLOS and saying_hello:
                    connections[0].sendall(b'{"jsonrpc":"2.0","id":1,"result":"pong"}\n')

    connections: list[socket.socket] = []
    ending = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(0.01)
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join(PATIENCE_S)
            for connection in connections:
                connection.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients wait for a silent daemon only for a moment."""
    for name in ("_SHORT_SILENCE_S", "_LONG_SILENCE_S"):
        monkeypatch.setattr(patience, name, 0.2)


def until(condition: Callable[[], bool]) -> bool:
    """Wait for a condition, with a timeout; return whether it became true."""
    for _ in range(50):
        if condition():
            return True
        time.sleep(0.01)
    return False


def wait_for_hang_up(connection: socket.socket) -> None:
    """Wait until the other side has closed."""
    poll = select.poll()
    poll.register(connection, 0)
    assert poll.poll(PATIENCE_S * 1000), "the other side does not close"


async def turns(count: int) -> None:
    """Run this many iterations of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def in_loop(story: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a coroutine with server and client in one loop; connections that it leaves open fail the test."""
    asyncio.run(story())
    gc.collect()


@pytest.fixture(autouse=True)
def few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit a server to 32 clients, so that a test can bring as many."""
    monkeypatch.setattr("anchord.ipc.connections.MAX_CONNECTIONS", 32)
    monkeypatch.setattr("anchord.ipc.server.MAX_CONNECTIONS", 32)


@pytest.fixture
def path() -> Iterator[Path]:
    """Return the path of a socket that does not exist yet, in a folder with a short path."""
    folder = tempfile.mkdtemp(prefix="ipc-", dir="/tmp")
    yield Path(folder) / "s"
    shutil.rmtree(folder)


@pytest.fixture
def server(path: Path) -> Iterator[Running]:
    """Give a running server."""
    running = Running(path)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    """Give a running server to all examples of a law."""
    with tempfile.TemporaryDirectory(prefix="ipc-", dir="/tmp") as folder:
        running = Running(Path(folder) / "s")
        try:
            yield running
        finally:
            running.stop()
