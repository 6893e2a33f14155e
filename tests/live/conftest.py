"""A real daemon in a process of its own, with a home in a temporary folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Printed, call_here
from preloaded import PreloadedDaemon

from anchord.errors import NotRunningError
from anchord.ipc.client import Client

_PATIENCE_S = 120.0


class Home:
    """An ANCHORD_HOME, a folder to index, and the processes started for them."""

    def __init__(self, base: Path, provider: str) -> None:
        """Write the configuration."""
        self.path = base / "home"
        self.folder = base / "docs"
        self.folder.mkdir()
        self.path.mkdir(mode=0o700)
        self.settings = f'[embedding]\nprovider = "{provider}"\n'
        (self.path / "config.toml").write_text(self.settings)
        self.environment = os.environ | {"ANCHORD_HOME": str(self.path)}
        self.process: subprocess.Popen[bytes] | PreloadedDaemon | None = None

    def anchord(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "anchord", *arguments],
            env=self.environment, capture_output=True, text=True, check=False, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def command(self, *arguments: str) -> Printed:
        """Run a command in this process, which has loaded the libraries; not for two threads."""
        return call_here(arguments, self.environment, self.folder.parent)

    def run(self, *arguments: str, **environment: str) -> None:
        """Start `anchord run` and wait until it answers."""
        self.process = PreloadedDaemon(
            arguments or [str(self.folder)], self.environment | environment, self.path / "run.log"
        )
        until(self.answers)

    def answers(self) -> bool:
        """Whether the daemon answers."""
        assert self.process is not None
        assert self.process.poll() is None, (self.path / "run.log").read_text()
        try:
            return bool(self.call("ping"))
        except NotRunningError:
            return False

    def call(self, method: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
        """Call a method of the socket."""
        with Client(self.path / "run" / "anchord.sock") as client:
            return client.call(method, **params)

    def status(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the status."""
        return self.call("status")

    def found(self, query: str, mode: str = "text") -> list[str]:
        """Return the paths that a search gives, best first."""
        return [group[0]["path"] for group in self.call("search", query=query, mode=mode)["groups"]]

    def dump(self) -> list[dict[str, Any]]:
        """Return every row."""
        printed = self.command("dump")
        assert printed.code == 0, printed.err
        return [json.loads(line) for line in printed.out.splitlines()]

    def kill(self) -> None:
        """Kill the daemon."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """Ask the daemon to end; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_PATIENCE_S)

    def write(self, path: str, text: str) -> None:
        """Write a file of the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def until(condition: Any) -> None:  # noqa: ANN401 - a function without arguments
    """Wait until another process has done something; fail after two minutes."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def delete_folder(folder: Path) -> None:
    """Delete a folder of a running daemon, with what the daemon adds to it meanwhile."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return a home whose daemon embeds without a model."""
    yield from _home(tmp_path_factory, "hash")


@pytest.fixture
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return a home whose daemon embeds with the real model."""
    yield from _home(tmp_path_factory, "sentence-transformers")


def _home(factory: pytest.TempPathFactory, provider: str) -> Iterator[Home]:
    made = Home(factory.mktemp("a"), provider)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()
