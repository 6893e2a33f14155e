"""`chunk --check` finds each law that is broken, and is content with what the chunker makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from anchord.chunkers import chunk
from anchord.chunkers.check import Figures, check
from anchord.chunkers.layout import Count, Limits
from anchord.chunkers.plan import Plan
from anchord.model import Chunk, Document

FENCE = "```py\n" + "\n".join(f"value_{n} = {n}" for n in range(12)) + "\n```"
TEXT = "# One\n\n" + "words " * 150 + "\n\n## Two\n\n" + "more " * 150 + f"\n\n{FENCE}\n\nend\n"


@pytest.fixture
def checked(count: Count) -> Callable[..., Figures]:
    """Check changed chunks of a text."""

    def run(change: Callable[[list[Chunk]], list[Chunk]], text: str = TEXT, kind: str = "markdown") -> Figures:
        document = Document(text, kind)
        return check(document, change(chunk(document, Plan(), count, "k")), Plan(), count)

    return run


@pytest.mark.parametrize("text", [TEXT, "", "# A\n\n```py\nnever closed", "---\na: b\n---\n\n```\nx\n```"])
def test_what_the_chunker_makes_is_whole(checked: Callable[..., Figures], text: str) -> None:
    figures = checked(lambda chunks: chunks, text)
    assert not figures.breaks(Plan())
    assert figures.integrity == 1.0


BROKEN: dict[str, Callable[[list[Chunk]], list[Chunk]]] = {
    "repeated_ids": lambda chunks: [replace(piece, chunk_id="same") for piece in chunks],
    "lines_not_covered": lambda chunks: chunks[1:],
    "out_of_order": lambda chunks: chunks[::-1],
    "over_window": lambda chunks: [replace(piece, tokens=255) for piece in chunks],
    "unbalanced_fences": lambda chunks: [*chunks[:-1], replace(chunks[-1], content="```py\nvalue")],
    "split_fences": lambda chunks: [
        *chunks[:-1],
        replace(chunks[-1], end_line=chunks[-1].start_line + 4),
        replace(chunks[-1], start_line=chunks[-1].start_line + 5, chunk_id="other"),
    ],
}


@pytest.mark.parametrize("law", BROKEN)
def test_each_broken_law_is_found(checked: Callable[..., Figures], law: str) -> None:
    figures = checked(BROKEN[law])
    assert getattr(figures, law) > 0
    assert figures.breaks(Plan())


def test_the_sizes_are_those_of_the_chunks(checked: Callable[..., Figures]) -> None:
    figures = checked(lambda chunks: chunks)
    assert figures.chunks == 2
    assert 0 < figures.tokens_min <= figures.tokens_median <= figures.tokens_max <= Limits().window
