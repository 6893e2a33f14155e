"""Replaces secrets in what is stored already, after the rules have changed.

Most transcripts are read again then. This reaches exchanges whose transcript is gone, and those
that were taken out of the index. Ids of sessions and exchanges become what a reader makes of them
now, so what is read again is the same exchange.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Callable
from urllib.parse import unquote

from anchord.core.ids import hash_content
from anchord.core.sqlite_connection import CheckedConnection
from anchord.sources.conversations.exchange_redaction import (
    redact_encoded_exchange,
    redact_exchange_path,
    redact_id,
)
from anchord.sources.secrets.redactor import redact

_META_KEY = "rules for secrets"
_EXCHANGES_AT_ONCE = 200
_FIRST_TO_CUT_LAST = 10
"""The version of the rules with which calls of tools are cut after secrets were replaced."""
_COMPRESSION_LEVEL = 6


class StoredRedaction:
    """Cleans an archive once after each change of the rules."""

    def __init__(
        self,
        db: CheckedConnection,
        next_version: Callable[[], int],
        redact_path: Callable[[str], str],
    ) -> None:
        """Change nothing yet.

        Args:
            db: The archive's connection.
            next_version: Returns the version of a changed exchange; called in a transaction.
            redact_path: Returns the path by which a file is known.
        """
        self._db = db
        self._next_version = next_version
        self._redact_path = redact_path

    def run(self, rules: str) -> int:
        """Replace secrets in exchanges, ids, titles, folders and paths, if other rules did it last.

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
        were_cut_first = _cut_tools_first(row[0] if row else "")
        changed = 0
        last_id = 0
        while ids := self._ids_after(last_id):
            last_id = ids[-1]
            with self._db.transaction():
                changed += sum(
                    self._clean_exchange(each, tools_were_cut_first=were_cut_first) for each in ids
                )
        with self._db.transaction():
            self._clean_sessions()
            self._clean_heads()
            self._clean_files()
            self._db.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (_META_KEY, rules))
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return changed

    def _ids_after(self, last_id: int) -> list[int]:
        rows = self._db.execute(
            "SELECT id FROM exchanges WHERE id>? ORDER BY id LIMIT ?", (last_id, _EXCHANGES_AT_ONCE)
        )
        return [int(row[0]) for row in rows]

    def _clean_exchange(self, exchange_id: int, *, tools_were_cut_first: bool) -> bool:
        self._clean_last_path(exchange_id)
        is_renamed = self._rename_exchange(exchange_id)
        content, digest, counts = self._db.execute(
            "SELECT content, digest, redacted FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        try:
            stored = zlib.decompress(content)
            clean, new_counts = redact_encoded_exchange(
                stored, tools_were_cut_first=tools_were_cut_first
            )
            all_counts = Counter(json.loads(counts or "{}")) + new_counts
        except (zlib.error, ValueError, TypeError, KeyError):
            return False  # A damaged exchange: `salvage` and `read` say so.
        if not is_renamed and clean == stored:
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

    def _rename_exchange(self, exchange_id: int) -> bool:
        """Replace secrets in an exchange's id and path; return whether there were any."""
        path, name = self._db.execute(
            "SELECT path, name FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        new_name = redact_id(name)
        new_path = redact_exchange_path(path)
        if (new_path, new_name) == (path, name):
            return False
        self._db.execute(
            "UPDATE exchanges SET path=?, name=? WHERE id=?", (new_path, new_name, exchange_id)
        )
        return True

    def _clean_last_path(self, exchange_id: int) -> None:
        (path,) = self._db.execute(
            "SELECT last_path FROM exchanges WHERE id=?", (exchange_id,)
        ).fetchone()
        if path is not None and (clean := self._redacted_bytes(path)) != path:
            values = (clean, exchange_id)
            self._db.execute("UPDATE exchanges SET last_path=? WHERE id=?", values)

    def _clean_sessions(self) -> None:
        rows = self._db.execute(
            "SELECT id, root, source, name, title, project, parent FROM sessions"
        ).fetchall()
        for session_id, root, source, *told in rows:
            name, title, project, parent = told
            clean = [redact_id(name), redact(title).text, redact(project).text, redact_id(parent)]
            if clean == told:
                continue
            twin = self._db.execute(
                "SELECT id FROM sessions WHERE root=? AND source=? AND name=? AND id!=?",
                (root, source, clean[0], session_id),
            ).fetchone()
            if twin is None:
                self._db.execute(
                    "UPDATE sessions SET name=?, title=?, project=?, parent=? WHERE id=?",
                    (*clean, session_id),
                )
            else:  # A transcript of the same session was read with these rules.
                values = (twin[0], session_id)
                self._db.execute("UPDATE exchanges SET session=? WHERE session=?", values)
                self._db.execute("DELETE FROM sessions WHERE id=?", (session_id,))

    def _clean_heads(self) -> None:
        rows = self._db.execute(
            "SELECT title, project, parent, carrier, session FROM heads"
        ).fetchall()
        for title, project, parent, *place in rows:
            clean = (redact(title).text, redact(project).text, redact_id(parent))
            if clean != (title, project, parent):
                self._db.execute(
                    "UPDATE heads SET title=?, project=?, parent=? WHERE carrier=? AND session=?",
                    (*clean, *place),
                )

    def _clean_files(self) -> None:
        rows = self._db.execute("SELECT id, path, mark, unknown FROM carriers").fetchall()
        for file_id, path, mark, unknown in rows:
            clean_path, clean_unknown = self._redacted_bytes(path), redact(unknown).text
            # Ids in a resume point are found where they begin, so look at each text in it.
            is_clean = _holds_no_secret(mark) and clean_unknown == unknown
            if is_clean and clean_path == path:
                continue
            # A file that was read under both names keeps its old record: the next walk deletes it.
            self._db.execute(
                "UPDATE OR IGNORE carriers SET path=? WHERE id=?", (clean_path, file_id)
            )
            self._db.execute(
                "UPDATE carriers SET reader='', mark='', unknown=? WHERE id=?",
                (clean_unknown, file_id),
            )

    def _redacted_bytes(self, path: bytes) -> bytes:
        return os.fsencode(self._redact_path(os.fsdecode(path)))


def _holds_no_secret(mark: str) -> bool:
    return not redact(mark).counts_by_kind and not redact(unquote(mark)).counts_by_kind


def _cut_tools_first(rules: str) -> bool:
    """Whether these rules were those of an anchord that cut calls before it looked for secrets.

    Args:
        rules: Their name with their version; "" if secrets were never replaced.
    """
    version = rules.rpartition(" ")[2]
    return not version.isdigit() or int(version) < _FIRST_TO_CUT_LAST
