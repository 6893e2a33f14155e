"""Limits for child processes that read what strangers wrote: memory, CPU, files, environment."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from contextlib import suppress

_KEPT_VARIABLES = (
    "HOME",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)
"""With these Python finds its modules. The rest of the environment can hold keys."""


def environment_without_keys() -> dict[str, str]:
    """Return the environment variables of this process that a confined child process needs."""
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}


def limit_resources(limits: Mapping[str, int]) -> None:
    """Limit this process; it cannot raise the limits again.

    A limit that the system lacks or refuses is skipped. A lower hard limit stays.

    Args:
        limits: Name of a limit without "RLIMIT_", such as "AS" -> its value.
    """
    for name, value in limits.items():
        with suppress(AttributeError, OSError, ValueError):
            limit = getattr(resource, f"RLIMIT_{name}")
            _, hard = resource.getrlimit(limit)
            lowered = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (lowered, lowered))


def reset_cpu_limit(seconds: int) -> None:
    """Allow some more seconds of CPU from now on; the system ends the process after them."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used_s = int(usage.ru_utime + usage.ru_stime)
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (used_s + seconds, hard))
