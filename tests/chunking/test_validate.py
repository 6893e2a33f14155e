"""`chunk --check` finds each broken law, and accepts the chunker's own output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.engine.layout import CountTokens, Limits
from anchord.chunking.plan import Plan
from anchord.chunking.validate import ChunkingReport, check_chunks
from anchord.core.types import Chunk, Document

FENCE = "```py\n" + "\n".join(f"value_{n} = {n}" for n in range(12)) + "\n```"
TEXT = "# One\n\n" + "words " * 150 + "\n\n## Two\n\n" + "more " * 150 + f"\n\n{FENCE}\n\nend\n"


@pytest.fixture
def checked(count: CountTokens) -> Callable[..., ChunkingReport]:
    """Check changed chunks of a text."""

    def run(
        change: Callable[[list[Chunk]], list[Chunk]], text: str = TEXT, kind: str = "markdown"
    ) -> ChunkingReport:
        document = Document(text=text, kind=kind)
        return check_chunks(
            document, change(split_into_chunks(document, Plan(), count, "k")), Plan(), count
        )

    return run


@pytest.mark.parametrize(
    "text", [TEXT, "", "# A\n\n```py\nnever closed", "---\na: b\n---\n\n```\nx\n```"]
)
def test_what_the_chunker_makes_is_whole(checked: Callable[..., ChunkingReport], text: str) -> None:
    figures = checked(lambda chunks: chunks, text)
    assert not figures.has_violations(Plan())
    assert figures.integrity == 1.0


BROKEN: dict[str, Callable[[list[Chunk]], list[Chunk]]] = {
    "repeated_ids": lambda chunks: [replace(piece, chunk_id="same") for piece in chunks],
    "lines_not_covered": lambda chunks: chunks[1:],
    "out_of_order": lambda chunks: chunks[::-1],
    "wrong_header_paths": lambda chunks: [replace(chunks[0], header_path=("Two",)), *chunks[1:]],
    "over_window": lambda chunks: [replace(piece, token_count=255) for piece in chunks],
    "unbalanced_fences": lambda chunks: [*chunks[:-1], replace(chunks[-1], content="```py\nvalue")],
    "split_fences": lambda chunks: [
        *chunks[:-1],
        replace(chunks[-1], end_line=chunks[-1].start_line + 4),
        replace(chunks[-1], start_line=chunks[-1].start_line + 5, chunk_id="other"),
    ],
}


@pytest.mark.parametrize("law", BROKEN)
def test_each_broken_law_is_found(checked: Callable[..., ChunkingReport], law: str) -> None:
    figures = checked(BROKEN[law])
    assert getattr(figures, law) > 0
    assert figures.has_violations(Plan())


def test_the_sizes_are_those_of_the_chunks(checked: Callable[..., ChunkingReport]) -> None:
    figures = checked(lambda chunks: chunks)
    assert figures.chunks == 2
    assert 0 < figures.tokens_min <= figures.tokens_median <= figures.tokens_max <= Limits().window
