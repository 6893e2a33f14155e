"""Copying a snapshot back, with every byte compared with the manifest."""

from __future__ import annotations

import errno
from pathlib import Path

from anchord.errors import StoreDamagedError, UsageError
from anchord.store.backup.copying import copy_file, flush_folders
from anchord.store.backup.manifest import MANIFEST_NAME, Manifest, list_snapshots
from anchord.store.backup.pin import TABLE_NAME
from anchord.store.backup.snapshot import OnProgress


def find_snapshot(source: Path) -> Path:
    """Return the newest snapshot of a backup folder, or the folder itself if it is a snapshot.

    Raises:
        UsageError: There is no backup there.
        OSError: The folder cannot be listed.
    """
    if (source / MANIFEST_NAME).is_file():
        return source
    snapshots = list_snapshots(source) if source.is_dir() else []
    if not snapshots:
        raise UsageError(
            f"{source} holds no backup of anchord", "give the folder that `anchord backup` wrote"
        )
    return snapshots[-1]


def copy_snapshot(
    snapshot: Path, manifest: Manifest, destination: Path, on_progress: OnProgress
) -> list[str]:
    """Copy the files of a snapshot into an empty folder, and flush them.

    Damaged files of the table are left out: the next start repairs the table, as after a loss.

    Args:
        snapshot: Its folder.
        manifest: Its manifest.
        destination: Where the files go, under their paths in the snapshot.
        on_progress: Called about once per megabyte.

    Returns:
        The paths of the table's files that were left out.

    Raises:
        StoreDamagedError: A file of the snapshot outside the table is missing or damaged.
        OSError: A file cannot be written.
    """
    done = 0

    def on_bytes(count: int) -> None:
        nonlocal done
        done += count
        on_progress(done, manifest.total_bytes)

    damaged_table_files: list[str] = []
    for entry in manifest.files:
        copy = destination / entry.path
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            copied = copy_file(snapshot / entry.path, copy, on_bytes)
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ELOOP}:
                raise
            copied = (-1, "")
        if copied == (entry.size, entry.sha256):
            continue
        if not Path(entry.path).is_relative_to(TABLE_NAME):
            raise StoreDamagedError(
                f"{snapshot / entry.path} is missing or damaged",
                "`anchord backup --check` lists all damage; restore another snapshot",
            )
        copy.unlink(missing_ok=True)
        damaged_table_files.append(entry.path)
    flush_folders(destination)
    return damaged_table_files
