"""Faults inside the program's own process: the N-th call of SQLite or the N-th open of a rule file fails, or is the process's last.

Loaded into a worker of `program.py`, and into a daemon by `sitecustomize.py`. Imports nothing of the program.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
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
KILL = "KILL"
_KILLED = 137


@dataclass(slots=True)
class Fault:
    """What fails, and at which call."""

    kind: str
    """"sqlite" or "rules"."""
    nth: int
    """Number of the call that fails, from 1; 0 means every call."""
    error: str = "IOERR"
    """A name in `ERRORS`, or `KILL`: the process ends at that call."""
    file: str = ""
    """Only calls on a database, or of a rule file, whose path contains this count."""
    calls: int = 0
    was_hit: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A command for a worker."""

    home: str
    arguments: tuple[str, ...]
    fault: Fault | None = None
    file_limit: int = 0
    """No file may become larger than so many bytes; 0 for no limit."""
    ahead_s: int = 0
    """So far the clock runs ahead: files that were written a moment ago count as settled."""
    compacts: bool = True
    """Whether the table is compacted at the end, which takes two thirds of the time."""


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
    real_connect, real_open = sqlite3.connect, os.open

    def connect(database: Any, *args: Any, **named: Any) -> sqlite3.Connection:  # noqa: ANN401 - as sqlite3's
        _meet("sqlite", str(database))
        named.setdefault("factory", _Connection)
        made: Any = real_connect(database, *args, **named)
        if isinstance(made, _Connection):
            made.file = str(database)
        return made  # type: ignore[no-any-return]

    def open_file(path: Any, *args: Any, **named: Any) -> int:  # noqa: ANN401 - as os.open's
        if isinstance(path, str) and os.path.basename(path) in RULE_FILES:
            _meet("rules", path)
        return real_open(path, *args, **named)

    sqlite3.connect = connect  # type: ignore[assignment]
    os.open = open_file


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
            _fail(fault)


def _fail(fault: Fault) -> None:
    if fault.error == KILL:
        os._exit(_KILLED)
    if fault.kind == "rules":
        raise OSError(errno.EIO, os.strerror(errno.EIO))
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
