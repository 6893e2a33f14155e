"""Index, search, MCP and the daemon in a network namespace without interfaces: what they open, and what they leave."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conversations.conftest import claude

_UNSHARE = ("unshare", "--map-root-user", "--net")
_AUDIT = """
import os, sys
def record(event, arguments):
    if event in ("socket.__new__", "socket.getaddrinfo", "socket.gethostbyname"):
        try:
            with open({file!r}, "a") as log:
                log.write(f"{{event}} {{int(arguments[1]) if event == 'socket.__new__' else ''}}\\n")
        except OSError:
            pass  # A confined process opens neither files nor sockets.
sys.addaudithook(record)
"""
_MCP = (
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "puffin"}}},
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What the commands printed, the sockets they made, and the home they left."""

    has_network: bool
    printed: dict[str, str]
    sockets: list[str]
    home: Path


def _has_namespaces() -> bool:
    if not shutil.which("unshare"):
        return False
    return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the commands once, without a network where the system allows it."""
    base = tmp_path_factory.mktemp("n")
    home, docs, talks = base / "home", base / "docs", base / "talks"
    for folder in (home, docs, talks):
        folder.mkdir(mode=0o755)
    (home / "config.toml").write_text(
        f'[[root]]\npath = "{docs}"\n[[root]]\npath = "{talks}"\nkind = "conversations"\n'
        '[embedding]\nprovider = "hash"\n'
    )
    (docs / "birds.md").write_text("# Birds\n\nThe puffin nests in burrows.\n")
    (docs / "birds.py").write_text("def puffin():\n    return 'burrow'\n")
    (talks / "s1.jsonl").write_bytes(claude(("Where does a puffin nest?", "In a burrow.")))
    audit = base / "audit"
    audit.mkdir()
    (audit / "sitecustomize.py").write_text(_AUDIT.format(file=str(audit / "sockets")))
    (audit / "sockets").touch()
    environment = {
        **os.environ,
        "ANCHORD_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(audit), *sys.path]),
    }
    isolated = _has_namespaces()
    program = [*(_UNSHARE if isolated else ()), sys.executable, "-m", "anchord"]

    def anchord(arguments: str) -> str:
        # umask 022: the modes below the home must not depend on it.
        done = subprocess.run(
            [*program, *arguments.split()],
            stdin=subprocess.DEVNULL, env=environment, capture_output=True, text=True, check=False, timeout=120, umask=0o022,
        )  # fmt: skip
        not_installed = 3 if arguments.startswith("service") else 0
        assert done.returncode in {0, not_installed}, (arguments, done.stderr)
        return done.stdout

    def ask_mcp() -> str:
        with subprocess.Popen(
            [*program, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        ) as server:  # fmt: skip
            assert server.stdin
            assert server.stdout
            server.stdin.writelines(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in _MCP)
            server.stdin.flush()
            return next(
                line for line in server.stdout if json.loads(line).get("id") == _MCP[-1]["id"]
            )

    printed = {"index": anchord("index --json")}
    printed["search"] = anchord("search puffin --json")
    printed["start"] = anchord("start")
    try:
        printed["sync"] = anchord("sync")
        printed["mcp"] = ask_mcp()
        printed["status"] = anchord("status --json")
        printed["service"] = anchord("service status --json")
    finally:
        printed["stop"] = anchord("stop")
    sockets = (audit / "sockets").read_text().splitlines()
    return Run(not isolated, printed, sockets, home)


def test_004_06_16_index_search_mcp_and_the_daemon_work_without_a_network(run: Run) -> None:
    if run.has_network:
        pytest.skip("this system refuses a user's network namespaces")
    assert json.loads(run.printed["index"])["files"] >= 2
    assert "birds.md" in run.printed["search"]
    assert "birds.md" in run.printed["mcp"]
    assert json.loads(run.printed["status"])["failed"] == []


def test_no_process_makes_a_socket_other_than_of_unix_or_resolves_a_name(run: Run) -> None:
    assert run.sockets, "the daemon's own socket is recorded, so others would be"
    assert set(run.sockets) == {f"socket.__new__ {int(socket.AF_UNIX)}"}


def test_only_the_owner_can_reach_any_file_of_the_home(run: Run) -> None:
    reachable = []
    for folder, _, files in os.walk(run.home):
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        if folder != str(run.home) and mode & 0o077:
            reachable.append((folder, oct(mode)))
        if folder == str(run.home):
            files = [name for name in files if name != "config.toml"]  # noqa: PLW2901 - the user's file
        reachable += [
            (path, oct(stat.S_IMODE(os.lstat(path).st_mode)))
            for path in (os.path.join(folder, name) for name in files)
            if stat.S_IMODE(os.lstat(path).st_mode) & 0o077
        ]
    assert reachable == []
