"""The program as the simulator runs it: commands in a worker process, or a real daemon and its socket."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from tools.simulator.faulty import Call, Fault
from tools.simulator.oracle import Answer

_HERE = Path(__file__).resolve().parent
_TESTS = _HERE.parents[1]
_PATIENCE_S = 60.0
"""The first command of a worker also imports everything."""
_NO_ANSWER, _ENDED = -1, -9
_HAS_JSON = frozenset(
    {
        "index",
        "reindex",
        "rebuild",
        "verify",
        "search",
        "forget",
        "roots",
        "sync",
        "add",
        "remove",
        "backup",
        "restore",
    }
)


_START_LOCK = threading.Lock()
"""The environment is changed while a process is started."""


class Program(Protocol):
    """Runs commands, each to its end."""

    home: Path

    def run(
        self,
        *arguments: str,
        fault: Fault | None = None,
        file_limit: int = 0,
        ahead_s: int = 0,
        is_complete: bool = True,
    ) -> Answer:
        """Run a command and return what it answered."""
        ...

    def close(self) -> None:
        """End every process."""
        ...


class Workers:
    """The worker process of this driver; a new one is started when one was killed."""

    def __init__(self, patience_s: float = _PATIENCE_S) -> None:
        """Prepare; the first command starts the process, and gets three times as long.

        Args:
            patience_s: How long a command may take before it counts as hung, in seconds.
        """
        self._patience_s = patience_s
        self._context: Any = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tools.simulator.worker"])
        self._process: Any = None
        self._connection: Connection | None = None

    def call(self, call: Call) -> tuple[int, str, str]:
        """Run a command; the code is -9 if the process ended, -1 if it did not answer."""
        patience = self._patience_s
        if self._connection is None:
            self._start()
            patience *= 3
        assert self._connection is not None
        self._connection.send(call)
        try:
            if self._connection.poll(patience):
                answer: tuple[int, str, str] = self._connection.recv()
                return answer
        except (EOFError, ConnectionError):
            self.close()
            return _ENDED, "", ""
        self.close()
        return _NO_ANSWER, "", ""

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._connection = None

    def start_process(self, target: Callable[..., None], *arguments: object) -> Any:  # noqa: ANN401 - a process
        """Start a function in a process that has loaded anchord already."""
        process = self._context.Process(target=target, args=arguments, daemon=True)
        with _START_LOCK, _python_path():
            process.start()
        return process

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self.start_process(_serve, theirs)
        theirs.close()


@contextmanager
def _python_path() -> Iterator[None]:
    """Let the server of workers, which starts with the first of them, find this package."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{_TESTS}{os.pathsep}{before or ''}".rstrip(os.pathsep)
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _serve(connection: Connection) -> None:
    """Serve in the worker's process; the driver itself never loads anchord."""
    from tools.simulator.worker import serve  # noqa: PLC0415

    serve(connection)


def _run_daemon(environment: dict[str, str], log: str) -> None:
    """Be a daemon, likewise."""
    from tools.simulator.worker import run_daemon  # noqa: PLC0415

    run_daemon(environment, log)


class CommandLine:
    """Commands without a daemon."""

    def __init__(self, home: Path, workers: Workers) -> None:
        """Use a home."""
        self.home = home
        self._workers = workers

    def run(
        self,
        *arguments: str,
        fault: Fault | None = None,
        file_limit: int = 0,
        ahead_s: int = 0,
        is_complete: bool = True,
    ) -> Answer:
        """Run a command in the worker."""
        given = (*arguments, "--json") if arguments[0] in _HAS_JSON else arguments
        call = Call(str(self.home), given, fault, file_limit, ahead_s, is_complete)
        code, output, error = self._workers.call(call)
        return Answer(
            command=arguments[0],
            code=code,
            json=_parsed(output),
            error=error,
            arguments=arguments[1:],
            was_faulty=bool(fault or file_limit),
            ahead_s=ahead_s,
        )

    def close(self) -> None:
        """Leave the worker to the next home."""


