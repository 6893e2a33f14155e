"""Laws of the chunker: they hold for any document, of markdown, text or code."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Protocol

import pytest
from documents import calm_documents, documents, prose
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord import chunk_text
from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.engine.layout import CountTokens, Limits
from anchord.chunking.plan import Plan
from anchord.core.types import Chunk, Document


class Cutter(Protocol):
    """Cuts a text of a kind, markdown unless said otherwise."""

    def __call__(self, text: str, kind: str = "markdown") -> list[Chunk]:
        """Return the chunks."""


_WINDOW = Limits().window
_forms = ["", "rst", "adoc", "org", "html", "yaml", "toml", "ini", "json", "csv"]
kinds = st.sampled_from(
    ["markdown", "code:python", "code:rust", *(f"text:{form}" for form in _forms)]
)


@pytest.fixture(scope="module")
def cut(count: CountTokens) -> Cutter:
    """Give the chunker with the real counter."""

    def run(text: str, kind: str = "markdown") -> list[Chunk]:
        kind, _, language = kind.partition(":")
        clean = text.replace("\r\n", "\n").replace("\r", "\n")
        return split_into_chunks(
            Document(text=clean, kind=kind, language=language), Plan(), count, "file"
        )

    return run


@settings(deadline=None)
@given(text=documents, kind=kinds)
def test_the_same_text_gives_the_same_chunks(cut: Cutter, text: str, kind: str) -> None:
    assert cut(text, kind) == cut(text, kind)


@settings(deadline=None)
@given(text=documents, kind=kinds)
def test_every_line_that_is_not_blank_is_in_a_chunk_and_in_order(
    cut: Cutter, text: str, kind: str
) -> None:
    lines, chunks = text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), cut(text, kind)
    covered = {line for piece in chunks for line in range(piece.start_line, piece.end_line + 1)}
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= covered
    assert all(one.end_line <= other.start_line for one, other in pairwise(chunks))


@settings(deadline=None)
@given(text=documents)
def test_the_chunks_of_plain_text_joined_are_the_text_but_for_blank_lines(
    cut: Cutter, text: str
) -> None:
    joined = ""
    last = 0
    for piece in cut(text, "text"):
        joined += ("" if piece.start_line == last else "\n") + piece.content
        last = piece.end_line
    clean = text.replace("\r\n", "\n").replace("\r", "\n")
    assert [line for line in joined.split("\n") if line.strip()] == [
        line for line in clean.split("\n") if line.strip()
    ]


@settings(deadline=None)
@given(text=documents, kind=kinds)
def test_nothing_is_longer_than_the_window_and_the_count_is_the_models(
    cut: Cutter, count: CountTokens, text: str, kind: str
) -> None:
    chunks = cut(text, kind)
    assert [piece.token_count for piece in chunks] == count([piece.embed_text for piece in chunks])
    assert max((piece.token_count for piece in chunks), default=0) <= _WINDOW


@settings(deadline=None)
@given(text=documents, kind=kinds)
def test_ids_are_unique_in_a_file(cut: Cutter, text: str, kind: str) -> None:
    ids = [piece.chunk_id for piece in cut(text, kind)]
    assert len(set(ids)) == len(ids)


@settings(deadline=None)
@given(text=documents)
def test_line_ends_of_any_system_give_the_same_chunks(text: str) -> None:
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    assert chunk_text(unix.replace("\n", "\r\n")) == chunk_text(unix)


@settings(deadline=None)
@given(above=calm_documents, below=calm_documents)
def test_what_stands_above_a_chapter_changes_no_id_and_no_vector_in_it(
    cut: Cutter, above: str, below: str
) -> None:
    start = "# A chapter of its own\n\n" + "words of the chapter that nothing else has " * 12
    chapter = f"{start}\n\n{below}"
    weighty = "\n\n" + "words that come before it and are not in it " * 12 + "\n\n"
    alone, after = cut(weighty + chapter), cut(f"{above}{weighty}{chapter}")
    first = next(n for n, piece in enumerate(alone) if piece.content.startswith("# A chapter"))
    wanted = {(piece.chunk_id, piece.embed_text) for piece in alone[first:]}
    assert wanted <= {(piece.chunk_id, piece.embed_text) for piece in after}


@settings(deadline=None)
@given(
    data=st.data(),
    paragraphs=st.lists(st.lists(prose, min_size=1, max_size=6), min_size=1, max_size=60),
)
def test_a_changed_line_ofprose_changes_five_chunks_at_most(
    cut: Cutter, data: st.DataObject, paragraphs: list[list[str]]
) -> None:
    lines = "\n\n".join("\n".join(paragraph) for paragraph in paragraphs).split("\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    edited = [*lines[:at], data.draw(prose), *lines[at + 1 :]]
    before, after = cut("\n".join(lines)), cut("\n".join(edited))
    assert len({piece.embed_text for piece in after} - {piece.embed_text for piece in before}) <= 5


@settings(deadline=None)
@given(data=st.data(), parts=st.lists(calm_documents, min_size=1, max_size=4))
def test_a_changed_line_of_any_document_changes_five_chunks_at_most(
    cut: Cutter, data: st.DataObject, parts: list[str]
) -> None:
    """Fence and table markers are excepted: they open or close more than one line."""
    lines = "\n\n".join(parts).split("\n")
    able = [
        number for number, line in enumerate(lines) if not line.startswith(("```", "|---"))
    ] or [0]
    at = data.draw(st.sampled_from(able))
    edited = [*lines[:at], data.draw(prose), *lines[at + 1 :]]
    before, after = cut("\n".join(lines)), cut("\n".join(edited))
    assert len({piece.embed_text for piece in after} - {piece.embed_text for piece in before}) <= 5


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize(
    "between",
    [pytest.param("\n\n", id="paragraphs"), pytest.param("\n", id="lines", marks=pytest.mark.slow)],
)
def test_an_edit_of_100_kb_without_headings_embeds_four_chunks_and_changes_five_ids_at_most(
    cut: Cutter, seed: int, between: str
) -> None:
    choose = random.Random(seed)  # noqa: S311 - the same words each time
    words = [f"{word}{n}" for word in ("river", "stone", "light", "paper") for n in range(40)]
    paragraphs = [
        "\n".join(" ".join(choose.choices(words, k=8)) for _ in range(choose.randint(2, 7)))
        for _ in range(420)
    ]
    lines = between.join(paragraphs).split("\n")
    before = cut("\n".join(lines))
    known, ids = {piece.embed_text for piece in before}, {piece.chunk_id for piece in before}
    assert len("\n".join(lines)) > 90_000
    for number in range(40):
        at, words_now = choose.randrange(len(lines)), " ".join(choose.choices(words, k=8))
        edited = [
            *lines[:at],
            *([words_now], [words_now, lines[at]], [])[number % 3],
            *lines[at + 1 :],
        ]
        after = cut("\n".join(edited))
        assert len({piece.embed_text for piece in after} - known) <= 4
        assert len({piece.chunk_id for piece in after} - ids) <= 5


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (">" * 100_000 + " x", "markdown"),
        ("- item same text here\n" * 5_000, "markdown"),
        ("x" * 500_000, "markdown"),
        ("word and more, " * 25_000, "markdown"),
        pytest.param("- item same text here\n" * 20_000, "markdown", marks=pytest.mark.slow),
        pytest.param("x" * 2_000_000, "markdown", marks=pytest.mark.slow),
        pytest.param("word and more, " * 100_000, "markdown", marks=pytest.mark.slow),
        ("[" * 100_000, "markdown"),
        ("```\n" * 4_001, "markdown"),
        ("(" * 100_000, "code"),
        ("f(\n" * 20_000, "code"),
        ("\n" * 200_000 + "x", "text"),
    ],
    ids=[
        "nested quotes",
        "a quarter of equal items",
        "a quarter of one word",
        "a quarter of one line",
        "equal items",
        "one word",
        "one line",
        "brackets",
        "fences",
        "open brackets",
        "open calls",
        "blank",
    ],
)
def test_hostile_text_is_cut_like_any_other(cut: Cutter, text: str, kind: str) -> None:
    chunks = cut(text, kind)
    assert chunks
    assert max(piece.token_count for piece in chunks) <= _WINDOW
    assert len({piece.chunk_id for piece in chunks}) == len(chunks)
