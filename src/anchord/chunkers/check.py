"""Are the chunks of a document what they promise to be? The figures of `anchord chunk --check`, and the laws behind them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from anchord.chunkers.layout import Count, Limits, Sizing
from anchord.chunkers.markdown import fences, has_open_fence
from anchord.model import Chunk, Document


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts over the chunks of one document; tokens are the model's, of the embedded texts."""

    chunks: int
    repeated_ids: int
    lines_not_covered: int
    out_of_order: int
    over_window: int
    unbalanced_fences: int
    """Chunks with a fence that is not closed in them, where all of the document's are."""
    split_fences: int
    """Fences of the document that fit in a chunk and are in several."""
    integrity: float
    """Share of the document's fences that are whole, or could not be."""
    tokens_min: int
    tokens_median: float
    tokens_max: int
    under_64_tokens: int

    @property
    def broken(self) -> bool:
        """Whether a law is broken."""
        wrong = (self.repeated_ids, self.lines_not_covered, self.out_of_order, self.over_window, self.unbalanced_fences)
        return any(wrong) or self.split_fences > 0


def check(document: Document, chunks: Sequence[Chunk], limits: Limits, count: Count) -> Figures:
    """Count what is wrong with the chunks of a document, and how large they are."""
    covered = {line for piece in chunks for line in range(piece.start_line, piece.end_line + 1)}
    lines = document.text.split("\n")
    found = fences(document.text) if document.kind == "markdown" else []
    split = sum(_is_split(first, last, lines, chunks, Sizing(limits, count)) for first, last in found)
    closed = document.kind == "markdown" and not has_open_fence(document.text)
    tokens = [piece.tokens for piece in chunks] or [0]
    return Figures(
        chunks=len(chunks),
        repeated_ids=len(chunks) - len({piece.chunk_id for piece in chunks}),
        lines_not_covered=sum(bool(line.strip()) and number not in covered for number, line in enumerate(lines, 1)),
        out_of_order=sum(one.end_line > other.start_line for one, other in pairwise(chunks)),
        over_window=sum(piece.tokens > limits.window for piece in chunks),
        unbalanced_fences=sum(closed and has_open_fence(piece.content) for piece in chunks),
        split_fences=split,
        integrity=1 - split / len(found) if found else 1.0,
        tokens_min=min(tokens),
        tokens_median=statistics.median(tokens),
        tokens_max=max(tokens),
        under_64_tokens=sum(n < _SMALL for n in tokens) if chunks else 0,
    )


_SMALL = 64


def _is_split(first: int, last: int, lines: Sequence[str], chunks: Sequence[Chunk], sizing: Sizing) -> bool:
    """Whether a fence of lines [first, last) fits in a chunk, and no chunk holds all of it."""
    weights, _ = sizing.weigh(lines[first:last])
    if sum(weights) > sizing.limits.body:
        return False
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    return not any(piece.start_line <= first + 1 and last <= piece.end_line for piece in chunks)
