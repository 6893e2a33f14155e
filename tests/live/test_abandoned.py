"""Clients that leave or never read block no one: neither status nor search nor resume."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from live.conftest import Home, until
from live.held import Held

ABANDONED = 60
"""More than there are threads for queries."""


@pytest.fixture
def held() -> Iterator[Held]:
    """Return a model server that can be blocked."""
    made = Held()
    yield made
    made.stop()


def connect(home: Home) -> socket.socket:
    """Connect without a client."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(home.path / "run" / "anchord.sock"))
    connection.settimeout(60)
    return connection


def request(method: str, **params: object) -> bytes:
    """Return a request."""
    return json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n"


def test_calls_whose_clients_left_while_it_is_paused_hold_up_no_answer(home: Home) -> None:
    home.write("a.md", "# Apples\n\nApples are red.\n")
    home.run()
    home.call("sync")
    home.call("pause")
    for method in ("sync", "index", "rescan"):
        for _ in range(ABANDONED):
            with connect(home) as connection:
                connection.sendall(request(method))
    assert home.status()["state"] == "paused"
    assert home.found("apples") == ["a.md"]
    home.call("resume")
    assert home.call("sync")["synced"]


def test_waiting_calls_hold_up_no_search_and_are_answered_in_the_end(
    home: Home, held: Held
) -> None:
    (home.path / "config.toml").write_text(held.settings, "utf-8")
    home.write("a.md", "# Apples\n\nApples are red.\n")
    home.run()
    home.call("sync")
    held.hold()
    home.write("b.md", "# Pears\n\nPears are green.\n")
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(home)) for _ in range(ABANDONED)]
        for connection in waiting:
            connection.sendall(request("sync"))
            connection.shutdown(socket.SHUT_WR)
        until(held.is_asked)
        assert home.call("search", query="apples", mode="text")["groups"]
        held.release()
        for connection in waiting:
            assert json.loads(connection.makefile("rb").readline())["result"]["synced"]


def test_clients_that_never_read_hold_up_no_status(home: Home) -> None:
    home.write("a.md", "# Apples\n\n" + "Apples are red. " * 2_000)
    home.run()
    home.call("sync")
    with ExitStack() as stack:
        for _ in range(ABANDONED):
            deaf = stack.enter_context(connect(home))
            deaf.sendall(request("dump") * 50)
        assert home.status()["state"]
        assert home.found("apples") == ["a.md"]
