"""A passage: the text of adjacent chunks of a file, shown as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anchord.core.line_matches import match_weight
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import ChunkLocation, Hit, Row


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk that can be shown, with its text and place."""

    row: Row
    location: ChunkLocation
    hit: Hit | None = None
    """None for a chunk that was not found itself, and lies beside one that was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text of one file that is shown as one: adjacent hits, and added neighbours."""

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


def make_passage(pieces: Sequence[Piece]) -> Passage:
    """Return one passage of pieces that follow each other in a file, in their order.

    Args:
        pieces: At least one of them has a hit.
    """
    hits = [(piece.hit, piece.row) for piece in pieces if piece.hit]
    best_hit, best_row = min(hits, key=lambda found: best_first(found[0]))
    origin = best_hit.location.origin
    printable_path = escape_non_utf8(origin.path)
    return Passage(
        row=replace(best_row, root=origin.root, path=printable_path),
        hit=best_hit,
        start_line=pieces[0].location.start_line,
        end_line=pieces[-1].location.end_line,
        text=join_texts(pieces),
        chunk_ids=tuple(piece.row.id for piece in pieces),
    )


def best_first(hit: Hit) -> tuple[float, str]:
    """Return a sort key: a higher score comes first, then the smaller id."""
    return -hit.score, hit.id


def join_texts(pieces: Sequence[Piece]) -> str:
    """Join the texts of chunks that follow each other, with the blank lines between them."""
    first, *others = pieces
    parts = [first.row.text]
    previous_end = first.location.end_line
    for piece in others:
        parts.append("\n" * line_ends_between(previous_end, piece.location.start_line))
        parts.append(piece.row.text)
        previous_end = piece.location.end_line
    return "".join(parts)


def match_line(passage: Passage, matched: Sequence[str]) -> int:
    """Return the line of a passage with the most letters of matched words, from 1.

    It is the first line of the best chunk if no line has such words, or if the text was converted
    from another format, so that its lines are not those of the file.

    Args:
        passage: The passage.
        matched: Words of the query that the passage contains.
    """
    start_of_best = passage.hit.location.start_line
    lines = passage.text.lower().split("\n")
    if len(lines) != passage.end_line - passage.start_line + 1:
        return start_of_best
    words = [word.lower() for word in matched]
    weights = [match_weight(line, words) for line in lines]
    best = max(weights)
    return passage.start_line + weights.index(best) if best else start_of_best


def line_ends_between(end_line: int, start_line: int) -> int:
    """Return how many line ends separate a chunk from the one after it; one within a line."""
    return max(1, start_line - end_line)
