"""What the index modules return, as the messages that answer requests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from anchord.core.quoting import escape_non_utf8
from anchord.core.types import FileFailure, FileOutcome, Problem, Root, RootedPath, RootRemoval
from anchord.index.integrity.purge import PurgePreview, PurgeResult
from anchord.index.integrity.verify import VerifyResult
from anchord.index.metrics import WorkCounters
from anchord.ipc.messages.roots import RemovedRoot, RootAnswer
from anchord.ipc.messages.status import Failure, RecentChange
from anchord.ipc.messages.upkeep import (
    BackupAnswer,
    DifferenceAnswer,
    ForgetAnswer,
    IndexAnswer,
    VerifyAnswer,
)
from anchord.store.backup.snapshot import SnapshotResult
from anchord.store.catalog.catalog import SqliteCatalog

_MAX_LISTED_DIFFERENCES = 1_000
_CHANGING = Problem("it kept changing while it was read: not indexed")


def failures_of(
    catalog: SqliteCatalog,
    root_path_by_name: Mapping[str, str],
    changing_since_ns: Mapping[RootedPath, int] = MappingProxyType({}),
) -> list[Failure]:
    """Return the files that are not indexed completely, with the reason and since when.

    Args:
        catalog: Lists the failures.
        root_path_by_name: Root name -> absolute path.
        changing_since_ns: Files that change each time they are read, and since when.
    """
    failures = [
        FileFailure(origin, _CHANGING, since_ns) for origin, since_ns in changing_since_ns.items()
    ]
    return [
        failure_message(
            root_path_by_name.get(failure.origin.root, ""),
            failure.origin.path,
            failure.problem,
            failure.since_ns,
        )
        for failure in (*catalog.list_failures(), *failures)
    ]


def failure_message(root_path: str, path: str, problem: Problem, since_ns: int) -> Failure:
    """Return a failure as a message.

    Args:
        root_path: The root's absolute path.
        path: The file, relative to the root.
        problem: What is wrong with it.
        since_ns: Since when; nanoseconds of the wall clock.
    """
    return Failure(
        path=escape_non_utf8(os.path.join(root_path, path)),
        reason=problem.reason,
        partial=problem.is_partial,
        since=datetime.fromtimestamp(since_ns // 1_000_000_000, UTC).isoformat(),
    )


def index_answer(
    counters: WorkCounters,
    counts_by_root: Mapping[str, tuple[int, int]],
    row_count: int,
    warnings: Iterable[str],
    problems: Iterable[Failure],
) -> IndexAnswer:
    """Return what one run of indexing did, and what the index holds now.

    Args:
        counters: What was done.
        counts_by_root: Root name -> (files, chunks).
        row_count: Rows of the table.
        warnings: Sentences about roots that were not indexed completely.
        problems: The files that are not indexed completely.
    """
    return IndexAnswer(
        files=sum(files for files, _ in counts_by_root.values()),
        chunks=row_count,
        embedded=counters.embedded,
        reused=counters.reused,
        upserted=counters.upserted,
        deleted=counters.deleted,
        actions=dict(counters.actions),
        away=tuple(warnings),
        problems=tuple(problems),
    )


def root_answers(
    roots: Sequence[Root], counts_by_root: Mapping[str, tuple[int, int]]
) -> tuple[RootAnswer, ...]:
    """Return roots as messages.

    Args:
        roots: The roots, in the order of the answer.
        counts_by_root: Name of a root -> (files, chunks); a missing root has none.
    """
    return tuple(_root_answer(root, *counts_by_root.get(root.name, (0, 0))) for root in roots)


def _root_answer(root: Root, file_count: int, chunk_count: int) -> RootAnswer:
    return RootAnswer(
        name=root.name,
        path=escape_non_utf8(root.path),
        kind=root.kind,
        origin="configuration" if root.is_configured else "command line",
        files=file_count,
        chunks=chunk_count,
    )


def removed_root(name: str, removal: RootRemoval) -> RemovedRoot:
    """Return what the removal of a root deleted and kept."""
    return RemovedRoot(
        name=name, removed_chunks=removal.row_count, detached_exchanges=removal.exchange_count
    )


def verify_answer(result: VerifyResult) -> VerifyAnswer:
    """Return a verification as a message; it lists at most the first 1,000 differences."""
    return VerifyAnswer(
        ok=not (
            result.differences or result.kept_files or result.unread_rules or result.without_vector
        ),
        files=result.file_count,
        exchanges=result.exchange_count,
        transcripts=result.transcript_count,
        chunks=result.chunk_count,
        vectors_checked=result.vectors_checked,
        without_vector=result.without_vector,
        differences=tuple(
            DifferenceAnswer(
                kind=str(each.kind),
                root=each.origin.root,
                path=escape_non_utf8(each.origin.path),
                chunk_id=each.chunk_id,
            )
            for each in result.differences[:_MAX_LISTED_DIFFERENCES]
        ),
        differences_total=len(result.differences),
        held=dict(result.kept_files),
        unread_rules=dict(result.unread_rules),
        changing=tuple(str(path) for path in result.changing_files),
    )


def forget_answer(result: PurgeResult) -> ForgetAnswer:
    """Return what `forget` deleted."""
    return ForgetAnswer(
        path=escape_non_utf8(result.path),
        files=result.file_count,
        rows=result.row_count,
        exchanges=result.exchange_count,
        disk_files_removed=result.disk_files_removed,
        damaged_folder=escape_non_utf8(result.damaged_folder),
        also_in=tuple(escape_non_utf8(origin.path) for origin in result.files_to_reread),
    )


def forget_preview(preview: PurgePreview) -> ForgetAnswer:
    """Return what `forget` would delete."""
    return ForgetAnswer(
        path=escape_non_utf8(preview.path),
        files=preview.file_count,
        exchanges=preview.exchange_count,
        only_here=preview.only_here,
    )


def backup_answer(result: SnapshotResult, folder_id: Sequence[int] | None = None) -> BackupAnswer:
    """Return what a backup copied.

    Args:
        result: What it did.
        folder_id: Device and inode of the snapshot, for a client that may see another folder there.
    """
    return BackupAnswer(
        snapshot=escape_non_utf8(str(result.folder)),
        files=result.file_count,
        bytes=result.total_bytes,
        copied_files=result.copied_count,
        copied_bytes=result.copied_bytes,
        deleted=tuple(result.deleted_snapshots),
        remote_table=result.remote_table,
        folder_id=None if folder_id is None else tuple(folder_id),
        warning=escape_non_utf8(result.warning),
    )


def recent_change(outcome: FileOutcome, age_s: float) -> RecentChange:
    """Return what was done with a file, for `status`.

    Args:
        outcome: What was done.
        age_s: How many seconds ago.
    """
    return RecentChange(
        root=outcome.origin.root,
        path=escape_non_utf8(outcome.origin.path),
        action=str(outcome.action),
        reason=escape_non_utf8(outcome.reason),
        kept=outcome.kept,
        moved=outcome.shifted,
        embedded=outcome.embedded,
        reused=outcome.reused,
        deleted=outcome.deleted,
        age_s=round(age_s, 1),
    )
