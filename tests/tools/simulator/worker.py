"""A process that runs commands of anchord one after the other, as `anchord` on a command line would.

The command line itself is called, `anchord.cli`. Faults can be armed for one command; a kill ends the process.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import io
import os
import resource
import sys
import time
import traceback
from collections.abc import Generator
from multiprocessing.connection import Connection
from typing import Any

import lance  # noqa: F401 - a process that is forked has it already
import rich.progress  # noqa: F401 - likewise
from tools.simulator import faulty
from tools.simulator.faulty import Call

import anchord.cli
import anchord.daemon.engine
import anchord.daemon.main
import anchord.index.generation
import anchord.index.integrity.purge
import anchord.index.integrity.repair
import anchord.search.answers
import anchord.sources.conversations.reader_process
import anchord.store.backup.snapshot
import anchord.store.table.maintenance
from anchord.cli.command_line import run_command_line
from anchord.cli.loading import load_commands
from anchord.sources.conversations.events import TooLongError
from anchord.sources.conversations.reader_process import ReaderProcess, UnreadableTranscriptError
from anchord.sources.conversations.whole_read import ReadItem, ReadRequest, read_whole


def _prepare() -> None:
    """Do once, before processes are forked, what takes most of the time of a small command.

    Nothing here starts a thread: lancedb itself is imported and not used.
    """
    load_commands([])
    importlib.metadata.version = functools.cache(importlib.metadata.version)


_prepare()


def serve(connection: Connection) -> None:
    """Run commands until the other side closes the connection."""
    faulty.install()
    with contextlib.suppress(EOFError):
        while True:
            connection.send(_run(connection.recv()))


def run_daemon(environment: dict[str, str], log: str) -> None:
    """Be a daemon: `anchord run` in a process that has loaded everything already.

    Args:
        environment: Variables that are set; `SIMULATOR_FAULTS` names the file of its faults.
        log: The file to which its output is appended.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.environ.update(environment)
    sys.argv = ["anchord", "run"]
    # With these the daemon starts itself again.
    sys.orig_argv = [sys.executable, "-m", "anchord", "run"]
    faulty.install(environment["SIMULATOR_FAULTS"])
    anchord.cli.main()


def _run(call: Call) -> tuple[int, str, str]:
    """Run a command; return its exit code, and what it printed."""
    os.environ["ANCHORD_HOME"] = call.home
    sys.argv = ["anchord", *call.arguments]
    output, errors = _stream(), _stream()
    faulty.arm(call.fault)
    try:
        with (
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
            _limited(call.file_limit),
            contextlib.nullcontext() if call.is_complete else _light(),
            _clock_ahead(call.ahead_s),
        ):
            code = run_command_line()
    except Exception:  # noqa: BLE001 - what a user would see as a traceback
        code = 1
        errors.write(traceback.format_exc())
    finally:
        faulty.arm(None)
    return code, _text(output), _text(errors)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer: Any = stream.buffer
    return bytes(buffer.getvalue()).decode("utf-8", "replace")


@contextlib.contextmanager
def _limited(file_limit: int) -> Any:  # noqa: ANN401 - a context
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


@contextlib.contextmanager
def _light() -> Any:  # noqa: ANN401 - a context
    """Leave out compaction, and do in this process what small processes are started for."""
    patches: tuple[tuple[Any, str, Any], ...] = (
        (anchord.store.table.maintenance, "maintain", _no_errors),
        (ReaderProcess, "__call__", _read_here),
    )
    real = [getattr(owner, name) for owner, name, _ in patches]
    for owner, name, ours in patches:
        setattr(owner, name, ours)
    try:
        yield
    finally:
        for (owner, name, _), theirs in zip(patches, real, strict=True):
            setattr(owner, name, theirs)


def _read_here(_: object, request: ReadRequest) -> Generator[ReadItem]:
    """Read a transcript as the process of readers does."""
    try:
        yield from read_whole(request)
    except TooLongError:
        raise
    except Exception as error:  # noqa: BLE001 - as there
        raise UnreadableTranscriptError(type(error).__name__) from None


@contextlib.contextmanager
def _clock_ahead(seconds: int) -> Any:  # noqa: ANN401 - a context
    real = time.time_ns
    time.time_ns = lambda: real() + seconds * 1_000_000_000
    try:
        yield
    finally:
        time.time_ns = real


def _no_errors(*_: object, **__: object) -> list[str]:
    return []
