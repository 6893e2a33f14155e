"""anchord keeps a semantic index of folders true, at the cost of what changed.

Importing this package is cheap; what a name needs is loaded when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anchord.api import chunk_text
    from anchord.ipc.client import Client

__all__ = ["Client", "__version__", "chunk_text"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name == "chunk_text":
        from anchord.api import chunk_text  # noqa: PLC0415 - the point of this function

        return chunk_text
    if name == "Client":
        from anchord.ipc.client import Client  # noqa: PLC0415 - likewise

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
