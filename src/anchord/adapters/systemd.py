"""What systemd tells a service by its environment, and what it is told: sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3).

Everything here does nothing where no systemd is. Ten lines of the standard library stand for libsystemd.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import structlog

log = structlog.get_logger()

_FIRST_LISTENER = 3
"""The number of the first open file that is handed over."""
_NEVER = 3_600.0


def notify(message: str) -> None:
    """Send one datagram to $NOTIFY_SOCKET, where "@" stands for an abstract name; nothing where there is none."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notifier:
        try:
            notifier.connect("\0" + address[1:] if address.startswith("@") else address)
            notifier.sendall(message.encode())
        except OSError as error:  # Whoever listened is gone; that is no reason to end.
            log.warning("systemd.unheard", reason=os.strerror(error.errno or 0))


def watchdog_s() -> float:
    """Return within how many seconds systemd wants to hear from this process; an hour where it does not care."""
    microseconds, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", str(os.getpid()))
    return int(microseconds) / 1e6 if microseconds.isdecimal() and pid == str(os.getpid()) else _NEVER


def inherited_socket(path: Path) -> socket.socket | None:
    """Return the listening socket at a path that systemd opened for this process, None where it did not.

    It is a duplicate: the one handed over stays open for a process that takes this one's place.
    """
    count = os.environ.get("LISTEN_FDS", "0")
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or not count.isdecimal():
        return None
    for number in range(_FIRST_LISTENER, _FIRST_LISTENER + int(count)):
        listener = socket.socket(fileno=os.dup(number))
        if listener.family == socket.AF_UNIX and listener.getsockname() == str(path):
            return listener
        listener.close()
    log.warning("systemd.other_socket", wanted=path.name)
    return None
