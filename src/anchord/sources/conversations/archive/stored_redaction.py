"""Replaces secrets in exchanges that are stored already, after the rules have changed.

Most transcripts are read again then. This reaches exchanges whose transcript is gone, and those
that were taken out of the index.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable

from anchord.core.ids import hash_content
from anchord.core.sqlite_connection import CheckedConnection
from anchord.sources.conversations.exchange_redaction import redact_encoded_exchange
from anchord.sources.secrets.redactor import redact

_META_KEY = "rules for secrets"
_EXCHANGES_AT_ONCE = 200
_COMPRESSION_LEVEL = 6
_TITLE_TABLES = (("sessions", "id"), ("heads", "carrier, session"))


class StoredRedaction:
    """Cleans an archive once after each change of the rules."""

    def __init__(self, db: CheckedConnection, next_version: Callable[[], int]) -> None:
        """Change nothing yet.

        Args:
            db: The archive's connection.
            next_version: Returns the version of a changed exchange; called in a transaction.
        """
        self._db = db
        self._next_version = next_version

    def run(self, rules: str) -> int:
        """Replace secrets in all exchanges, titles and folders, if other rules did it last.

        An exchange that changes is due for the index.

        Args:
            rules: The name of the rules with their version.

        Returns:
            How many exchanges changed.

        Raises:
            StoreError: The archive cannot be written. A later run continues.
        """
        row = self._db.execute("SELECT value FROM meta WHERE key=?", (_META_KEY,)).fetchone()
        if row is not None and row[0] == rules:
            return 0
        changed = 0
        last_id = 0
        while ids := self._ids_after(last_id):
            last_id = ids[-1]
            with self._db.transaction():
                changed += sum(map(self._clean_exchange, ids))
        with self._db.transaction():
            for table, key in _TITLE_TABLES:
                self._clean_titles(table, key)
            self._db.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (_META_KEY, rules))
        return changed

    def _ids_after(self, last_id: int) -> list[int]:
        rows = self._db.execute(
            "SELECT id FROM exchanges WHERE id>? ORDER BY id LIMIT ?", (last_id, _EXCHANGES_AT_ONCE)
        )
        return [int(row[0]) for row in rows]

    def _clean_exchange(self, exchange_id: int) -> bool:
        content, digest, counts = self._db.execute(
            "SELECT content, digest, redacted FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        try:
            clean, new_counts = redact_encoded_exchange(zlib.decompress(content))
            all_counts = Counter(json.loads(counts or "{}")) + new_counts
        except (zlib.error, ValueError, TypeError, KeyError):
            return False  # A damaged exchange: `salvage` and `read` say so.
        if not new_counts:
            return False
        new_digest = hash_content(clean)
        self._db.execute(
            "UPDATE exchanges SET content=?, digest=?, redacted=?, version=?, due=1 WHERE id=?",
            (
                zlib.compress(clean, _COMPRESSION_LEVEL),
                new_digest,
                json.dumps(dict(all_counts)),
                self._next_version(),
                exchange_id,
            ),
        )
        self._db.execute(
            "UPDATE tellings SET digest=? WHERE exchange=? AND digest=?",
            (new_digest, exchange_id, digest),
        )
        return True

    def _clean_titles(self, table: str, key: str) -> None:
        places = " AND ".join(f"{column}=?" for column in key.split(", "))
        rows = self._db.execute(f"SELECT title, project, {key} FROM {table}").fetchall()
        for title, project, *place in rows:
            clean = (redact(title).text, redact(project).text)
            if clean != (title, project):
                self._db.execute(
                    f"UPDATE {table} SET title=?, project=? WHERE {places}",
                    (*clean, *place),
                )
