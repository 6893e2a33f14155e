"""The ordered chunks of each file in `state.sqlite`; an unchanged chunk is not written again.

A row belongs to the generation that wrote it. Generations up to the file's `applied` are confirmed;
rows of a higher one are an intent. For each ordinal the highest generation counts. An intent that
makes the list shorter has a row without a chunk id, the end marker, at the ordinal where the new
list ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeVarTuple

from anchord.core.types import ChunkPlace, ChunkRecord

Rest = TypeVarTuple("Rest")

_MAX_INTEGER = (1 << 63) - 1
_END_MARKER = ChunkRecord(
    chunk_id="",
    vector_key="",
    row_hash="",
    start_line=0,
    end_line=0,
)
_UNLISTED = (-1, _END_MARKER)
"""(generation, chunk) of an ordinal that the list does not have; equal to no real entry."""
_CONFIRMED_SQL = """
SELECT file, ordinal, chunk_id FROM chunks JOIN files ON files.id=file
WHERE chunk_id IN (SELECT value FROM json_each(?)) AND wanted=applied ORDER BY file, ordinal
"""


class ChunkLists:
    """The lists of all files. Methods that write must run in a transaction of the catalog."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Use a connection of the catalog."""
        self._db = db

    def read_chunks(
        self,
        file_id: int,
        newest_generation: int = _MAX_INTEGER,
        first_ordinal: int = 0,
        last_ordinal: int = _MAX_INTEGER,
    ) -> dict[int, tuple[int, ChunkRecord]]:
        """Return the newest chunk of each ordinal, with the generation that wrote it.

        Args:
            file_id: The file's id in the catalog.
            newest_generation: Ignore rows of higher generations.
            first_ordinal: The first position in the file, from 0.
            last_ordinal: The last position, inclusive.

        Returns:
            Ordinal -> (generation, chunk), in the file's order, up to an intent's end marker.
        """
        rows = self._db.execute(
            "SELECT ordinal, chunk_id, generation, vector_key, row_hash, start_line, end_line "
            "FROM chunks WHERE file=? AND generation<=? AND ordinal BETWEEN ? AND ? "
            "ORDER BY ordinal, generation",
            (file_id, newest_generation, first_ordinal, last_ordinal),
        )
        # In order of generation: the newest row of an ordinal is the one that stays.
        newest = {ordinal: tuple(columns) for ordinal, *columns in rows}
        return {
            ordinal: (
                generation,
                ChunkRecord(
                    chunk_id=chunk_id,
                    vector_key=vector_key,
                    row_hash=row_hash,
                    start_line=start_line,
                    end_line=end_line,
                ),
            )
            for ordinal, (
                chunk_id,
                generation,
                vector_key,
                row_hash,
                start_line,
                end_line,
            ) in truncate_at_end_marker(newest).items()
        }

    def read_places(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkPlace]:
        """Return where chunks are among the chunks of their files, with two queries a file.

        Chunks of files with an unconfirmed intent are left out, and so are unknown ones.
        """
        rows = self._db.execute(_CONFIRMED_SQL, (json.dumps(chunk_ids),)).fetchall()
        places: dict[str, ChunkPlace] = {}
        for file_id, rows_of_file in groupby(rows, itemgetter(0)):
            wanted = [(ordinal, chunk_id) for _, ordinal, chunk_id in rows_of_file]
            # A confirmed file has one row for each ordinal.
            around = self._db.execute(
                "SELECT ordinal, chunk_id FROM chunks WHERE file=? AND ordinal BETWEEN ? AND ?",
                (file_id, wanted[0][0] - 1, wanted[-1][0] + 1),
            )
            ids = dict(around)
            counted = self._db.execute("SELECT count(*) FROM chunks WHERE file=?", (file_id,))
            (count,) = counted.fetchone()
            for ordinal, chunk_id in wanted:
                before, after = ids.get(ordinal - 1), ids.get(ordinal + 1)
                places[chunk_id] = ChunkPlace(ordinal, count, before, after)
        return places

    def write_intent(self, file_id: int, chunks: Sequence[ChunkRecord]) -> None:
        """Write the chunks that a file is about to have, replacing any earlier intent.

        Only ordinals whose chunk differs from the confirmed one get a row.

        Args:
            file_id: The file's id in the catalog; its `wanted` is above its `applied`.
            chunks: All chunks that the file will have, in order.
        """
        self._db.execute(
            "DELETE FROM chunks "
            "WHERE file=? AND generation > (SELECT applied FROM files WHERE id=?)",
            (file_id, file_id),
        )
        # Of a list that ends at its begin, only whether it had a chunk matters.
        confirmed = self.read_chunks(file_id, last_ordinal=_MAX_INTEGER if chunks else 0)
        changed = {
            ordinal: chunk
            for ordinal, chunk in enumerate(chunks)
            if confirmed.get(ordinal, _UNLISTED)[1] != chunk
        }
        if len(chunks) < len(confirmed):
            changed[len(chunks)] = _END_MARKER
        self._insert(file_id, changed)

    def replace_chunks(self, file_id: int, chunks: Sequence[ChunkRecord]) -> None:
        """Write these chunks as the confirmed ones of a file, and delete its other chunk rows.

        Args:
            file_id: The file's id in the catalog; `applied` already has the new generation.
            chunks: All chunks of the file, in order.
        """
        listed = self.read_chunks(file_id)
        self._delete_outdated_rows(file_id, listed, len(chunks))
        # A row whose chunk differs (other lines, usually) is updated in place.
        outdated = [
            (*_columns(chunks[ordinal]), file_id, generation, ordinal)
            for ordinal, (generation, chunk) in listed.items()
            if ordinal < len(chunks) and chunk != chunks[ordinal]
        ]
        self._db.executemany(
            "UPDATE chunks SET chunk_id=?, vector_key=?, row_hash=?, start_line=?, end_line=? "
            "WHERE file=? AND generation=? AND ordinal=?",
            outdated,
        )
        missing = {ordinal: chunk for ordinal, chunk in enumerate(chunks) if ordinal not in listed}
        self._insert(file_id, missing)

    def _delete_outdated_rows(
        self, file_id: int, listed: Mapping[int, tuple[int, ChunkRecord]], count: int
    ) -> None:
        """Delete rows behind the new list's end, and all but the newest row of each ordinal."""
        rows = self._db.execute("SELECT generation, ordinal FROM chunks WHERE file=?", (file_id,))
        outdated = [
            (file_id, generation, ordinal)
            for generation, ordinal in rows
            if ordinal >= count or listed.get(ordinal, _UNLISTED)[0] != generation
        ]
        self._db.executemany(
            "DELETE FROM chunks WHERE file=? AND generation=? AND ordinal=?", outdated
        )

    def _insert(self, file_id: int, chunks_by_ordinal: Mapping[int, ChunkRecord]) -> None:
        """Insert rows of the file's wanted generation."""
        self._db.executemany(
            "INSERT INTO chunks VALUES(?,(SELECT wanted FROM files WHERE id=?),?,?,?,?,?,?)",
            [
                (file_id, file_id, ordinal, *_columns(chunk))
                for ordinal, chunk in chunks_by_ordinal.items()
            ],
        )


def truncate_at_end_marker(
    chunks_by_ordinal: Mapping[int, tuple[str, *Rest]],
) -> dict[int, tuple[str, *Rest]]:
    """Drop an intent's end marker and everything behind it.

    Args:
        chunks_by_ordinal: Ordinal -> (chunk id, ...); the id of an end marker is "".

    Returns:
        The entries before the first end marker, in the same order; all of them where there is none.
    """
    markers = (ordinal for ordinal, (chunk_id, *_) in chunks_by_ordinal.items() if not chunk_id)
    end = min(markers, default=_MAX_INTEGER)
    return {ordinal: entry for ordinal, entry in chunks_by_ordinal.items() if ordinal < end}


def _columns(chunk: ChunkRecord) -> tuple[str, str, str, int, int]:
    return chunk.chunk_id, chunk.vector_key, chunk.row_hash, chunk.start_line, chunk.end_line
