"""`mcp --http`: what it prints of the token."""

from __future__ import annotations

import pytest
from cli.conftest import Shell

from anchord.mcp.http_server import HttpServer


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