class Daemon:
    """A real daemon, called by its socket; its faults come by a file that it looks at."""

    def __init__(self, home: Path, workers: Workers) -> None:
        """Use a home; `start` starts the daemon."""
        self.home = home
        self._plan = home.parent / "faults.json"
        self._workers = workers
        self._process: Any = None

    def start(self) -> Answer:
        """Start the daemon if it does not run, and wait until it answers."""
        if not self._runs():
            self._plan.write_text("null")
            environment = {
                "ANCHORD_HOME": str(self.home),
                "PYTHONPATH": f"{_HERE / 'inject'}:{_TESTS}",
                "SIMULATOR_FAULTS": str(self._plan),
            }
            log = str(self.home.parent / "run.log")
            self._process = self._workers.start_process(_run_daemon, environment, log)
        deadline = time.monotonic() + _PATIENCE_S
        while self._runs() and time.monotonic() < deadline:
            with suppress(OSError, ValueError, EOFError):
                self._call("ping", {})
                return Answer("start", 0)
            time.sleep(0.01)
        return Answer("start", _NO_ANSWER if self._runs() else 1)

    def stop(self, number: int) -> Answer:
        """End the daemon with a signal."""
        answer = Answer("stop", 0)
        if self._process is not None:
            if self._runs():
                os.kill(self._process.pid, number)
            self._process.join(_PATIENCE_S)
            if self._runs():
                self._process.kill()
                self._process.join()
                answer.code = _NO_ANSWER
        self._process = None
        return answer

    def abandon(self, count: int, what: str = "sync") -> None:
        """Connect, send a request and close, `count` times.

        Args:
            count: How many clients do it.
            what: The command whose answer is not read; "half" for half a request.
        """
        words = {"search": ("line",), "sync": ("--timeout", "60")}.get(what, ())
        request = _request(*_as_call((what, *words)))
        if what == "half":
            request = request[: len(request) // 2]
        for _ in range(count):
            with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                client.connect(str(self._socket_file))
                client.sendall(request)

    def run(
        self,
        *arguments: str,
        fault: Fault | None = None,
        file_limit: int = 0,
        ahead_s: int = 0,
        is_complete: bool = True,
    ) -> Answer:
        """Call the method of a command; `start` and `stop` are for `Daemon.start` and `stop`."""
        # The daemon's own process is not limited, and compacts when it likes.
        del file_limit, ahead_s, is_complete
        method, params = _as_call(arguments)
        if not self._runs():
            return Answer(arguments[0], 3, arguments=arguments[1:])
        self._plan.write_text(json.dumps(asdict(fault) if fault else None))
        try:
            answer = self._call(method, params)
        except TimeoutError:
            return Answer(arguments[0], _NO_ANSWER, arguments=arguments[1:])
        except (OSError, ValueError, EOFError) as error:
            return Answer(arguments[0], _ENDED, error=repr(error), arguments=arguments[1:])
        finally:
            self._plan.write_text("null")
        failure = answer.get("error")
        value = answer.get("result")
        is_unequal = arguments[0] == "verify" and value and not value["ok"]
        return Answer(
            command=arguments[0],
            code=1 if failure or is_unequal else 0,
            json=value,
            error=json.dumps(failure) if failure else "",
            arguments=arguments[1:],
            was_faulty=fault is not None,
        )

    def close(self) -> None:
        """Kill the daemon."""
        self.stop(signal.SIGKILL)

    @property
    def _socket_file(self) -> Path:
        return self.home / "run" / "anchord.sock"

    def _runs(self) -> bool:
        return self._process is not None and bool(self._process.is_alive())

    def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_PATIENCE_S)
            client.connect(str(self._socket_file))
            client.sendall(_request(method, params))
            line = client.makefile("rb").readline()
        if not line:
            raise EOFError
        answer: dict[str, Any] = json.loads(line)
        return answer


def _request(method: str, params: dict[str, Any]) -> bytes:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(request).encode() + b"\n"


_METHODS = {"add": "roots.add", "remove": "roots.remove"}
_PARAMS: dict[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "verify": lambda rest: {"repair": "--repair" in rest},
    "search": lambda rest: {"query": rest[0], "mode": "text"},
    "forget": lambda rest: {"path": rest[-1], "undo": "--undo" in rest},
    "reindex": lambda rest: {"force_rechunk": "--force-rechunk" in rest},
    "remove": lambda rest: {"name": rest[0]},
    "confirm-delete": lambda rest: {"name": rest[0]},
    "backup": lambda rest: {"target": rest[0], "keep": None},
    "sync": lambda rest: {"timeout": float(rest[-1])},
    "add": lambda rest: {"path": rest[0], "kind": rest[2], "name": rest[4]},
}
"""Command -> the parameters of its method, from its arguments."""


def _as_call(arguments: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Translate a command into the method of the socket that it calls."""
    name, *rest = arguments
    params = _PARAMS[name](rest) if name in _PARAMS else {}
    return _METHODS.get(name, name), params


def _parsed(output: str) -> Any:  # noqa: ANN401 - any JSON value
    with suppress(ValueError):
        return json.loads(output)
    return None
