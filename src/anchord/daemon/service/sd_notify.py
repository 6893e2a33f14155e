"""The protocol of systemd services: sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3).

It uses the standard library instead of libsystemd. Without systemd every function does nothing.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import structlog

from anchord.core.quoting import escape_line

log = structlog.get_logger()

_FIRST_LISTEN_FD = 3
"""SD_LISTEN_FDS_START: the first file descriptor that systemd passes on."""
_NO_WATCHDOG_S = 3_600.0


def notify_systemd(message: str) -> None:
    """Send a message to systemd; do nothing if it did not start this process. Never raises OSError.

    Args:
        message: Lines of NAME=value, see sd_notify(3).
    """
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]  # Linux's abstract namespace.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notifier:
        try:
            notifier.connect(address)
            notifier.sendall(message.encode())
        except OSError as error:
            # systemd's socket is gone; that is no reason to end.
            log.warning("systemd.notify_failed", reason=os.strerror(error.errno or 0))


def notify_status(status: str, *more: str) -> None:
    """Send systemd the status that `systemctl status` shows; otherwise as `notify_systemd`.

    Args:
        status: What to show. It is sent as one line whatever it quotes: a line end in it, from the
            name of a file, would begin another NAME=value.
        more: Further NAME=value lines.
    """
    notify_systemd("\n".join([*more, f"STATUS={escape_line(status)}"]))


def is_under_systemd() -> bool:
    """Return whether systemd started this process and waits for its messages."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def watchdog_timeout_s() -> float:
    """Return within how many seconds systemd expects the next ping; an hour without a watchdog."""
    own_pid = str(os.getpid())
    timeout_us = os.environ.get("WATCHDOG_USEC", "")
    watched_pid = os.environ.get("WATCHDOG_PID", own_pid)
    if not timeout_us.isdecimal() or watched_pid != own_pid:
        return _NO_WATCHDOG_S
    return int(timeout_us) / 1e6


def inherited_socket(path: Path) -> socket.socket | None:
    """Return the listening socket that systemd opened for this process (socket activation).

    Args:
        path: The path that the socket must be bound to.

    Returns:
        A duplicate, which the caller closes; None if systemd passed no such socket. The original
        stays open for a process that replaces this one by exec.
    """
    count = os.environ.get("LISTEN_FDS", "0")
    is_for_us = os.environ.get("LISTEN_PID") == str(os.getpid())
    if not is_for_us or not count.isdecimal():
        return None
    for descriptor in range(_FIRST_LISTEN_FD, _FIRST_LISTEN_FD + int(count)):
        listener = socket.socket(fileno=os.dup(descriptor))
        if listener.family == socket.AF_UNIX and listener.getsockname() == str(path):
            return listener
        listener.close()
    log.warning("systemd.no_matching_socket", expected=path.name)
    return None
