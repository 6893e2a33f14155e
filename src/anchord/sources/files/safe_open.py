"""Opens files below a root so that no symbolic link leads out of it.

Paths are opened one component at a time from the root's own descriptor with O_NOFOLLOW, which the
root's folder is opened with too. If a folder
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

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BUFFER_BYTES = 1 << 20
DeviceAndInode = tuple[int, int]


class TopFolderError(OSError):
    """The top folder itself is away, is a symbolic link, or is another folder than expected."""


@contextmanager
def open_parent(
    top_folder: str, path: str, expected: DeviceAndInode | None = None
) -> Iterator[tuple[int, str]]:
    """Open the folder that a path is in, without following symbolic links.

    Args:
        top_folder: Absolute path; only the folders above it may be symbolic links.
        path: Path relative to it, with "/". Its last component need not exist.
        expected: Device and inode that the top folder must have; None for any.

    Yields:
        The folder's descriptor, and the path's last component. The descriptor is closed at the end
        of the `with` block.

    Raises:
        TopFolderError: The top folder does not exist, is no folder, or is not the expected one.
        OSError: A folder below it does not exist, is no folder, or is a symbolic link.
    """
    *folders, name = path.split("/")
    descriptor = _open_top(top_folder, expected)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor, name
    finally:
        os.close(descriptor)


def _open_top(folder: str, expected: DeviceAndInode | None) -> int:
    try:
        descriptor = os.open(folder, _FOLDER_FLAGS)
    except OSError as error:
        raise TopFolderError(error.errno, error.strerror) from error
    status = os.fstat(descriptor)
    if expected is None or (status.st_dev, status.st_ino) == expected:
        return descriptor
    os.close(descriptor)
    raise TopFolderError(errno.ENOENT, "another folder is in its place")


@contextmanager
def open_descriptor(
    top_folder: str, path: str, expected: DeviceAndInode | None = None
) -> Iterator[int]:
    """Open a file of any type for reading; its descriptor is closed at the end of the block.

    Args:
        top_folder: Absolute path.
        path: Path relative to it, with "/".
        expected: As for `open_parent`.

    Raises:
        OSError: It does not exist, or is or lies behind a symbolic link.
    """
    descriptor = _open_file(top_folder, path, expected)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_stream(top_folder: str, path: str, expected: DeviceAndInode | None = None) -> BinaryIO:
    """Open a regular file as a stream. The caller closes it.

    Args:
        top_folder: Absolute path.
        path: Path relative to it, with "/".
        expected: As for `open_parent`.

    Raises:
        OSError: It does not exist, is no regular file, or is or lies behind a symbolic link.
    """
    descriptor = _open_file(top_folder, path, expected)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb", buffering=_BUFFER_BYTES)


def _open_file(top_folder: str, path: str, expected: DeviceAndInode | None) -> int:
    with open_parent(top_folder, path, expected) as (folder, name):
        return os.open(name, _FILE_FLAGS, dir_fd=folder)
