"""anchord keeps a search index of your folders current; a one-line edit re-embeds one chunk.

Importing this package is cheap: each public name loads its module on first use.
"""

from __future__ import annotations

from anchord._version import __version__

TYPE_CHECKING = False
"""Type checkers take it for True. To import `typing` takes longer than this package."""

if TYPE_CHECKING:
    import os

    from anchord.api.chunks import chunk_text
    from anchord.daemon.engine import Engine
    from anchord.ipc.async_client import AsyncClient
    from anchord.ipc.client import Client

__all__ = ["AsyncClient", "Client", "Engine", "__version__", "chunk_text", "open"]

_MODULES = {
    "chunk_text": "anchord.api.chunks",
    "Client": "anchord.ipc.client",
    "AsyncClient": "anchord.ipc.async_client",
    "Engine": "anchord.daemon.engine",
}
"""Public name -> the module that has it."""


def open(home: str | os.PathLike[str] | None = None) -> Engine:  # noqa: A001 - `anchord.open(...)`
    """Open an index in this process: every method of the daemon, without a daemon.

    Methods that only read work beside a running daemon. A method that writes takes the writer lock,
    and keeps it until the engine is closed.

    Args:
        home: The folder in which anchord keeps its files, as in ANCHORD_HOME. None for that of
            ANCHORD_HOME, or without it for this user's own folders.

    Returns:
        The engine, a context manager; nothing is opened before its first call.
    """
    from anchord.daemon.engine import Engine  # noqa: PLC0415 - loads LanceDB

    return Engine.of_home(home)


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562).

    Raises:
        AttributeError: The package has no such name.
    """
    if name in _MODULES:
        import importlib  # noqa: PLC0415 - takes longer than this package

        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
