"""`files`, `changes`: which files the index has, and what changed in it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from anchord.ipc.messages.base import Message, Params
from anchord.ipc.messages.searching import MAX_FILTER_CHARS

MAX_LISTED = 1_000
_Glob = Annotated[str, Meta(max_length=MAX_FILTER_CHARS)]


class FilesParams(Params, frozen=True, kw_only=True):
    """Parameters of "files". An empty text does not filter."""

    root: str = ""
    path: _Glob = ""
    """A folder, or a pattern in .gitignore syntax; an absolute path is one in its root."""
    kind: str = ""
    """"markdown", "text", "code" or "transcript"."""
    limit: Annotated[int, Meta(ge=0, le=MAX_LISTED)] = 100
    """Maximum number of files; 0 only asks how complete the index is."""
    cursor: _Glob = ""
    """`next` of the answer before this one; "" begins with the first file."""


class IndexedFile(Message, frozen=True, kw_only=True):
    """A file that is indexed."""

    root: str
    path: str
    file: str
    """Absolute path."""
    kind: str
    chunks: int
    """0 for a transcript, whose exchanges have the chunks."""
    modified: str
    """When it changed last before it was indexed: ISO 8601 in UTC."""


class FilesAnswer(Message, frozen=True, kw_only=True):
    """Answer of "files", in the order of root and path."""

    files: tuple[IndexedFile, ...]
    next: str
    """`cursor` for the files after these; "" after the last."""
    note: str
    """What a person must know of the answer, for example that files wait to be indexed."""
    complete: bool
    """Whether everything that is known to have changed is in the index; False without a daemon."""


class ChangesParams(Params, frozen=True, kw_only=True):
    """Parameters of "changes". An empty text does not filter."""

    since: str = ""
    """A date or an age as for "search"; "" for 24 hours."""
    root: str = ""
    path: _Glob = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 100


class FileChange(Message, frozen=True, kw_only=True):
    """What changed in a file since a time. A move is a deletion and a new file."""

    root: str
    path: str
    file: str
    """Absolute path."""
    at: str
    """When the index took the last change in: ISO 8601 in UTC."""
    saves: int
    """How often the index took a change in."""
    new: int
    """Chunks that were written, of all saves together."""
    gone: int
    """Chunks that were deleted, of all saves together."""
    kept: int
    """Chunks that the last save left as they were."""
    deleted: bool
    """Whether the file is not in the index any more."""


class ChangesAnswer(Message, frozen=True, kw_only=True):
    """Answer of "changes", newest first."""

    since: str
    """From when on: ISO 8601 in UTC."""
    changes: tuple[FileChange, ...]
    omitted: int
    """Changed files beyond the limit."""
    note: str
    """As in `FilesAnswer`; it says, too, where the history begins later than `since`."""
    complete: bool
