"""The tables of `conversations.sqlite`, and how the file is opened, created and migrated.

    carriers   one transcript file: what was read of it, and where reading can resume (`mark`)
    sessions   one conversation; title and project come from `heads`
    heads      what one file says of one session; the most recently updated says the title
    exchanges  one question and its answer, compressed; indexed like a file at `exchange_path`
    tellings   which file contains which exchange, and the digest of its form there
    roots      the folder of each root that is indexed
    detached   groups of exchanges that were taken out of the index and kept (`detached`)
    deleted    exchanges that were deleted on purpose, and may still have rows (`deletions`)
    forgotten  digests of the exchanges that `forget` deleted (`deletions`)

A session can be in several files, such as this month's export and last month's. Of different
forms of one exchange the form whose last message is the latest wins, in whichever order the files
are read (`merge`).

An exchange belongs to its session, not to a file. It stays the same when its file is renamed,
compressed or exported again. When the last file that contains it is gone, the exchange stays here
with `carrier` NULL and the file's path in `last_path`: assistants delete their transcripts.

An exchange is deleted by `forget` only, or 30 days after it was moved to the trash. Anything else
that takes exchanges out of the index moves them to a group of `detached`: the group's key takes the
place of the root's name in `exchanges`, `sessions` and `carriers`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from anchord.core.sqlite_connection import CheckedConnection, open_sqlite, primary_result_code
from anchord.core.sqlite_errors import damaged_error
from anchord.errors import (
    NewerStateError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)

SCHEMA_VERSION = 6
_DETACHED_SINCE = 3
_DELETIONS_SINCE = 4
_HIGHEST_VERSION = 10_000
"""No anchord will ever write a higher version: such a number is damaged."""
_HEADS_SQL = """
CREATE TABLE heads(
    carrier INTEGER NOT NULL REFERENCES carriers(id) ON DELETE CASCADE,
    session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    updated TEXT NOT NULL, title TEXT NOT NULL, project TEXT NOT NULL, parent TEXT NOT NULL,
    PRIMARY KEY(carrier, session)) WITHOUT ROWID;
