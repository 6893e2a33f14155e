"""The program of the process that parses code, with its memory, CPU time and files limited.

A grammar is C code that reads untrusted text. In this process it can write no file, read none but
its own code, start no process and open no socket (`ipc.confinement`). Its environment holds no key,
and its memory and CPU time are bounded by the system: 20 KB of `<a ` take 4 GB in the grammar of
C#. The process ends when its input ends.
"""

from __future__ import annotations

import os
import sys

from anchord.chunking.formats.code_symbols import find_definitions
from anchord.ipc.confinement import confine_to_reading, limit_resources, reset_cpu_limit
from anchord.ipc.framing import read_frame, write_frame

MAX_MEMORY_BYTES = 1 << 30
"""A file of two megabytes, the maximum, takes a quarter of it; one of brackets alone takes half."""
MAX_CPU_S = 20
"""For one text; the largest takes six seconds on a slow machine."""
_MAX_OPEN_FILES = 64


def apply_resource_limits() -> None:
    """Limit this process to what parsing needs; it cannot raise the limits again."""
    limit_resources(
        {"AS": MAX_MEMORY_BYTES, "FSIZE": 0, "NPROC": 0, "NOFILE": _MAX_OPEN_FILES, "CORE": 0}
    )
    confine_to_reading(())


def main() -> None:
    """Answer each text with its definitions, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What a grammar prints must not get between the frames.
    apply_resource_limits()
    while isinstance(request := read_frame(sys.stdin.buffer), dict):
        reset_cpu_limit(MAX_CPU_S)
        definitions = find_definitions(str(request["text"]), str(request["language"]))
        write_frame(answers, {"definitions": definitions})


if __name__ == "__main__":
    main()
