"""What other processes of this machine are."""

from __future__ import annotations

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
