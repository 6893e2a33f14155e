"""Turn a file's hits into passages: join adjacent chunks, add neighbours, show no text twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anchord.core.ports import Catalog, ChunkStore
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import ChunkLocation, Hit, Row

_MAX_NEIGHBOURS = 8
"""How many chunks before and after a passage are looked at to expand it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text of one file that is shown as one: adjacent hits of a section, and added neighbours."""

    row: Row
    """The best chunk's row."""
    hit: Hit
    """The best chunk's hit."""
    start_line: int
    end_line: int
    text: str
    chunk_ids: tuple[str, ...]
    """All chunks, in the order of the file."""
    heading: str = ""
    """What a conversation is called, in words; "" for a file."""


def merge_adjacent_hits(rows_and_hits: Sequence[tuple[Row, Hit]]) -> list[Passage]:
    """Return passages of one file's hits, best first.

    Hits whose chunks follow each other in the same section form one passage.
    """
    in_file_order = sorted(rows_and_hits, key=_ordinal)
    runs: list[list[tuple[Row, Hit]]] = []
    for row, hit in in_file_order:
        if runs and _continues(runs[-1][-1], row, hit):
            runs[-1].append((row, hit))
        else:
            runs.append([(row, hit)])
    passages = [make_passage(run) for run in runs]
    return sorted(passages, key=lambda passage: _best_first(passage.hit))


def make_passage(run: Sequence[tuple[Row, Hit]]) -> Passage:
    """Return one passage of rows that follow each other in a file, in their order."""
    best_row, best_hit = min(run, key=lambda each: _best_first(each[1]))
    origin = best_hit.location.origin
    printable_path = escape_non_utf8(origin.path)
    texts_and_locations = [(row.text, hit.location) for row, hit in run]
    _, first_location = texts_and_locations[0]
    _, last_location = texts_and_locations[-1]
    return Passage(
        row=replace(best_row, root=origin.root, path=printable_path),
        hit=best_hit,
        start_line=first_location.start_line,
        end_line=last_location.end_line,
        text=join_chunk_texts(texts_and_locations),
        chunk_ids=tuple(row.id for row, _ in run),
    )


def _ordinal(row_and_hit: tuple[Row, Hit]) -> int:
    _, hit = row_and_hit
    return hit.location.ordinal


def _best_first(hit: Hit) -> tuple[float, str]:
    """Return a sort key: a higher score comes first, then the smaller id."""
    return -hit.score, hit.id


def join_chunk_texts(texts_and_locations: Sequence[tuple[str, ChunkLocation]]) -> str:
    """Join the texts of chunks that follow each other, with the blank lines between them."""
    text, location = texts_and_locations[0]
    parts = [text]
    previous_end = location.end_line
    for text, location in texts_and_locations[1:]:
        line_ends = max(1, location.start_line - previous_end)
        parts.append("\n" * line_ends)
        parts.append(text)
        previous_end = location.end_line
    return "".join(parts)


def expand_passage(
    passage: Passage, max_chars: int, store: ChunkStore, catalog: Catalog
) -> Passage:
    """Add neighbouring chunks of the same section, nearest first, up to a length.

    Args:
        passage: The passage; longer ones are returned as they are.
        max_chars: The length in characters of the expanded text.
        store: Where the neighbours' texts are.
        catalog: Says which chunks are neighbours.

    Returns:
        `passage` itself if its chunks changed since it was found.
    """
    distance = _MAX_NEIGHBOURS + len(passage.chunk_ids)
    ids = list(catalog.neighbor_chunk_ids(passage.hit.id, distance))
    first_id = passage.chunk_ids[0]
    last_id = passage.chunk_ids[-1]
    if first_id not in ids or last_id not in ids:
        return passage
    rows = store.get_display_rows(ids)
    neighbourhood = _Neighbourhood(
        ids=ids,
        rows={row.id: row for row in rows},
        locations=catalog.locate_chunks(ids),
        section=passage.row.header_path,
    )
    first, last = ids.index(first_id), ids.index(last_id)
    if not all(map(neighbourhood.has, ids[first : last + 1])):
        return passage
    chosen = neighbourhood.expand(first, last, max_chars)
    texts_and_locations = neighbourhood.texts_and_locations(chosen)
    _, first_location = texts_and_locations[0]
    _, last_location = texts_and_locations[-1]
    return replace(
        passage,
        start_line=first_location.start_line,
        end_line=last_location.end_line,
        text=join_chunk_texts(texts_and_locations),
        chunk_ids=tuple(chosen),
    )


def drop_repeated_passages(passages: Sequence[Passage]) -> Iterator[Passage]:
    """Yield passages in order, without those whose chunks are all in earlier ones."""
    shown_ids: set[str] = set()
    for passage in passages:
        if not shown_ids.issuperset(passage.chunk_ids):
            yield passage
        shown_ids.update(passage.chunk_ids)


@dataclass(frozen=True, slots=True)
class _Neighbourhood:
    """The chunks around a passage, in the order of the file. Some may have just been deleted."""

    ids: list[str]
    rows: Mapping[str, Row]
    locations: Mapping[str, ChunkLocation]
    section: str

    def has(self, chunk_id: str) -> bool:
        return chunk_id in self.rows and chunk_id in self.locations

    def texts_and_locations(self, chunk_ids: Sequence[str]) -> list[tuple[str, ChunkLocation]]:
        pairs: list[tuple[str, ChunkLocation]] = []
        for chunk_id in chunk_ids:
            row = self.rows[chunk_id]
            pairs.append((row.text, self.locations[chunk_id]))
        return pairs

    def expand(self, first: int, last: int, max_chars: int) -> list[str]:
        """Return the ids of the passage and of the neighbours that fit, added one at each side.

        Args:
            first: Index of the passage's first chunk in `ids`.
            last: Index of its last chunk; `has` is true of all between them.
            max_chars: The length in characters of the text with the neighbours.
        """
        can_grow_after = True
        can_grow_before = True
        while can_grow_after or can_grow_before:
            # Invariant: ids[first:last + 1] are adjacent chunks, and their text fits.
            can_grow_after = can_grow_after and self._is_addable(last + 1)
            can_grow_after = can_grow_after and self._fits(first, last + 1, max_chars)
            last += can_grow_after
            can_grow_before = can_grow_before and self._is_addable(first - 1)
            can_grow_before = can_grow_before and self._fits(first - 1, last, max_chars)
            first -= can_grow_before
        return self.ids[first : last + 1]

    def _is_addable(self, index: int) -> bool:
        """Whether there is a chunk of the section, and it was not deleted meanwhile."""
        if not 0 <= index < len(self.ids):
            return False
        chunk_id = self.ids[index]
        return self.has(chunk_id) and self.rows[chunk_id].header_path == self.section

    def _fits(self, first: int, last: int, max_chars: int) -> bool:
        texts_and_locations = self.texts_and_locations(self.ids[first : last + 1])
        return len(join_chunk_texts(texts_and_locations)) <= max_chars


def _continues(previous: tuple[Row, Hit], row: Row, hit: Hit) -> bool:
    """Whether a chunk follows another directly, in the same section."""
    previous_row, previous_hit = previous
    next_ordinal = previous_hit.location.ordinal + 1
    if hit.location.ordinal != next_ordinal:
        return False
    return row.header_path == previous_row.header_path
