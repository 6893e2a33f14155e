"""What is planned for a file: nothing, another fingerprint, other rows, or to ingest it first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anchord.core.types import (
    Absent,
    ChunkDiff,
    FileOutcome,
    FileRecord,
    FileUpdate,
    Fingerprint,
    Problem,
    RootedPath,
)


@dataclass(frozen=True, slots=True)
class FingerprintRefresh:
    """A file whose content is as indexed: only its fingerprint in the catalog must change."""

    outcome: FileOutcome
    fingerprint: Fingerprint
    read_ns: int
    """Wall-clock time before the file was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestNeeded:
    """A changed or missing transcript file: its exchanges must be ingested first."""

    observed: Fingerprint | Absent | Problem
    record: FileRecord | None
    reason: str
    read_ns: int
    """Wall-clock time before the file is read."""
    may_remove_rows: bool
    is_excluded: bool
    """Whether the rules exclude the path now, also that of a deleted file: its exchanges leave the
    index."""


FilePlan: TypeAlias = FileOutcome | FingerprintRefresh | FileUpdate
"""Done already (an outcome), or work for the next commit."""


def plan_row_removal(
    path: RootedPath, row_ids: Sequence[str], reason: str, new_record: FileRecord | None = None
) -> FileUpdate:
    """Return an update that deletes rows of a file and writes none.

    Args:
        path: The file.
        row_ids: The ids of the rows to delete.
        reason: Why, in words for the log.
        new_record: What the catalog is to hold of the file; None removes it from the catalog.
    """
    diff = ChunkDiff(
        added=(),
        changed=(),
        removed=tuple(row_ids),
        shifted=0,
        kept=0,
    )
    return FileUpdate(
        origin=path, new_record=new_record, diff=diff, texts_to_embed=(), reason=reason
    )
