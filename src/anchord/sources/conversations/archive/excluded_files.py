"""Transcript files that the rules exclude: detached with their exchanges, and given back."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable

from anchord.core.types import RootedPath
from anchord.sources.conversations.archive.detached import DetachedExchanges, DetachReason
from anchord.sources.conversations.archive.path_lookup import path_inside

_ONLY_IN_FILE_SQL = """
SELECT e.id, e.path, e.digest FROM tellings t JOIN exchanges e ON e.id=t.exchange
WHERE t.carrier=:file
    AND NOT EXISTS (SELECT 1 FROM tellings o WHERE o.exchange=e.id AND o.carrier!=:file)
UNION
SELECT id, path, digest FROM exchanges e WHERE carrier IS NULL AND root=:root AND last_path=:path
    AND NOT EXISTS (SELECT 1 FROM tellings t WHERE t.exchange=e.id)
"""


class ExcludedFiles:
    """Moves transcript files between their root and groups, one group for each file.

    A group returns as a whole, with what the file has lost meanwhile. Methods that change something
    must run inside a transaction of the archive.
    """

    def __init__(
        self, db: sqlite3.Connection, detached: DetachedExchanges, next_version: Callable[[], int]
    ) -> None:
        """Use an open archive.

        Args:
            db: The archive's connection.
            detached: The groups.
            next_version: Returns a new, higher version for exchanges that change.
        """
        self._db = db
        self._detached = detached
        self._next_version = next_version

    def detach(self, file_id: int, now_ns: int) -> dict[int, RootedPath]:
        """Move a file to a new group, with the exchanges that no other file contains.

        Those that it has lost go with it. What it says of sessions is deleted. That it contains the
        other exchanges stays recorded: the caller removes it as their source.

        Returns:
            The exchanges that left the root, by their ids.
        """
        root, file_path = self._db.execute(
            "SELECT root, path FROM carriers WHERE id=?", (file_id,)
        ).fetchone()
        values = {"file": file_id, "root": root, "path": file_path}
        rows = self._db.execute(_ONLY_IN_FILE_SQL, values).fetchall()
        folder = self._detached.folder_of_root(root) or ""
        key = self._detached.create_group(DetachReason.EXCLUDED, root, folder)
        for exchange_id, path, digest in rows:
            self._detached.delete_copies(root, path, digest)
            self._detached.move_exchange(exchange_id, key, now_ns)
        # Another size, and no place to resume from: the next read is a full one.
        self._db.execute("UPDATE carriers SET root=?, mark='', size=-1 WHERE id=?", (key, file_id))
        self._db.execute("DELETE FROM heads WHERE carrier=?", (file_id,))
        return {exchange_id: RootedPath(root, path) for exchange_id, path, _ in rows}

    def attach(self, origin: RootedPath) -> list[RootedPath]:
        """Give a file back to its root with its exchanges. Its next read is a full one.

        Returns:
            The exchanges that came back; none for a file that is not detached.
        """
        returned = []
        for key in self._keys_of(origin):
            paths = self._db.execute("SELECT path FROM exchanges WHERE root=?", (key,)).fetchall()
            returned += [RootedPath(origin.root, path) for (path,) in paths]
            self._detached.merge(key, origin.root, "", self._next_version)
        return returned

    def follow_root(self, name: str, folder: str) -> None:
        """Make each file inside a folder wait for the root of that folder."""
        for group in self._detached.groups():
            if group.reason is not DetachReason.EXCLUDED:
                continue
            (path,) = self._db.execute(
                "SELECT path FROM carriers WHERE root=?", (group.key,)
            ).fetchone() or (b"",)
            inside = path_inside(folder, os.path.join(group.folder, os.fsdecode(path)))
            if inside and path:
                values = (os.fsencode(inside), group.key)
                self._db.execute("UPDATE carriers SET path=? WHERE root=?", values)
                self._db.execute("UPDATE exchanges SET last_path=? WHERE root=?", values)
                self._detached.rename_group(group.key, name, folder)

    def paths(self, root: str) -> list[RootedPath]:
        """Return the files of a root that are detached, sorted by path."""
        rows = self._db.execute(
            "SELECT DISTINCT c.path FROM detached d JOIN carriers c ON c.root=d.key "
            "WHERE d.reason=? AND d.root=? ORDER BY c.path",
            (DetachReason.EXCLUDED, root),
        )
        return [RootedPath(root, os.fsdecode(path)) for (path,) in rows]

    def contains(self, origin: RootedPath) -> bool:
        """Return whether a file is detached."""
        return bool(self._keys_of(origin))

    def _keys_of(self, origin: RootedPath) -> list[str]:
        """Return the keys of a file's groups: none or one, seldom more."""
        rows = self._db.execute(
            "SELECT d.key FROM detached d JOIN carriers c ON c.root=d.key "
            "WHERE d.reason=? AND d.root=? AND c.path=? ORDER BY d.key",
            (DetachReason.EXCLUDED, origin.root, os.fsencode(origin.path)),
        )
        return [key for (key,) in rows]
