"""What a process that reads a stranger's bytes must not be able to do, each tried once.

A worker whose parser or reader was taken over runs `try_all`; `test_confinement` starts such workers.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def try_all(root: Path) -> list[str]:
    """Return the names of the attempts that succeeded.

    Args:
        root: The folder that a reader may read; it has the files `a.json`, `b` and `c`. Beside it
            are a file `private` and a socket `socket`.
    """
    file = root / "a.json"
    attempts: dict[str, Callable[[], object]] = {
        "write a new file": lambda: (root / "new").write_text("x"),
        "write an empty file": (root / "empty").touch,
        "change a file": lambda: _close(os.open(file, os.O_WRONLY)),
        "truncate a file": lambda: os.truncate(file, 0),
        "make a folder": (root / "made").mkdir,
        "make a link": lambda: (root / "link").symlink_to("/"),
        "change a mode": lambda: file.chmod(0o666),
        "change times": lambda: os.utime(file),
        "set an attribute": lambda: _set_attribute(file),
        "read a file outside": (root.parent / "private").read_bytes,
        "read /etc/passwd": lambda: Path("/etc/passwd").read_bytes(),
        "list the home folder": lambda: os.listdir(Path.home()),
        "read another process's environment": lambda: Path(
            f"/proc/{os.getppid()}/environ"
        ).read_bytes(),
        "start a program": lambda: os.posix_spawn("/bin/true", ["true"], {}),
        "become a program": lambda: os.execv("/nonexistent", ["x"]),  # noqa: S606 - it is not there
        "fork": _fork,
        "start a thread": lambda: threading.Thread(target=int).start(),
        "signal another process": lambda: os.kill(os.getppid(), signal.SIGCONT),
        "connect over IPv4": lambda: _connect(socket.AF_INET, ("127.0.0.1", 9)),
        "connect over IPv6": lambda: _connect(socket.AF_INET6, ("::1", 9)),
        "open a UDP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "connect to a Unix socket": lambda: _connect(socket.AF_UNIX, str(root.parent / "socket")),
        "rename a file": lambda: (root / "b").rename(root / "moved"),
        "delete a file": (root / "c").unlink,
        "see a key": lambda: os.environ["OPENAI_API_KEY"],
        "use 3 GB of memory": lambda: mmap.mmap(-1, 3 << 30).close(),
        "open 300 files": lambda: _open_many(300),
    }
    return [name for name, attempt in attempts.items() if _succeeds(attempt)]


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except ConnectionRefusedError:
        return True  # The socket was opened, and its call reached the network.
    except FileNotFoundError as error:
        return error.filename is None  # `execv` was allowed to look for its program.
    except (OSError, KeyError, MemoryError, RuntimeError):
        return False
    return True


def _open_many(count: int) -> None:
    opened: list[int] = []
    try:
        opened.extend(os.dup(0) for _ in range(count))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _close(descriptor: int) -> None:
    os.close(descriptor)


def _fork() -> None:
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _set_attribute(file: Path) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setxattr(os.fsencode(file), b"user.a", b"x", 1, 0):
        raise OSError(ctypes.get_errno(), "setxattr")


def _connect(family: int, address: tuple[str, int] | str) -> None:
    with closing(socket.socket(family)) as tried:
        tried.settimeout(2)
        tried.connect(address)
