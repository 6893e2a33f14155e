"""One writer an index, by a lock of the operating system that ends with its process however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from anchord.errors import AlreadyRunningError

_TRIES = 5


class WriterLock:
    """Held from construction to `release`. The file holds the holder's process id, for messages."""

    def __init__(self, file: Path) -> None:
        """Take the lock.

        Raises:
            AlreadyRunningError: another process has it.
        """
        for _ in range(_TRIES):
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                os.close(descriptor)
                raise AlreadyRunningError(
                    f"another anchord (process {holder or 'unknown'}) is writing this index",
                    "`anchord status` shows it, `anchord stop` ends it",
                ) from None
            if _is_same(descriptor, file):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
                self._descriptor = descriptor
                return
            os.close(descriptor)  # The file was deleted between open and lock: another may hold a newer one.
        raise AlreadyRunningError(f"{file} is being replaced all the time", "see what deletes it")

    def release(self) -> None:
        """Let go."""
        os.close(self._descriptor)


def lock_holder(file: Path) -> int | None:
    """Return the process id of the lock's holder, None when nobody holds it."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(descriptor)
    return None


def _is_same(descriptor: int, file: Path) -> bool:
    try:
        named = os.stat(file)
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (named.st_ino, named.st_dev) == (held.st_ino, held.st_dev)
