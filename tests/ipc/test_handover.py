"""The socket outlives the server: another one goes on with it, and no client finds nobody there."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ipc.conftest import Talk, in_loop

from anchord.daemon.service.socket_handover import hand_over, handed_over_socket
from anchord.ipc.server import Server

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
DESCRIPTOR = "ANCHORD_LISTEN_FD"


async def first(_: dict[str, Any]) -> object:
    return "first"


async def second(_: dict[str, Any]) -> object:
    return "second"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the variable after each test, set or not."""
    monkeypatch.setenv(DESCRIPTOR, "")


def test_a_client_that_comes_between_two_servers_is_answered_by_the_second(path: Path) -> None:
    answers: list[bytes] = []

    async def story() -> None:
        server = Server(path, {"ping": first}, dict)
        await server.start()
        await server.close(hand_over)
        with Talk(path) as talk:
            talk.socket.sendall(PING)
            successor = Server(path, {"ping": second}, dict, handed_over_socket(path))
            await successor.start()
            talk.socket.setblocking(False)
            loop = asyncio.get_running_loop()
            answers.append(await loop.sock_recv(talk.socket, 1000))
        await successor.close()

    in_loop(story)
    assert b'"second"' in answers[0]
    assert not path.exists()


def test_a_socket_is_taken_over_once(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        hand_over(listener)
        taken = handed_over_socket(path)
        assert taken
        assert not taken.get_inheritable()
        taken.close()
        assert handed_over_socket(path) is None


def test_a_socket_of_another_path_is_closed_and_not_taken(path: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        hand_over(listener)
        descriptor = int(os.environ[DESCRIPTOR].split()[1])
        assert handed_over_socket(tmp_path / "other.sock") is None
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.parametrize(
    "value", ["", "{pid}", "{pid} x", "{pid} 987654", "1 0", "x 3", "{pid} -1"]
)
def test_a_value_that_names_no_socket_of_this_process_is_ignored(
    path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(DESCRIPTOR, value.format(pid=os.getpid()))
    assert handed_over_socket(path) is None
    assert DESCRIPTOR not in os.environ


def test_a_child_process_does_not_take_the_socket(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; "
        "from anchord.daemon.service.socket_handover import handed_over_socket; "
        "print(handed_over_socket(Path(sys.argv[1])))"
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        hand_over(listener)
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "None"
        handed_over = handed_over_socket(path)
        assert handed_over
        handed_over.close()


def test_a_socket_whose_file_was_deleted_is_not_handed_over(path: Path) -> None:
    handed_over: list[socket.socket] = []

    async def story() -> None:
        server = Server(path, {}, dict)
        await server.start()
        path.rename(path.with_name("moved"))  # noqa: ASYNC240 - nothing else runs in this loop
        await server.close(handed_over.append)

    in_loop(story)
    assert handed_over == []


def test_a_socket_of_systemd_is_neither_handed_over_nor_deleted(path: Path) -> None:
    handed_over: list[socket.socket] = []

    async def story() -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        server = Server(path, {}, dict, listener, owns_path=False)
        await server.start()
        await server.close(handed_over.append)

    in_loop(story)
    assert handed_over == []
    assert path.exists()


def test_a_server_whose_file_was_lost_listens_again(path: Path) -> None:
    async def story() -> None:
        server = Server(path, {"ping": first}, dict)
        await server.start()
        loop = asyncio.get_running_loop()
        with Talk(path) as old:
            old.socket.setblocking(False)
            await loop.sock_sendall(old.socket, PING)
            assert b'"first"' in await loop.sock_recv(old.socket, 1000)
            assert not await server.listen_again_if_lost()
            path.unlink()  # noqa: ASYNC240 - nothing else runs in this loop
            path.touch()  # noqa: ASYNC240 - likewise
            assert await server.listen_again_if_lost()
            assert not await server.listen_again_if_lost()
            with Talk(path) as talk:
                talk.socket.setblocking(False)
                for connection in (talk.socket, old.socket):
                    await loop.sock_sendall(connection, PING)
                    assert b'"first"' in await loop.sock_recv(connection, 1000)
        await server.close()
        assert not await server.listen_again_if_lost()

    in_loop(story)
    assert not path.exists()


def test_a_server_makes_no_home_that_was_moved_away(path: Path) -> None:
    home = path.parent / "home"
    (home / "run").mkdir(parents=True)

    async def story() -> None:
        server = Server(home / "run" / "s", {}, dict)
        await server.start()
        home.rename(path.parent / "moved")
        with pytest.raises(FileNotFoundError):
            await server.listen_again_if_lost()
        await server.close()

    in_loop(story)
    assert not home.exists()


def test_a_server_on_a_socket_of_systemd_makes_no_other_one(path: Path) -> None:
    async def story() -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        server = Server(path, {}, dict, listener, owns_path=False)
        await server.start()
        path.unlink()  # noqa: ASYNC240 - likewise
        assert not await server.listen_again_if_lost()
        await server.close()

    in_loop(story)
    assert not path.exists()
