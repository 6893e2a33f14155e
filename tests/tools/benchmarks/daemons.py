"""A real daemon for a benchmark: in a home and on a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
from figures import run

from anchord.errors import NotRunningError
from anchord.ipc.client import Client

_POLL_S = 0.02
_PATIENCE_S = 3_600.0


class Daemon:
    """`anchord run` on a folder, with a home of its own."""

    def __init__(self, base: Path, settings: str = '[embedding]\nprovider = "hash"\n') -> None:
        """Make the folders; `running` runs it."""
        self.home = base / "home"
        self.folder = base / "docs"
        self.home.mkdir(mode=0o700)
        self.folder.mkdir()
        (self.home / "config.toml").write_text(settings, "utf-8")

    def environment(self, source: str = "") -> dict[str, str]:
        """Return the environment of its commands; with the folder `src` of another commit, of its code."""
        other = {"PYTHONPATH": source} if source else {}
        return dict(os.environ) | {"ANCHORD_HOME": str(self.home)} | other

    @contextmanager
    def running(self, source: str = "") -> Iterator[psutil.Process]:
        """Start it, wait until it answers, and end it; with the code in another `src` if one is given."""
        with (self.home / "run.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "anchord", "run", str(self.folder)],
                env=self.environment(source), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            until(lambda: self._answers(process))
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()

    def client(self) -> Client:
        """Connect."""
        return Client(self.home / "run" / "anchord.sock")

    def status(self) -> dict[str, Any]:
        """Ask over a fresh connection."""
        with self.client() as client:
            answer: dict[str, Any] = msgspec.to_builtins(client.status())
            return answer

    def sync(self) -> float:
        """Wait until what was written is searchable; return the seconds that it took."""
        began = time.monotonic()
        with self.client() as client:
            client.call("sync")
        return time.monotonic() - began

    def verify(self) -> int:
        """Return the exit code of `anchord verify`."""
        return run([sys.executable, "-m", "anchord", "verify"], self.environment()).code

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        if process.poll() is not None:
            raise RuntimeError((self.home / "run.log").read_text("utf-8"))
        try:
            with self.client() as client:
                return bool(client.call("ping"))
        except NotRunningError:
            return False


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and its children, ended ones included."""
    own = process.cpu_times()
    ended = own.children_user + own.children_system
    children = [child.cpu_times() for child in process.children(recursive=True)]
    return own.user + own.system + ended + sum(each.user + each.system for each in children)


def until(condition: Callable[[], object], pause_s: float = _POLL_S) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("waited in vain")
        time.sleep(pause_s)
