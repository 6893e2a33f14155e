"""What each result code of SQLite is told as: its class, its sentence and what to do."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from anchord.core.sqlite_connection import open_sqlite
from anchord.core.sqlite_errors import (
    DAMAGED_HINT,
    PRIMARY_CODE_MASK,
    RESULT_CODES,
    damaged_error,
    store_error,
)
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError

REPORT = "this is an error in anchord: please report it with this message"
REPAIR = "run `anchord verify --repair`"
SAVE = "`anchord restart` sets a copy aside and saves what is readable"
NOTHING_CHANGED = "nothing was changed; then try again"
OWNER = "check its owner and permissions; then try again"
REFUSED = (StoreError, "SQLite refused an operation on F", REPORT)
DAMAGED = (StoreDamagedError, "F is damaged", SAVE)

SAYINGS: dict[str, tuple[type[StoreError], str, str]] = {
    "ERROR": REFUSED,
    "INTERNAL": REFUSED,
    "PERM": (StoreUnavailableError, "there is no permission to use F", OWNER),
    "ABORT": (StoreUnavailableError, "an operation on F was aborted", NOTHING_CHANGED),
    "BUSY": (
        StoreUnavailableError,
        "another program has locked F",
        "close programs that have it open, such as a database viewer or a backup; then try again",
    ),
    "LOCKED": (StoreUnavailableError, "another connection has locked F", NOTHING_CHANGED),
    "NOMEM": (
        StoreUnavailableError,
        "there is not enough memory to use F",
        "close other programs; then try again",
    ),
    "READONLY": (
        StoreUnavailableError,
        "F cannot be written: it is read-only",
        "check its permissions and its file system; then try again",
    ),
    "INTERRUPT": (StoreUnavailableError, "an operation on F was interrupted", NOTHING_CHANGED),
    "IOERR": (
        StoreUnavailableError,
        "the disk failed to read or write F",
        "check the disk and the kernel's log; then try again",
    ),
    "CORRUPT": DAMAGED,
    "NOTFOUND": REFUSED,
    "FULL": (StoreUnavailableError, "the disk of F is full", "free some space; then try again"),
    "CANTOPEN": (
        StoreUnavailableError,
        "F cannot be opened",
        "check that it exists, is a file and may be read and written; then try again",
    ),
    "PROTOCOL": (
        StoreUnavailableError,
        "F cannot be locked",
        "check that its file system supports locks; then try again",
    ),
    "EMPTY": REFUSED,
    "SCHEMA": (
        StoreUnavailableError,
        "another program changed the tables of F",
        "close that program; then try again",
    ),
    "TOOBIG": (StoreError, "a value is too large for F", REPORT),
    "CONSTRAINT": (StoreError, "a record contradicts others in F", REPAIR),
    "MISMATCH": (StoreError, "a record of F has a wrong type", REPAIR),
    "MISUSE": REFUSED,
    "NOLFS": (StoreError, "F is too large for its file system", "move it to another file system"),
    "AUTH": (StoreUnavailableError, "access to F was denied", OWNER),
    "FORMAT": REFUSED,
    "RANGE": REFUSED,
    "NOTADB": DAMAGED,
    "NOTICE": REFUSED,
    "WARNING": REFUSED,
}
"""Name of a code -> class, sentence and hint, for a file named F."""


@pytest.mark.parametrize("name", SAYINGS)
@pytest.mark.parametrize("extension", [0, 1, 7, 255])
def test_a_result_code_is_told_as_what_it_means(name: str, extension: int) -> None:
    """An extended code means what its primary code means."""
    kind, message, hint = SAYINGS[name]
    code = getattr(sqlite3, f"SQLITE_{name}") | extension << 8
    error = store_error("F", code, "what SQLite says")
    assert type(error) is kind
    assert (error.message, error.hint) == (f"{message} (what SQLite says)", hint)


def test_the_table_has_just_the_codes_that_are_errors() -> None:
    assert set(RESULT_CODES) == {getattr(sqlite3, f"SQLITE_{name}") for name in SAYINGS}
    assert PRIMARY_CODE_MASK == 0xFF


@pytest.mark.parametrize("code", [0, 29, 100, 101, 1 << 8, 29 | 1 << 8])
def test_a_code_that_is_no_error_of_sqlite_is_an_error_of_anchord(code: int) -> None:
    error = store_error("F", code, "unheard of")
    assert type(error) is StoreError
    assert error.message == "SQLite refused an operation on F (unheard of)"
    assert error.hint == REPORT


def test_damage_that_anchord_finds_itself_is_told_as_that_which_sqlite_finds() -> None:
    error = damaged_error("F", "a page is missing")
    assert type(error) is StoreDamagedError
    assert (error.message, error.hint) == ("F is damaged (a page is missing)", DAMAGED_HINT)


def test_a_text_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    with closing(open_sqlite(tmp_path / "a.sqlite", read_only=False)) as db:
        db.execute("CREATE TABLE t (a TEXT)")
        db.execute("INSERT INTO t VALUES (CAST(x'41ff42' AS TEXT))")
        with pytest.raises(StoreDamagedError, match=r"is damaged \(a text is not UTF-8\)"):
            db.execute("SELECT a FROM t").fetchone()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_named_pipe_is_refused_and_not_waited_for(
    tmp_path: Path,
    read_only: bool,  # noqa: FBT001 - a column of the table
) -> None:
    os.mkfifo(tmp_path / "a.sqlite")
    with pytest.raises(StoreUnavailableError, match="is not a file"):
        open_sqlite(tmp_path / "a.sqlite", read_only=read_only)
