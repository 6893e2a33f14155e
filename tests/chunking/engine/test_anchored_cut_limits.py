"""Cuts of layouts whose pieces or atoms do not start at 0, and headings of the lowest strength."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from anchord.chunking.engine.anchored_cut import AtomRange, split_layout
from anchord.chunking.engine.layout import (
    HEADING,
    LAST_RESORT,
    MIN_HEADING_STRENGTH,
    Layout,
    Limits,
)
from anchord.core.ids import boundary_priority

BODY = 200
"""The maximum weight of a chunk. In these tests every atom weighs 1."""


def layout_of(weight: int, cuts: Mapping[int, int], atoms_per_line: int = 1) -> Layout:
    """Return a layout of `weight` atoms of ten characters, cut only before those in `cuts`."""
    line_count = weight // atoms_per_line
    return Layout(
        lines=["ten chars " * atoms_per_line] * line_count,
        atom_lines=[atom // atoms_per_line for atom in range(weight)],
        atom_starts=[10 * (atom % atoms_per_line) for atom in range(weight)],
        atom_ends=[10 * (atom % atoms_per_line) + 10 for atom in range(weight)],
        cut_strengths=[cuts.get(atom, 0) for atom in range(weight)],
        atom_weights=[1] * weight,
        atom_tokens=[1] * weight,
    )


def ranges(weight: int, cuts: Mapping[int, int], *required: int) -> list[AtomRange]:
    return split_layout(layout_of(weight, cuts), Limits(body=BODY), required)


@pytest.mark.parametrize("strength", [MIN_HEADING_STRENGTH, MIN_HEADING_STRENGTH + 2])
def test_a_cut_of_the_lowest_heading_strength_starts_a_section(strength: int) -> None:
    assert ranges(BODY, {100: strength}) == [
        AtomRange(0, 100, 0, 0),
        AtomRange(100, BODY, 100, 100),
    ]


def test_a_cut_below_the_lowest_heading_strength_is_none_in_a_text_of_one_chunk() -> None:
    assert ranges(BODY, {100: MIN_HEADING_STRENGTH - 1}) == [AtomRange(0, BODY, 0, 0)]


@pytest.mark.parametrize(
    ("min_chars", "first_atoms"),
    [(43, [0, 4]), (44, [0, 4]), (45, [0])],
)
def test_the_characters_of_atoms_that_start_inside_a_line_are_counted_once(
    min_chars: int, first_atoms: list[int]
) -> None:
    """Four atoms of ten characters, each with a line end, are before the heading."""
    layout = layout_of(12, {4: HEADING}, atoms_per_line=2)
    found = split_layout(layout, Limits(body=BODY, min_chars=min_chars))
    assert [each.first_atom for each in found] == first_atoms


@pytest.mark.parametrize(
    ("heading", "is_cut"),
    [(110, False), (163, False), (164, True), (196, True), (197, False)],
)
def test_a_side_is_measured_from_the_start_of_its_piece(
    heading: int,
    is_cut: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """The piece from 100 to 260 fits in a chunk: 64 must be left on both sides."""
    cuts = [each.first_atom for each in ranges(260, {heading: HEADING}, 100)]
    assert cuts == ([0, 100, heading] if is_cut else [0, 100])


def test_the_first_chunk_counts_from_the_first_line_whatever_is_cut_below_it() -> None:
    first, *_ = ranges(2 * BODY, {150: HEADING, 250: HEADING})
    assert first == AtomRange(0, 150, 0, 0)
    assert ranges(10, {}) == [AtomRange(0, 10, 0, 0)]


@pytest.mark.parametrize("seed", range(8))
def test_of_two_equally_strong_headings_the_one_with_the_lower_hash_is_taken(seed: int) -> None:
    """Also where the other one is nearer to the middle."""
    texts = [f"line {seed} {number}" for number in range(BODY)]
    layout = replace(
        layout_of(BODY, {70: HEADING, 105: HEADING}), lines=texts, atom_ends=list(map(len, texts))
    )
    expected = min((70, 105), key=lambda atom: boundary_priority(texts[atom]))
    found = split_layout(layout, Limits(body=BODY))
    assert [each.first_atom for each in found] == [0, expected]


def test_a_piece_without_a_good_boundary_is_cut_at_the_last_resort_that_fits() -> None:
    found = ranges(300, {50: LAST_RESORT, 150: LAST_RESORT})
    assert found == [AtomRange(0, 150, 0, 0), AtomRange(150, 300, 0, 0)]
