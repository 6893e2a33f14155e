"""Detached exchanges: taken out of the index, kept in the archive, and given back.

The archive is a record: a transcript that an assistant has deleted exists here only. So whatever
takes exchanges out of the index moves them to a group, unless the user asked to forget them:

    ROOT     their root was removed or is not configured any more; they return with the root
    READER   a newer reader does not find them in their file any more, or their place in the file
             holds another question now
    TRASH    their file was deleted in a root with `on_delete = "delete"`; deleted after 30 days,
             or given back when the root keeps them again
    EXCLUDED the rules exclude their file, or the path of the deleted file; one group for each
             file, which returns as a whole, with what the file has lost, when the rules include it

An exchange that a file contains again is stored again as usual. An equal copy in a READER, TRASH or
EXCLUDED group is deleted then.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from anchord.sources.conversations.archive.path_lookup import BelowPath, give_own_paths, path_inside
from anchord.sources.conversations.archive.trash import delete_old_trash

DETACHED_KEY_PREFIX = "\x01"
"""No root has a name that begins with this control character."""
_SET_ASIDE_REASONS = ("reader", "trash", "excluded")


_COPY_SQL = """
INSERT INTO exchanges(
    session, root, path, name, number, superseded, until, digest, redacted, content, version, due,
    last_path)
SELECT ?, ?, path, name, number, superseded, until, digest, redacted, content, version, 0,
    coalesce((SELECT c.path FROM carriers c WHERE c.id=exchanges.carrier), last_path)
FROM exchanges WHERE id=?
"""


class DetachReason(StrEnum):
    """Why a group of exchanges is detached; the values are stored."""

    ROOT = "root"
    READER = "reader"
    TRASH = "trash"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedGroup:
    """Exchanges that were detached for the same reason."""

    key: str
    """Takes the place of the root's name in the archive's tables."""
    reason: DetachReason
    root: str
    """The last name of their root."""
    folder: str
    """The root's folder; "" if it was never recorded."""
    session_count: int
    exchange_count: int
    sourceless_count: int
    """How many of the exchanges no transcript file contained when they were detached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedExchange:
    """One detached exchange with its text."""

    group_key: str
    path: str
    source: str
    session: str
    title: str
    project: str
    transcript_path: str
    """Path relative to the root's folder of the last file that contained it; "" if unknown."""
    content: bytes
    """JSON, as `encode_exchange` wrote it."""


