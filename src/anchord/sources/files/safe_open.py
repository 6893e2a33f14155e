"""Opens files below a root so that no symbolic link leads out of it.

Paths are opened one component at a time from the root's own descriptor with O_NOFOLLOW. If a folder
is replaced by a symbolic link between a look and the open, the open fails instead of following it.
O_NONBLOCK makes opening a named pipe return at once.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BUFFER_BYTES = 1 << 20


@contextmanager
def open_parent(top_folder: str, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder that a path is in, without following symbolic links below the top folder.

    Args:
        top_folder: Absolute path.
        path: Path relative to it, with "/". Its last component need not exist.

    Yields:
        The folder's descriptor, and the path's last component. The descriptor is closed at the end
        of the `with` block.

    Raises:
        OSError: A folder on the way does not exist, is no folder, or is a symbolic link.
    """
    *folders, name = path.split("/")
    descriptor = os.open(top_folder, _FOLDER_FLAGS)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor, name
    finally:
        os.close(descriptor)


@contextmanager
def open_descriptor(top_folder: str, path: str) -> Iterator[int]:
    """Open a file of any type for reading; its descriptor is closed at the end of the block.

    Args:
        top_folder: Absolute path.
        path: Path relative to it, with "/".

    Raises:
        OSError: It does not exist, or is or lies behind a symbolic link.
    """
    descriptor = _open_file(top_folder, path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_stream(top_folder: str, path: str) -> BinaryIO:
    """Open a regular file as a stream. The caller closes it.

    Args:
        top_folder: Absolute path.
        path: Path relative to it, with "/".

    Raises:
        OSError: It does not exist, is no regular file, or is or lies behind a symbolic link.
    """
    descriptor = _open_file(top_folder, path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb", buffering=_BUFFER_BYTES)


def _open_file(top_folder: str, path: str) -> int:
    with open_parent(top_folder, path) as (folder, name):
        return os.open(name, _FILE_FLAGS, dir_fd=folder)
