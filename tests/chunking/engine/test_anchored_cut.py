"""Where a text is cut: each size limit has a case just below it and one just above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from anchord.chunking.engine.anchored_cut import AtomRange, split_layout
from anchord.chunking.engine.cheapest_cuts import find_cheapest_cuts
from anchord.chunking.engine.layout import (
    BLOCK,
    CODE_PARAGRAPH,
    HEADING,
    LAST_RESORT,
    LIST_ITEM,
    SENTENCE,
    TABLE_ROW,
    TEXT_LINE,
    Layout,
    Limits,
)

BODY = 200
"""The maximum weight of a chunk. In these tests every line weighs 1 and cannot be cut."""


def layout_of(weight: int, cuts: Mapping[int, int], text: str = "line {}") -> Layout:
    """Return a layout of `weight` lines that can be cut only before the lines in `cuts`."""
    lines = [text.format(number) for number in range(weight)]
    return Layout(
        lines=lines,
        atom_lines=range(weight),
        atom_starts=[0] * weight,
        atom_ends=[len(line) for line in lines],
        cut_strengths=[cuts.get(number, 0) for number in range(weight)],
        atom_weights=[1] * weight,
        atom_tokens=[1] * weight,
    )


def ranges(
    weight: int, cuts: Mapping[int, int], *required: int, min_chars: int = 0
) -> list[AtomRange]:
    limits = Limits(body=BODY, min_chars=min_chars)
    return split_layout(layout_of(weight, cuts), limits, required)


def anchors(weight: int, cuts: Mapping[int, int]) -> list[int]:
    """Return the cuts that line numbers count from."""
    return [each.first_atom for each in ranges(weight, cuts) if each.first_atom == each.anchor_line]


def starts(weight: int, cuts: Mapping[int, int], min_chars: int = 0) -> list[int]:
    return [each.first_atom for each in ranges(weight, cuts, min_chars=min_chars)]


def test_an_empty_text_has_no_range_and_a_text_of_one_chunk_is_one() -> None:
    assert ranges(0, {}) == []
    assert ranges(BODY, {100: BLOCK}) == [AtomRange(0, BODY, 0, 0)]
    assert starts(BODY + 1, {100: BLOCK}) == [0, 100]


@pytest.mark.parametrize(
    ("weight", "cut", "is_taken"),
    [
        (201, 39, False),
        (201, 40, True),
        (201, 161, True),
        (201, 162, False),
        (300, 99, False),
        (300, 100, True),
        (300, 200, True),
        (300, 201, False),
        (400, 199, False),
        (400, 200, True),
    ],
)
def test_a_text_of_up_to_two_chunks_is_cut_where_both_parts_fit_and_weigh_forty(
    weight: int,
    cut: int,
    is_taken: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """A cut that is no anchor is placed at the lowest cost; line numbers do not count from it."""
    assert anchors(weight, {cut: BLOCK}) == ([0, cut] if is_taken else [0])


@pytest.mark.parametrize(
    ("cut", "is_taken"), [(63, False), (64, True), (401 - 64, True), (401 - 63, False)]
)
def test_a_longer_text_is_cut_at_a_boundary_with_sixty_four_on_both_sides(
    cut: int,
    is_taken: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert anchors(401, {cut: BLOCK}) == ([0, cut] if is_taken else [0])


@pytest.mark.parametrize(("distance", "found"), [(95, [0, 200]), (96, [0, 200, 296])])
def test_of_two_boundaries_within_ninety_six_only_the_better_one_is_an_anchor(
    distance: int, found: list[int]
) -> None:
    assert anchors(600, {200: BLOCK, 200 + distance: TEXT_LINE}) == found
    mirrored = {600 - at: strength for at, strength in ((200, BLOCK), (200 + distance, TEXT_LINE))}
    assert anchors(600, mirrored) == sorted([0] + [600 - each for each in found[1:]])


def test_a_last_resort_is_no_anchor() -> None:
    assert anchors(300, {150: LAST_RESORT}) == [0]
    assert starts(300, {150: LAST_RESORT}) == [0, 150]
    assert anchors(300, {150: LAST_RESORT + 1}) == [0, 150]


def test_of_boundaries_the_strongest_wins_and_of_equals_the_lowest_hash() -> None:
    assert anchors(300, {120: TEXT_LINE, 150: BLOCK, 180: TEXT_LINE}) == [0, 150]
    equal = anchors(300, {120: BLOCK, 150: BLOCK, 180: BLOCK})
    assert len(equal) == 2
    without = {each: BLOCK for each in (120, 150, 180) if each != equal[1]}
    assert anchors(300, without) != equal
    kept = next(each for each in (120, 150, 180) if each != equal[1])
    assert anchors(300, {kept: BLOCK, equal[1]: BLOCK}) == equal


def test_of_equal_lines_the_one_nearest_to_the_middle_is_the_cut() -> None:
    layout = layout_of(390, dict.fromkeys(range(10, 390, 10), BLOCK), "the same line")
    found = split_layout(layout, Limits(body=BODY))
    assert [each.first_atom for each in found] == [0, 190]
    long = layout_of(640, dict.fromkeys(range(10, 640, 10), BLOCK), "the same line")
    found = split_layout(long, Limits(body=BODY))
    assert [each.first_atom for each in found] == [0, 160, 320, 480]


@pytest.mark.parametrize(
    ("weight", "cut", "is_taken"),
    [
        (150, 63, False),
        (150, 64, True),
        (150, 86, True),
        (150, 87, False),
        (200, 136, True),
        (200, 137, False),
        (201, 23, False),
        (201, 24, True),
        (201, 177, True),
        (201, 178, False),
    ],
)
def test_a_heading_cuts_with_sixty_four_on_both_sides_or_twenty_four_if_it_must(
    weight: int,
    cut: int,
    is_taken: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert anchors(weight, {cut: HEADING}) == ([0, cut] if is_taken else [0])


def test_a_paragraph_of_code_has_a_least_size_of_its_own() -> None:
    layout = layout_of(150, {50: CODE_PARAGRAPH, 100: HEADING})
    sizes = replace(layout.min_side_weights, code_paragraph=50, section=51)
    found = split_layout(replace(layout, min_side_weights=sizes), Limits(body=BODY))
    assert [each.first_atom for each in found] == [0, 50]


@pytest.mark.parametrize(("second", "sections"), [(300, [0, 0, 300]), (301, [0, 100, 301])])
def test_a_hash_starts_a_section_where_it_would_grow_over_a_chunk_and_a_half(
    second: int, sections: list[int]
) -> None:
    found = ranges(500, {100: BLOCK, second: BLOCK})
    assert [each.first_atom for each in found] == [0, 100, second]
    assert [each.section_line for each in found] == sections


def test_a_heading_starts_a_section_and_a_single_hash_does_not() -> None:
    found = ranges(300, {150: HEADING})
    assert [(each.anchor_line, each.section_line) for each in found] == [(0, 0), (150, 150)]
    found = ranges(300, {150: BLOCK})
    assert [(each.anchor_line, each.section_line) for each in found] == [(0, 0), (150, 0)]


def test_a_required_cut_is_always_made_and_starts_a_section() -> None:
    assert ranges(100, {}, 10, 90) == [
        AtomRange(0, 10, 0, 0),
        AtomRange(10, 90, 10, 10),
        AtomRange(90, 100, 90, 90),
    ]


# Packing at least cost


@pytest.mark.parametrize(
    ("positions", "strengths", "cuts"),
    [
        ([0, 200], [], []),
        ([0, 100, 201], [BLOCK], [1]),
        ([0, 100, 200, 300], [TEXT_LINE, BLOCK], [2]),
        ([0, 100, 200, 300], [BLOCK, TEXT_LINE], [1]),
        ([0, 100, 200, 300], [BLOCK, LAST_RESORT], [1]),
        ([0, 150, 200, 350], [BLOCK, BLOCK], [2]),
        ([0, 10, 210, 300], [BLOCK, BLOCK], [2, 1]),
        ([0, 250, 260], [BLOCK], [1]),
        ([0, 100, 200, 300, 400], [BLOCK] * 3, [2]),
        ([0, 100, 200], [HEADING], []),
        ([0, 110, 200, 220], [TEXT_LINE, BLOCK], [1]),
    ],
)
def test_packing_takes_the_fewest_chunks_then_the_better_cuts(
    positions: list[int], strengths: list[int], cuts: list[int]
) -> None:
    assert find_cheapest_cuts(positions, strengths, BODY) == cuts


@pytest.mark.parametrize(("more", "found"), [(0, [0, 20]), (1, [0])])
def test_min_chars_says_how_long_a_section_of_a_small_text_is(more: int, found: list[int]) -> None:
    """A line end counts as a character."""
    chars = sum(len(f"line {number}\n") for number in range(20))
    assert starts(100, {20: HEADING}, min_chars=chars + more) == found


@pytest.mark.parametrize(
    ("better", "worse"),
    list(pairwise((HEADING, BLOCK, LIST_ITEM, TABLE_ROW, TEXT_LINE, SENTENCE, LAST_RESORT))),
)
def test_packing_prefers_the_stronger_of_two_cuts(better: int, worse: int) -> None:
    assert find_cheapest_cuts([0, 100, 200, 300], [better, worse], BODY) == [1]
    assert find_cheapest_cuts([0, 100, 200, 300], [worse, better], BODY) == [2]
