"""Lists and counts of the files in `state.sqlite`, without their chunks."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anchord.core.types import RootedPath
from anchord.store.catalog.columns import key_columns, rooted_path, unpack_fingerprint

_COUNTS_BY_ROOT_SQL = """
SELECT root,
    -- Files: read at least once; a transcript file ('told') only if it is sound or partly read; no
    -- exchanges, whose paths begin with "/" (x'2f'); no file that equals the main checkout's ('=').
    sum(digest != '' AND substr(digest, 1, 1) != '='
        AND (digest != 'told' OR problem IS NULL OR partial)
        AND substr(path, 1, 1) != x'2f'),
    -- Chunks: after a confirmation every row counts. Between an intent and its confirmation an
    -- ordinal can have two rows, and a row without an id marks where the new list ends.
    sum(CASE WHEN wanted=applied
        THEN (SELECT count(*) FROM chunks WHERE file=id)
        ELSE (SELECT count(DISTINCT ordinal) FROM chunks WHERE file=id AND ordinal <
            ifnull((SELECT ordinal FROM chunks WHERE file=id AND chunk_id=''), ordinal+1))
        END)
FROM files GROUP BY root
"""
_LEFT_OUT_SQL = "SELECT root, count(*) FROM files WHERE substr(digest, 1, 1)='=' GROUP BY root"
_PAGE_SQL = """
SELECT root, path, fingerprint, digest='told', (SELECT count(*) FROM chunks WHERE file=id)
FROM files WHERE (root, path) > (?, ?) AND digest != '' AND substr(digest, 1, 1) != '='
    AND substr(path, 1, 1) != x'2f' AND (digest != 'told' OR problem IS NULL OR partial)
ORDER BY root, path LIMIT ?
"""


class ListedFile(NamedTuple):
    """An indexed file."""

    origin: RootedPath
    modified_ns: int
    """When it changed before it was last read."""
    is_transcript: bool
    """Whether its text is in exchanges, so that it has no chunks of its own."""
    chunk_count: int


def counts_by_root(db: sqlite3.Connection) -> Mapping[str, tuple[int, int]]:
    """Return (files, wanted chunks) by root.

    Files without chunks count; failed files and exchanges of conversations do not.
    """
    rows = db.execute(_COUNTS_BY_ROOT_SQL)
    return {root: (files, chunks) for root, files, chunks in rows}


def left_out_by_root(db: sqlite3.Connection) -> Mapping[str, int]:
    """Return root -> how many files are left out, being equal to the main checkout's."""
    return dict(db.execute(_LEFT_OUT_SQL).fetchall())


def recipe_counts_by_root(db: sqlite3.Connection) -> Mapping[str, Mapping[str, int]]:
    """Return root -> recipe digest -> how many files of the root have that recipe."""
    counts: dict[str, dict[str, int]] = {}
    rows = db.execute("SELECT root, recipe, count(*) FROM files GROUP BY root, recipe")
    for root, recipe, count in rows:
        if recipe:
            counts.setdefault(root, {})[recipe] = count
    return counts


def list_indexed_files(
    db: sqlite3.Connection, after: RootedPath, limit: int
) -> Sequence[ListedFile]:
    """Return the next indexed files in the order of root and path; no exchanges.

    Args:
        db: A connection of the catalog.
        after: The last file of the previous page; two empty texts for the first page.
        limit: The most files to return. Fewer mean that this is the last page.
    """
    rows = db.execute(_PAGE_SQL, (*key_columns(after), limit))
    return [
        ListedFile(rooted_path(root, path), unpack_fingerprint(packed).mtime_ns, bool(told), count)
        for root, path, packed, told, count in rows
    ]
