"""What the errors of LanceDB and pylance mean: cannot be used now, or damaged.

Both raise RuntimeError, OSError or ValueError for nearly everything. An error of the operating
system is in the text, as `(os error 28)` or `Os { code: 28 }`. An overwritten manifest can even
make their Rust code panic; a panic of pylance is no `Exception`.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from anchord.core.os_errors import is_unavailable, unavailable_error

LANCE_ERRORS = (RuntimeError, OSError, ValueError, MemoryError)
"""What lancedb and pylance raise, once `panics_as_errors` has translated their panics."""
_PANICS = frozenset({"PanicException", "RustPanic"})
"""Class names: each extension module has a class of its own, and none can be imported."""
_OS_ERROR = re.compile(r"(?:\bos error |\bcode: )(\d+)\b")
_MAX_CHARS = 300
"""Some messages quote the whole schema."""
_SOURCE_PLACE = re.compile(r",? ?/[^ ,]*\.rs:\d+(?::\d+)?")
"""Where in their Rust code an error was raised; it tells a user nothing."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, shortened; its class name if it has none."""
    message = str(error)
    if not message:
        return type(error).__name__
    line = _SOURCE_PLACE.sub("", message.splitlines()[0]).rstrip(" ,:")
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"


def os_error_number(error: BaseException) -> int | None:
    """Return the number of the operating system's error that caused an error, None if none did."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    found = _OS_ERROR.search(str(error))
    return int(found[1]) if found else None


def raise_if_unavailable(place: str, error: BaseException) -> None:
    """Return if an error may mean damage.

    Args:
        place: What could not be used, for the message.
        error: What lancedb or pylance raised.

    Raises:
        StoreUnavailableError: It says nothing about the files: the disk is full, there is no
            permission, too many files are open, and the like. Waiting may help.
    """
    number = os_error_number(error)
    if number is not None and is_unavailable(number):
        raise unavailable_error(place, number) from error


def describe(place: str, error: BaseException) -> str:
    """Return an error in one line for people, with the reason and the remedy where they are known.

    Args:
        place: What could not be used.
        error: What lancedb or pylance raised.
    """
    number = os_error_number(error)
    if number is None or not is_unavailable(number):
        return first_line(error)
    known = unavailable_error(place, number)
    return f"{known.message}; {known.hint}"


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raise RuntimeError where Rust code panics in the block."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ in _PANICS:
            raise RuntimeError(f"Lance failed internally: {first_line(error)}") from error
        raise
