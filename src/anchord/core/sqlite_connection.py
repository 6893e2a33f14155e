"""SQLite connections that raise the store's errors, for the catalog and the archive.

Here because both `store` and `sources` use it and may not import each other.
"""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from anchord.core.os_errors import unavailable_error
from anchord.core.sqlite_errors import PRIMARY_CODE_MASK, damaged_error, store_error
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError

_LOCK_TIMEOUT_S = 30
_WAL_INDEX_BYTES = 32_768
"""SQLite's index of a write-ahead log grows by so much."""
_PAGE_BYTES = 4_096
_FILES_OF_A_DATABASE = 3
_END = object()
_NO_UTF8 = "Could not decode to UTF-8"
"""Python's own error for a text whose bytes changed; SQLite checks none."""


_Failure = (sqlite3.Error, MemoryError, UnicodeDecodeError)
"""What Python raises for SQLite's errors.

MemoryError for SQLITE_NOMEM, UnicodeDecodeError for a message that quotes a damaged schema.
"""


class CheckedCursor(sqlite3.Cursor):
    """A cursor that raises StoreError in place of SQLite's errors, also while rows are fetched."""

    # Without context managers: they double the time of a short statement.

    def execute(self, *arguments: Any) -> CheckedCursor:  # noqa: ANN401 - as sqlite3 has it
        """Run one statement."""
        try:
            return super().execute(*arguments)
        except _Failure as error:
            raise _failed(self, error) from error

    def executemany(self, *arguments: Any) -> CheckedCursor:  # noqa: ANN401 - likewise
        """Run one statement for many rows."""
        try:
            return super().executemany(*arguments)
        except _Failure as error:
            raise _failed(self, error) from error

    def fetchone(self) -> Any:  # noqa: ANN401 - likewise
        """Return the next row; None after the last."""
        try:
            return super().fetchone()
        except _Failure as error:
            raise _failed(self, error) from error

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        try:
            return super().fetchall()
        except _Failure as error:
            raise _failed(self, error) from error

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # an iterator over the same rows
        """Iterate over the remaining rows."""
        try:
            # The loop runs in C: a method of ours for each row would slow a walk down.
            yield from iter(super().__next__, _END)
        except _Failure as error:
            raise _failed(self, error) from error


