"""`mcp --http`: what it prints of the token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli.conftest import Shell

from anchord.cli.output.console import stderr_console, stdout_console
from anchord.mcp.http_server import HttpServer


@pytest.fixture(autouse=True)
def consoles_of_their_own() -> Iterator[None]:
    """Let no other test print to what this module makes a terminal."""
    yield
    for console in (stdout_console, stderr_console):
        console.cache_clear()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_token_goes_to_a_terminal_only(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    monkeypatch.setattr(HttpServer, "run", lambda server: server._socket.close())
    said = shell("mcp", "--http", TTY_COMPATIBLE=str(int(is_terminal)))
    file = shell.home / "data" / "mcp-token"
    assert said.out.startswith("ready: http://127.0.0.1:")
    assert (file.read_text() in said.out) == is_terminal
    assert (str(file) in said.out) != is_terminal
