"""The listening socket outlives a restart: the process that replaces the daemon goes on with it.

A client that connects during the restart waits in the socket's queue for some seconds, instead of
being told that no daemon runs.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

_DESCRIPTOR = "ANCHORD_LISTEN_FD"
"""Environment variable: "PROCESS DESCRIPTOR". Child processes must not take the socket."""


def hand_over(listener: socket.socket) -> None:
    """Leave a listening socket to the program that this process executes next.

    Args:
        listener: Stays open in this process.
    """
    descriptor = os.dup(listener.fileno())
    os.set_inheritable(descriptor, True)
    os.environ[_DESCRIPTOR] = f"{os.getpid()} {descriptor}"


def handed_over_socket(path: Path) -> socket.socket | None:
    """Return the listening socket that this process had before it executed a new anchord, if any.

    A second call returns None.

    Args:
        path: The path that the socket must be bound to.

    Returns:
        None if there is no such socket.
    """
    pid, _, descriptor = os.environ.pop(_DESCRIPTOR, "").partition(" ")
    if pid != str(os.getpid()) or not descriptor.isdecimal():
        return None
    try:
        listener = socket.socket(fileno=int(descriptor))
    except OSError:
        return None
    listener.set_inheritable(False)
    if listener.family == socket.AF_UNIX and listener.getsockname() == str(path):
        return listener
    listener.close()
    return None
