"""When the daemon replaces its own process: at once, after a pause, or not at all.

Pure: the numbers come in as arguments. What only a new process can repair (a damaged database, a
deleted data folder) can happen twice within minutes, so a second restart is not refused. Pauses
keep a fault that no restart cures from keeping the machine busy: it causes six restarts within four
minutes, and then one in ten minutes.
"""

from __future__ import annotations

MIN_UPTIME_S = 600.0
"""A process that has run this long begins a new series of restarts."""
_PAUSES_S = (0.0, 2.0, 10.0, 30.0, 60.0, 120.0)


def restart_pause_s(restart_count: int, uptime_s: float) -> float:
    """Return how long to wait before a restart, in seconds.

    Args:
        restart_count: How many restarts in a row led to this process, each from a process that ran
            less than `MIN_UPTIME_S`.
        uptime_s: How long this process has run.
    """
    if uptime_s >= MIN_UPTIME_S:
        return 0.0
    if restart_count < len(_PAUSES_S):
        return _PAUSES_S[restart_count]
    return MIN_UPTIME_S - uptime_s


def next_restart_count(restart_count: int, uptime_s: float) -> int:
    """Return the count for the next process.

    Args:
        restart_count: As for `restart_pause_s`.
        uptime_s: How long this process had run when the restart was asked for.
    """
    return 1 if uptime_s >= MIN_UPTIME_S else restart_count + 1
