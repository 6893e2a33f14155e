"""SQLite databases of a home: reading one at a fixed moment, copying it, checking a copy.

A connection in a read transaction sees the database as it was at the start of the transaction, and
SQLite's backup API copies just that: a writer beside it neither waits nor makes the copy start
again. Until the transaction ends, the write-ahead log cannot shrink.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from anchord.core.sqlite_connection import quote_for_uri, translate_sqlite_errors
from anchord.core.sqlite_errors import damaged_error
from anchord.store.backup.copying import OnBytes, flush

_PAGES_PER_STEP = 256
_LOCK_TIMEOUT_S = 30


def pin_database(file: Path) -> sqlite3.Connection:
    """Open a database and begin to read it: the connection goes on seeing what is there now.

    Any thread may use the connection, one at a time. Closing it ends the transaction.

    Raises:
        StoreDamagedError: The file is not a database, or is corrupt.
        StoreError: It cannot be opened.
    """
    with translate_sqlite_errors(file):
        connection = sqlite3.connect(
            f"file:{quote_for_uri(file)}?mode=ro",
            uri=True,
            isolation_level=None,
            timeout=_LOCK_TIMEOUT_S,
            check_same_thread=False,
        )
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except (sqlite3.Error, UnicodeDecodeError):
            connection.close()
            raise
    return connection


def pinned_bytes(connection: sqlite3.Connection) -> int:
    """Return the size in bytes that a copy of a pinned database will have."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page_bytes)


def copy_database(pinned: sqlite3.Connection, destination: Path, on_bytes: OnBytes) -> None:
    """Copy a pinned database into a new file, check the copy, and flush it.

    Args:
        pinned: From `pin_database`.
        destination: Must not exist; its folder must.
        on_bytes: Called for each step.

    Raises:
        StoreDamagedError: The database, and so its copy, is corrupt.
        StoreError: It cannot be read, or the copy cannot be written.
        OSError: The copy cannot be created or flushed.
    """
    destination.touch(mode=0o600, exist_ok=False)
    step_bytes = _PAGES_PER_STEP * int(pinned.execute("PRAGMA page_size").fetchone()[0])
    with translate_sqlite_errors(destination), closing(sqlite3.connect(destination)) as copy:
        # The copy is flushed once, at the end; an interrupted one is thrown away.
        copy.execute("PRAGMA synchronous=OFF")
        pinned.backup(
            copy, pages=_PAGES_PER_STEP, progress=lambda *_: on_bytes(step_bytes), sleep=0
        )
    if problem := find_damage(destination, thorough=False):
        raise damaged_error(destination.name, problem)
    flush(destination)


def find_damage(file: Path, *, thorough: bool = True) -> str:
    """Return what is wrong with a database that nobody writes; "" if nothing is.

    Args:
        file: A copy without a write-ahead log. Nothing is created beside it.
        thorough: Also compare the indices with their tables.
    """
    pragma = "integrity_check(1)" if thorough else "quick_check(1)"
    uri = f"file:{quote_for_uri(file)}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            (result,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    except UnicodeDecodeError:  # SQLite's message quotes a damaged schema.
        return "its schema is not UTF-8"
    except sqlite3.Error as error:
        return str(error)
    return "" if result == "ok" else " ".join(str(result).split())
