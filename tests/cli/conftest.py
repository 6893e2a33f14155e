"""The command as in a shell: called in this process, or as a process where streams or signals matter."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import structlog
from preloaded import PreloadedDaemon

from anchord.cli import main
from anchord.cli.output import progress
from anchord.cli.output.console import stderr_console, stdout_console
from anchord.errors import NotRunningError
from anchord.ipc.client import Client

PATIENCE_S = 120.0
CATS = "# Cats\n\nThe kitten sleeps on the sofa.\n"
_LEFT_OUT = (
    "FORCE_COLOR",
    "NO_COLOR",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "XDG_RUNTIME_DIR",
    "GIT_DIR",
    "GIT_WORK_TREE",
)


@dataclass(frozen=True)
class Printed:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return what was printed as the one JSON value that it must be."""
        self.has_no_traceback()
        return json.loads(self.out)

    def has_no_traceback(self) -> None:
        """Check that the user saw no traceback."""
        came_through = "Traceback" in self.err
        assert not came_through, self.err.splitlines()[-1]

    def is_refused(self, code: int, *said: str) -> None:
        """Check that the only output is one line on standard error with the problem and the remedy."""
        self.has_no_traceback()
        assert (self.code, self.out) == (code, ""), self
        assert self.err.startswith("anchord: ")
        assert self.err.count("\n") == 1, self.err
        assert "; " in self.err, f"no hint: {self.err}"
        for part in said:
            assert part in self.err

    def is_calm(self, *codes: int) -> None:
        """Check the exit code, and that a wrong call gives one line of error."""
        self.has_no_traceback()
        assert self.code in codes, self
        assert sum(line.startswith("anchord: ") for line in self.err.splitlines()) == (
            self.code == 2
        ), self.err


def call_here(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    stdin: bytes = b"",
    *,
    gone: bool = False,
) -> Printed:
    """Call the command in this process, as its entry point does: a process costs over 1 s of CPU.

    Not for two threads at once. `gone` removes the working folder first.
    """
    out, err, mask = io.BytesIO(), io.BytesIO(), os.umask(0o022)
    with contextlib.ExitStack() as stack:
        stack.callback(os.umask, mask)
        stack.callback(structlog.reset_defaults)
        stack.enter_context(mock.patch.dict(os.environ, environment, clear=True))
        stack.enter_context(mock.patch.object(sys, "argv", ["anchord", *arguments]))
        # Otherwise each command takes a tenth of a second at least.
        stack.enter_context(mock.patch.object(progress, "_POLL_S", 0.01))
        stack.enter_context(
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        )
        stack.enter_context(
            contextlib.redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True))
        )
        stack.enter_context(
            contextlib.redirect_stderr(
                io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
            )
        )
        stack.callback(_forget_what_could_not_be_printed)
        stack.enter_context(contextlib.chdir(cwd))
        if gone:
            cwd.rmdir()
        try:
            main()
            code: object = 0
        except SystemExit as ending:
            code = ending.code or 0
        except Exception:  # noqa: BLE001 - as the interpreter does
            traceback.print_exc()
            code = 1
        assert isinstance(code, int)
        return Printed(code, out.getvalue().decode(), err.getvalue().decode())


