"""`--expand` adds whole neighbours of the same section; if chunks change meanwhile, the passage stays as found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from anchord.core.types import ChunkLocation, Hit, RootedPath, Row
from anchord.search.passages import (
    Passage,
    drop_repeated_passages,
    expand_passage,
    make_passage,
    merge_adjacent_hits,
)

FILE = RootedPath("docs", "a.md")
TEXTS = ["zero", "first", "second", "third", "fourth", "last"]


def row(number: int, section: str = "Section") -> Row:
    names = ("doc_id", "kind", "content_hash", "vector_key", "search_text")
    fields: dict[str, Any] = dict.fromkeys(names, "")
    text = TEXTS[number]
    return Row(id=f"c{number}", root="", path="", header_path=section, text=text, **fields)


def location(number: int) -> ChunkLocation:
    """Each chunk has a line of its own, and a blank line follows."""
    return ChunkLocation(FILE, 2 * number + 1, 2 * number + 1, number)


def hit(number: int, score: float = 1.0) -> Hit:
    ranks: dict[str, Any] = dict.fromkeys(("cosine", "bm25", "cosine_rank", "bm25_rank"))
    return Hit(id=f"c{number}", score=score, location=location(number), **ranks)


class Index:
    """A catalog and a store of six chunks; tests can delete some from either."""

    def __init__(self, sections: str = "SSSSSS") -> None:
        """Give all chunks the section that their letter names."""
        self.rows = {f"c{n}": row(n, section) for n, section in enumerate(sections)}
        self.locations = {f"c{n}": location(n) for n in range(len(TEXTS))}
        self.ids = list(self.rows)
        self.asked = 0

    def neighbor_chunk_ids(self, chunk_id: str, max_distance: int) -> list[str]:
        """Return all chunks, and record the requested distance."""
        self.asked = max_distance
        assert chunk_id in self.rows
        return self.ids

    def locate_chunks(self, ids: list[str]) -> dict[str, ChunkLocation]:
        """Return where the catalog has them."""
        return {each: self.locations[each] for each in ids if each in self.locations}

    def get_display_rows(self, ids: list[str]) -> list[Row]:
        """Return those rows that the store has."""
        return [self.rows[each] for each in ids if each in self.rows]


def passage_of(*numbers: int) -> Passage:
    return make_passage([(row(number, "S"), hit(number)) for number in numbers])


def expanded(passage: Passage, max_chars: int, index: Any) -> Passage:  # noqa: ANN401 - both ports
    return expand_passage(passage, max_chars, index, index)


def numbers(passage: Passage) -> list[int]:
    return [int(chunk_id[1:]) for chunk_id in passage.chunk_ids]


@pytest.mark.parametrize(
    ("max_chars", "shown"),
    [
        (0, [2]),
        (len("second\n\nthird") - 1, [2]),
        (len("second\n\nthird"), [2, 3]),
        (len("first\n\nsecond\n\nthird") - 1, [2, 3]),
        (len("first\n\nsecond\n\nthird"), [1, 2, 3]),
        (1_000, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_neighbours_are_added_nearest_first_as_far_as_they_fit(
    max_chars: int, shown: list[int]
) -> None:
    result = expanded(passage_of(2), max_chars, Index())
    assert numbers(result) == shown
    assert result.text == "\n\n".join(TEXTS[number] for number in shown)
    assert (result.start_line, result.end_line) == (2 * shown[0] + 1, 2 * shown[-1] + 1)
    assert result.hit == hit(2)


@pytest.mark.parametrize(
    ("sections", "shown"), [("XSSSXX", [1, 2, 3]), ("SXSSXS", [2, 3]), ("XXSXXX", [2])]
)
def test_no_neighbour_of_another_section_is_added_nor_anything_behind_it(
    sections: str, shown: list[int]
) -> None:
    assert numbers(expanded(passage_of(2), 1_000, Index(sections))) == shown


def test_eight_neighbours_on_each_side_of_all_its_chunks_are_looked_at() -> None:
    index = Index()
    expanded(passage_of(2, 3), 1_000, index)
    assert index.asked == 8 + 2


@pytest.mark.parametrize("gone", ["neighbours", "row", "location", "first", "last"])
def test_a_passage_whose_chunks_change_meanwhile_is_shown_as_it_was_found(gone: str) -> None:
    index, passage = Index(), passage_of(2, 3, 4)
    if gone == "neighbours":
        index.ids = []
    elif gone == "row":
        del index.rows["c3"]
    elif gone == "location":
        del index.locations["c3"]
    else:
        index.ids.remove({"first": "c2", "last": "c4"}[gone])
    assert expanded(passage, 1_000, index) is passage


@pytest.mark.parametrize("gone", ["rows", "locations"])
def test_a_neighbour_that_goes_meanwhile_is_left_out_with_what_is_behind_it(gone: str) -> None:
    index = Index()
    del getattr(index, gone)["c4"]
    assert numbers(expanded(passage_of(2), 1_000, index)) == [0, 1, 2, 3]


def test_hits_that_follow_each_other_in_a_section_are_one_passage_and_the_best_is_first() -> None:
    found = [(row(n), hit(n, score)) for n, score in ((5, 0.5), (1, 0.2), (0, 0.9), (3, 0.7))]
    passages = merge_adjacent_hits(found)
    assert [numbers(each) for each in passages] == [[0, 1], [3], [5]]
    assert [each.hit.id for each in passages] == ["c0", "c3", "c5"]
    other = [(row(0), hit(0)), (replace(row(1), header_path="Other"), hit(1))]
    assert [numbers(each) for each in merge_adjacent_hits(other)] == [[0], [1]]


def test_a_passage_is_left_out_only_if_all_its_chunks_were_shown() -> None:
    shown = [passage_of(0, 1), passage_of(1), passage_of(1, 2), passage_of(0, 1, 2)]
    assert [numbers(each) for each in drop_repeated_passages(shown)] == [[0, 1], [1, 2]]
