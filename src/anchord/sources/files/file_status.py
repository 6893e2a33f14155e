"""What a stat result or an error says of a path: a fingerprint, nothing to index, or a problem."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from anchord.core.types import Absent, Fingerprint, Problem

LINK_LOOP = Problem("symbolic link to a folder above it: not followed")
_TYPES = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_ABSENT_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_EARLIEST_NS, _LATEST_NS = -(2**63), 2**63 - 1
"""A file can have any time that its user sets; catalog and archive hold 64 bits of nanoseconds."""
_new_tuple = tuple.__new__
"""Makes a named tuple without a Python call: a walk makes one for every file."""


def fingerprint_of(status: os.stat_result) -> Fingerprint:
    """Return the fingerprint of a file. A time after the year 2262 counts as the end of it."""
    modified_ns = status.st_mtime_ns
    if not _EARLIEST_NS <= modified_ns <= _LATEST_NS:
        modified_ns = max(_EARLIEST_NS, min(modified_ns, _LATEST_NS))
    return _new_tuple(
        Fingerprint,
        (status.st_size, modified_ns, status.st_ctime_ns, status.st_ino, status.st_dev),
    )


def fingerprint_with_wal(fingerprint: Fingerprint, wal: os.stat_result) -> Fingerprint:
    """Combine a SQLite database's fingerprint with its write-ahead log: new rows are there."""
    return Fingerprint(
        size=fingerprint.size + wal.st_size,
        mtime_ns=max(fingerprint.mtime_ns, fingerprint_of(wal).mtime_ns),
        ctime_ns=max(fingerprint.ctime_ns, wal.st_ctime_ns),
        inode=fingerprint.inode,
        device=fingerprint.device,
    )


def classify(status: os.stat_result, absolute_path: str) -> Fingerprint | Absent | Problem:
    """Return a regular file's fingerprint, or why there is none.

    Args:
        status: From a stat that does not follow symbolic links.
        absolute_path: The same path; the target of a symbolic link is looked at.

    Returns:
        The fingerprint of a regular file; Absent for a folder and for a symbolic link that leads
        somewhere; else a problem.
    """
    file_type = stat.S_IFMT(status.st_mode)
    if file_type == stat.S_IFREG:
        return fingerprint_of(status)
    if file_type == stat.S_IFDIR:
        return Absent("a folder")
    if file_type == stat.S_IFLNK:
        return _classify_link(absolute_path)
    return Problem(f"{_TYPES.get(file_type, 'not a regular file')}: not indexed")


def _classify_link(absolute_path: str) -> Absent | Problem:
    if leads_to_own_ancestor(absolute_path):
        return LINK_LOOP
    try:
        Path(absolute_path).stat()
    except OSError as error:
        target = "in a loop" if error.errno == errno.ELOOP else "to nothing"
        return Problem(f"symbolic link {target}: not indexed")
    return Absent("a symbolic link: not followed; its target is indexed at its own path")


def leads_to_own_ancestor(link: str) -> bool:
    """Return whether a symbolic link leads to a folder that contains it."""
    folder = os.path.realpath(os.path.dirname(link)) + "/"
    target = os.path.realpath(link).rstrip("/") + "/"
    return folder.startswith(target)


def outcome_of_error(error: OSError) -> Absent | Problem:
    """Translate an operating system error at a path; never raises.

    Returns:
        Absent if the error means that nothing is at the path; else a Problem with the system's
        message.
    """
    if error.errno in _ABSENT_ERRORS:
        return Absent()
    reason = os.strerror(error.errno).lower() if error.errno else "cannot be read"
    return Problem(f"{reason}: not indexed")
