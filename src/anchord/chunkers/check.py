"""Are the chunks of a document what they promise to be? The figures of `anchord chunk --check`, and the laws behind them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from anchord.chunkers.layout import Count, Sizing
from anchord.chunkers.markdown import fences, has_open_fence
from anchord.chunkers.plan import Plan
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

    def breaks(self, plan: Plan) -> bool:
        """Whether a law is broken. The strategies that cut by size alone promise nothing of fences."""
        fences = (self.unbalanced_fences, self.split_fences) if plan.keeps_fences else ()
        return any((self.repeated_ids, self.lines_not_covered, self.out_of_order, self.over_window, *fences))


def check(document: Document, chunks: Sequence[Chunk], plan: Plan, count: Count) -> Figures:
    """Count what is wrong with the chunks of a document, and how large they are."""
    limits, sizing = plan.limits, Sizing(plan.limits, count)
    covered = {line for piece in chunks for line in range(piece.start_line, piece.end_line + 1)}
    lines = document.text.split("\n")
    numbers = document.source_lines or range(1, len(lines) + 1)
    found = fences(document.text) if document.kind in _MARKDOWN else []
    fitting = [one for one in found if sum(sizing.weigh(lines[slice(*one)])[0]) <= limits.body]
    split = sum(_is_split(first, last, lines, chunks, numbers) for first, last in fitting)
    closed = document.kind in _MARKDOWN and not has_open_fence(document.text)
    tokens = [piece.tokens for piece in chunks] or [0]
    return Figures(
        chunks=len(chunks),
        repeated_ids=len(chunks) - len({piece.chunk_id for piece in chunks}),
        lines_not_covered=len({n for n, line in zip(numbers, lines, strict=True) if line.strip()} - covered),
        out_of_order=sum(not _follows(one, other, plan) for one, other in pairwise(chunks)),
        over_window=sum(piece.tokens > limits.window for piece in chunks),
        unbalanced_fences=sum(closed and _unbalances(piece, found, numbers) for piece in chunks),
        split_fences=split,
        integrity=1 - split / len(found) if found else 1.0,
        tokens_min=min(tokens),
        tokens_median=statistics.median(tokens),
        tokens_max=max(tokens),
        under_64_tokens=sum(n < _SMALL for n in tokens) if chunks else 0,
    )


def check_all(cut: Sequence[tuple[Document, Sequence[Chunk]]], plan: Plan, count: Count) -> Figures:
    """Count over several documents, as a file of conversations holds them."""
    each = [check(document, chunks, plan, count) for document, chunks in cut]
    pieces = [piece for _, chunks in cut for piece in chunks]
    tokens = [piece.tokens for piece in pieces] or [0]
    return Figures(
        chunks=len(pieces),
        repeated_ids=len(pieces) - len({piece.chunk_id for piece in pieces}),
        lines_not_covered=sum(figures.lines_not_covered for figures in each),
        out_of_order=sum(figures.out_of_order for figures in each),
        over_window=sum(figures.over_window for figures in each),
        unbalanced_fences=sum(figures.unbalanced_fences for figures in each),
        split_fences=sum(figures.split_fences for figures in each),
        integrity=min((figures.integrity for figures in each), default=1.0),
        tokens_min=min(tokens),
        tokens_median=statistics.median(tokens),
        tokens_max=max(tokens),
        under_64_tokens=sum(figures.under_64_tokens for figures in each),
    )


_SMALL = 64
_MARKDOWN = ("markdown", "exchange", "attachment", "summary")


def _unbalances(piece: Chunk, found: Sequence[tuple[int, int]], numbers: Sequence[int]) -> bool:
    """Whether a chunk has lines of a fence (one in an HTML comment is none) and leaves one open."""
    alone = piece.content if piece.start_line == 1 else f"\n{piece.content}"  # A rule on line 1 would open front matter.
    return has_open_fence(alone) and any(
        numbers[first] <= piece.end_line and piece.start_line <= numbers[last - 1] for first, last in found
    )


def _follows(one: Chunk, other: Chunk, plan: Plan) -> bool:
    """Whether a chunk comes after another; where the plan overlaps them, it begins and ends after it."""
    if plan.overlaps:
        return one.start_char <= other.start_char and one.end_char < other.end_char
    return one.end_char <= other.start_char


def _is_split(first: int, last: int, lines: Sequence[str], chunks: Sequence[Chunk], numbers: Sequence[int]) -> bool:
    """Whether no chunk holds all of a fence of lines [first, last); `numbers` are the lines of the file."""
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    return not any(piece.start_line <= numbers[first] and numbers[last - 1] <= piece.end_line for piece in chunks)
