"""A new chunk is matched with the chunk of the former version at its place, and never with one that stays."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.predecessors import find_predecessors
from anchord.core.types import ChunkRecord


def version(ids: str, lines: int = 10) -> list[ChunkRecord]:
    """Return chunks of ten lines each, with one letter as their id."""
    return [
        ChunkRecord(
            chunk_id=chunk_id,
            vector_key="",
            row_hash="",
            start_line=1 + number * lines,
            end_line=(number + 1) * lines,
        )
        for number, chunk_id in enumerate(ids)
    ]


def of_new(known: str, wanted: str) -> Mapping[str, str]:
    """Return what each chunk replaces that has no known id."""
    found = find_predecessors(version(known), version(wanted))
    return {chunk_id: old for chunk_id, old in found.items() if chunk_id != old}


@pytest.mark.parametrize(
    ("known", "wanted", "replaced"),
    [
        ("abc", "aBc", {"B": "b"}),
        ("abc", "ABC", {"A": "a", "B": "b", "C": "c"}),
        ("abcd", "aBCd", {"B": "b", "C": "c"}),
        ("abc", "abNc", {}),  # Inserted: it replaces nothing.
        ("abc", "Nabc", {}),
        ("abc", "abcN", {}),
        ("abc", "ac", {}),
        ("abc", "aBNc", {"B": "b", "N": "b"}),
        ("abbc", "aBc", {"B": "b"}),
        ("a", "A", {"A": "a"}),
        ("abcd", "ABCXYZcd", dict(zip("ABCXYZ", "aaabbb", strict=True))),
        ("abcxd", "cAdab", {"A": "x"}),  # Sections changed places.
        ("", "ab", {}),
        ("ab", "", {}),
    ],
)
def test_a_chunk_replaces_what_was_at_its_place(
    known: str, wanted: str, replaced: Mapping[str, str]
) -> None:
    assert of_new(known, wanted) == replaced


def test_a_chunk_of_a_known_id_replaces_itself() -> None:
    assert find_predecessors(version("abc"), version("aXc")) == {"a": "a", "c": "c", "X": "b"}


def test_where_the_number_changes_the_lines_decide() -> None:
    def chunk(name: str, start: int, end: int) -> ChunkRecord:
        return ChunkRecord(
            chunk_id=name, vector_key="", row_hash="", start_line=start, end_line=end
        )

    known = [chunk("short", 1, 2), chunk("long", 3, 100)]
    wanted = [chunk("A", 1, 2), chunk("B", 3, 40), chunk("C", 41, 99)]
    assert find_predecessors(known, wanted) == {"A": "short", "B": "long", "C": "long"}


IDS = st.lists(st.sampled_from("abcdefgh"), unique=True).map("".join)


@given(known=IDS, wanted=IDS)
def test_only_chunks_that_leave_are_replaced_and_each_is_found_once_the_file_changed_nowhere_else(
    known: str, wanted: str
) -> None:
    new = of_new(known, wanted)
    assert new.keys() <= set(wanted) - set(known)
    assert set(new.values()) <= set(known) - set(wanted)
    if not set(known) & set(wanted) and len(known) == len(wanted):
        assert list(new.items()) == list(zip(wanted, known, strict=True)) or not known
