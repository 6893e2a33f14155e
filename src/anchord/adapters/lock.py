"""One writer an index, by a lock of the operating system that ends with its process however that ends.

The lock is on the folder that holds the index: whoever deletes a lock file while it is held lets a second writer in; who
deletes the folder deletes the index with it. The file only tells who the holder is.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from anchord.errors import AlreadyRunningError

_PAUSE_S = 0.001


class WriterLock:
    """Held from construction to `release`."""

    def __init__(self, file: Path) -> None:
        """Take the lock of a file's folder, and write this process's id into the file.

        Raises:
            AlreadyRunningError: another process has it.
        """
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _take(folder)
            _sign(file)
        except BlockingIOError:
            os.close(folder)
            raise AlreadyRunningError(
                f"another anchord (process {_signature(file) or 'unknown'}) is writing this index",
                "`anchord status` shows it, `anchord stop` ends it",
            ) from None
        except OSError:
            os.close(folder)
            raise
        self.descriptor = folder

    def release(self) -> None:
        """Let go."""
        os.close(self.descriptor)


def lock_holder(file: Path) -> int | None:
    """Return the process id of the lock's holder (0 when it is not known), None when nobody holds it."""
    try:
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _signature(file)
    finally:
        os.close(folder)
    return None


def _take(folder: int) -> None:
    """Take the lock. Those who only ask for the holder share it for a moment, which must refuse nobody."""
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)  # Fails, and ends this, when a writer has it.
            fcntl.flock(folder, fcntl.LOCK_UN)
            time.sleep(_PAUSE_S)
        else:
            return


def _sign(file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, f"{os.getpid()}\n".encode())
    finally:
        os.close(descriptor)


def _signature(file: Path) -> int:
    try:
        text = file.read_bytes()[:32].strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0
