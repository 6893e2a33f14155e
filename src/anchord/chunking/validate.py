"""Check whether the chunks of a document keep the chunker's promises: `anchord chunk --check`."""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from anchord.chunking.chunker import headings_used, limits_used
from anchord.chunking.engine.layout import CountTokens, Heading, Sizing
from anchord.chunking.formats.markdown import (
    find_fences,
    has_only_closed_fences,
    has_unclosed_fence,
)
from anchord.chunking.plan import Plan
from anchord.core.types import Chunk, Document

_SMALL_TOKENS = 64
_MARKDOWN_KINDS = ("markdown", "exchange", "attachment", "summary")

_LineRange = tuple[int, int]
"""0-based lines [first, end) of a document's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingReport:
    """Counts over the chunks of one document or several; tokens are those of `embed_text`."""

    chunks: int
    repeated_ids: int
    lines_not_covered: int
    out_of_order: int
    wrong_header_paths: int
    """Chunks whose header path is not the titles of the sections that they are in."""
    over_window: int
    """Chunks that are longer than the model's window."""
    unbalanced_fences: int
    """Chunks with a fence that is not closed in them, where all of the document's are."""
    split_fences: int
    """Fences of the document that fit in a chunk and are in several."""
    integrity: float
    """Share of the document's fences that are not split needlessly, 0 to 1."""
    tokens_min: int
    tokens_median: float
    tokens_max: int
    under_64_tokens: int

    def has_violations(self, plan: Plan) -> bool:
        """Return whether a promise is broken.

        Fences count only under a plan that keeps them whole, which plans that cut by size do not.
        """
        violations = [
            self.repeated_ids,
            self.lines_not_covered,
            self.out_of_order,
            self.wrong_header_paths,
            self.over_window,
        ]
        if plan.keeps_fences_whole:
            violations += [self.unbalanced_fences, self.split_fences]
        return any(violations)


def check_chunks(
    document: Document, chunks: Sequence[Chunk], plan: Plan, count_tokens: CountTokens
) -> ChunkingReport:
    """Check the chunks of a document.

    Args:
        document: The document.
        chunks: All of its chunks, in order.
        plan: The plan that it was cut by.
        count_tokens: The token counter that it was cut with.
    """
    fences = _FenceCheck(document, chunks)
    split_fences = fences.count_split(Sizing(plan.limits, count_tokens))
    if split_fences:
        # A fence that fits in the plan's limits can exceed those that the document was cut by.
        limits = limits_used(document, plan, count_tokens)
        split_fences = fences.count_split(Sizing(limits, count_tokens))
    fence_count = len(fences.fences)
    tokens = [chunk.token_count for chunk in chunks] or [0]
    return ChunkingReport(
        chunks=len(chunks),
        repeated_ids=_count_repeated_ids(chunks),
        lines_not_covered=_count_lines_not_covered(document, chunks),
        out_of_order=_count_out_of_order(chunks, plan),
        wrong_header_paths=_count_wrong_header_paths(document, chunks, plan, count_tokens),
        over_window=sum(count > plan.limits.window for count in tokens),
        unbalanced_fences=fences.count_unbalanced_chunks(),
        split_fences=split_fences,
        integrity=1 - split_fences / fence_count if fence_count else 1.0,
        tokens_min=min(tokens),
        tokens_median=statistics.median(tokens),
        tokens_max=max(tokens),
        under_64_tokens=sum(count < _SMALL_TOKENS for count in tokens) if chunks else 0,
    )


def check_chunks_of_documents(
    chunked_documents: Sequence[tuple[Document, Sequence[Chunk]]],
    plan: Plan,
    count_tokens: CountTokens,
) -> ChunkingReport:
    """Check the chunks of all documents of a file, such as a file of conversations.

    Args:
        chunked_documents: Each document with all of its chunks, in order.
        plan: The plan that they were cut by.
        count_tokens: The token counter that they were cut with.

    Returns:
        One report: sums of counts, the smallest `integrity`, and ids and tokens over all chunks.
    """
    reports = [
        check_chunks(document, chunks, plan, count_tokens) for document, chunks in chunked_documents
    ]
    all_chunks = [chunk for _, chunks in chunked_documents for chunk in chunks]
    tokens = [chunk.token_count for chunk in all_chunks] or [0]
    integrities = [report.integrity for report in reports]
    return ChunkingReport(
        chunks=len(all_chunks),
        repeated_ids=_count_repeated_ids(all_chunks),
        lines_not_covered=_sum_of(reports, "lines_not_covered"),
        out_of_order=_sum_of(reports, "out_of_order"),
        wrong_header_paths=_sum_of(reports, "wrong_header_paths"),
        over_window=_sum_of(reports, "over_window"),
        unbalanced_fences=_sum_of(reports, "unbalanced_fences"),
        split_fences=_sum_of(reports, "split_fences"),
        integrity=min(integrities, default=1.0),
        tokens_min=min(tokens),
        tokens_median=statistics.median(tokens),
        tokens_max=max(tokens),
        under_64_tokens=_sum_of(reports, "under_64_tokens"),
    )


def _sum_of(reports: Sequence[ChunkingReport], field_name: str) -> int:
    return sum(getattr(report, field_name) for report in reports)


def _count_repeated_ids(chunks: Sequence[Chunk]) -> int:
    return len(chunks) - len({chunk.chunk_id for chunk in chunks})


