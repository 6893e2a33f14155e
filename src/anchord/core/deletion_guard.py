"""Detection of mass deletions, and of files that only moved.

An unmounted disk, a folder emptied by mistake and a sync client that lost its account all look
like the deletion of every file. So when more than half of a root's files disappear at once, their
rows are kept until a user confirms the deletion or the files are back.

A file counts as moved, not as deleted, when a new path has its inode, size and time of writing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from anchord.core.types import NO_FINGERPRINT, FileRecord, Fingerprint, RootedPath, WalkResult

MIN_FILES_TO_HOLD = 50
"""Fewer missing files never need a confirmation while the root is on the same device."""


@dataclass(frozen=True, slots=True)
class DeletionPolicy:
    """Which deletions of a root need no confirmation in this run."""

    all_confirmed: bool = False
    """True when the user confirmed the deletion: nothing is held."""
    released: Collection[RootedPath] = ()
    """Files whose deletion an earlier run already let pass."""
    recent_count: int = 0
    """Number of files that disappeared a moment ago; they count together with those missing now."""


def find_moves(
    missing_files: Mapping[str, Fingerprint], new_files: Mapping[str, Fingerprint]
) -> dict[str, str]:
    """Match new files with missing ones that have the same device, inode, size and mtime.

    Args:
        missing_files: Last known fingerprint of each missing file, by path in the root.
        new_files: Fingerprint of each new file, by path in the root.

    Returns:
        New path -> old path. Each old path is used once, also where hard links share an inode.
    """
    old_paths: dict[tuple[int, int, int, int], list[str]] = {}
    for path, fingerprint in missing_files.items():
        old_paths.setdefault(_identity(fingerprint), []).append(path)
    moves: dict[str, str] = {}
    for path, fingerprint in new_files.items():
        candidates = old_paths.get(_identity(fingerprint))
        if candidates and fingerprint.inode:  # Inode 0: the file system has no inodes.
            moves[path] = candidates.pop(0)
    return moves


def recent_deletions_meta_key(root: str) -> str:
    """Return the catalog's meta key for a root's `DeletionPolicy.recent_count`.

    The count is stored while the root's deletions wait for confirmation, and is "" otherwise.
    """
    return f"left before the hold of {root}"


def is_mass_deletion(
    missing_files: Mapping[str, Fingerprint],
    records: Mapping[str, FileRecord],
    walk: WalkResult,
    recent_count: int = 0,
) -> bool:
    """Whether so many files are missing that a user must confirm their deletion.

    That is so when `should_hold_deletions` says so for the whole root, or for the files of any
    single device: a root can span several, and one of them may be unmounted.

    Args:
        missing_files: Last known fingerprint of each missing file, by path in the root.
        records: Every known file of the root, by path.
        walk: The walk of the whole root that did not find the missing files.
        recent_count: Files that disappeared a moment ago and are no longer in `records`.
    """
    if not missing_files:
        return False
    # Files that were never read have NO_FINGERPRINT: nobody knows their device.
    seen_devices = {NO_FINGERPRINT.device, walk.top_device}
    seen_devices.update(found.fingerprint.device for found in walk.files)
    missing_by_device = Counter(fingerprint.device for fingerprint in missing_files.values())
    known_by_device = Counter(record.fingerprint.device for record in records.values())
    for device, missing_count in missing_by_device.items():
        known_count = known_by_device[device]
        if should_hold_deletions(missing_count, known_count, same_device=device in seen_devices):
            return True
    return should_hold_deletions(
        len(missing_files) + recent_count, len(records) + recent_count, same_device=True
    )


def find_missing_files(
    walk: WalkResult, records: Mapping[str, FileRecord]
) -> dict[str, Fingerprint]:
    """Return the known files that a walk should have seen and did not.

    Files below a folder that could not be listed are not missing, but unknown.

    Args:
        walk: A walk of the folder that `records` covers.
        records: Known files by path in the root.

    Returns:
        Last known fingerprints by path, sorted by path.
    """
    seen_paths = {found.path for found in walk.files}
    seen_paths.update(path for path, _ in walk.file_problems)
    unknown_prefixes = tuple(f"{folder}/" for folder in walk.unreadable_folders)
    unseen_paths = sorted(path for path in records if path not in seen_paths)
    return {
        path: records[path].fingerprint
        for path in unseen_paths
        if not path.startswith(unknown_prefixes)
    }


def should_hold_deletions(missing_count: int, known_count: int, *, same_device: bool) -> bool:
    """Whether deletions need a confirmation.

    They do when more than half of the known files are missing, and at least `MIN_FILES_TO_HOLD`
    files are; on a device that has disappeared a single missing file is enough.

    Args:
        missing_count: Number of missing files.
        known_count: Number of files that were known before, the missing ones included.
        same_device: False when the walk saw nothing on the device of the missing files.
    """
    min_count = MIN_FILES_TO_HOLD if same_device else 1
    return missing_count >= min_count and 2 * missing_count > known_count


def _identity(fingerprint: Fingerprint) -> tuple[int, int, int, int]:
    """Return what a rename preserves. It changes the ctime, so that is left out."""
    return fingerprint.device, fingerprint.inode, fingerprint.size, fingerprint.mtime_ns