CREATE INDEX heads_by_session ON heads(session);
"""
_DETACHED_SQL = """
CREATE TABLE roots(name TEXT PRIMARY KEY, folder BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE detached(
    key TEXT PRIMARY KEY, reason TEXT NOT NULL, root TEXT NOT NULL, folder BLOB NOT NULL
) WITHOUT ROWID;
ALTER TABLE exchanges ADD COLUMN last_path BLOB;
ALTER TABLE exchanges ADD COLUMN detached_ns INTEGER NOT NULL DEFAULT 0;
"""
# Neither has an index on a root and a path: entries of one would look like those of `exchanges` to
# whoever salvages a damaged file.
_DELETIONS_SQL = """
CREATE TABLE IF NOT EXISTS deleted(id INTEGER PRIMARY KEY, root TEXT NOT NULL, path TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS forgotten(
    id INTEGER PRIMARY KEY, asked BLOB NOT NULL, path_digest TEXT NOT NULL, digest TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS forgotten_by_path ON forgotten(path_digest);
CREATE INDEX IF NOT EXISTS forgotten_by_digest ON forgotten(digest);
"""
# Lists the sessions without their texts, which lie before these columns in a row. Not of a version
# of its own: an older anchord can use an archive with it. Whoever salvages a damaged file takes
# entries of an index on a root and a path for those of `exchanges`: this one has seven values.
_LIST_INDEX_SQL = """CREATE INDEX IF NOT EXISTS exchanges_listed
ON exchanges(session, root, until, superseded, carrier, last_path)"""
_MIGRATIONS = {1: _HEADS_SQL, 2: _DETACHED_SQL, 3: _DELETIONS_SQL, 4: "", 5: ""}
"""Schema version -> the SQL that makes the next one.

Version 2 adds `heads`; the table fills as files are read again. Version 3 adds `roots` and
`detached`; `roots` fills as roots are added. Version 4 adds `deleted` and `forgotten`.
Version 5 adds two fields to the JSON in `mark`, with which older versions cannot read it.
Version 6 adds groups of excluded files, which older versions do not know.
"""
_SCHEMA_SQL = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE carriers(
    id INTEGER PRIMARY KEY,
    root TEXT NOT NULL, path BLOB NOT NULL, source TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL, device INTEGER NOT NULL,
    reader TEXT NOT NULL, mark TEXT NOT NULL, unknown TEXT NOT NULL,
    UNIQUE(root, path));
CREATE TABLE sessions(
    id INTEGER PRIMARY KEY,
    root TEXT NOT NULL, source TEXT NOT NULL, name TEXT NOT NULL,
    title TEXT NOT NULL, project TEXT NOT NULL, parent TEXT NOT NULL,
    UNIQUE(root, source, name));
CREATE TABLE exchanges(
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    root TEXT NOT NULL, path BLOB NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL,
    superseded INTEGER NOT NULL, until TEXT NOT NULL, digest TEXT NOT NULL, redacted TEXT NOT NULL,
    content BLOB NOT NULL, version INTEGER NOT NULL, due INTEGER NOT NULL,
    carrier INTEGER REFERENCES carriers(id),
    UNIQUE(root, path));
CREATE INDEX exchanges_by_session ON exchanges(session, number);
CREATE INDEX exchanges_by_carrier ON exchanges(carrier);
CREATE INDEX exchanges_due ON exchanges(root) WHERE due;
CREATE TABLE tellings(
    carrier INTEGER NOT NULL REFERENCES carriers(id) ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchanges(id) ON DELETE CASCADE,
    digest TEXT NOT NULL, until TEXT NOT NULL,
    PRIMARY KEY(carrier, exchange)) WITHOUT ROWID;
CREATE INDEX tellings_by_exchange ON tellings(exchange);
{_HEADS_SQL}
{_DETACHED_SQL}
{_DELETIONS_SQL}"""


_COLUMNS_SQL = """SELECT tables.name, columns.name
FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
WHERE tables.type='table'
"""


def open_database(file: Path, *, read_only: bool) -> CheckedConnection:
    """Open the archive's database; create or migrate it unless `read_only`.

    A read-only open of a database with an older schema succeeds and leaves the schema as it is.

    Args:
        file: The database file. It is created if it does not exist and `read_only` is false.
        read_only: Open without writing anything.

    Returns:
        A connection in autocommit mode that waits up to 30 s for another process's lock.

    Raises:
        StoreDamagedError: The file is corrupt.
        StoreUnavailableError: It cannot be opened now; with `read_only` also if it is missing.
        NewerStateError: A newer version of anchord wrote the file.
    """
    connection = open_sqlite(file, read_only=read_only)
    try:
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA secure_delete=ON")  # Deleted conversations are overwritten.
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if not 0 <= version <= SCHEMA_VERSION:
            if not 0 <= version <= _HIGHEST_VERSION:
                raise damaged_error(str(file), f"schema {version}")
            raise NewerStateError.for_schema_version(str(file), version)
        if not read_only:
            _create_or_migrate(connection, version)
            _check_columns(connection)
            with suppress(StoreUnavailableError):  # Such as a full disk: it is made next time.
                connection.execute(_LIST_INDEX_SQL)
    except StoreError as error:
        connection.close()
        if _is_wrong_schema(error):
            raise StoreDamagedError(error.message, error.hint) from error
        raise
    return connection


def add_missing_tables(connection: CheckedConnection) -> None:
    """Give a read-only connection to an older schema what it lacks, for this connection only.

    SQLite looks a name up among temporary tables and views first.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version == 0:  # An empty file: the next writer creates the tables.
        for statement in _SCHEMA_SQL.split(";"):
            if "CREATE INDEX" not in statement:
                connection.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE"))
        return
    if version < _DETACHED_SINCE:
        connection.execute("CREATE TEMP TABLE roots(name TEXT, folder BLOB)")
        connection.execute(
            "CREATE TEMP TABLE detached(key TEXT, reason TEXT, root TEXT, folder BLOB)"
        )
        connection.execute(
            "CREATE TEMP VIEW exchanges AS "
            "SELECT *, NULL AS last_path, 0 AS detached_ns FROM main.exchanges"
        )
    if version < _DELETIONS_SINCE:
        connection.execute("CREATE TEMP TABLE deleted(root TEXT, path TEXT)")
        connection.execute("CREATE TEMP TABLE forgotten(asked BLOB, path_digest TEXT, digest TEXT)")


def _is_wrong_schema(error: StoreError) -> bool:
    """Whether SQLite refused a statement of `open_database`: the tables are not as they were."""
    return primary_result_code(error) == sqlite3.SQLITE_ERROR


def _check_columns(connection: CheckedConnection) -> None:
    """Compare the columns of all tables with those of a new archive.

    Raises:
        StoreDamagedError: One is missing: a changed bit of its name is no damage to SQLite.
    """
    with closing(sqlite3.connect(":memory:")) as new:
        new.executescript(_SCHEMA_SQL)
        expected = set(new.execute(_COLUMNS_SQL))
    missing = expected - set(connection.execute(_COLUMNS_SQL))
    if missing:
        table, column = min(missing)
        raise damaged_error(connection.file, f"no column {column} of {table}")


def _create_or_migrate(connection: CheckedConnection, version: int) -> None:
    """Bring the schema to `SCHEMA_VERSION`, one transaction a step; 0 is an empty file."""
    if version == 0:
        _run_step(connection, _SCHEMA_SQL, SCHEMA_VERSION)
        return
    for older in range(version, SCHEMA_VERSION):
        _run_step(connection, _MIGRATIONS[older], older + 1)


def _run_step(connection: CheckedConnection, sql: str, new_version: int) -> None:
    connection.executescript(f"BEGIN; {sql} PRAGMA user_version={new_version}; COMMIT;")
