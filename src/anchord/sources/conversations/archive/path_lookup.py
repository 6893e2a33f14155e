"""What the archive holds of a transcript file or a folder of them, whatever root it is in."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from typing import NamedTuple
from urllib.parse import unquote

from anchord.core.ids import hash_content
from anchord.sources.conversations.exchanges import POSITIONAL_IDS

OWN_DIGEST_CHARS = 8
"""Characters of a question's digest in the path of an exchange whose id is repeated."""


class FoundInArchive(NamedTuple):
    """What the archive holds of a file or folder."""

    files: list[tuple[int, str, bytes]]
    """Id, root or group key, and path of each transcript file."""
    exchanges: list[tuple[int, str, str]]
    """Id, root or group key, and path of each exchange, and of its copies that no file contains."""
    only_here: int
    """How many of the exchanges no transcript file that exists contains as they are stored."""
    other_files: list[int]
    """Ids of transcript files elsewhere that contain some of the exchanges too."""
    shared: frozenset[int]
    """Ids of the exchanges that these files contain."""

    def message_ids(self) -> set[str]:
        """Return the ids that the exchanges have in their transcripts.

        Those that only say a position are left out: other sessions have the same.
        """
        ids = {unquote(path.rpartition("/")[2]) for _, _, path in self.exchanges}
        return {each.rstrip("+") for each in ids if not each.startswith(POSITIONAL_IDS)}


def find_from(db: sqlite3.Connection, path: str) -> FoundInArchive:
    """Return what comes from a transcript file or a folder of them, detached or not.

    Args:
        db: An open archive.
        path: Absolute path; the file or folder need not exist any more.
    """
    found = FoundInArchive([], [], 0, [], frozenset())
    folders = db.execute(
        "SELECT name, folder FROM roots UNION ALL SELECT key, folder FROM detached"
    ).fetchall()
    for root, encoded_folder in folders:
        folder = os.fsdecode(encoded_folder)
        if path_inside(path, folder) is not None:
            where = BelowPath("")
        elif (inside := path_inside(folder, path)) is not None:
            where = BelowPath(inside)
        else:
            continue
        found.files.extend(_files_below(db, root, where))
        exchanges = _exchanges_below(db, root, where)
        found.exchanges.extend((each[0], root, each[1]) for each in exchanges)
    files_by_exchange = _other_files(db, found)
    shared = frozenset(each for each, files in files_by_exchange.items() if files)
    if found.exchanges:
        ids = {each[0] for each in found.exchanges}
        found.exchanges.extend(_orphaned_copies(db, ids, shared))
    return found._replace(
        only_here=sum(
            _is_orphan(db, each[0]) or _is_only_here(db, each[0]) for each in found.exchanges
        ),
        other_files=sorted(set().union(*files_by_exchange.values())),
        shared=shared,
    )


def _other_files(db: sqlite3.Connection, found: FoundInArchive) -> dict[int, set[int]]:
    """Return which other transcript files contain the exchanges: exchange id -> file ids.

    Not one that was deleted or renamed since it was read. In a folder that is away all files count.
    """
    own = {file_id for file_id, _, _ in found.files}
    files_by_exchange: dict[int, set[int]] = {}
    for exchange_id, _, _ in found.exchanges:
        files_by_exchange[exchange_id] = {
            file_id
            for file_id, folder, path in _files_with(db, exchange_id)
            if file_id not in own and (os.path.lexists(path) or not os.path.isdir(folder))
        }
    return files_by_exchange


def _files_with(db: sqlite3.Connection, exchange_id: int) -> list[tuple[int, str, str]]:
    """Return id, root's folder and absolute path of the transcript files with an exchange."""
    rows = db.execute(
        "SELECT c.id, coalesce(f.folder, x''), c.path FROM tellings t "
        "JOIN carriers c ON c.id=t.carrier LEFT JOIN "
        "(SELECT name, folder FROM roots UNION ALL SELECT key, folder FROM detached) f "
        "ON f.name=c.root WHERE t.exchange=?",
        (exchange_id,),
    )
    return [
        (file_id, os.fsdecode(folder), os.path.join(os.fsdecode(folder), os.fsdecode(path)))
        for file_id, folder, path in rows
    ]


def _orphaned_copies(
    db: sqlite3.Connection, exchange_ids: set[int], shared: frozenset[int]
) -> list[tuple[int, str, str]]:
    """Return the same exchanges in other roots and groups, if no file that exists contains them.

    A transcript that was moved to another root leaves such copies behind.

    Args:
        db: An open archive.
        exchange_ids: Exchanges that come from one file or folder.
        shared: Those of them that other files contain as well: their copies stay.

    Returns:
        Id, root or group key, and path of each.
    """
    rows = db.execute("SELECT id, name, path, digest FROM exchanges").fetchall()
    forgotten = [row for row in rows if row[0] in exchange_ids - shared]
    digests = {digest for _, _, _, digest in forgotten}
    # An id that is a place in a file names nothing.
    paths = {path for _, name, path, _ in forgotten if not name.startswith(POSITIONAL_IDS)}
    return [
        (exchange_id, _root_of(db, exchange_id), path)
        for exchange_id, _, path, digest in rows
        if exchange_id not in exchange_ids
        and (digest in digests or path in paths)
        and _is_only_here(db, exchange_id)
    ]