def _line_numbers(document: Document) -> Sequence[int]:
    """Return the line of the file (1-based) for each line of a document's text."""
    line_count = document.text.count("\n") + 1
    return document.source_lines or range(1, line_count + 1)


def _count_lines_not_covered(document: Document, chunks: Sequence[Chunk]) -> int:
    """Return how many lines of the file have text and are in no chunk."""
    numbered_lines = zip(
        _line_numbers(document),
        document.text.split("\n"),
        strict=True,
    )
    filled = {number for number, line in numbered_lines if line.strip()}
    for chunk in chunks:
        filled.difference_update(range(chunk.start_line, chunk.end_line + 1))
    return len(filled)


def _count_out_of_order(chunks: Sequence[Chunk], plan: Plan) -> int:
    """Return how many chunks do not come after the one before them.

    With an overlap, a chunk may begin in the one before it, but not end in it.
    """
    if plan.has_overlap:
        return sum(
            later.start_char < earlier.start_char or later.end_char <= earlier.end_char
            for earlier, later in pairwise(chunks)
        )
    return sum(later.start_char < earlier.end_char for earlier, later in pairwise(chunks))


def _count_wrong_header_paths(
    document: Document, chunks: Sequence[Chunk], plan: Plan, count_tokens: CountTokens
) -> int:
    """Return how many chunks do not have the titles of the sections that hold all of their lines.

    The sections are found here from the headings alone, and not as the chunker finds them.
    """
    sections = _Sections(headings_used(document, plan, count_tokens))
    line_ends = [offset for offset, character in enumerate(document.text) if character == "\n"]
    outermost = (document.title,) if document.title else ()
    wrong = 0
    for chunk in chunks:
        first_line = bisect_left(line_ends, chunk.start_char)
        last_line = bisect_left(line_ends, chunk.end_char - 1)
        titles = sections.titles_around(first_line, last_line, plan.limits.heading_depth)
        wrong += chunk.header_path != outermost + titles
    return wrong


class _Sections:
    """The section of each heading of a text. Lines are 0-based."""

    def __init__(self, headings: Sequence[Heading]) -> None:
        self._headings = headings
        self._lines = [heading.line for heading in headings]
        self._ends = [heading.section_end_line for heading in headings]
        self._parents: list[int] = []
        """For each heading the number of the one whose section it is in; -1 for none."""
        open_sections: list[int] = []
        for number, heading in enumerate(headings):
            while open_sections and headings[open_sections[-1]].level >= heading.level:
                closed = open_sections.pop()
                self._ends[closed] = min(self._ends[closed], heading.line)
            self._parents.append(open_sections[-1] if open_sections else -1)
            open_sections.append(number)

    def titles_around(self, first_line: int, last_line: int, max_level: int) -> tuple[str, ...]:
        """Return the titles of the sections that hold all lines of a range, outermost first."""
        titles: list[str] = []
        number = bisect_right(self._lines, first_line) - 1
        while number >= 0:
            heading = self._headings[number]
            if self._ends[number] > last_line and heading.level <= max_level:
                titles.append(heading.title)
            number = self._parents[number]
        return tuple(reversed(titles))


class _FenceCheck:
    """The fences of a document of markdown, compared with its chunks; none in other documents."""

    def __init__(self, document: Document, chunks: Sequence[Chunk]) -> None:
        is_markdown = document.kind in _MARKDOWN_KINDS
        self.fences: Sequence[_LineRange] = find_fences(document.text) if is_markdown else []
        self._all_closed = is_markdown and has_only_closed_fences(document.text)
        self._chunks = chunks
        self._lines = document.text.split("\n")
        self._numbers = _line_numbers(document)

    def count_split(self, sizing: Sizing) -> int:
        """Return how many fences fit in a chunk, and no chunk holds all of them."""
        split = 0
        for first, end in self.fences:
            weights, _ = sizing.measure_weights_and_tokens(self._lines[first:end])
            if sum(weights) <= sizing.limits.body and not self._is_whole(first, end):
                split += 1
        return split

    def count_unbalanced_chunks(self) -> int:
        """Return how many chunks leave a fence open, in a document that closes all of them."""
        if not self._all_closed:
            return 0
        return sum(
            self._leaves_fence_open(chunk) and self._has_lines_of_fence(chunk)
            for chunk in self._chunks
        )

    def _is_whole(self, first: int, end: int) -> bool:
        """Whether one chunk holds all lines of a fence but the blank ones at its end."""
        while end > first + 1 and not self._lines[end - 1].strip():
            end -= 1
        first_number, last_number = self._numbers[first], self._numbers[end - 1]
        return any(
            chunk.start_line <= first_number and last_number <= chunk.end_line
            for chunk in self._chunks
        )

    def _leaves_fence_open(self, chunk: Chunk) -> bool:
        content = chunk.content
        if chunk.start_line != 1:
            # Only at the top of a file is `---` the start of front matter.
            content = f"\n{content}"
        return has_unclosed_fence(content)

    def _has_lines_of_fence(self, chunk: Chunk) -> bool:
        """Whether a chunk has lines of a fence; marks in an HTML comment are none."""
        numbers = self._numbers
        return any(
            numbers[first] <= chunk.end_line and chunk.start_line <= numbers[end - 1]
            for first, end in self.fences
        )
