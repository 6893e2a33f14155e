"""The client that is awaited, against a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from ipc.conftest import Running, frozen

from anchord.errors import AnchordError, NotRunningError, TimeoutExpiredError, UsageError
from anchord.ipc.async_client import AsyncClient
from anchord.ipc.messages.base import Params
from anchord.ipc.methods import Method
from anchord.ipc.protocol import MAX_REQUEST_BYTES
from anchord.ipc.requests import Call

HOLD = Call(Method("hold", Params, object), Params())
BROKEN = Call(Method("broken", Params, object), Params())
BIG_BYTES = 5 * MAX_REQUEST_BYTES


def test_calls_are_answered_one_after_the_other_whatever_their_tasks(server: Running) -> None:
    async def main() -> list[str]:
        async with AsyncClient(server.path) as client:
            return list(await asyncio.gather(*(client.ping() for _ in range(20))))

    assert asyncio.run(main()) == ["pong"] * 20


def test_an_error_is_raised_as_what_it_was_and_the_client_goes_on(server: Running) -> None:
    async def main() -> str:
        async with AsyncClient(server.path) as client:
            with pytest.raises(AnchordError, match="internal error: ValueError"):
                await client.ask(BROKEN)
            with pytest.raises(UsageError, match="not UTF-8"):
                await client.search("\ud800")
            return await client.ping()

    assert asyncio.run(main()) == "pong"


def test_the_answer_to_a_cancelled_call_is_dropped(server: Running) -> None:
    async def main() -> str:
        async with AsyncClient(server.path) as client:
            held = asyncio.create_task(client.ask(HOLD))
            await asyncio.sleep(0.05)
            held.cancel()
            with pytest.raises(asyncio.CancelledError):
                await held
            server.release()
            return await client.ping()

    assert asyncio.run(main()) == "pong"


def test_a_client_that_is_not_open_says_so(server: Running) -> None:
    async def main() -> None:
        client = AsyncClient(server.path)
        with pytest.raises(UsageError, match="not open"):
            await client.ping()
        async with client:
            assert await client.ping() == "pong"
        with pytest.raises(UsageError, match="not open"):
            await client.ping()

    asyncio.run(main())


def test_without_a_daemon_there_is_one_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(tmp_path / "no.sock"):
            pass

    with pytest.raises(NotRunningError, match="anchord is not running"):
        asyncio.run(main())


def test_a_server_that_ends_is_one_error(server: Running) -> None:
    async def main() -> None:
        async with AsyncClient(server.path) as client:
            held = asyncio.create_task(client.ask(HOLD))
            await asyncio.sleep(0.05)
            await asyncio.to_thread(server.stop)
            with pytest.raises(NotRunningError):
                await held

    asyncio.run(main())


@pytest.mark.usefixtures("impatient")
def test_a_daemon_that_is_frozen_is_one_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(tmp_path / "s") as client:
            await client.sync()

    with frozen(tmp_path / "s"), pytest.raises(TimeoutExpiredError, match="does not answer"):
        asyncio.run(main())


@pytest.mark.usefixtures("impatient")
def test_a_call_that_takes_long_is_waited_for_while_the_daemon_says_hello(tmp_path: Path) -> None:
    async def main() -> str:
        async with AsyncClient(tmp_path / "s") as client:
            return await client.ping()

    with frozen(tmp_path / "s", saying_hello=True):
        assert asyncio.run(main()) == "pong"
