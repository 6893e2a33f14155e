"""The server over HTTP: for this machine only, and with the token of the home."""

from __future__ import annotations

import http.client
import json
import os
import stat
import threading
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from anchord.config.paths import Paths, find_paths
from anchord.errors import AnchordError
from anchord.mcp import http_server
from anchord.mcp.http_server import HttpServer, read_or_create_token
from anchord.mcp.server import make_server

LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
WAIT_S = 20


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    made = find_paths({"ANCHORD_HOME": str(tmp_path_factory.mktemp("home"))})
    made.create_folders()
    return made


@pytest.fixture(scope="module")
def server(paths: Paths) -> HttpServer:
    """Serve in a thread of this process, until the end of it."""
    made = HttpServer(make_server(paths), paths, 0)
    threading.Thread(target=made.run, daemon=True).start()
    return made


def port_of(server: HttpServer) -> int:
    return int(server.url.rpartition(":")[2].partition("/")[0])


def ask(server: HttpServer, body: str = LIST, **headers: str | None) -> int:
    """Return the status of a request; a header of None is left out."""
    port = port_of(server)
    given: dict[str, str | None] = {
        "authorization": server.header.partition(": ")[2],
        "host": f"127.0.0.1:{port}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **headers,
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    connection.putrequest("POST", "/mcp", skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    connection.putheader("content-length", str(len(body)))
    connection.endheaders()
    connection.send(body.encode())
    status = connection.getresponse().status
    connection.close()
    return status


def test_only_a_request_with_the_exact_token_is_answered(server: HttpServer) -> None:
    token = server.header.rpartition(" ")[2]
    assert ask(server) == 200
    assert ask(server, authorization=f"bearer {token}") == 200
    wrong = (None, "", "Bearer", f"Bearer {token.swapcase()}", f"Basic {token}", f"Bearer {token}x", f"Bearer {token[:-1]}")  # fmt: skip
    assert [ask(server, authorization=each) for each in wrong] == [401] * len(wrong)


def test_another_host_or_origin_is_refused_even_with_the_token(server: HttpServer) -> None:
    port = port_of(server)
    assert ask(server, host=f"localhost:{port}") == 200
    assert ask(server, origin=f"http://127.0.0.1:{port}") == 200
    hosts = ("evil.com", f"evil.com:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", None)
    # A request without any Host is refused by the HTTP parser itself.
    assert [ask(server, host=each) for each in hosts] == [421] * 4 + [400]
    origins = ("null", "http://evil.com", f"https://127.0.0.1:{port}", f"http://127.0.0.1.evil.com:{port}")  # fmt: skip
    assert [ask(server, origin=each) for each in origins] == [403] * len(origins)


def test_a_body_that_is_too_long_or_no_json_is_refused(server: HttpServer) -> None:
    assert ask(server, " " * 1_000_001) == 413
    assert ask(server, "{") == 400
    assert ask(server, **{"content-type": "text/plain"}) == 400


def test_it_listens_on_the_loopback_address_only_and_keeps_its_token(
    server: HttpServer, paths: Paths
) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert server._socket.getsockname()[0] == "127.0.0.1"
    assert stat.S_IMODE(paths.http_token_file.stat().st_mode) == 0o600
    assert server.header == f"Authorization: Bearer {read_or_create_token(paths)}"
    with pytest.raises(AnchordError, match=f"port {port_of(server)} of 127.0.0.1 cannot be used"):
        HttpServer(make_server(paths), paths, port_of(server))


def test_two_clients_of_the_sdk_at_once(server: HttpServer) -> None:
    name, _, value = server.header.partition(": ")
    listed: list[int] = []

    async def talk() -> None:
        http_client = httpx2.AsyncClient(headers={name: value})
        async with (
            http_client,
            Client(streamable_http_client(server.url, http_client=http_client)) as client,
        ):
            for _ in range(3):
                listed.append(len((await client.list_tools()).tools))
                result = await client.call_tool("status", {})
                assert result.is_error  # No daemon runs.

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(talk)
            group.start_soon(talk)

    anyio.run(main)
    assert listed == [10] * 6


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        ("x" * 43, 0o644, "can be read by other users"),
        ("short", 0o600, "contains no token"),
        ("\u00fc" * 43, 0o600, "contains no token"),
        ("", 0o600, "contains no token"),
    ],
)
def test_a_token_that_is_no_secret_is_refused(
    tmp_path: Path, content: str, mode: int, reason: str
) -> None:
    paths = find_paths({"ANCHORD_HOME": str(tmp_path)})
    paths.create_folders()
    paths.http_token_file.write_text(content)
    os.chmod(paths.http_token_file, mode)
    with pytest.raises(AnchordError, match=reason):
        read_or_create_token(paths)


def test_a_link_in_the_tokens_place_is_not_followed(tmp_path: Path) -> None:
    paths = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    paths.create_folders()
    target = tmp_path / "target"
    target.write_text("x" * 43)
    target.chmod(0o600)
    paths.http_token_file.symlink_to(target)
    with pytest.raises(AnchordError, match="cannot be read"):
        read_or_create_token(paths)
    assert http_server._ADDRESS == "127.0.0.1"
