"""Temporary files of the tests are written to memory where there is room: they take a fifth less time.

The tests write thousands of small tables and databases, each of which waits for the disk. Somebody who sets TMPDIR decides
otherwise: `TMPDIR=/tmp .venv/bin/pytest` has them on a disk.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import psutil

_MEMORY = Path("/dev/shm")  # noqa: S108 - the file system is the point
_PREFIX = "at"
"""Short, because the path of a socket has 107 bytes at most."""
_ENOUGH_BYTES = 8 * 10**9
"""Ten times what the tests have written at any time, and the memory that they use beside it."""


def use_memory() -> Path | None:
    """Have this process and those that it starts write temporary files to memory.

    The folder is deleted when the process ends.

    Returns:
        The new folder; None if there is too little memory, or TMPDIR is set.
    """
    if "TMPDIR" in os.environ or not _MEMORY.is_dir():
        return None
    _delete_folders_of_ended_processes()
    free = min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available)
    if free < _ENOUGH_BYTES:
        return None
    folder = _MEMORY / f"{_PREFIX}{os.getpid()}"
    folder.mkdir(mode=0o700)
    atexit.register(_delete_if_own, folder)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # It is determined again.
    return folder


def use_own_cache() -> None:
    """Have this process and those that it starts use a cache folder of the tests, not the developer's.

    All of them share it, so a model is exported once. The folder is deleted when the process ends.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # It inherits the folder of the process that started it.
    folder = tempfile.mkdtemp(prefix="cache")
    real = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    os.environ.setdefault("PIP_CACHE_DIR", str(real / "pip"))
    os.environ["XDG_CACHE_HOME"] = folder
    owner = os.getpid()

    def delete() -> None:
        if os.getpid() == owner:  # Not a process which it forked.
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(delete)


def _delete_if_own(folder: Path) -> None:
    """Delete the folder of this process, and not that of the process which forked it."""
    if folder.name == f"{_PREFIX}{os.getpid()}":
        shutil.rmtree(folder, ignore_errors=True)


def _delete_folders_of_ended_processes() -> None:
    """Delete what tests that were killed have left."""
    for folder in _MEMORY.glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX)
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)
