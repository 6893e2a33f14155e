"""The ids that a moved file's chunks have at its new path, without chunking the file again.

An id contains the chunk's lines counted from its anchor, which nothing stores. They are found by
trial: the ids at the old path tell whether a guess is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from anchord.core.ids import make_chunk_id

_MAX_LINES_BELOW_ANCHOR = 64
"""How far above a chunk a new anchor is looked for; between them are blank lines only."""


class PlacedChunk(NamedTuple):
    """A chunk as it was at the old path; lines are 1-based and inclusive."""

    chunk_id: str
    header_path: tuple[str, ...]
    content_hash: str
    start_line: int
    end_line: int


def ids_at_new_path(
    chunks: Sequence[PlacedChunk], old_file_key: str, new_file_key: str
) -> list[str] | None:
    """Return the ids of a file's chunks at another path.

    Args:
        chunks: All chunks of the file, in order.
        old_file_key: Key of the file (`make_file_key`) that the chunks' ids were made with.
        new_file_key: Key of the file at its new path.

    Returns:
        The ids in the same order, as chunking the file there makes them. None if an id cannot be
        explained: chunk the file.
    """
    repeats: Counter[str] = Counter()
    new_ids: list[str] = []
    anchor_line, line_before = 1, 1
    for chunk in chunks:
        first, last = chunk.start_line, chunk.end_line
        for anchor in _possible_anchors(anchor_line, line_before, first):
            lines = (first - anchor, last - anchor)
            where = (chunk.header_path, lines, chunk.content_hash)
            plain_id = make_chunk_id(old_file_key, *where, 0)
            occurrence = repeats[plain_id]
            found = make_chunk_id(old_file_key, *where, occurrence) if occurrence else plain_id
            if found == chunk.chunk_id:
                break
        else:
            return None
        repeats[plain_id] += 1
        new_ids.append(make_chunk_id(new_file_key, *where, occurrence))
        anchor_line, line_before = anchor, last
    return new_ids


def _possible_anchors(anchor_before: int, line_before: int, first_line: int) -> Iterator[int]:
    """Yield the lines that can be a chunk's anchor: the previous one's, or one since that chunk."""
    yield anchor_before
    lowest = max(line_before, first_line - _MAX_LINES_BELOW_ANCHOR)
    yield from range(first_line, lowest - 1, -1)