class DetachedExchanges:
    """Moves exchanges between roots and groups.

    Methods that change something must run inside a transaction of the archive.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        """Use an open archive of the present schema."""
        self._db = db

    # Roots

    def record_root(self, name: str, folder: str) -> None:
        """Record the folder of a root that is indexed: removed later, it returns by its folder."""
        self._db.execute("INSERT OR REPLACE INTO roots VALUES(?,?)", (name, os.fsencode(folder)))

    def folder_of_root(self, name: str) -> str | None:
        """Return the recorded folder of an attached root; None if there is none."""
        row = self._db.execute("SELECT folder FROM roots WHERE name=?", (name,)).fetchone()
        return os.fsdecode(row[0]) if row else None

    def attached_root_names(self) -> set[str]:
        """Return the names of the roots that have exchanges, sessions or files in the archive."""
        rows = self._db.execute(
            "SELECT name FROM (SELECT root AS name FROM exchanges UNION SELECT root FROM sessions "
            "UNION SELECT root FROM carriers) WHERE name NOT IN (SELECT key FROM detached)"
        )
        return {name for (name,) in rows}

    def detach_root(self, name: str, now_ns: int) -> None:
        """Move all that the archive holds of a root to a new group."""
        folder = self.folder_of_root(name) or ""
        key = self.create_group(DetachReason.ROOT, name, folder)
        for table in ("exchanges", "sessions", "carriers"):
            self._db.execute(f"UPDATE {table} SET root=? WHERE root=?", (key, name))
        self._db.execute("UPDATE exchanges SET detached_ns=? WHERE root=?", (now_ns, key))
        self._db.execute("DELETE FROM roots WHERE name=?", (name,))
        self.delete_empty_groups()

    def attach_root(
        self, name: str, folder: str, next_version: Callable[[], int], exists: Callable[[str], bool]
    ) -> int:
        """Give a root the exchanges back that were detached with it.

        These are the groups of its folder or of a folder inside it, and of its name if their own
        folder does not exist any more: it was moved. Of a group of a folder around it, it gets the
        exchanges that come from inside its own.

        Args:
            name: The root.
            folder: Its folder.
            next_version: Returns a new, higher version for exchanges that change.
            exists: Whether a folder exists.

        Returns:
            How many exchanges came back.
        """
        count = 0
        for group in self.groups():
            inside = path_inside(folder, group.folder)
            was_moved = group.root == name and not exists(group.folder)
            if group.reason is not DetachReason.ROOT:
                if inside == "" or was_moved:
                    self.rename_group(group.key, name, folder)
            elif inside is not None or was_moved:
                self.merge(group.key, name, inside or "", next_version)
                count += group.exchange_count
            elif (part := path_inside(group.folder, folder)) is not None:
                key = self._split_group(group, part, folder)
                self.merge(key, name, "", next_version)
        self.delete_empty_groups()
        return count

    def _split_group(self, group: DetachedGroup, inside: str, folder: str) -> str:
        """Move what comes from a folder inside a group's own to a new group; return its key."""
        key = self.create_group(DetachReason.ROOT, group.root, folder)
        below, skipped = BelowPath(inside), len(os.fsencode(inside)) + 2
        self._db.execute(
            "UPDATE carriers SET root=?, path=substr(path, ?) "
            f"WHERE root=? AND {below.sql('path')}",
            (key, skipped, group.key, *below.values),
        )
        rows = self._db.execute(
            "SELECT e.id FROM exchanges e LEFT JOIN carriers c ON c.id=e.carrier WHERE e.root=? "
            f"AND (c.root=? OR e.carrier IS NULL AND {below.sql('e.last_path')})",
            (group.key, key, *below.values),
        ).fetchall()
        for (exchange_id,) in rows:
            self._db.execute(
                "UPDATE exchanges SET root=?, session=?, last_path=substr(last_path, ?) WHERE id=?",
                (key, self._session_in(key, exchange_id), skipped, exchange_id),
            )
        # The files of each group that contain exchanges of the other are read again.
        self._db.execute(
            "UPDATE carriers SET reader='' WHERE id IN (SELECT c.id FROM carriers c "
            "JOIN tellings t ON t.carrier=c.id JOIN exchanges e ON e.id=t.exchange "
            "WHERE c.root IN (?1, ?2) AND e.root IN (?1, ?2) AND c.root != e.root)",
            (key, group.key),
        )
        return key

    def rename_group(self, key: str, name: str, folder: str) -> None:
        """Make a group wait for a root of another name or folder."""
        self._db.execute(
            "UPDATE detached SET root=?, folder=? WHERE key=?", (name, os.fsencode(folder), key)
        )

    def merge(self, key: str, name: str, inside: str, next_version: Callable[[], int]) -> None:
        """Move a group's files, sessions and exchanges to a root that may hold some of them."""
        prefix = f"{inside}/" if inside else ""
        self._db.execute(
            "UPDATE exchanges SET last_path=CAST(?||last_path AS BLOB) WHERE root=?",
            (os.fsencode(prefix), key),
        )
        self._merge_files(key, name, prefix)
        self._merge_sessions(key, name)
        give_own_paths(self._db, key, name)
        rows = self._db.execute(
            "SELECT e.id, e.path, e.until, o.id, o.until FROM exchanges e "
            "LEFT JOIN exchanges o ON o.root=? AND o.path=e.path WHERE e.root=?",
            (name, key),
        ).fetchall()
        for exchange_id, _, until, other_id, other_until in rows:
            if other_id is not None and until <= other_until:
                # Invariant: the root holds the same exchange in a form that is at least as late.
                self._delete_exchange(exchange_id, superseded_by=other_id)
                continue
            if other_id is not None:
                self._delete_exchange(other_id, superseded_by=exchange_id)
            self._db.execute(
                "UPDATE exchanges SET root=?, detached_ns=0, version=?, due=1 WHERE id=?",
                (name, next_version(), exchange_id),
            )
        self._db.execute("DELETE FROM sessions WHERE root=?", (key,))
        self._db.execute("DELETE FROM detached WHERE key=?", (key,))

    def _merge_files(self, key: str, name: str, prefix: str) -> None:
        files = self._db.execute("SELECT id, path FROM carriers WHERE root=?", (key,)).fetchall()
        for file_id, path in files:
            new_path = os.fsencode(prefix) + path
            known = self._db.execute(
                "SELECT 1 FROM carriers WHERE root=? AND path=?", (name, new_path)
            ).fetchone()
            if known is None:
                self._db.execute(
                    "UPDATE carriers SET root=?, path=? WHERE id=?", (name, new_path, file_id)
                )
                continue
            # Invariant: the root has read this file itself, and knows what it contains now.
            self._db.execute(
                "UPDATE exchanges SET carrier=NULL, last_path=? WHERE carrier=?",
                (new_path, file_id),
            )
            self._db.execute("DELETE FROM carriers WHERE id=?", (file_id,))

    def _merge_sessions(self, key: str, name: str) -> None:
        """Move sessions to the root; where it has the same session, move the exchanges there."""
        rows = self._db.execute(
            "SELECT s.id, o.id FROM sessions s LEFT JOIN sessions o "
            "ON o.root=? AND o.source=s.source AND o.name=s.name WHERE s.root=?",
            (name, key),
        ).fetchall()
        for session_id, other_id in rows:
            if other_id is None:
                self._db.execute("UPDATE sessions SET root=? WHERE id=?", (name, session_id))
            else:
                self._db.execute(
                    "UPDATE exchanges SET session=? WHERE session=?", (other_id, session_id)
                )

    def _delete_exchange(self, exchange_id: int, *, superseded_by: int) -> None:
        """Delete a form of an exchange in favour of another; its files contain the other then."""
        self._db.execute(
            "UPDATE OR IGNORE tellings SET exchange=? WHERE exchange=?",
            (superseded_by, exchange_id),
        )
        self._db.execute("DELETE FROM exchanges WHERE id=?", (exchange_id,))

    # Single exchanges

    def set_aside(self, exchange_id: int, reason: DetachReason, now_ns: int) -> None:
        """Move one exchange that no file contains any more to a group of its root."""
        root, path, digest = self._db.execute(
            "SELECT root, path, digest FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        self.delete_copies(root, path, digest)
        self.move_exchange(exchange_id, self._group_without(reason, root, path), now_ns)

    def move_exchange(self, exchange_id: int, key: str, now_ns: int) -> None:
        """Move one exchange to a group that has none at its path."""
        self._db.execute(
            "UPDATE exchanges SET root=?, session=?, detached_ns=?, due=0 WHERE id=?",
            (key, self._session_in(key, exchange_id), now_ns, exchange_id),
        )

    def trash_orphans(self, root: str, now_ns: int) -> None:
        """Move the exchanges of a root that no file contains to the trash.

        Those stay whose last file is still there: it was cut off or damaged, which is no deletion.
        """
        orphans = self._db.execute(
            "SELECT id FROM exchanges e WHERE root=? AND id NOT IN (SELECT exchange FROM tellings) "
            "AND NOT EXISTS (SELECT 1 FROM carriers c WHERE c.root=e.root AND c.path=e.last_path)",
            (root,),
        )
        for (exchange_id,) in orphans.fetchall():
            self.set_aside(exchange_id, DetachReason.TRASH, now_ns)

    def return_trash(self, root: str, next_version: Callable[[], int]) -> None:
        """Give a root the exchanges back that are in its trash."""
        for group in self.groups():
            if group.reason is DetachReason.TRASH and group.root == root:
                self.merge(group.key, root, "", next_version)

    def copy_aside(self, exchange_id: int, reason: DetachReason) -> int:
        """Put a copy of an exchange into a group of its root; return the copy's id."""
        root, path, digest = self._db.execute(
            "SELECT root, path, digest FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        self.delete_copies(root, path, digest)
        key = self._group_without(reason, root, path)
        copied = self._db.execute(_COPY_SQL, (self._session_in(key, exchange_id), key, exchange_id))
        return int(copied.lastrowid or 0)

    def delete_copies(self, root: str, path: str, digest: str) -> None:
        """Delete equal copies of an exchange that were set aside: the root holds it again."""
        self._db.execute(
            "DELETE FROM exchanges WHERE path=? AND digest=? AND root IN "
            "(SELECT key FROM detached WHERE root=? AND reason IN (?,?,?))",
            (path, digest, root, *_SET_ASIDE_REASONS),
        )

    def _group_without(self, reason: DetachReason, root: str, path: str) -> str:
        """Return the key of a group of a root that has no exchange at a path yet."""
        row = self._db.execute(
            "SELECT key FROM detached d WHERE reason=? AND root=? AND NOT EXISTS "
            "(SELECT 1 FROM exchanges e WHERE e.root=d.key AND e.path=?) ORDER BY key LIMIT 1",
            (reason, root, path),
        ).fetchone()
        if row:
            return str(row[0])
        folder = self._db.execute("SELECT folder FROM roots WHERE name=?", (root,)).fetchone()
        return self.create_group(reason, root, os.fsdecode(folder[0]) if folder else "")

    def _session_in(self, key: str, exchange_id: int) -> int:
        """Return the id of a copy in a group of an exchange's session; insert it if it is new."""
        self._db.execute(
            "INSERT OR IGNORE INTO sessions(root, source, name, title, project, parent) "
            "SELECT ?, s.source, s.name, s.title, s.project, s.parent FROM sessions s "
            "JOIN exchanges e ON e.session=s.id WHERE e.id=?",
            (key, exchange_id),
        )
        row = self._db.execute(
            "SELECT c.id FROM sessions c JOIN sessions s ON s.source=c.source AND s.name=c.name "
            "JOIN exchanges e ON e.session=s.id WHERE e.id=? AND c.root=?",
            (exchange_id, key),
        ).fetchone()
        return int(row[0])

    # The groups

    def groups(self) -> list[DetachedGroup]:
        """Return all groups with their numbers of sessions and exchanges, oldest first."""
        rows = self._db.execute(
            "SELECT d.key, d.reason, d.root, d.folder, count(DISTINCT e.session), count(e.id), "
            "total(e.carrier IS NULL) FROM detached d LEFT JOIN exchanges e ON e.root=d.key "
            "GROUP BY d.key ORDER BY d.key"
        )
        return [
            DetachedGroup(
                key=key,
                reason=DetachReason(reason),
                root=root,
                folder=os.fsdecode(folder),
                session_count=sessions,
                exchange_count=exchanges,
                sourceless_count=int(sourceless),
            )
            for key, reason, root, folder, sessions, exchanges, sourceless in rows
        ]

    def exchanges(self) -> Iterator[DetachedExchange]:
        """Yield every detached exchange, in the order of sessions."""
        rows = self._db.execute(
            "SELECT e.root, e.path, s.source, s.name, s.title, s.project, "
            "coalesce(c.path, e.last_path, x''), e.content FROM exchanges e "
            "JOIN detached d ON d.key=e.root JOIN sessions s ON s.id=e.session "
            "LEFT JOIN carriers c ON c.id=e.carrier ORDER BY e.root, e.session, e.number, e.id"
        )
        for key, path, source, session, title, project, transcript_path, content in rows:
            yield DetachedExchange(
                group_key=key,
                path=path,
                source=source,
                session=session,
                title=title,
                project=project,
                transcript_path=os.fsdecode(transcript_path),
                content=zlib.decompress(content),
            )

    def restore_lost_groups(self) -> None:
        """Insert the groups that exchanges are in and that a damaged file has lost."""
        self._db.execute(
            "INSERT INTO detached SELECT DISTINCT root, ?, '', x'' FROM exchanges "
            "WHERE root>=? AND root<? AND root NOT IN (SELECT key FROM detached)",
            (DetachReason.ROOT, DETACHED_KEY_PREFIX, chr(ord(DETACHED_KEY_PREFIX) + 1)),
        )

    def empty_trash(self, now_ns: int) -> int:
        """Delete what has been in the trash for 30 days; return how many exchanges that were."""
        deleted = delete_old_trash(self._db, DetachReason.TRASH, now_ns)
        self.delete_empty_groups()
        return deleted

    def create_group(self, reason: DetachReason, root: str, folder: str) -> str:
        """Insert an empty group; return its key."""
        (last,) = self._db.execute("SELECT max(key) FROM detached").fetchone()
        number = int(last.removeprefix(DETACHED_KEY_PREFIX)) + 1 if last else 1
        key = f"{DETACHED_KEY_PREFIX}{number:08}"
        self._db.execute(
            "INSERT INTO detached VALUES(?,?,?,?)", (key, reason, root, os.fsencode(folder))
        )
        return key

    def delete_empty_groups(self) -> None:
        """Delete the groups without exchanges, and what they hold of sessions and files."""
        for key in [group.key for group in self.groups() if not group.exchange_count]:
            self._db.execute("DELETE FROM sessions WHERE root=?", (key,))
            self._db.execute("DELETE FROM carriers WHERE root=?", (key,))
            self._db.execute("DELETE FROM detached WHERE key=?", (key,))
