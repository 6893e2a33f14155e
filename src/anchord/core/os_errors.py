"""What the operating system's error numbers mean for a user: the reason and what to do.

Pure: numbers in, exceptions out. Each number that is listed here says something about the machine
and nothing about a file's content: the file must not be moved, dropped or replaced after it.
Other numbers, such as ENOENT, are not listed: what they mean depends on the file.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from anchord.errors import StoreUnavailableError

TRY_AGAIN = "then try again"
"""Ends the hint of an error that can pass. The daemon tries by itself, and does not show it."""


class OsReason(NamedTuple):
    """Why the operating system refused an operation."""

    reason: str
    """What happened, with `{place}` for the file or folder."""
    hint: str


_UNREACHABLE = OsReason("the server of {place} does not answer", "check the network and the server")
_DISK_FAILED = OsReason(
    "the disk failed to read or write {place}",
    "check the disk and the kernel's log; `anchord rebuild` writes a new index",
)
_DISK_GONE = OsReason("the file system of {place} is gone", "connect or mount it again")

OS_REASONS: dict[str, OsReason] = {
    "EPERM": OsReason(
        "the system does not allow an operation on {place}",
        "check its owner, its permissions and its attributes (`lsattr`)",
    ),
    "EACCES": OsReason("there is no permission to use {place}", "check its owner and permissions"),
    "EROFS": OsReason(
        "{place} cannot be written: its file system is read-only",
        "make the file system writable; the kernel's log may say why it is not",
    ),
    "ENOSPC": OsReason("the disk of {place} is full", "free some space"),
    "EDQUOT": OsReason(
        "your disk quota for {place} is used up", "free some space, or ask for a larger quota"
    ),
    "EFBIG": OsReason(
        "{place} cannot grow: a limit on the size of files is reached",
        "raise the limit (`ulimit -f`)",
    ),
    "EMFILE": OsReason(
        "anchord has too many open files to use {place}", "raise the limit (`ulimit -n`)"
    ),
    "ENFILE": OsReason(
        "all programs together have too many open files to use {place}", "close other programs"
    ),
    "ENOMEM": OsReason("there is not enough memory to use {place}", "close other programs"),
    "EIO": _DISK_FAILED,
    "EREMOTEIO": _DISK_FAILED,
    "ENXIO": _DISK_GONE,
    "ENODEV": _DISK_GONE,
    "ENOTCONN": _DISK_GONE,
    "ESTALE": OsReason("the file server no longer knows {place}", "mount its file system again"),
    "ETIMEDOUT": _UNREACHABLE,
    "EHOSTDOWN": _UNREACHABLE,
    "EHOSTUNREACH": _UNREACHABLE,
    "ENETUNREACH": _UNREACHABLE,
    "ECONNREFUSED": _UNREACHABLE,
    "EBUSY": OsReason("another program uses {place}", "close that program"),
    "EAGAIN": OsReason("the system is too busy to use {place}", "close other programs"),
    "EINTR": OsReason("an operation on {place} was interrupted", "nothing was changed"),
    "ENOLCK": OsReason("{place} cannot be locked", "check that its file system supports locks"),
}
"""Name of an error number -> what it means. Numbers differ between systems, names do not."""

_NAMES_BY_NUMBER = {getattr(errno, name): name for name in OS_REASONS if hasattr(errno, name)}


def is_unavailable(number: int | None) -> bool:
    """Whether an error number says that the file cannot be used now, and nothing more."""
    return number in _NAMES_BY_NUMBER


def unavailable_error(place: str, number: int) -> StoreUnavailableError:
    """Return (not raise) the error for a file that cannot be used now.

    Args:
        place: The file or folder, for the message.
        number: An error number for which `is_unavailable` is true.
    """
    name = _NAMES_BY_NUMBER[number]
    known = OS_REASONS[name]
    reason = known.reason.format(place=place)
    hint = f"{known.hint}; {TRY_AGAIN}"
    return StoreUnavailableError(f"{reason} ({name})", hint)


def from_os_error(
    error: OSError, place: str = "a file of the index"
) -> StoreUnavailableError | None:
    """Return the error for an OSError, None if it does not say that a file is unavailable now.

    Args:
        error: What a call of the operating system raised.
        place: Named if the error has no file name.
    """
    if not is_unavailable(error.errno):
        return None
    name = error.filename
    shown = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    return unavailable_error(str(shown or place), error.errno or 0)


@contextmanager
def os_errors_as_unavailable(place: str) -> Iterator[None]:
    """Raise StoreUnavailableError for an OSError in the block that says so; pass on all others.

    Args:
        place: Named if the error has no file name.
    """
    try:
        yield
    except OSError as error:
        known = from_os_error(error, place)
        if known is None:
            raise
        raise known from error
