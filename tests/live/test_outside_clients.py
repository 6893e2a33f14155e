"""Clients that others wrote: the inspector and the conformance suite of the protocol, from npm.

Install them outside the repository, or name the folder in ANCHORD_NPM_CLIENTS:

    npm install --prefix /work/clients-npm-mcp @modelcontextprotocol/inspector @modelcontextprotocol/conformance
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from live.conftest import Home

from anchord.config.paths import find_paths
from anchord.mcp import http_server
from anchord.mcp.http_server import HttpServer
from anchord.mcp.server import make_server

FOLDER = Path(os.environ.get("ANCHORD_NPM_CLIENTS", "/work/clients-npm-mcp")) / "node_modules"
INSPECTOR = FOLDER / ".bin" / "mcp-inspector"
CONFORMANCE = FOLDER / "@modelcontextprotocol" / "conformance" / "dist"
SCENARIOS = (
    "server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection",
)  # fmt: skip
"""The others call tools that only the suite's own example server has."""
WAIT_S = 120

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
    pytest.mark.timeout(600),
]


def serve(home: Home) -> HttpServer:
    paths = find_paths(home.environment)
    paths.create_folders()
    server = HttpServer(make_server(paths), paths, 0)
    threading.Thread(target=server.run, daemon=True).start()
    return server


def inspect(home: Home, *arguments: str) -> Any:  # noqa: ANN401 - any JSON value
    """Run the inspector; return what it prints."""
    done = subprocess.run(
        [INSPECTOR, "--cli", *arguments],
        env=home.environment, capture_output=True, text=True, check=False, timeout=WAIT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


@pytest.mark.skipif(not INSPECTOR.exists(), reason=f"the inspector is not in {FOLDER}")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_and_calls_tools_prompts_and_resources(
    home: Home, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write("soup.md", "# Soup\n\nSimmer the onions.\n")
    home.run()
    home.call("sync")
    target = [sys.executable, "-m", "anchord", "mcp"]
    if transport == "http":
        # Its command line sends no header.
        monkeypatch.setattr(http_server, "with_token", lambda app, _: app)
        server = serve(home)
        target = [server.url, "--transport", "http"]
    tools = inspect(home, *target, "--method", "tools/list")["tools"]
    assert {"search", "show", "files", "changes"} <= {tool["name"] for tool in tools}
    called = inspect(
        home, *target, "--method", "tools/call", "--tool-name", "search", "--tool-arg", "query=onions",
    )  # fmt: skip
    assert called["structuredContent"]["results"][0]["file"] == f"{home.folder}/soup.md"
    assert len(inspect(home, *target, "--method", "prompts/list")["prompts"]) == 3
    templates = inspect(home, *target, "--method", "resources/templates/list")
    assert len(templates["resourceTemplates"]) == 2


@pytest.mark.skipif(not CONFORMANCE.exists(), reason=f"the conformance suite is not in {FOLDER}")
def test_the_conformance_suite_finds_nothing_wrong(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The suite sends no token.
    monkeypatch.setattr(http_server, "with_token", lambda app, _: app)
    server = serve(home)
    program = _for_this_node(tmp_path)
    for scenario in SCENARIOS:
        done = subprocess.run(
            ["node", program, "server", "--url", server.url, "--scenario", scenario],
            capture_output=True, text=True, check=False, timeout=WAIT_S, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, (scenario, (done.stdout + done.stderr)[-2_000:])


def _for_this_node(folder: Path) -> Path:
    """Return the suite's program; node 20 lacks one function that only its other commands use."""
    text = (CONFORMANCE / "index.js").read_text()
    text = text.replace("globSync as o,", "", 1).replace("import{", "const o=()=>[];import{", 1)
    program = folder / "conformance.mjs"
    program.write_text(text)
    (folder / "node_modules").symlink_to(FOLDER)
    return program
