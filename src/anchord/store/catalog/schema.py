"""The tables of `state.sqlite`.

meta: `key`, `value`. For example whether the last stop was clean, and which model made the vectors.

files: one row a file.
    `root`, `path`       the root's name, and the path in it as the bytes the system gave
    `fingerprint`        size, times, inode and device when it was last read
    `read_ns`            the clock before that read
    `digest`, `recipe`   of its content, and of everything else that its chunks depend on. A digest
                         after "=": not indexed, because it equals the main checkout's file
    `wanted`, `applied`  generations. Equal: the table holds the listed chunks. Different: an intent
                         was not confirmed, and only the table itself shows which rows exist
    `problem`, `partial`, `since_ns`  why it failed, whether a part was indexed, and since when
    `reason`             why it was last written to the index

chunks: where each chunk of a file is. Line numbers are stored here and not in the LanceDB table, so
that an insertion at the top of a file writes nothing to that table.
    `file`, `ordinal`    the file's id, and the position among its chunks, from 0
    `generation`         which write made the row; a chunk that an edit leaves alone keeps its row.
                         Rows above the file's `applied` are an intent: each replaces the row of its
                         ordinal, and one with an empty `chunk_id` says that the list ends there
"""

from __future__ import annotations

SCHEMA_VERSION = 3
OLDEST_READABLE_VERSION = 2
"""The oldest schema that read-only connections accept; after an update they open first."""
MIGRATIONS: dict[int, str] = {2: ""}
"""Schema version -> the SQL that makes the next version of it.

A change to the tables adds a step here and a home of the version before to `tests/upgrades/`.
Version 1 was never released. In version 2 all rows of a file had one generation, which version 3
reads as it is; an anchord of version 2 cannot read several generations.
"""
CREATE_TABLES_SQL = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
    id INTEGER PRIMARY KEY, root TEXT NOT NULL, path BLOB NOT NULL,
    fingerprint BLOB NOT NULL, read_ns INTEGER NOT NULL,
    digest TEXT NOT NULL, recipe TEXT NOT NULL,
    wanted INTEGER NOT NULL, applied INTEGER NOT NULL,
    problem TEXT, partial INTEGER NOT NULL DEFAULT 0,
    since_ns INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',
    UNIQUE(root, path));
CREATE INDEX problems ON files(root, path) WHERE problem IS NOT NULL;
CREATE INDEX unsettled ON files(root, path) WHERE wanted != applied;
CREATE TABLE chunks(
    file INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    generation INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    chunk_id TEXT NOT NULL, vector_key TEXT NOT NULL, row_hash TEXT NOT NULL,
    start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    PRIMARY KEY(file, generation, ordinal)) WITHOUT ROWID;
CREATE INDEX chunks_by_id ON chunks(chunk_id);
"""
CREATE_RECIPE_INDEX_SQL = "CREATE INDEX IF NOT EXISTS recipes ON files(root, recipe)"
"""Not a schema version of its own: an older anchord can use a catalog that has this index.

Every start counts files by recipe; without the index that takes as long as a walk of all files.
"""
