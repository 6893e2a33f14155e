"""The writer lock: one writer for each index, by a lock of the system that ends with its process.

The lock is on the folder that holds the index. A lock on a file would not do: whoever deleted the
file would let a second writer in. Whoever deletes the folder deletes the index with it. The pid
file only records who holds the lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from anchord.core.regular_files import read_regular_file
from anchord.errors import AlreadyRunningError

_RETRY_PAUSE_S = 0.001


class WriterLock:
    """Held from construction to `release`, or to the end of the process."""

    def __init__(self, pid_file: Path) -> None:
        """Lock the folder of a pid file, and write this process's id into the file.

        Waits only for other processes that read the lock's state, which takes milliseconds.

        Raises:
            AlreadyRunningError: Another process holds the lock.
            OSError: The folder cannot be opened, or the pid file cannot be written.
        """
        folder = _open_folder(pid_file)
        try:
            _lock_exclusively(folder)
            _write_pid(pid_file)
        except BlockingIOError:
            os.close(folder)
            holder = _read_pid(pid_file) or "unknown"
            raise AlreadyRunningError(
                f"another anchord (process {holder}) is writing this index",
                "see it with `anchord status`, stop it with `anchord stop`",
            ) from None
        except OSError:
            os.close(folder)
            raise
        self.descriptor = folder
        """The locked folder. A child process that inherits it holds the lock too."""

    def release(self) -> None:
        """Release the lock, unless a child process inherited it."""
        os.close(self.descriptor)


def lock_holder_pid(pid_file: Path) -> int | None:
    """Return the id of the process that holds the lock of a pid file's folder.

    Returns:
        0 if the lock is held and the id unknown; None if nobody holds it, or there is no folder.
    """
    try:
        folder = _open_folder(pid_file)
    except OSError:
        return None
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_pid(pid_file)
    finally:
        os.close(folder)
    return None


def _open_folder(pid_file: Path) -> int:
    return os.open(pid_file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _lock_exclusively(folder: int) -> None:
    """Lock an open folder; raise BlockingIOError if a writer has it."""
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Either a writer has the lock, or `lock_holder_pid` shares it for a moment. A shared
            # lock tells these apart: it is granted beside the second, and beside a writer it
            # raises.
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(folder, fcntl.LOCK_UN)
            time.sleep(_RETRY_PAUSE_S)
        else:
            return


def _write_pid(file: Path) -> None:
    # O_NONBLOCK: opening a named pipe would wait for a reader.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(file, flags, 0o600)
    try:
        os.write(descriptor, f"{os.getpid()}\n".encode())
    finally:
        os.close(descriptor)


def _read_pid(file: Path) -> int:
    """Return the process id in a pid file; 0 if there is none."""
    try:
        text = read_regular_file(file)[:32].strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0
