"""The chunks of a file in `state.sqlite`, in their order: what an edit leaves as it is costs no write."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TypeVarTuple

from anchord.model import Placed

Rest = TypeVarTuple("Rest")

_LAST = (1 << 63) - 1
_END = Placed("", "", "", 0, 0)
"""Where the list of an intent ends, if it is shorter than what stands."""
_NONE = (-1, _END)


class ChunkLists:
    """The lists of all files. Whoever changes one does so within a transaction of the catalogue."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Serve the catalogue of a connection."""
        self._db = db

    def of(self, file: int, newest: int = _LAST, first: int = 0, last: int = _LAST) -> dict[int, tuple[int, Placed]]:
        """Return the chunks by ordinal, in order, each with its generation: the newest up to one, of each ordinal."""
        rows = self._db.execute(
            "SELECT ordinal, generation, chunk_id, vector_key, row_hash, start_line, end_line FROM chunks "
            "WHERE file=? AND generation<=? AND ordinal BETWEEN ? AND ? ORDER BY ordinal, generation",
            (file, newest, first, last),
        )
        listed = cut({ordinal: (chunk, generation, placed) for ordinal, generation, chunk, *placed in rows})
        return {ordinal: (generation, Placed(chunk, *placed)) for ordinal, (chunk, generation, placed) in listed.items()}

    def intend(self, file: int, chunks: Sequence[Placed]) -> None:
        """Note what is wanted instead of what stands: of another intent nothing stays."""
        self._db.execute(
            "DELETE FROM chunks WHERE file=? AND generation > (SELECT applied FROM files WHERE id=?)", (file, file)
        )
        standing = self.of(file)
        self._write(file, {n: placed for n, placed in enumerate(chunks) if standing.get(n, _NONE)[1] != placed})
        if len(chunks) < len(standing):
            self._write(file, {len(chunks): _END})

    def stand(self, file: int, chunks: Sequence[Placed]) -> None:
        """Leave these alone: what an intent wrote stays, what only moved is changed where it is."""
        listed = self.of(file)
        rows = self._db.execute("SELECT generation, ordinal FROM chunks WHERE file=?", (file,))
        over = [(file, g, n) for g, n in rows if n >= len(chunks) or listed.get(n, _NONE)[0] != g]
        moved = [(n, generation) for n, (generation, placed) in listed.items() if n < len(chunks) and placed != chunks[n]]
        self._db.executemany("DELETE FROM chunks WHERE file=? AND generation=? AND ordinal=?", over)
        self._db.executemany(
            "UPDATE chunks SET chunk_id=?, vector_key=?, row_hash=?, start_line=?, end_line=? "
            "WHERE file=? AND generation=? AND ordinal=?",
            [(*_fields(chunks[n]), file, generation, n) for n, generation in moved],
        )
        self._write(file, {n: placed for n, placed in enumerate(chunks) if n not in listed})

    def _write(self, file: int, chunks: Mapping[int, Placed]) -> None:
        self._db.executemany(
            "INSERT INTO chunks VALUES(?,(SELECT wanted FROM files WHERE id=?),?,?,?,?,?,?)",
            [(file, file, ordinal, *_fields(placed)) for ordinal, placed in chunks.items()],
        )


def cut(listed: Mapping[int, tuple[str, *Rest]]) -> dict[int, tuple[str, *Rest]]:
    """Return what is listed by ordinal, each with its chunk's id first, without what stands at or behind an intent's end."""
    end = min((ordinal for ordinal, (chunk, *_) in listed.items() if not chunk), default=_LAST)
    return {ordinal: each for ordinal, each in listed.items() if ordinal < end}


def _fields(placed: Placed) -> tuple[str, str, str, int, int]:
    return placed.chunk_id, placed.vector_key, placed.row_hash, placed.start_line, placed.end_line
