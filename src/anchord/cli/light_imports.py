"""Imports a library without another one that it uses if it can."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(library: str) -> Iterator[None]:
    """Have imports in this block find no such library, unless it is loaded already.

    Args:
        library: Name of a package. Only for what the imported library can do without, and does for
            this program in the same way.
    """
    if library in sys.modules:
        yield
        return
    sys.modules[library] = None  # type: ignore[assignment] # Python's mark: cannot be imported
    try:
        yield
    finally:
        del sys.modules[library]
