"""Limits of this machine that anchord can run into, as the system tells them. Where it does not, there is none to speak of."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_INOTIFY = Path("/proc/sys/fs/inotify")
_PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True)
class Inotify:
    """What Linux allows a user: inotify(7)."""

    watches: int
    instances: int
    used: int
    """Watches that processes of this user have now, as far as they can be looked at."""


def inotify() -> Inotify | None:
    """Return the limits; None where there is no inotify."""
    try:
        watches, instances = (int((_INOTIFY / f"max_user_{name}").read_text()) for name in ("watches", "instances"))
    except (OSError, ValueError):
        return None
    return Inotify(watches, instances, _used_watches())


def open_files() -> int:
    """Return how many files a process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_bytes(folder: Path) -> int:
    """Return what is free on the disk of a folder, or of the nearest above it that is there."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def folder_bytes(folder: Path) -> int:
    """Return what the files below a folder take; files that are shared count once."""
    seen: dict[tuple[int, int], int] = {}
    folders = [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:  # Files go meanwhile, and so do folders.
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                with suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    seen[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
    return sum(seen.values())


def clock_gap_s(folder: Path) -> float:
    """Return by how many seconds a folder's file system is ahead of the system's clock: a server has a clock of its own."""
    with tempfile.TemporaryFile(dir=folder) as file:
        before = time.time()
        file.write(b"x")
        file.flush()
        stamp = os.fstat(file.fileno()).st_mtime
        after = time.time()
    return stamp - after if stamp > after else min(0.0, stamp - before)


def _used_watches() -> int:
    count = 0
    for process in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == os.geteuid():
                count += sum(_watches(info) for info in (process / "fdinfo").iterdir())
    return count


def _watches(info: Path) -> int:
    with suppress(OSError):
        return info.read_bytes().count(b"inotify wd:")
    return 0
