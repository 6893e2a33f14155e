"""Runs of several chunks: how they are found, joined and expanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from anchord.core.types import ChunkLocation, Hit, RootedPath, Row
from anchord.search.passages import (
    Passage,
    expand_passage,
    join_chunk_texts,
    make_passage,
    merge_adjacent_hits,
)

FILE = RootedPath("docs", "a.md")


def row(number: int) -> Row:
    names = ("doc_id", "kind", "content_hash", "vector_key", "search_text")
    fields: dict[str, Any] = dict.fromkeys(names, "")
    return Row(id=f"c{number}", root="", path="", header_path="S", text=f"t{number}", **fields)


def location(number: int) -> ChunkLocation:
    """Each chunk has a line of its own, and a blank line follows."""
    return ChunkLocation(FILE, 2 * number + 1, 2 * number + 1, number)


def hit(number: int, score: float = 1.0) -> Hit:
    ranks: dict[str, Any] = dict.fromkeys(("cosine", "bm25", "cosine_rank", "bm25_rank"))
    return Hit(id=f"c{number}", score=score, location=location(number), **ranks)


class Index:
    """A catalog and a store of six chunks of one section."""

    def __init__(self, *gone: int) -> None:
        """Leave out the rows of some chunks: they were deleted meanwhile."""
        self.ids = [f"c{number}" for number in range(6)]
        self.rows = {f"c{number}": row(number) for number in range(6) if number not in gone}

    def neighbor_chunk_ids(self, _chunk_id: str, _max_distance: int) -> list[str]:
        """Return all chunks."""
        return self.ids

    def locate_chunks(self, ids: Sequence[str]) -> dict[str, ChunkLocation]:
        """Return where the chunks are."""
        return {chunk_id: location(int(chunk_id[1:])) for chunk_id in ids}

    def get_display_rows(self, ids: Sequence[str]) -> list[Row]:
        """Return the rows that are left."""
        return [self.rows[chunk_id] for chunk_id in ids if chunk_id in self.rows]


def passage_of(*numbers: int) -> Passage:
    return make_passage([(row(number), hit(number)) for number in numbers])


def expanded(passage: Passage, index: Any) -> Passage:  # noqa: ANN401 - both ports
    return expand_passage(passage, 1_000, index, index)


def numbers(passage: Passage) -> list[int]:
    return [int(chunk_id[1:]) for chunk_id in passage.chunk_ids]


def test_the_second_of_two_runs_keeps_its_three_chunks() -> None:
    found = [(row(n), hit(n, score)) for n, score in ((4, 0.1), (0, 0.9), (2, 0.2), (3, 0.3))]
    passages = merge_adjacent_hits(found)
    assert [numbers(each) for each in passages] == [[0], [2, 3, 4]]
    assert [each.text for each in passages] == ["t0", "t2\n\nt3\n\nt4"]


def test_a_passage_of_three_chunks_ends_at_the_last_line_of_the_third() -> None:
    passage = passage_of(1, 2, 3)
    assert (passage.start_line, passage.end_line) == (3, 7)


def test_the_row_of_a_passage_has_the_root_and_a_printable_path_of_its_hit() -> None:
    origin = RootedPath("docs", "a\udcff.md")
    found = replace(hit(0), location=location(0)._replace(origin=origin))
    passage = make_passage([(row(0), found)])
    assert (passage.row.root, passage.row.path) == ("docs", "a\\xff.md")


@pytest.mark.parametrize(
    ("start_line", "line_ends"), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 3)]
)
def test_a_chunk_on_the_next_line_or_before_it_follows_after_one_line_end(
    start_line: int, line_ends: int
) -> None:
    first = ("one", ChunkLocation(FILE, 1, 3, 0))
    second = ("two", ChunkLocation(FILE, start_line, 9, 1))
    assert join_chunk_texts([first, second]) == "one" + "\n" * line_ends + "two"


def test_a_passage_whose_last_chunk_was_deleted_is_shown_as_it_was_found() -> None:
    passage = passage_of(2, 3)
    assert expanded(passage, Index(3)) is passage


def test_a_passage_grows_although_the_chunk_after_it_was_deleted() -> None:
    assert numbers(expanded(passage_of(2, 3), Index(4))) == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [0, 1, 4, 5])
def test_a_passage_goes_on_growing_when_only_one_side_has_chunks_left(number: int) -> None:
    assert numbers(expanded(passage_of(number), Index())) == [0, 1, 2, 3, 4, 5]
