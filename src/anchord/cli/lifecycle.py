"""`run`, `start`, `stop`, `restart`, `pause`, `resume`: the daemon's life."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer

from anchord.adapters.lock import lock_holder
from anchord.asking import await_end, connect
from anchord.cli.frame import app, ask, configuration, places, say
from anchord.config import root_config
from anchord.errors import AlreadyRunningError, AnchordError
from anchord.places import Places
from anchord.roots import existing_folder

_START_S = 90.0
_CAUSES = 5
_LOG_BYTES = 10_000_000

Paths = Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help="Folders besides the configured roots.")]
Kind = Annotated[str, typer.Option("--kind", help="Kind of these folders: project or conversations.")]


@app.command()
def run(paths: Paths = None, kind: Kind = "project") -> None:
    """Run the daemon in the foreground: the roots of the configuration, and PATHs."""
    of = places()
    folders = _checked(of, paths, kind)
    config = configuration(of)
    log_to_stderr()
    from anchord.daemon import run_daemon

    run_daemon(of, config, folders, kind)


@app.command()
def start(paths: Paths = None, kind: Kind = "project") -> None:
    """Start the daemon in the background; return once it answers."""
    of = places()
    folders = _checked(of, paths, kind)
    configuration(of)
    holder = lock_holder(of.lock)
    if holder is not None:
        raise AlreadyRunningError(f"anchord is running already (process {holder})", "`anchord status` shows it")
    if of.log_file.exists() and of.log_file.stat().st_size > _LOG_BYTES:
        of.log_file.replace(of.log_file.with_suffix(".log.1"))
    begin = of.log_file.stat().st_size if of.log_file.exists() else 0
    with of.log_file.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "anchord", "run", "--kind", kind, *folders],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        client = connect(of)
        if client is not None:
            client.close()
            say(f"anchord is running (process {process.pid}); its log is {of.log_file}")
            return
        time.sleep(0.05)
    raise _start_failed(of.log_file, begin, process)


@app.command()
def stop() -> None:
    """Stop the daemon and wait until it has ended."""
    _stop(places())


@app.command()
def restart() -> None:
    """Stop the daemon, if it runs, and start it again."""
    _stop(places())
    start()


@app.command()
def pause() -> None:
    """Stop indexing until `resume`; searches go on, changes are remembered."""
    ask(places(), "pause")


@app.command()
def resume() -> None:
    """Go on indexing after `pause`."""
    ask(places(), "resume")


def log_to_stderr(level: int = logging.INFO) -> None:
    """Write events to standard error: for people on a terminal, as JSON elsewhere. Never content."""
    import structlog

    on_terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(_where_it_broke),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _where_it_broke(exc_info: tuple[type[BaseException], BaseException, TracebackType | None]) -> str:
    """Return an exception's kind and where it came from. Not its words: those of a library may quote what it was given."""
    kind, error, trace = exc_info
    frames = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(trace)]
    causes: list[str] = []
    while (cause := error.__cause__ or error.__context__) is not None and len(causes) < _CAUSES:
        causes.append(type(cause).__name__)
        error = cause
    return "\n".join([kind.__name__ + "".join(f" from {cause}" for cause in causes), *frames])


def _checked(of: Places, paths: list[str] | None, kind: str) -> list[str]:
    """Refuse a wrong folder here, before anything heavy is loaded."""
    folders = [existing_folder(path, of.own) for path in paths or ()]
    for folder in folders:
        root_config(folder, kind, "")
    return folders


def _stop(of: Places) -> None:
    client = connect(of)
    if client is None:
        say("anchord is not running")
        return
    with client:
        pid = client.call("shutdown")["pid"]
    await_end(of, pid)
    say("anchord has stopped")


def _start_failed(log: Path, begin: int, process: subprocess.Popen[bytes]) -> AnchordError:
    """Return what the daemon said before it ended, with its exit code."""
    code = process.poll()
    if code is None:
        process.kill()
        return AnchordError(f"the daemon did not answer within {_START_S:.0f} s", f"see {log}")
    with log.open("rb") as stream:
        stream.seek(begin)
        lines = stream.read().decode("utf-8", "replace").splitlines()
    said = next((line.removeprefix("anchord: ") for line in reversed(lines) if line.startswith("anchord: ")), "")
    error = AnchordError(said or f"the daemon ended with code {code}", "" if said else f"see {log}")
    error.exit_code = code if code > 0 else 1
    return error
