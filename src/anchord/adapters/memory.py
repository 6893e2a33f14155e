"""Memory that the C library keeps though nobody uses it; a service that mostly waits should not. Only glibc has these calls."""

from __future__ import annotations

import ctypes
import sys

_M_ARENA_MAX = -8
_ARENAS = 2


def few_arenas() -> None:
    """Let many threads share a few heaps, before there are any: each would keep tens of megabytes of its own."""
    _call("mallopt", _M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return free memory to the system."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None  # musl has neither.
    if function:
        function(*arguments)
