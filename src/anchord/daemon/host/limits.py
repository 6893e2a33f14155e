"""Limits of this machine that anchord can run into."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_INOTIFY = Path("/proc/sys/fs/inotify")
_PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True)
class InotifyLimits:
    """What Linux allows a user, see inotify(7)."""

    max_watches: int
    max_instances: int
    watches_used: int
    """Watches of all processes of this user whose /proc entry can be read."""


def inotify_limits() -> InotifyLimits | None:
    """Return the limits of inotify and how much of them is used; None where there is no inotify."""
    try:
        max_watches = int((_INOTIFY / "max_user_watches").read_text())
        max_instances = int((_INOTIFY / "max_user_instances").read_text())
    except (OSError, ValueError):
        return None
    return InotifyLimits(max_watches, max_instances, _count_watches_of_user())


def open_file_limit() -> int:
    """Return how many files this process may have open: the soft limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft


def measure_clock_skew_s(folder: Path) -> float:
    """Return by how many seconds a folder's file system is ahead of the system's clock.

    A network file system has a clock of its own. The function writes a temporary file to compare
    its modification time with the clock; 0 when the two cannot be told apart.

    Args:
        folder: An existing folder that can be written to.

    Returns:
        Seconds, negative when the file system is behind.

    Raises:
        OSError: The file cannot be written.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        before = time.time()
        file.write(b"x")
        file.flush()
        modified = os.fstat(file.fileno()).st_mtime
        after = time.time()
    if modified > after:
        return modified - after
    return min(0.0, modified - before)


def _count_watches_of_user() -> int:
    count = 0
    for process in _PROCESSES.glob("[0-9]*"):
        # Processes end at any moment, and not all can be looked at.
        with suppress(OSError):
            if process.stat().st_uid != os.geteuid():
                continue
            for fd_info in (process / "fdinfo").iterdir():
                count += _count_watches(fd_info)
    return count


def _count_watches(fd_info: Path) -> int:
    with suppress(OSError):
        return fd_info.read_bytes().count(b"inotify wd:")
    return 0
