"""Copying a file with its digest, to disk for good: private modes, no symbolic links, flushed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

OnBytes = Callable[[int], None]
"""Called with the number of bytes that were just read or written. May raise, to cancel."""

_BLOCK_BYTES = 1 << 20
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_file(source: Path, destination: Path, on_bytes: OnBytes) -> tuple[int, str]:
    """Copy a regular file into a new one with mode 0600 and the same modification time; flush it.

    Args:
        source: The file; a symbolic link is refused.
        destination: Must not exist; its folder must.
        on_bytes: Called for each block.

    Returns:
        Its size in bytes and its SHA-256.

    Raises:
        OSError: A file cannot be read or written.
    """
    digest, size = hashlib.sha256(), 0
    read_fd = _open_regular(source)
    try:
        write_fd = os.open(destination, _CREATE_FLAGS, 0o600)
        try:
            while block := os.read(read_fd, _BLOCK_BYTES):
                digest.update(block)
                _write_all(write_fd, block)
                size += len(block)
                on_bytes(len(block))
            modified_ns = os.fstat(read_fd).st_mtime_ns
            os.utime(write_fd, ns=(modified_ns, modified_ns))
            os.fsync(write_fd)
        finally:
            os.close(write_fd)
    finally:
        os.close(read_fd)
    return size, digest.hexdigest()


def write_file(destination: Path, content: bytes) -> str:
    """Write a new file with mode 0600, flush it, and return its SHA-256.

    Raises:
        OSError: The file exists, or cannot be written.
    """
    write_fd = os.open(destination, _CREATE_FLAGS, 0o600)
    try:
        _write_all(write_fd, content)
        os.fsync(write_fd)
    finally:
        os.close(write_fd)
    return hashlib.sha256(content).hexdigest()


def hash_file(file: Path, on_bytes: OnBytes) -> tuple[int, str]:
    """Read a regular file and return its size in bytes and its SHA-256.

    Raises:
        OSError: It is missing, not a regular file, or cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    read_fd = _open_regular(file)
    try:
        while block := os.read(read_fd, _BLOCK_BYTES):
            digest.update(block)
            size += len(block)
            on_bytes(len(block))
    finally:
        os.close(read_fd)
    return size, digest.hexdigest()


def replace_file(file: Path, content: bytes) -> None:
    """Replace a file as a whole; after a crash it holds the old content or the new one.

    Raises:
        OSError: The file cannot be written.
    """
    new_file = file.with_name(f"{file.name}.tmp")
    new_file.unlink(missing_ok=True)
    write_file(new_file, content)
    new_file.replace(file)
    flush(file.parent)


def flush(path: Path) -> None:
    """Flush a file or folder to the disk.

    Raises:
        OSError: It cannot be opened or flushed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folders(top: Path) -> None:
    """Flush a folder and all folders below it.

    Raises:
        OSError: A folder cannot be opened or flushed.
    """
    for folder, _, _ in os.walk(top):
        flush(Path(folder))


def _open_regular(file: Path) -> int:
    descriptor = os.open(file, _READ_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{file} is not a regular file")
    return descriptor


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
