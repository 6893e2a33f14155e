"""What SQLite's result codes mean for a user: which error, its reason and what to do.

Pure: numbers in, exceptions out. Only two codes say that a file is damaged. After any other code
the file is as it was: it must not be moved or replaced.
"""

from __future__ import annotations

from typing import NamedTuple

from anchord.core.os_errors import TRY_AGAIN
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError

PRIMARY_CODE_MASK = 0xFF
"""The low byte of SQLite's extended result code is the primary code."""
_FAULT_HINT = "this is an error in anchord: please report it with this message"
_REPAIR_HINT = "run `anchord verify --repair`"


class ResultCode(NamedTuple):
    """A primary result code of SQLite."""

    error: type[StoreError]
    """StoreUnavailableError if waiting may help, StoreDamagedError if the file is damaged."""
    reason: str
    """What happened, with `{file}` for the file."""
    hint: str


def _unavailable(reason: str, hint: str) -> ResultCode:
    return ResultCode(StoreUnavailableError, reason, f"{hint}; {TRY_AGAIN}")


_BUG = ResultCode(StoreError, "SQLite refused an operation on {file}", _FAULT_HINT)
DAMAGED_HINT = "`anchord restart` sets a copy aside and saves what is readable"

RESULT_CODES: dict[int, ResultCode] = {
    1: _BUG,  # ERROR
    2: _BUG,  # INTERNAL
    3: _unavailable("there is no permission to use {file}", "check its owner and permissions"),
    4: _unavailable("an operation on {file} was aborted", "nothing was changed"),
    5: _unavailable(
        "another program has locked {file}",
        "close programs that have it open, such as a database viewer or a backup",
    ),
    6: _unavailable("another connection has locked {file}", "nothing was changed"),
    7: _unavailable("there is not enough memory to use {file}", "close other programs"),
    8: _unavailable(
        "{file} cannot be written: it is read-only", "check its permissions and its file system"
    ),
    9: _unavailable("an operation on {file} was interrupted", "nothing was changed"),
    10: _unavailable(
        "the disk failed to read or write {file}", "check the disk and the kernel's log"
    ),
    11: ResultCode(StoreDamagedError, "{file} is damaged", DAMAGED_HINT),
    12: _BUG,  # NOTFOUND
    13: _unavailable("the disk of {file} is full", "free some space"),
    14: _unavailable(
        "{file} cannot be opened", "check that it exists, is a file and may be read and written"
    ),
    15: _unavailable("{file} cannot be locked", "check that its file system supports locks"),
    16: _BUG,  # EMPTY
    17: _unavailable("another program changed the tables of {file}", "close that program"),
    18: ResultCode(StoreError, "a value is too large for {file}", _FAULT_HINT),
    19: ResultCode(StoreError, "a record contradicts others in {file}", _REPAIR_HINT),
    20: ResultCode(StoreError, "a record of {file} has a wrong type", _REPAIR_HINT),
    21: _BUG,  # MISUSE
    22: ResultCode(
        StoreError, "{file} is too large for its file system", "move it to another file system"
    ),
    23: _unavailable("access to {file} was denied", "check its owner and permissions"),
    24: _BUG,  # FORMAT
    25: _BUG,  # RANGE
    26: ResultCode(StoreDamagedError, "{file} is damaged", DAMAGED_HINT),
    27: _BUG,  # NOTICE
    28: _BUG,  # WARNING
}
"""Every primary result code that is an error, as https://sqlite.org/rescode.html lists them."""


def damaged_error(file: str, detail: str) -> StoreDamagedError:
    """Return (not raise) the error for a damaged file.

    Args:
        file: The file, for the message.
        detail: What is damaged.
    """
    return StoreDamagedError(f"{file} is damaged ({detail})", DAMAGED_HINT)


def store_error(file: str, code: int, detail: str) -> StoreError:
    """Return (not raise) the error for a failure of SQLite.

    Args:
        file: The file, for the message.
        code: SQLite's result code, primary or extended; 0 if there is none.
        detail: SQLite's own message.
    """
    known = RESULT_CODES.get(code & PRIMARY_CODE_MASK, _BUG)
    reason = known.reason.format(file=file)
    return known.error(f"{reason} ({detail})", known.hint)
