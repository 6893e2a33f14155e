"""Free space of a disk, and bytes of a folder."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

_BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the file system's own block size."""


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of a folder, or of its nearest parent that exists.

    Raises:
        OSError: The disk cannot be read.
    """
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def folder_bytes(folder: Path) -> int:
    """Return the bytes that the files below a folder take on disk. Never raises.

    Hard links to one file count once. Files and folders that vanish meanwhile, or cannot be read,
    are left out.
    """
    sizes: dict[tuple[int, int], int] = {}
    """(device, inode) -> bytes."""
    folders = [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    sizes[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK_BYTES
    return sum(sizes.values())
