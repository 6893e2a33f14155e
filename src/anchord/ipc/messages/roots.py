"""`roots`, `roots.add`, `roots.remove`, `reload`: which folders are indexed."""

from __future__ import annotations

from msgspec import field

from anchord.ipc.messages.base import Message, Params


class AddRootParams(Params, frozen=True, kw_only=True):
    """Parameters of "roots.add"."""

    path: str
    kind: str = "project"
    name: str = ""


class RootNameParams(Params, frozen=True, kw_only=True):
    """Parameters of "roots.remove", "confirm-delete" and "rescan"."""

    name: str = ""
    """Name of a root; for "rescan" "" means all of them."""


class RootAnswer(Message, frozen=True, kw_only=True):
    """An indexed folder, as "roots" lists it."""

    name: str
    path: str
    kind: str
    origin: str = field(name="from")
    """"configuration" or "command line"."""
    files: int
    chunks: int


class AddedRoot(Message, frozen=True, kw_only=True):
    """Answer of "roots.add"."""

    name: str
    path: str
    kind: str


class RemovedRoot(Message, frozen=True, kw_only=True):
    """Answer of "roots.remove"."""

    name: str
    removed_chunks: int
    detached_exchanges: int
    """Exchanges of its conversations; they are kept."""


class ReloadAnswer(Message, frozen=True, kw_only=True):
    """Answer of "reload"."""

    added: tuple[str, ...]
    """Names of new and of changed roots."""
    removed: tuple[str, ...]
