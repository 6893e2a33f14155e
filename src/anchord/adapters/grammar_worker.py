"""The program of the process that parses code: what it may take is bounded by the system. It ends when its input does.

A grammar is C that reads what strangers wrote. Here it can write no file, start no process and fill no disk, its environment
holds no key, and its memory and time have an end: twenty kilobytes of `<a ` are 4 GB to the grammar of C#.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress

from anchord.adapters.frames import read_frame, write_frame
from anchord.chunkers.symbols import definitions

MEMORY = 1 << 30
"""Two megabytes, the most of a file, take a quarter of it; of brackets alone, half."""
CPU_S = 20
"""For one text: the largest takes six seconds on a slow machine."""
_OPEN_FILES = 64


def bound() -> None:
    """Give up what parsing needs not. What a system does not know, or does not grant, is left as it is."""
    limits = (("AS", MEMORY), ("FSIZE", 0), ("NPROC", 0), ("NOFILE", _OPEN_FILES), ("CORE", 0))
    for name, most in limits:
        with suppress(AttributeError, OSError, ValueError):
            which = getattr(resource, f"RLIMIT_{name}")
            _, hard = resource.getrlimit(which)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)  # noqa: PLW2901 - it is as far as one can go
            resource.setrlimit(which, (most, most))


def allow_time() -> None:
    """Let the next text take so much CPU from now on; the system ends the process at the end of it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + CPU_S, hard))


def main() -> None:
    """Answer with the definitions of each text until the input ends, or a text ends this."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    bound()
    while isinstance(frame := read_frame(sys.stdin.buffer), dict):
        allow_time()
        write_frame(answers, {"definitions": definitions(str(frame["text"]), str(frame["language"]))})


if __name__ == "__main__":
    main()
