"""`index`, `sync`, `verify`, `rebuild`, `forget`, `backup` and the like: they change the index."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta

from anchord.ipc.messages.base import Message, Params
from anchord.ipc.messages.status import Failure

MAX_WAIT_S = 31_536_000


class IndexParams(Params, frozen=True, kw_only=True):
    """Parameters of "index"."""

    paths: tuple[str, ...] = ()
    """Folders to index besides the roots."""


class SyncParams(Params, frozen=True, kw_only=True):
    """Parameters of "sync"."""

    timeout: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] | None = None
    """Seconds to wait at most; None waits without limit."""
    words: bool = False
    """Do not wait for vectors: a search by words finds everything, one by meaning may not."""


SYNC_ALL = SyncParams()
"""Wait for everything, without limit."""


class VerifyParams(Params, frozen=True, kw_only=True):
    """Parameters of "verify"."""

    repair: bool = False
    vectors: Annotated[int, Meta(ge=0)] | None = 16
    """Number of rows to embed again for comparison; None for all."""


class ReindexParams(Params, frozen=True, kw_only=True):
    """Parameters of "reindex"."""

    force_rechunk: bool = False


class ForgetParams(Params, frozen=True, kw_only=True):
    """Parameters of "forget"."""

    path: str
    """Absolute path."""
    path_bytes: bytes = b""
    """The path as the system has it, where it is not UTF-8; base64 in JSON. `path` is ignored."""
    undo: bool = False
    """True lets a forgotten path be indexed again."""
    preview: bool = False
    """True only counts what would be deleted."""

    @property
    def exact_path(self) -> str:
        """The absolute path; bytes that are not UTF-8 are surrogates."""
        return os.fsdecode(self.path_bytes) if self.path_bytes else self.path


class BackupParams(Params, frozen=True, kw_only=True):
    """Parameters of "backup"."""

    target: str
    """Absolute path of the backup folder."""
    keep: Annotated[int, Meta(ge=1)] | None = None
    """How many snapshots to keep; None keeps all."""
    staged: bool = False
    """Ignore `target`: make one snapshot in anchord's own folder for temporary files, which the
    client copies to where only it may write, and then deletes."""


class IndexAnswer(Message, frozen=True, kw_only=True):
    """Answer of "index", "reindex" and "rebuild": what was done, and what the index holds now."""

    files: int
    chunks: int
    embedded: int
    """Texts that the model embedded."""
    reused: int
    """Rows whose vector existed already."""
    upserted: int
    """Rows written."""
    deleted: int
    """Rows deleted."""
    actions: dict[str, int]
    """Files by what was done with them."""
    away: tuple[str, ...]
    """Sentences about roots that were not indexed completely."""
    problems: tuple[Failure, ...]


class SyncAnswer(Message, frozen=True, kw_only=True):
    """Answer of "sync" and "rescan"."""

    synced: bool
    waited_s: float
    away: tuple[str, ...]
    """Roots whose folder cannot be walked."""
    held: dict[str, int]
    """Root -> files whose deletion waits for a confirmation."""


class ConfirmedDeletion(Message, frozen=True, kw_only=True):
    """Answer of "confirm-delete"."""

    name: str
    let_go: int
    """Files whose deletion was held, and is confirmed now. Conversations stay, as configured."""


class DifferenceAnswer(Message, frozen=True, kw_only=True):
    """Something in which the index and a clean rebuild differ."""

    kind: str
    root: str
    path: str
    chunk_id: str
    """Id of a row; the path of an exchange for what differs in the archive."""


class VerifyAnswer(Message, frozen=True, kw_only=True):
    """Answer of "verify"."""

    ok: bool
    files: int
    exchanges: int
    transcripts: int
    """Transcript files that were read."""
    chunks: int
    vectors_checked: int
    without_vector: int = 0
    """Chunks that only words find so far."""
    differences: tuple[DifferenceAnswer, ...]
    """The first 1,000."""
    differences_total: int
    held: dict[str, int]
    """Root -> files that are gone, excluded or unreadable, and still in the index."""
    unread_rules: dict[str, int]
    """Root -> ignore files that cannot be read."""
    changing: tuple[str, ...]
    """Files that changed while they were compared."""


class ForgetAnswer(Message, frozen=True, kw_only=True):
    """Answer of "forget". Which fields have values depends on what was asked."""

    path: str
    """Absolute."""
    root: str | None = None
    """With `undo`, the root of the path."""
    files: int = 0
    rows: int = 0
    exchanges: int = 0
    only_here: int = 0
    """With `preview`, how many of the exchanges are in no transcript file that exists."""
    disk_files_removed: int = 0
    """Files of the table that held the rows; -1 for a remote table, which cannot be listed."""
    damaged_folder: str = ""
    """Where damaged copies are that may hold the text; "" if there are none."""
    also_in: tuple[str, ...] = ()
    """Other transcript files that contain some of the exchanges."""


class BackupAnswer(Message, frozen=True, kw_only=True):
    """Answer of "backup"."""

    snapshot: str
    """Absolute path of the snapshot."""
    files: int
    bytes: int
    copied_files: int
    copied_bytes: int
    deleted: tuple[str, ...]
    """Older snapshots that were deleted."""
    remote_table: str
    """The uri of a table that is not on this machine, and so not in the snapshot; "" if none."""
    folder_id: tuple[int, ...] | None = None
    """Device and inode of the snapshot: a client may see another folder at its path."""
    warning: str = ""
    """What failed when the snapshot was complete; "" if nothing."""
