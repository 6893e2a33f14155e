"""Tells exchanges apart that have the same id and are not copies of each other.

The ids of some programs are unique among all sessions: there an exchange with a known id is a copy
of it, such as the history of a resumed session, and its path does not contain the session. A
transcript that was edited, or written by another tool, can repeat the ids of another session with
other questions. Then the exchange whose question sorts first has the path without a session, and
each of the others one with a digest of its question. So the paths do not depend on the order in
which files are read.
"""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from anchord.core.ids import hash_content
from anchord.core.types import RootedPath
from anchord.sources.conversations.archive.exchange_forms import ExchangeSource
from anchord.sources.conversations.archive.merge import ToldExchange
from anchord.sources.conversations.archive.path_lookup import OWN_DIGEST_CHARS
from anchord.sources.conversations.exchange_document import exchange_path

_OWN_PATH = re.compile(rf"(/[^/]+)/=[0-9a-f]{{{OWN_DIGEST_CHARS}}}(?=/)")
_FIND_SQL = """
SELECT e.id, e.digest, e.content, e.carrier, c.reader FROM exchanges e
LEFT JOIN carriers c ON c.id=e.carrier
WHERE e.root=? AND e.path=?
"""


class _Known(NamedTuple):
    """An exchange of the archive."""

    id: int
    digest: str
    """"" if its text is damaged."""
    content: bytes
    """Compressed JSON."""
    file_id: int | None
    reader_version: str | None
    """With which its file was read."""


class RepeatedIds:
    """Decides under which path an exchange is stored. Runs inside a transaction of the archive."""

    def __init__(self, db: sqlite3.Connection, next_version: Callable[[], int]) -> None:
        """Use an open archive, as `ExchangeForms` does."""
        self._db = db
        self._next_version = next_version

    def place(
        self, source: ExchangeSource, told: ToldExchange
    ) -> tuple[ToldExchange, list[RootedPath]]:
        """Return an exchange of a file with the path at which it is stored.

        Args:
            source: The file.
            told: The exchange, with the path of its id.

        Returns:
            The exchange, and the new places of others that had to give way to it.
        """
        known = self._find(source.root, told.path) if told.has_unique_ids else None
        if not told.has_unique_ids or (known and known.digest == told.digest):
            return told, []
        question = told.texts.question
        own_path = _own_path(source.source, told.exchange.id, question)
        if self._find(source.root, own_path):
            return replace(told, path=own_path), []
        known_question = _question_of_another(known, source, told) if known else None
        if known is None or known_question is None:
            return told, []
        their_path = _own_path(source.source, told.exchange.id, known_question)
        comes_first = question < known_question
        if not comes_first or self._find(source.root, their_path):
            return replace(told, path=own_path), []
        self._db.execute(
            "UPDATE exchanges SET path=?, version=?, due=1 WHERE id=?",
            (their_path, self._next_version(), known.id),
        )
        return told, [RootedPath(source.root, their_path)]

    def _find(self, root: str, path: str) -> _Known | None:
        row = self._db.execute(_FIND_SQL, (root, path)).fetchone()
        return _Known(*row) if row else None


def _question_of_another(known: _Known, source: ExchangeSource, told: ToldExchange) -> str | None:
    """Return the question of a stored exchange if the told one is not a copy of it, else None.

    Another reader can understand the same question in another way: then the time decides.
    """
    if known.file_id == source.file_id or not known.digest:
        return None
    fields = json.loads(zlib.decompress(known.content))
    question = str(fields["question"])
    is_comparable = known.reader_version == source.reader_version != ""
    is_other = is_comparable or fields["at"] != told.exchange.at
    return question if is_other and question != told.texts.question else None


def _own_path(source: str, exchange_id: str, question: str) -> str:
    digest = hash_content(question.encode("utf-8", "replace"))[:OWN_DIGEST_CHARS]
    return exchange_path(source, f"={digest}", exchange_id)


def path_of_id(path: str) -> str:
    """Return the path that an exchange has where no other session repeats its id."""
    return _OWN_PATH.sub(r"\1", path, count=1)
