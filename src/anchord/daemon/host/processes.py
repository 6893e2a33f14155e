"""What other processes of this machine are."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil


def is_daemon(pid: int) -> bool:
    """Return whether a process is `anchord run`, by its command line.

    Args:
        pid: Its id.
    """
    try:
        arguments = psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
    # `anchord index run` is none: "run" is a folder there.
    return any(
        Path(name).name == "anchord" and command == "run" for name, command in pairwise(arguments)
    )


def listens_at(pid: int, socket_file: Path) -> bool:
    """Return whether a process is the one that listens at a socket.

    False also where the system does not say, and where systemd listens for the daemon.

    Args:
        pid: The process.
        socket_file: A Unix socket.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return False
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        connection.connect(str(socket_file))
        size = struct.calcsize("3i")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return bool(struct.unpack("3i", credentials)[0] == pid)
    return False
