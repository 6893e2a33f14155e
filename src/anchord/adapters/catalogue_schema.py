"""The tables of `state.sqlite`.

meta      key, value                       whether the last stop was clean, which model made the vectors
files     root, path, fingerprint, digest  what was seen; `wanted` and `applied` are generations: they differ between
                                           an intent and its confirmation, when only the store knows which rows exist
chunks    file, generation, ordinal, id    where each chunk stands; absolute lines live here and not in the table, so
                                           that an insertion at the top of a file writes nothing to the table. A row is of
                                           the generation that wrote it: one that an edit leaves as it is is not written
                                           again. Rows above `applied` are an intent: each stands for the one of its ordinal,
                                           and one without an id says that the list ends there
"""

from __future__ import annotations

SCHEMA = 3
READABLE = 2
"""The oldest that readers understand as it is: before the first start of a new anchord they are all that runs."""
STEPS: dict[int, str] = {2: ""}
"""From a schema -> the statements that make the next one of it. A change to `TABLES` adds a step here, and a home that the
version before made to `tests/upgrades/`. 1 was never in anybody's hands. In 2 all rows of a file were of one generation, which
is a case of 3; what reads only those does not know the others."""
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
    id INTEGER PRIMARY KEY, root TEXT NOT NULL, path BLOB NOT NULL,
    fingerprint BLOB NOT NULL, read_ns INTEGER NOT NULL, digest TEXT NOT NULL, recipe TEXT NOT NULL,
    wanted INTEGER NOT NULL, applied INTEGER NOT NULL,
    problem TEXT, partial INTEGER NOT NULL DEFAULT 0, since_ns INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '',
    UNIQUE(root, path));
CREATE INDEX problems ON files(root, path) WHERE problem IS NOT NULL;
CREATE INDEX unsettled ON files(root, path) WHERE wanted != applied;
CREATE TABLE chunks(
    file INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE, generation INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    chunk_id TEXT NOT NULL, vector_key TEXT NOT NULL, row_hash TEXT NOT NULL, start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL, PRIMARY KEY(file, generation, ordinal)) WITHOUT ROWID;
CREATE INDEX chunks_by_id ON chunks(chunk_id);
"""
RECIPES = "CREATE INDEX IF NOT EXISTS recipes ON files(root, recipe)"
"""Every start counts by recipe: read from the files themselves that takes as long as a walk of them. An older anchord can use
a catalogue that has it."""