class Shell:
    """A home, a folder `notes` to index, and no daemon."""

    def __init__(self, base: Path) -> None:
        """Write the configuration."""
        self.base = base
        self.home = base / "home"
        self.notes = base / "notes"
        self.config = self.home / "config.toml"
        self.home.mkdir(mode=0o700)
        self.notes.mkdir()
        self.configure()
        kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
        self.environment = kept | {
            "ANCHORD_HOME": str(self.home), "HOME": str(base), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip

    def configure(self, *lines: str) -> None:
        """Write the configuration: no model, and these lines."""
        self.config.write_text("\n".join(['embedding.provider = "hash"', *lines, ""]))

    def write(self, name: str | bytes, text: str | bytes) -> str:
        """Write a file of the folder; return its path."""
        file = os.path.join(os.fsencode(self.notes), os.fsencode(name))
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as stream:
            stream.write(text.encode() if isinstance(text, str) else text)
        return os.fsdecode(file)

    def __call__(
        self,
        *arguments: str,
        stdin: bytes = b"",
        cwd: Path | None = None,
        gone: bool = False,
        **environment: str,
    ) -> Printed:
        """Call the command in this process; `gone` deletes its working folder first."""
        here = cwd or self.base
        return call_here(arguments, self.environment | environment, here, stdin, gone=gone)

    def process(self, *arguments: str, **environment: str) -> Printed:
        """Run the command in a process of its own."""
        return self._run([sys.executable, "-m", "anchord", *arguments], environment)

    def script(self, text: str, **environment: str) -> Printed:
        """Run a shell line in which `$anchord` is the command."""
        command = {"anchord": f"{sys.executable} -m anchord"}
        return self._run(["bash", "-o", "pipefail", "-c", text], command | environment)

    def _run(self, command: list[str], environment: dict[str, str]) -> Printed:
        done = subprocess.run(
            command, env=self.environment | environment, cwd=self.base, stdin=subprocess.DEVNULL, capture_output=True,
            check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        return Printed(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextlib.contextmanager
    def daemon(self) -> Iterator[PreloadedDaemon]:
        """Run `anchord run` for the duration of the block."""
        process = PreloadedDaemon([], self.environment, self.base / "run.log")
        try:
            until(lambda: self._answers(process))
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)

    def _answers(self, process: PreloadedDaemon) -> bool:
        assert process.poll() is None, (self.base / "run.log").read_text()
        try:
            with Client(self.home / "run" / "anchord.sock") as client:
                return bool(client.call("ping"))
        except NotRunningError:
            return False


class BuiltOnce:
    """An index that is built once; each test gets it as it was built, at the same place.

    The home is a copy. The indexed files are the very files, because a copy would be read again; where a test has changed
    one of them, the next test gets an index that is built anew.
    """

    def __init__(self, factory: pytest.TempPathFactory, build: Callable[[Shell], None]) -> None:
        """Build nothing yet."""
        self._factory = factory
        self._build = build
        self._shell: Shell | None = None
        self._kept = Path()
        self._indexed: dict[str, tuple[int, ...]] = {}

    def fresh(self) -> Shell:
        """Return the index as it was built."""
        if self._shell is None or not self._is_restored(self._shell):
            self._shell = Shell(self._factory.mktemp("c"))
            self._build(self._shell)
            self._kept = self._factory.mktemp("k") / "home"
            shutil.copytree(self._shell.home, self._kept, symlinks=True)
            self._indexed = _stats_beside_home(self._shell)
        return self._shell

    def _is_restored(self, shell: Shell) -> bool:
        """Put the home back; return whether nothing that is indexed was changed."""
        tops = {name.partition("/")[0] for name in self._indexed}
        for path in shell.base.iterdir():
            if path == shell.home or path.name not in tops:
                _delete(path)
        shutil.copytree(self._kept, shell.home, symlinks=True)
        return _stats_beside_home(shell) == self._indexed


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _stats_beside_home(shell: Shell) -> dict[str, tuple[int, ...]]:
    """Return what tells a changed file or folder, of each beside the home."""
    stats: dict[str, tuple[int, ...]] = {}
    for path in shell.base.rglob("*"):
        if not path.is_relative_to(shell.home):
            stat = path.lstat()
            stats[str(path.relative_to(shell.base))] = (
                stat.st_ino,
                stat.st_mode,
                stat.st_size,
                stat.st_mtime_ns,
                stat.st_ctime_ns,
            )
    return stats


def _forget_what_could_not_be_printed() -> None:
    """Empty rich's buffers after a failed print: a separate process would have ended."""
    for console in (stdout_console(), stderr_console()):
        console._buffer.clear()


def until(condition: Any) -> None:  # noqa: ANN401 - a function without arguments
    """Wait until another process has done something."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Give a shell without an index."""
    return Shell(tmp_path_factory.mktemp("c"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with three folders, which is the one of the commands."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    for name in ("notes", "news", "work"):
        (tmp_path / name).mkdir()
    tables = [f"[[root]]\npath = '{tmp_path / name}'\n" for name in ("notes", "news", "work")]
    (home / "config.toml").write_text("\n".join(tables))
    monkeypatch.setenv("ANCHORD_HOME", str(home))
    return home
