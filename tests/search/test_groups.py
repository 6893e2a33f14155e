"""Neighbours of hits are read together; those that change meanwhile are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from anchord.core.types import (
    NO_FILTERS,
    ChunkLocation,
    Hit,
    RootedPath,
    Row,
    SearchFilters,
)
from anchord.search.groups import show_hits
from anchord.search.packing import Layout

FILE = RootedPath("docs", "a.md")


def location(number: int) -> ChunkLocation:
    return ChunkLocation(FILE, 2 * number + 1, 2 * number + 1, number)


def hit(number: int, score: float = 1.0) -> Hit:
    ranks: dict[str, Any] = dict.fromkeys(("cosine", "bm25", "cosine_rank", "bm25_rank"))
    return Hit(id=f"c{number}", score=score, location=location(number), **ranks)


class Index:
    """A catalog and a store of a file of twenty chunks; tests can delete some from either."""

    def __init__(self) -> None:
        """Give all chunks one section."""
        names = ("doc_id", "kind", "content_hash", "vector_key", "search_text", "root", "path")
        fields: dict[str, Any] = dict.fromkeys(names, "")
        self.rows = {
            f"c{n}": Row(id=f"c{n}", header_path="S", text=f"t{n}", **fields) for n in range(20)
        }
        self.locations = {f"c{n}": location(n) for n in range(20)}
        self.reads = 0

    def neighbor_chunk_ids(self, chunk_id: str, max_distance: int) -> list[str]:
        """Return the ids around a chunk."""
        number = int(chunk_id[1:])
        ids = [f"c{n}" for n in range(20)]
        return ids[max(0, number - max_distance) : number + max_distance + 1]

    def locate_chunks(self, ids: list[str]) -> dict[str, ChunkLocation]:
        """Return where the catalog has them."""
        return {each: self.locations[each] for each in ids if each in self.locations}

    def get_display_rows(self, ids: list[str], filters: SearchFilters = NO_FILTERS) -> list[Row]:
        """Return those rows that the store has and that are in the room."""
        self.reads += 1
        rows = [self.rows[each] for each in ids if each in self.rows]
        return [row for row in rows if filters.room in ("", row.room)]


def shown(index: Any, *hits: Hit, **layout: Any) -> list[list[int]]:  # noqa: ANN401 - both ports
    groups, _ = show_hits(hits, 10, Layout(**layout), index, index)
    return [
        [int(chunk_id[1:]) for chunk_id in passage.chunk_ids]
        for group in groups
        for passage in group
    ]


def test_eight_neighbours_on_each_side_are_looked_at_to_expand() -> None:
    assert shown(Index(), hit(10), expand_chars=10_000) == [list(range(2, 19))]


def test_neighbours_that_fill_a_budget_meet_the_filters_of_the_search() -> None:
    index = Index()
    index.rows["c11"] = replace(index.rows["c11"], room="other")
    filters = SearchFilters(room="other")
    assert shown(index, hit(10), budget=5_000, neighbor_filters=filters) == [[10, 11]]


def test_three_neighbours_on_each_side_are_looked_at_to_fill_a_budget() -> None:
    assert shown(Index(), hit(10), budget=5_000) == [list(range(7, 14))]


def test_all_neighbours_are_read_at_once_and_none_if_nothing_needs_them() -> None:
    index = Index()
    shown(index, hit(3), hit(12), expand_chars=10_000)
    assert index.reads == 2
    index.reads = 0
    shown(index, hit(3), hit(12))
    assert index.reads == 1


@pytest.mark.parametrize("gone", ["rows", "locations"])
def test_a_neighbour_that_goes_meanwhile_is_left_out_with_what_is_behind_it(gone: str) -> None:
    index = Index()
    del getattr(index, gone)["c11"]
    assert shown(index, hit(10), expand_chars=10_000) == [list(range(2, 11))]


def test_a_hit_whose_file_changed_since_it_was_found_is_shown_without_neighbours() -> None:
    index = Index()
    index.locations["c10"] = location(4)
    assert shown(index, hit(10), expand_chars=10_000) == [[10]]


def test_a_hit_that_was_just_deleted_is_not_shown() -> None:
    index = Index()
    del index.rows["c10"]
    assert shown(index, hit(10), hit(3, 0.5)) == [[3]]


def test_an_exchange_in_two_roots_is_shown_once_and_names_the_other_place() -> None:
    index: Any = Index()
    said = replace(index.rows["c1"], source="codex", at="2026-01-31", until="2026-01-31")
    places = [ChunkLocation(RootedPath(root, "/codex/s/1"), 1, 2) for root in ("one", "two")]
    index.rows = {"c1": said, "c2": replace(said, id="c2")}
    hits = [
        replace(hit(number, score), location=place)
        for number, score, place in zip((1, 2), (0.9, 0.8), places, strict=True)
    ]
    ((passage,),), _ = show_hits(hits, 10, Layout(), index, index)
    assert (passage.hit.id, passage.hit.copies) == ("c1", (places[1],))


def test_groups_of_which_nothing_fits_are_counted() -> None:
    others = [
        Hit(
            id=f"c{n}",
            score=0.5,
            location=ChunkLocation(RootedPath("docs", f"{n}.md"), 1, 1),
            cosine=None,
            bm25=None,
            cosine_rank=None,
            bm25_rank=None,
        )
        for n in (1, 2)
    ]
    index: Any = Index()
    groups, omitted = show_hits([hit(10), *others], 10, Layout(budget=200), index, index)
    assert (len(groups), omitted) == (1, 2)
