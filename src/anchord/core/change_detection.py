"""Detection of changed files: fingerprint + record + recipe -> skip, read or remove.

Work stops as early as the data allows: a file with an equal fingerprint is not read, and content
with an equal digest is not parsed.

A fingerprint is trusted only when the file was quiet for 2 s before it was read. Within the
granularity of a file system's clock a second write can leave size and times as they were. git
treats its index in the same way ("racy git").
"""

from __future__ import annotations

from anchord.core.types import (
    Absent,
    Decision,
    FileRecord,
    Fingerprint,
    PathMatch,
    Problem,
    ReadFile,
    RemoveFromIndex,
    SkipFile,
)

RACY_WINDOW_NS = 2_000_000_000
"""FAT stores times in steps of 2 s, and no file system in use has coarser ones."""

TRANSCRIPT_DIGEST = "told"
"""Stored as the content digest of a transcript file: its content is in the archive, not in rows of
its own."""
_UP_TO_DATE = SkipFile("size, times and inode are unchanged since the last read")


def decide_for_file(
    path_match: PathMatch,
    current: Fingerprint | Absent | Problem,
    record: FileRecord | None,
    recipe_digest: str,
    max_bytes: int,
) -> Decision:
    """Decide what to do with a file, without reading it.

    Args:
        path_match: Whether the rules admit the path.
        current: What the file system says about it now.
        record: What the catalog holds about it; None for an unknown file.
        recipe_digest: Digest of the present settings for its root.
        max_bytes: Size above which a file is not indexed.

    Returns:
        The decision with its reason. `RemoveFromIndex` has a problem where the file exists, is
        admitted by the rules, and cannot be indexed.
    """
    if isinstance(current, Absent):
        return _remove_if_known(record, "the file is gone" if record else current.reason)
    if not path_match.is_included:
        return _remove_if_known(record, path_match.reason)
    if isinstance(current, Problem):
        return _remove_with_problem(record, current)
    if current.size > max_bytes:
        size_and_limit = f"{current.size:,} bytes, over the limit of {max_bytes:,}"
        return _remove_with_problem(record, Problem(f"{size_and_limit}: not indexed"))
    return _compare_with_record(current, record, recipe_digest)


def is_up_to_date(current: Fingerprint, record: FileRecord, recipe_digest: str) -> bool:
    """Whether the index matches a file, judged by its fingerprint alone.

    Args:
        current: The file's present fingerprint.
        record: What the catalog holds about it.
        recipe_digest: Digest of the present settings for its root.

    Returns:
        True when the file was indexed completely, with this recipe and this fingerprint, and was
        quiet for `RACY_WINDOW_NS` before it was read.
    """
    # Every walk calls this once per file, so it makes no further call.
    trusted_before_ns = record.read_ns - RACY_WINDOW_NS
    return (
        record.fingerprint == current
        and record.is_confirmed
        and record.recipe_digest == recipe_digest
        and bool(record.content_digest)
        and current.mtime_ns < trusted_before_ns
        and current.ctime_ns < trusted_before_ns
    )


def _remove_if_known(record: FileRecord | None, reason: str) -> Decision:
    return RemoveFromIndex(reason) if record else SkipFile(reason)


def _remove_with_problem(record: FileRecord | None, problem: Problem) -> Decision:
    """Remove the rows and record the problem, unless exactly that was done before."""
    if (
        record is not None
        and record.is_confirmed
        and record.problem == problem
        and not record.content_digest
    ):
        return SkipFile(problem.reason)
    return RemoveFromIndex(problem.reason, problem)


def _compare_with_record(
    current: Fingerprint, record: FileRecord | None, recipe_digest: str
) -> Decision:
    if record is None:
        return ReadFile("new file")
    if is_up_to_date(current, record, recipe_digest):
        return _UP_TO_DATE
    return ReadFile(_reason_to_read(current, record, recipe_digest))


def _reason_to_read(current: Fingerprint, record: FileRecord, recipe_digest: str) -> str:
    """Return why a file that is not up to date must be read, for people."""
    if not record.is_confirmed:
        return "an earlier update of it was interrupted"
    if record.recipe_digest != recipe_digest:
        return "the recipe changed"
    if record.fingerprint != current:
        return _first_difference(record.fingerprint, current)
    if not record.content_digest:
        return "it could not be indexed before and can be now"
    return f"it changed within {RACY_WINDOW_NS // 1_000_000_000} s of the last read"


def _first_difference(before: Fingerprint, after: Fingerprint) -> str:
    if before.size != after.size:
        return "its size changed"
    if before.mtime_ns != after.mtime_ns:
        return "its modification time changed"
    if before.inode != after.inode:
        return "its inode changed"
    if before.ctime_ns != after.ctime_ns:
        return "its ctime changed"
    return "its device changed"
