"""What other processes of this machine are."""

from __future__ import annotations

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
    names_anchord = any("anchord" in argument for argument in arguments[:5])
    return names_anchord and "run" in arguments
