"""One hit a content: equal chunks of several files are one hit that names the other places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from anchord.core.types import ChunkLocation, Hit, RootedPath
from anchord.search.copies import merge_copies


def hit(name: str, score: float, key: str, root: str = "r") -> Hit:
    ranks: dict[str, Any] = dict.fromkeys(("cosine", "bm25", "cosine_rank", "bm25_rank"))
    location = ChunkLocation(RootedPath(root, name), 1, 2, 0, key)
    return Hit(id=f"{root}/{name}/{key}", score=score, location=location, **ranks)


def nowhere(_: RootedPath) -> bool:
    return False


def places(hits: list[Hit]) -> list[tuple[str, list[str]]]:
    return [
        (each.location.origin.path, [copy.origin.path for copy in each.copies]) for each in hits
    ]


def test_equal_chunks_are_one_hit_at_the_place_that_was_found_first() -> None:
    hits = [hit("a.md", 0.9, "k"), hit("b.md", 0.8, "other"), hit("c.md", 0.7, "k")]
    assert places(merge_copies(hits, nowhere)) == [("a.md", ["c.md"]), ("b.md", [])]


def test_the_copy_below_the_callers_folder_is_shown_with_the_best_score() -> None:
    hits = [hit("a.md", 0.9, "k"), hit("c.md", 0.7, "k")]
    (shown,) = merge_copies(hits, lambda file: file.path == "c.md")
    assert (shown.location.origin.path, shown.score) == ("c.md", 0.9)
    assert [copy.origin.path for copy in shown.copies] == ["a.md"]


def test_all_chunks_of_equal_files_are_shown_from_one_of_them() -> None:
    hits = [
        hit("a.md", 0.9, "1"),
        hit("b.md", 0.9, "1"),
        hit("b.md", 0.5, "2"),
        hit("a.md", 0.5, "2"),
    ]
    assert places(merge_copies(hits, nowhere)) == [("a.md", ["b.md"]), ("a.md", ["b.md"])]


def test_exchanges_and_chunks_without_a_key_stay_apart() -> None:
    exchanges = [hit(f"/claude-code/s/{n}", 0.5, "k") for n in (1, 2)]
    unknown = [hit(name, 0.4, "") for name in ("a.md", "b.md")]
    assert merge_copies([*exchanges, *unknown], nowhere) == [*exchanges, *unknown]


_hits = st.lists(
    st.builds(hit, st.sampled_from("abcde"), st.floats(0, 1), st.sampled_from("123456")),
    max_size=20,
    unique_by=lambda each: each.id,
).map(lambda hits: sorted(hits, key=lambda each: (-each.score, each.id)))


@given(_hits, st.sets(st.sampled_from("abcde")))
def test_no_content_is_lost_or_found_twice_and_every_place_is_named(
    hits: list[Hit], near: set[str]
) -> None:
    merged = merge_copies(hits, lambda file: file.path in near)
    keys = [each.location.vector_key for each in merged]
    assert keys == list(dict.fromkeys(each.location.vector_key for each in hits))
    named = [place for each in merged for place in (each.location, *each.copies)]
    assert sorted(named) == sorted(each.location for each in hits)
    assert [each.score for each in merged] == sorted((each.score for each in merged), reverse=True)
    for each in merged:
        anywhere_near = {place.origin.path for place in (each.location, *each.copies)} & near
        assert not anywhere_near or each.location.origin.path in near


def test_a_copy_is_as_well_found_as_the_best_of_its_texts() -> None:
    near = replace(hit("c.md", 0.7, "k"), bm25=2.0, bm25_rank=9)
    best = replace(
        hit("a.md", 0.9, "k"), cosine=0.6, cosine_rank=1, bm25=9.0, bm25_rank=1,
        contains_identifier=True,
    )  # fmt: skip
    (shown,) = merge_copies([best, near], lambda file: file.path == "c.md")
    assert (shown.location.origin.path, shown.cosine, shown.bm25) == ("c.md", 0.6, 9.0)
    assert shown.contains_identifier