class CheckedConnection(sqlite3.Connection):
    """A connection in autocommit mode whose methods raise StoreError in place of SQLite's errors.

    `backup` does not translate.
    """

    file = ""
    """The file's name, for error messages."""

    def cursor(self, *_: Any) -> CheckedCursor:  # type: ignore[override]  # noqa: ANN401 - one kind only
        """Return a new cursor."""
        try:
            return super().cursor(CheckedCursor)
        except _Failure as error:  # The connection is closed.
            raise _translated(self.file, error) from error

    def execute(self, *arguments: Any) -> CheckedCursor:  # noqa: ANN401 - likewise
        """Run one statement, as `sqlite3.Connection.execute` does."""
        return self.cursor().execute(*arguments)

    def executemany(self, *arguments: Any) -> CheckedCursor:  # noqa: ANN401 - likewise
        """Run one statement for many rows."""
        return self.cursor().executemany(*arguments)

    def executescript(self, script: str) -> sqlite3.Cursor:
        """Run statements that return no rows."""
        with translate_sqlite_errors(self.file):
            return super().executescript(script)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one write transaction: COMMIT at its end, ROLLBACK if it raises.

        BEGIN IMMEDIATE takes the write lock first. Transactions cannot be nested.

        Raises:
            StoreError: The lock is not free, or the commit failed.
        """
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        finally:
            # A transaction is still open here only if the block or COMMIT raised.
            if self.in_transaction:
                with suppress(StoreError):  # On a full disk SQLite has rolled back by itself.
                    self.execute("ROLLBACK")

    def interrupt(self) -> None:
        """Make a statement of another thread fail; does nothing on a closed connection."""
        with suppress(sqlite3.ProgrammingError):
            super().interrupt()

    def is_intact(self, *, thorough: bool = False) -> bool:
        """Read the whole file and return whether SQLite finds its pages sound.

        Args:
            thorough: Also compare the indexes with their tables, which takes longer.

        Raises:
            StoreError: It cannot be read now. Damage does not raise.
        """
        try:
            check = "integrity_check" if thorough else "quick_check"
            result = self.execute(f"PRAGMA {check}(1)").fetchone()[0]
        except StoreDamagedError:
            return False
        return bool(result == "ok")


def _failed(cursor: CheckedCursor, error: Exception) -> StoreError:
    """Close a cursor, and return the error to raise.

    The error's traceback holds the cursor, and a cursor that was not closed holds the files of a
    connection that was.
    """
    translated = _translated(_file_of(cursor), error)
    with suppress(sqlite3.Error):
        cursor.close()
    return translated


def open_sqlite(file: Path, *, read_only: bool) -> CheckedConnection:
    """Open a database; a new one is created unless `read_only`.

    Args:
        file: The database. Its path may contain any character.
        read_only: Refuse all writes. A missing file is then an error.

    Returns:
        A connection that commits each statement unless a transaction is open, and waits up to 30 s
        for the lock of another process.

    Raises:
        StoreDamagedError: The file is no database.
        StoreError: It cannot be opened.
    """
    mode = "ro" if read_only else "rwc"
    if file.exists() and not (file.is_file() or file.is_dir()):
        # SQLite waits for ever in a named pipe, and reads a device. A folder it refuses itself.
        raise StoreUnavailableError(f"{file} is not a file", "put a file in its place, or move it")
    if not read_only:
        _make_journals_writable(file)
    with translate_sqlite_errors(file):
        connection = sqlite3.connect(
            f"file:{quote_for_uri(file)}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=_LOCK_TIMEOUT_S,
            check_same_thread=False,
            factory=CheckedConnection,
        )
    connection.file = str(file)
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def _make_journals_writable(file: Path) -> None:
    """Give the journals of a database its own mode again.

    SQLite creates them with the mode of the database, and refuses to write while they have that of
    a moment in which it was read-only.
    """
    for suffix in ("-wal", "-shm"):
        journal = Path(f"{file}{suffix}")
        with suppress(OSError):
            mode = file.stat().st_mode
            if mode & stat.S_IWUSR and not journal.stat().st_mode & stat.S_IWUSR:
                journal.chmod(stat.S_IMODE(mode))


@contextmanager
def translate_sqlite_errors(file: Path | str) -> Iterator[None]:
    """Turn SQLite's errors inside the block into the store's.

    Args:
        file: The file, for the message.

    Raises:
        StoreDamagedError: The file is damaged.
        StoreUnavailableError: It cannot be used now, and waiting may help.
        StoreError: Any other failure.
    """
    try:
        yield
    except _Failure as error:
        raise _translated(str(file), error) from error


def primary_result_code(error: StoreError) -> int:
    """Return the primary result code of SQLite that an error comes from; 0 if there is none."""
    return int(getattr(error.__cause__, "sqlite_errorcode", 0)) & PRIMARY_CODE_MASK


def quote_for_uri(file: Path) -> str:
    """Escape a path for SQLite's `file:` URI."""
    return str(file).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _translated(file: str, error: Exception) -> StoreError:
    if isinstance(error, MemoryError):
        return store_error(file, sqlite3.SQLITE_NOMEM, "out of memory")
    if isinstance(error, UnicodeDecodeError):
        return damaged_error(file, "its schema is not UTF-8")
    if str(error).startswith(_NO_UTF8):
        # The text that it quotes can be of a conversation.
        return damaged_error(file, "a text is not UTF-8")
    code = getattr(error, "sqlite_errorcode", 0)
    primary_code = code & PRIMARY_CODE_MASK
    if reached_limit := _find_reached_limit(file, primary_code):
        return unavailable_error(file, reached_limit)
    if primary_code == sqlite3.SQLITE_IOERR and os.path.isdir(file):
        return store_error(file, sqlite3.SQLITE_CANTOPEN, "it is a folder")
    if primary_code == sqlite3.SQLITE_IOERR and _is_disk_full(file):
        code = sqlite3.SQLITE_FULL
    return store_error(file, code, str(error))


def _find_reached_limit(file: str, primary_code: int) -> int:
    """Return the error number of the limit that made SQLite fail, 0 if none did."""
    if primary_code == sqlite3.SQLITE_CANTOPEN and _are_descriptors_used_up():
        return errno.EMFILE
    if primary_code == sqlite3.SQLITE_IOERR and _has_reached_size_limit(file):
        return errno.EFBIG
    return 0


def _are_descriptors_used_up() -> bool:
    """Whether this process cannot open a database and its two files: SQLite does not say why."""
    try:
        with ExitStack() as files:
            for _ in range(_FILES_OF_A_DATABASE):
                files.enter_context(open(os.devnull, "rb"))
    except OSError as error:
        return error.errno in {errno.EMFILE, errno.ENFILE}
    return False


def _has_reached_size_limit(file: str) -> bool:
    """Whether `ulimit -f` keeps a database or its log from growing: SQLite says IOERR then."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit == resource.RLIM_INFINITY:
        return False
    sizes = [_WAL_INDEX_BYTES]  # Of the index of the log, which is made first.
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            sizes.append(os.path.getsize(file + suffix) + _PAGE_BYTES)
    return max(sizes) > limit


def _is_disk_full(file: str) -> bool:
    """Whether the file system has no space for another page.

    SQLite says FULL where a page of the database does not fit, and IOERR where the index of the
    write-ahead log, which is mapped to memory, cannot grow.
    """
    with suppress(OSError, ValueError):
        space = os.statvfs(os.path.dirname(file))
        return space.f_bavail * space.f_frsize < _WAL_INDEX_BYTES
    return False


def _file_of(cursor: sqlite3.Cursor) -> str:
    return str(getattr(cursor.connection, "file", ""))
