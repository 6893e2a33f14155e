"""What a search shows of its hits: laws of the packer, and some cases by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.token_counts import field_tokens
from anchord.core.types import ChunkLocation, Hit, RootedPath, Row
from anchord.search.packing import Layout, pack, passage_tokens
from anchord.search.passages import Passage, Piece, join_texts

FILE = RootedPath("docs", "a.md")
ELLIPSIS = " …"


def piece(
    number: int,
    score: float | None = None,
    *,
    section: str = "S",
    text: str = "",
    file: RootedPath = FILE,
) -> Piece:
    """Each chunk has a line of its own, and a blank line follows."""
    names = ("doc_id", "kind", "content_hash", "vector_key", "search_text")
    fields: dict[str, Any] = dict.fromkeys(names, "")
    chunk_id = f"{file.path}{number:03}"
    row = Row(
        id=chunk_id, root="", path="", header_path=section, text=text or f"t{number}", **fields
    )
    location = ChunkLocation(file, 2 * number + 1, 2 * number + 1, number)
    ranks: dict[str, Any] = dict.fromkeys(("cosine", "bm25", "cosine_rank", "bm25_rank"))
    hit = None if score is None else Hit(id=chunk_id, score=score, location=location, **ranks)
    return Piece(row, location, hit)


def numbers(passage: Passage) -> list[int]:
    return [int(chunk_id[-3:]) for chunk_id in passage.chunk_ids]


def packed(pieces: list[Piece], **layout: Any) -> list[list[int]]:  # noqa: ANN401 - any field
    return [numbers(passage) for passage in pack(pieces, Layout(**layout))]


# Laws

_words = st.lists(
    st.sampled_from(["word", "parse_config", "1234", '"', "日本語", "internationalisation", "\n"]),
    min_size=1,
    max_size=60,
).map(" ".join)
_scores = st.none() | st.integers(0, 20).map(lambda score: score / 20)
_sections = st.sampled_from(["", "A", "A > B", "A > B > C", "D"])
_chunks = st.tuples(_scores, _sections, _words)


@st.composite
def found(draw: st.DrawFn) -> list[Piece]:
    """Return the pieces of one to three files, in any order."""
    pieces: list[Piece] = []
    for name in draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]])):
        chunks = draw(st.lists(_chunks, max_size=9))
        for number, (score, section, text) in enumerate(chunks):
            file = RootedPath("docs", f"{name}.md")
            pieces.append(piece(number, score, section=section, text=text, file=file))
    return draw(st.permutations(pieces))


layouts = st.builds(
    Layout,
    budget=st.none() | st.integers(0, 3_000),
    expand_chars=st.sampled_from([0, 0, 50, 500, 5_000]),
    is_flat=st.booleans(),
)


def shown_pieces(pieces: list[Piece], passage: Passage) -> list[Piece]:
    """Return the pieces of a passage; the last one has what is shown of its text."""
    by_id = {each.row.id: each for each in pieces}
    chosen = [by_id[chunk_id] for chunk_id in passage.chunk_ids]
    before = join_texts([*chosen[:-1], replace_text(chosen[-1], "")])
    chosen[-1] = replace_text(chosen[-1], passage.text[len(before) :])
    return chosen


def replace_text(each: Piece, text: str) -> Piece:
    return replace(each, row=replace(each.row, text=text))


@given(found(), layouts)
def test_the_passages_are_never_over_the_budget(pieces: list[Piece], layout: Layout) -> None:
    passages = pack(pieces, layout)
    tokens = sum(passage_tokens(shown_pieces(pieces, passage)) for passage in passages)
    assert layout.budget is None or tokens <= layout.budget


@given(found(), layouts)
def test_no_text_is_shown_twice(pieces: list[Piece], layout: Layout) -> None:
    shown = [chunk_id for passage in pack(pieces, layout) for chunk_id in passage.chunk_ids]
    assert len(shown) == len(set(shown))


@given(found(), layouts)
def test_a_passage_is_a_contiguous_part_of_a_file_and_only_its_end_is_cut(
    pieces: list[Piece], layout: Layout
) -> None:
    places = {each.row.id: each.location for each in pieces}
    whole = {each.row.id: each for each in pieces}
    for passage in pack(pieces, layout):
        locations = [places[chunk_id] for chunk_id in passage.chunk_ids]
        first = locations[0]
        assert [(each.origin, each.ordinal) for each in locations] == [
            (first.origin, first.ordinal + step) for step in range(len(locations))
        ]
        text = join_texts([whole[chunk_id] for chunk_id in passage.chunk_ids])
        if passage.text != text:
            assert layout.budget is not None
            assert text.startswith(passage.text.removesuffix(ELLIPSIS))


@given(found(), layouts, st.integers(0, 1_000))
def test_a_larger_budget_never_shows_less_of_the_best_hit(
    pieces: list[Piece], layout: Layout, more: int
) -> None:
    if layout.budget is None:
        return
    best = min(
        (each.hit for each in pieces if each.hit),
        key=lambda hit: (-hit.score, hit.id),
        default=None,
    )

    def shown(budget: int) -> int:
        for passage in pack(pieces, replace(layout, budget=budget)):
            for each in shown_pieces(pieces, passage):
                if best and each.row.id == best.id:
                    return len(each.row.text.removesuffix(ELLIPSIS))
        return 0

    assert shown(layout.budget) <= shown(layout.budget + more)


@given(found(), layouts, st.randoms(use_true_random=False))
def test_the_order_of_the_pieces_does_not_matter(
    pieces: list[Piece],
    layout: Layout,
    random: Any,  # noqa: ANN401 - a Random
) -> None:
    shuffled = list(pieces)
    random.shuffle(shuffled)
    assert pack(shuffled, layout) == pack(pieces, layout)


@given(found(), layouts)
def test_passages_come_best_first_and_each_has_a_hit(pieces: list[Piece], layout: Layout) -> None:
    keys = [(-passage.hit.score, passage.hit.id) for passage in pack(pieces, layout)]
    assert keys == sorted(keys)


@given(found())
def test_without_a_budget_every_hit_is_shown_and_nothing_else(pieces: list[Piece]) -> None:
    shown = [chunk_id for passage in pack(pieces, Layout()) for chunk_id in passage.chunk_ids]
    assert sorted(shown) == sorted(each.row.id for each in pieces if each.hit)


# Cases


def test_adjacent_hits_of_a_section_are_one_passage_and_with_a_budget_all_adjacent_ones() -> None:
    sections = ["A", "A > B", "A > B", "D", "D", "D"]
    pieces = [piece(n, n / 10, section=section) for n, section in enumerate(sections)]
    del pieces[4]
    assert packed(pieces) == [[5], [3], [1, 2], [0]]
    assert packed(pieces, budget=5_000) == [[5], [0, 1, 2, 3]]


def test_a_passage_has_the_fields_of_its_best_hit_and_the_lines_of_all() -> None:
    pieces = [piece(1, 0.2), piece(2, 0.9), piece(3, 0.5)]
    (passage,) = pack(pieces, Layout())
    assert passage.hit == pieces[1].hit
    assert (passage.start_line, passage.end_line) == (3, 7)
    assert passage.text == "t1\n\nt2\n\nt3"


def test_a_section_is_made_whole_before_a_much_worse_hit_is_shown() -> None:
    other = RootedPath("docs", "b.md")
    section = [piece(0), piece(1, 0.9), piece(2), piece(3, section="T")]
    good, bad = (piece(0, score, file=other) for score in (0.85, 0.5))
    fits = sum(passage_tokens(each) for each in ([section[1]], [good]))
    assert packed([*section, good], budget=fits) == [[1], [0]]
    assert packed([*section, bad], budget=fits) == [[0, 1, 2]]


def test_a_long_section_is_made_whole_before_a_worse_hit_is_shown() -> None:
    section = [piece(number, 0.9 if number == 0 else None) for number in range(6)]
    worse = piece(0, 0.7, file=RootedPath("docs", "b.md"))
    assert packed([*section, worse], budget=passage_tokens(section)) == [[0, 1, 2, 3, 4, 5]]


def test_the_places_of_copies_that_an_agent_is_shown_cost_tokens() -> None:
    alone = piece(0, 0.9)
    assert alone.hit
    copies = tuple(ChunkLocation(RootedPath("docs", f"worktree-{n}/a.md"), 1, 1) for n in range(5))
    costs = [
        passage_tokens([replace(alone, hit=replace(alone.hit, copies=copies[:count]))])
        for count in range(6)
    ]
    assert costs[0] < costs[1] < costs[2] < costs[3] == costs[5]


def test_no_neighbour_of_another_section_fills_a_budget() -> None:
    pieces = [piece(0, section="T"), piece(1, 0.9), piece(2, section="T")]
    assert packed(pieces, budget=3_000) == [[1]]


def test_the_last_chunk_is_cut_to_fill_the_budget_and_ends_where_its_text_does() -> None:
    text = "\n".join(["some words of a line"] * 40)
    long = piece(0, 0.9, text=text)
    long = replace(long, location=long.location._replace(end_line=40))
    (passage,) = pack([long], Layout(budget=250))
    assert passage.text.endswith(ELLIPSIS)
    assert text.startswith(passage.text.removesuffix(ELLIPSIS))
    assert passage.end_line == 1 + passage.text.count("\n") < 40
    assert 200 < passage_tokens([replace_text(long, passage.text)]) <= 250


def test_a_rest_of_the_budget_that_shows_nothing_useful_is_left() -> None:
    other = RootedPath("docs", "b.md")
    pieces = [piece(0, 0.9), piece(0, 0.8, text="words " * 99, file=other)]
    (passage,) = pack(pieces, Layout(budget=passage_tokens([pieces[0]]) + 100))
    assert passage.chunk_ids == ("a.md000",)


def test_a_budget_too_small_for_a_place_shows_nothing() -> None:
    assert pack([piece(0, 0.9)], Layout(budget=20)) == []


@pytest.mark.parametrize(
    ("max_chars", "shown"),
    [
        (0, [2]),
        (len("t2\n\nt3") - 1, [2]),
        (len("t2\n\nt3"), [2, 3]),
        (len("t1\n\nt2\n\nt3") - 1, [2, 3]),
        (len("t1\n\nt2\n\nt3"), [1, 2, 3]),
        (1_000, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_expanding_adds_neighbours_nearest_first_as_far_as_they_fit(
    max_chars: int, shown: list[int]
) -> None:
    pieces = [piece(number, 0.5 if number == 2 else None) for number in range(6)]
    assert packed(pieces, expand_chars=max_chars) == [shown]


@pytest.mark.parametrize(
    ("sections", "shown"), [("XSSSXX", [1, 2, 3]), ("SXSSXS", [2, 3]), ("XXSXXX", [2])]
)
def test_expanding_adds_no_neighbour_of_another_section_nor_anything_behind_it(
    sections: str, shown: list[int]
) -> None:
    pieces = [
        piece(number, 0.5 if number == 2 else None, section=section)
        for number, section in enumerate(sections)
    ]
    assert packed(pieces, expand_chars=1_000) == [shown]


def test_a_missing_neighbour_ends_an_expansion_on_its_side() -> None:
    pieces = [piece(number, 0.5 if number == 2 else None) for number in (0, 1, 2, 3, 5)]
    assert packed(pieces, expand_chars=1_000) == [[0, 1, 2, 3]]


def test_an_expansion_stays_within_the_budget() -> None:
    pieces = [piece(number, 0.5 if number == 2 else None) for number in range(6)]
    budget = passage_tokens(pieces[2:4])
    assert packed(pieces, expand_chars=1_000, budget=budget) == [[2, 3]]


def test_in_a_flat_list_each_hit_is_a_passage_of_its_own() -> None:
    pieces = [piece(0, 0.3), piece(1, 0.9), piece(2, 0.5)]
    assert packed(pieces, is_flat=True) == [[1], [2], [0]]


@pytest.mark.parametrize(
    ("start_line", "line_ends"), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 3)]
)
def test_a_chunk_on_the_next_line_or_before_it_follows_after_one_line_end(
    start_line: int, line_ends: int
) -> None:
    first = replace(piece(0), location=ChunkLocation(FILE, 1, 3, 0))
    second = replace(piece(1), location=ChunkLocation(FILE, start_line, 9, 1))
    assert join_texts([first, second]) == "t0" + "\n" * line_ends + "t1"


def test_the_row_of_a_passage_has_the_root_and_a_printable_path_of_its_hit() -> None:
    (passage,) = pack([piece(0, 0.5, file=RootedPath("docs", "a\udcff.md"))], Layout())
    assert (passage.row.root, passage.row.path) == ("docs", "a\\xff.md")


def test_long_paths_and_headings_count_only_as_far_as_answers_show_them() -> None:
    far = RootedPath("docs", "folder/" * 500)
    long = piece(0, 0.9, section="heading " * 500, file=far)
    assert field_tokens(far.path) > 900
    assert passage_tokens([long]) < 250


def test_a_hit_whose_place_does_not_fit_leaves_room_for_the_next_one() -> None:
    far = piece(0, 0.9, section="heading " * 500, file=RootedPath("docs", "folder/" * 500))
    near = piece(0, 0.5, file=RootedPath("docs", "b.md"))
    (passage,) = pack([far, near], Layout(budget=200))
    assert passage.hit.location.origin.path == "b.md"
