"""The SQLite connection of the catalog: how it opens, its schema and its migrations."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from anchord.core.sqlite_connection import CheckedConnection, open_sqlite, primary_result_code
from anchord.errors import NewerStateError, StoreDamagedError, StoreError
from anchord.store.catalog.change_history import CREATE_HISTORY_SQL
from anchord.store.catalog.schema import (
    CREATE_RECIPE_INDEX_SQL,
    CREATE_TABLES_SQL,
    MIGRATIONS,
    OLDEST_READABLE_VERSION,
    SCHEMA_VERSION,
)

_WAL_SIZE_LIMIT_BYTES = 16_000_000
"""`overwrite_from` writes a whole catalog through the WAL, which then shrinks to this size."""


def open_connection(file: Path, *, read_only: bool) -> CheckedConnection:
    """Open a catalog file, create its tables if it is empty, and check its schema version.

    Args:
        file: `state.sqlite`; created if missing, unless `read_only`.
        read_only: Refuse all writes, and accept only a schema that readers understand.

    Returns:
        A connection that commits each statement unless a transaction is open.

    Raises:
        StoreDamagedError: The file is corrupt, or its schema is too old to migrate.
        NewerStateError: A newer anchord wrote the file.
        StoreError: The file cannot be opened or written; with `read_only` also when it is missing,
            empty, or needs a migration first.
    """
    connection = open_sqlite(file, read_only=read_only)
    try:
        if read_only:
            _check_readable(connection)
        else:
            _configure_for_writing(connection)
            _create_or_check_schema(connection)
    except StoreError as error:
        connection.close()
        if primary_result_code(error) == sqlite3.SQLITE_ERROR:  # The tables are not as they were.
            raise StoreDamagedError(error.message, error.hint) from error
        raise
    return connection


def _configure_for_writing(connection: CheckedConnection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")  # A commit survives a power loss.
    connection.execute("PRAGMA secure_delete=ON")  # Deleted records are overwritten with zeros.
    connection.execute(f"PRAGMA journal_size_limit={_WAL_SIZE_LIMIT_BYTES}")


def _check_readable(connection: CheckedConnection) -> None:
    version = read_schema_version(connection)
    if version == 0:
        raise StoreError(f"{connection.file} holds no index", "run `anchord index` to create it")
    if version > SCHEMA_VERSION:
        raise NewerStateError.for_schema_version(connection.file, version)
    if version < OLDEST_READABLE_VERSION:
        raise StoreError(
            f"{connection.file} was written by an older anchord",
            "run `anchord index` to upgrade it",
        )


def _create_or_check_schema(connection: CheckedConnection) -> None:
    version = read_schema_version(connection)
    if version == 0:
        tables = f"{CREATE_TABLES_SQL} {CREATE_HISTORY_SQL}"
        connection.executescript(f"BEGIN; {tables} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")
    elif version > SCHEMA_VERSION:
        raise NewerStateError.for_schema_version(connection.file, version)
    elif any(step not in MIGRATIONS for step in range(version, SCHEMA_VERSION)):
        raise StoreDamagedError(
            f"it was written by an anchord too old to upgrade from (schema {version})"
        )
    connection.execute(CREATE_RECIPE_INDEX_SQL)


def migrate(connection: CheckedConnection) -> None:
    """Bring an older schema to the present one: all steps in one transaction, or none."""
    connection.executescript(f"BEGIN; {CREATE_HISTORY_SQL} COMMIT;")
    version = read_schema_version(connection)
    if version >= SCHEMA_VERSION:
        return
    steps = "".join(MIGRATIONS[step] for step in range(version, SCHEMA_VERSION))
    connection.executescript(f"BEGIN; {steps} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")


def read_schema_version(connection: CheckedConnection) -> int:
    """Return the schema version of the file; 0 for a file without tables."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