def _root_of(db: sqlite3.Connection, exchange_id: int) -> str:
    (root,) = db.execute("SELECT root FROM exchanges WHERE id=?", (exchange_id,)).fetchone()
    return str(root)


def _files_below(
    db: sqlite3.Connection, root: str, where: BelowPath
) -> list[tuple[int, str, bytes]]:
    return db.execute(
        f"SELECT id, root, path FROM carriers WHERE root=? AND {where.sql('path')}",
        (root, *where.values),
    ).fetchall()


def _exchanges_below(db: sqlite3.Connection, root: str, where: BelowPath) -> list[tuple[int, str]]:
    """Return id and path of each exchange of a root that a file or folder contains or contained.

    Not one that another file contains too while the stored form is in none of them: a file from
    elsewhere had more of it, and only the archive has that now.
    """
    is_told_below = f"c.root=? AND {where.sql('c.path')}"
    tellings = "tellings t JOIN carriers c ON c.id=t.carrier"
    return db.execute(
        f"SELECT id, path FROM exchanges e WHERE root=? AND ({where.sql('last_path')} "
        f"OR id IN (SELECT t.exchange FROM {tellings} WHERE {is_told_below}) "
        "AND (carrier IS NOT NULL OR NOT EXISTS "
        f"(SELECT 1 FROM {tellings} WHERE t.exchange=e.id AND NOT ({is_told_below}))))",
        (root, *where.values, root, *where.values, root, *where.values),
    ).fetchall()


def _is_orphan(db: sqlite3.Connection, exchange_id: int) -> bool:
    """Return whether no file contains the stored form of an exchange; one may have a part of it."""
    row = db.execute("SELECT carrier IS NULL FROM exchanges WHERE id=?", (exchange_id,)).fetchone()
    return bool(row[0])


def _is_only_here(db: sqlite3.Connection, exchange_id: int) -> bool:
    """Return whether an exchange is in no transcript file that exists."""
    return not any(os.path.exists(path) for _, _, path in _files_with(db, exchange_id))


def give_own_paths(db: sqlite3.Connection, key: str, root: str) -> None:
    """Rename the exchanges of a group whose id means another question in a root.

    Two conversations can repeat an id (`repeated_ids`): moved there, one would take the other for
    an earlier form of itself, and delete it.

    Args:
        db: An open archive, in a transaction.
        key: The group.
        root: The root that the group will be merged into.
    """
    rows = db.execute(
        "SELECT e.id, e.path, e.content, o.content FROM exchanges e "
        "JOIN exchanges o ON o.root=? AND o.path=e.path WHERE e.root=?",
        (root, key),
    ).fetchall()
    for exchange_id, path, content, other_content in rows:
        question, other = _question_of(content), _question_of(other_content)
        _, source, *ids = path.split("/")
        if question is None or other is None or question == other or len(ids) != 1:
            continue  # With the session in its path it is the same place of the same session.
        digest = hash_content(question.encode("utf-8", "replace"))[:OWN_DIGEST_CHARS]
        own_path = f"/{source}/={digest}/{ids[0]}"
        db.execute("UPDATE OR IGNORE exchanges SET path=? WHERE id=?", (own_path, exchange_id))


def _question_of(content: bytes) -> str | None:
    """Return the question of a stored exchange; None if its text is damaged."""
    try:
        return str(json.loads(zlib.decompress(content))["question"])
    except (zlib.error, ValueError, KeyError, TypeError):
        return None


class BelowPath:
    """The SQL condition that a stored path is a file or folder, or below it; "" is every path."""

    def __init__(self, path: str) -> None:
        """Use a path relative to a root."""
        encoded = os.fsencode(path)
        self._matches_all = not path
        # "0" is the character after "/".
        self.values: tuple[bytes, ...] = (
            () if self._matches_all else (encoded, encoded + b"/", encoded + b"0")
        )

    def sql(self, column: str) -> str:
        """Return the condition on a column; `values` are its parameters."""
        if self._matches_all:
            return "1"
        return f"({column}=? OR ({column}>=? AND {column}<?))"


def path_inside(outer: str, inner: str) -> str | None:
    """Return the path of a folder within another, "" for the same; None if it is not inside."""
    if not inner:
        return None
    if inner == outer:
        return ""
    prefix = outer.rstrip("/") + "/"
    return inner[len(prefix) :] if inner.startswith(prefix) else None
