"""anchord keeps a search index of your folders current; a one-line edit re-embeds one chunk.

Importing this package is cheap: each public name loads its module on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord._version import __version__

if TYPE_CHECKING:
    from anchord.api import chunk_text
    from anchord.ipc.client import Client

__all__ = ["Client", "__version__", "chunk_text"]


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562).

    Raises:
        AttributeError: The package has no such name.
    """
    if name == "chunk_text":
        from anchord.api import chunk_text  # noqa: PLC0415 - imported on first use only

        return chunk_text
    if name == "Client":
        from anchord.ipc.client import Client  # noqa: PLC0415 - imported on first use only

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
