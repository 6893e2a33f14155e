"""Which exchanges were deleted on purpose. Others that only the index has are lost.

deleted    exchanges that the archive deleted, until the index has deleted their rows
forgotten  digests of exchanges that `forget` deleted: a file with another name, a compressed
copy or a later export does not bring them back
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from anchord.core.ids import hash_content
from anchord.core.types import RootedPath
from anchord.sources.conversations.archive.detached import DETACHED_KEY_PREFIX
from anchord.sources.conversations.exchanges import POSITIONAL_IDS

_IS_KNOWN_SQL = """
SELECT 1 FROM exchanges WHERE root=:root AND path=:path
UNION ALL SELECT 1 FROM deleted WHERE root=:root AND path=:path
UNION ALL SELECT 1 FROM exchanges e JOIN detached d ON d.key=e.root
    WHERE d.root=:root AND e.path=:path
LIMIT 1
"""


ForgottenExchange = tuple[str, str, str]
"""The path that was given to `forget`, and the digests of an exchange's path and of its form."""


class Deletions:
    """Records deletions of exchanges.

    Methods that change something must run inside a transaction of the archive.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        """Use an open archive."""
        self._db = db

    def delete(self, exchange_id: int, origin: RootedPath) -> None:
        """Delete an exchange, and note that its rows may leave the index."""
        self._db.execute("DELETE FROM exchanges WHERE id=?", (exchange_id,))
        if not origin.root.startswith(DETACHED_KEY_PREFIX):
            key = (origin.root, origin.path)
            self._db.execute("INSERT INTO deleted(root, path) VALUES(?,?)", key)

    def mark_indexed(self, keys: Sequence[tuple[str, str]]) -> None:
        """Delete the notes on exchanges whose rows have left the index.

        Args:
            keys: Root and path of each.
        """
        if self._db.execute("SELECT 1 FROM deleted LIMIT 1").fetchone():
            self._db.executemany("DELETE FROM deleted WHERE root=? AND path=?", keys)

    def not_yet_indexed(self) -> list[RootedPath]:
        """Return the deleted exchanges whose rows may still be in the index."""
        return [RootedPath(*key) for key in self._db.execute("SELECT root, path FROM deleted")]

    def is_lost(self, origin: RootedPath) -> bool:
        """Return whether the archive neither holds an exchange nor has deleted it."""
        values = {"root": origin.root, "path": origin.path}
        return self._db.execute(_IS_KNOWN_SQL, values).fetchone() is None

    def forget(self, asked_path: str, exchange_id: int) -> None:
        """Keep an exchange out from now on.

        Args:
            asked_path: The absolute path that was given to `forget`.
            exchange_id: An exchange that the archive still holds.
        """
        path, name, digest = self._db.execute(
            "SELECT path, name, digest FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        self._db.execute(
            "INSERT INTO forgotten(asked, path_digest, digest) VALUES(?,?,?)",
            (os.fsencode(asked_path), _digest_of_path(path, name), digest),
        )

    def is_forgotten(self, path: str, name: str, digest: str) -> bool:
        """Return whether `forget` has deleted an exchange.

        Args:
            path: The path of the exchange.
            name: Its id as the source names it. An id that is a place in a file names nothing: such
                an exchange is known by its text alone.
            digest: The digest of its form; "" if that is unknown.
        """
        row = self._db.execute(
            "SELECT 1 FROM forgotten WHERE (digest=? AND digest!='') "
            "OR (path_digest=? AND path_digest!='') LIMIT 1",
            (digest, _digest_of_path(path, name)),
        ).fetchone()
        return row is not None

    def all_forgotten(self) -> list[ForgottenExchange]:
        """Return what `forget` has deleted, in an order that does not depend on when."""
        rows = self._db.execute("SELECT asked, path_digest, digest FROM forgotten").fetchall()
        return sorted((os.fsdecode(asked), *digests) for asked, *digests in rows)

    def restore_forgotten(self, forgotten: Sequence[ForgottenExchange]) -> None:
        """Keep these exchanges out, too: a damaged archive has lost that `forget` deleted them."""
        missing = set(forgotten) - set(self.all_forgotten())
        rows = [(os.fsencode(asked), *digests) for asked, *digests in sorted(missing)]
        self._db.executemany(
            "INSERT INTO forgotten(asked, path_digest, digest) VALUES(?,?,?)", rows
        )

    def unforget(self, asked_path: str) -> bool:
        """Let the exchanges in again that `forget` deleted; return whether there are any."""
        deleted = self._db.execute(
            "DELETE FROM forgotten WHERE asked=?", (os.fsencode(asked_path),)
        )
        return deleted.rowcount > 0


def _digest_of_path(path: str, name: str) -> str:
    return "" if name.startswith(POSITIONAL_IDS) else hash_content(path.encode())
