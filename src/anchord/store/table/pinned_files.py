"""A table's files kept for a backup while the writer goes on.

Lance never changes a file once it is written, but maintenance deletes the files of old versions,
and a new generation replaces the whole table. So the table is pinned as a second folder of hard
links beside it, which takes milliseconds and no space.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from anchord.errors import StoreDamagedError
from anchord.store.table.lance_errors import raise_if_unavailable
from anchord.store.table.table import TABLE_NAME
from anchord.store.table.version_files import ManifestError, read_version_files

PINNED_NAME = "backup.lance"
"""The folder of hard links, beside the table."""


def pin_table(folder: Path) -> Path | None:
    """Hard-link all files of the table, as it is now, into a second folder.

    Only for the holder of the writer lock, between two commits. On a file system without hard links
    the files are copied instead, which takes as long as reading the table.

    Args:
        folder: The folder that holds the table.

    Returns:
        The second folder, to be deleted by `unpin_table`; None if there is no table.

    Raises:
        OSError: A file cannot be linked or copied.
    """
    table = folder / f"{TABLE_NAME}.lance"
    pinned = folder / PINNED_NAME
    unpin_table(folder)
    if not table.is_dir():
        return None
    try:
        shutil.copytree(table, pinned, copy_function=_link_or_copy)
    except shutil.Error as error:
        unpin_table(folder)
        raise OSError(str(error)) from error
    except OSError:
        unpin_table(folder)
        raise
    return pinned


def unpin_table(folder: Path) -> None:
    """Delete the second folder, also one that a killed process left. Never raises."""
    shutil.rmtree(folder / PINNED_NAME, ignore_errors=True)


def list_version_files(table: Path) -> list[str]:
    """Return the paths, relative to the table's folder, of the files of its newest version.

    Raises:
        StoreUnavailableError: There is no permission, too many files are open, and the like.
        StoreDamagedError: The newest version is damaged.
    """
    try:
        return sorted(read_version_files(table))
    except (ManifestError, OSError) as error:
        raise_if_unavailable(f"the table in {table.parent}", error)
        raise StoreDamagedError(
            f"the table cannot be read: {error}", "run `anchord verify --repair`"
        ) from error


def _link_or_copy(source: str, destination: str) -> str:
    try:
        os.link(source, destination, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, destination, follow_symlinks=False)
    return destination
