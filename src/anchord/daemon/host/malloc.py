"""Settings of glibc's heap: a service that mostly waits should not keep memory it does not use.

Elsewhere (musl, macOS) these functions do nothing.
"""

from __future__ import annotations

import ctypes
import sys

_M_ARENA_MAX = -8
"""`mallopt` parameter, from glibc's malloc.h."""
_MAX_ARENAS = 2


def limit_malloc_arenas() -> None:
    """Let all threads share two heaps; call it before threads are started.

    Otherwise each thread gets a heap of its own, which keeps tens of megabytes.
    """
    _call_libc("mallopt", _M_ARENA_MAX, _MAX_ARENAS)


def trim_heap() -> None:
    """Return free heap memory to the system."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *arguments: int) -> None:
    """Call a function of the C library if it has one of this name."""
    if sys.platform != "linux":
        return
    function = getattr(ctypes.CDLL(None), name, None)
    if function:
        function(*arguments)
