"""Faults inside the program's own process: the N-th call of SQLite, of Lance or of the file system, or the N-th open of a rule file.

It fails, or it is the process's last. Loaded into a worker of `program.py`, and into a daemon by `sitecustomize.py`. Imports
nothing of the program.
"""

from __future__ import annotations

import asyncio
import builtins
import errno
import io
import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

RULE_FILES = (".gitignore", ".ignore", ".anchordignore")
ERRORS = {
    "BUSY": (5, "database is locked"),
    "LOCKED": (6, "database table is locked"),
    "FULL": (13, "database or disk is full"),
    "PERM": (3, "access permission denied"),
    "CANTOPEN": (14, "unable to open database file"),
    "IOERR": (10, "disk I/O error"),
    "READONLY": (8, "attempt to write a readonly database"),
}
"""Name of an error of SQLite that is no damage -> its code and message."""
FILE_ERRORS = ("ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT", "EMFILE")
LANCE_ERRORS = {
    "ENOSPC": "Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)",
    "EROFS": "Read-only file system (os error 30) at path ",
    "EMFILE": "Too many open files (os error 24) at path ",
    "EACCES": "Permission denied (os error 13) at path ",
    "EIO": "Input/output error (os error 5) at path ",
}
"""Name of an error of the file system -> how Lance 13 words it, as seen on a small and a read-only tmpfs."""
KILL = "KILL"
_KILLED = 137
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(slots=True)
class Fault:
    """What fails, and at which call."""

    kind: str
    """"sqlite", "rules", "lance", or "files": a write, a flush or a rename of the program's own."""
    nth: int
    """Number of the call that fails, from 1; 0 means every call."""
    error: str = "IOERR"
    """A name in `ERRORS`, `FILE_ERRORS` or `LANCE_ERRORS`, or `KILL`: the process ends at that call."""
    file: str = ""
    """Only calls on a file whose path contains this count."""
    calls: int = 0
    was_hit: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A command for a worker."""

    home: str
    arguments: tuple[str, ...]
    fault: Fault | None = None
    file_limit: int = 0
    """Maximum size of a file in bytes; 0 for no limit."""
    ahead_s: int = 0
    """How far the clock runs ahead, so that new files count as settled."""
    is_complete: bool = True
    """Whether the table is compacted at the end and exports are read in a process of their own.

    Without either, a command takes less than half the time.
    """


_armed: list[Fault] = []
_plan_file = ""
_plan_time = 0


def arm(fault: Fault | None) -> None:
    """Replace what is armed in this process; None disarms."""
    _armed[:] = [fault] if fault else []


def install(plan_file: str = "") -> None:
    """Put the fault points in place.

    Args:
        plan_file: A file that is looked at before each call: it says what is armed.
    """
    global _plan_file  # noqa: PLW0603 - one process, one plan
    _plan_file = plan_file
    _install_sqlite()
    _install_lance()
    _install_files()


def _install_sqlite() -> None:
    real_connect = sqlite3.connect

    def connect(database: Any, *args: Any, **named: Any) -> sqlite3.Connection:  # noqa: ANN401 - as sqlite3's
        _meet("sqlite", str(database))
        named.setdefault("factory", _Connection)
        made: Any = real_connect(database, *args, **named)
        if isinstance(made, _Connection):
            made.file = str(database)
        return made  # type: ignore[no-any-return]

    sqlite3.connect = connect  # type: ignore[assignment]


def _install_lance() -> None:
    """Let calls of lancedb fail: all of them go through an event loop in a thread."""
    real = asyncio.run_coroutine_threadsafe

    def run(coroutine: Any, loop: asyncio.AbstractEventLoop) -> Any:  # noqa: ANN401 - as asyncio's
        try:
            _meet("lance", "")
        except RuntimeError:
            coroutine.close()
            raise
        return real(coroutine, loop)

    asyncio.run_coroutine_threadsafe = run  # type: ignore[assignment]


def _install_files() -> None:
    real_open, real_io_open = os.open, io.open

    def open_file(path: Any, flags: int, *args: Any, **named: Any) -> int:  # noqa: ANN401 - as os.open's
        if isinstance(path, str) and os.path.basename(path) in RULE_FILES:
            _meet("rules", path)
        if flags & _WRITES:
            _meet_file(path)
        return real_open(path, flags, *args, **named)

    def open_stream(file: Any, mode: str = "r", *args: Any, **named: Any) -> Any:  # noqa: ANN401 - as open's
        if any(letter in mode for letter in "wax+"):
            _meet_file(file)
        return real_io_open(file, mode, *args, **named)

    os.open = open_file
    io.open = builtins.open = open_stream
    for name in ("write", "fsync", "replace", "rename", "unlink", "link", "mkdir"):
        setattr(os, name, _failing(getattr(os, name)))


def _failing(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the file system that can fail."""

    def call(path: Any, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - as os's
        _meet_file(path)
        return real(path, *args, **named)

    return call


def _meet_file(file: Any) -> None:  # noqa: ANN401 - a path or a descriptor
    """Count a call on a file."""
    if not (_armed or _plan_file):
        return
    if isinstance(file, int):
        try:
            file = os.readlink(f"/proc/self/fd/{file}")
        except OSError:
            return
    _meet("files", os.fsdecode(file))


class _Connection(sqlite3.Connection):
    """A connection whose statements can fail."""

    file = ""

    def execute(self, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3's
        """Run a statement."""
        _meet("sqlite", self.file)
        return super().execute(*args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3's
        """Run a statement for each row."""
        _meet("sqlite", self.file)
        return super().executemany(*args)

    def executescript(self, *args: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3's
        """Run several statements."""
        _meet("sqlite", self.file)
        return super().executescript(*args)

    def commit(self) -> None:
        """Commit."""
        _meet("sqlite", self.file)
        super().commit()


def _meet(kind: str, file: str) -> None:
    """Count a call, and fail if it is the one."""
    if _plan_file:
        _read_plan()
    for fault in _armed:
        if fault.kind != kind or fault.file not in file:
            continue
        fault.calls += 1
        if fault.nth in (0, fault.calls):
            fault.was_hit = True
            _fail(fault, file)


def _fail(fault: Fault, file: str) -> None:
    if fault.error == KILL:
        os._exit(_KILLED)
    if fault.kind == "rules":
        raise OSError(errno.EIO, os.strerror(errno.EIO), file)
    if fault.kind == "files":
        number = getattr(errno, fault.error)
        raise OSError(number, os.strerror(number), file)
    if fault.kind == "lance":
        message = f"lance error: LanceError(IO): {LANCE_ERRORS[fault.error]}, commit.rs:1663:50"
        raise RuntimeError(message)
    code, message = ERRORS[fault.error]
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    error.sqlite_errorname = f"SQLITE_{fault.error}"
    raise error


def _read_plan() -> None:
    """Arm what the file of a daemon's simulator says, once for each time that it is written."""
    global _plan_time  # noqa: PLW0603 - one process, one plan
    try:
        written = os.stat(_plan_file).st_mtime_ns
    except OSError:
        return
    if written != _plan_time:
        _plan_time = written
        with open(_plan_file, encoding="utf-8") as file:
            plan = json.load(file)
        arm(Fault(**plan) if plan else None)
