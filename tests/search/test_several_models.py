"""The hits of several models in one list, by what the cosines of each say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from fakes import FakeStore

from anchord.core.types import ScoredRow, SearchFilters, Vector
from anchord.errors import EmbedderError
from anchord.search.backends import Backends, FurtherQueries
from anchord.search.confidence import CosineScale
from anchord.search.several_models import find_nearest_of_all, on_scale

ROWS = {
    "": [ScoredRow("main good", 0.45), ScoredRow("main bad", 0.05)],
    "tag": [ScoredRow("other good", 0.88), ScoredRow("other bad", 0.71)],
}
MAIN, NARROW = CosineScale(0.0, 0.5), CosineScale(0.7, 0.9)


class Queries:
    """A model that answers with one vector, or not at all."""

    def __init__(self, vector: Vector, reason: str = "") -> None:
        """Answer with a vector, unless there is a reason."""
        self.vector, self.reason = vector, reason

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Give the vector of each query."""
        assert is_query
        if self.reason:
            raise EmbedderError(self.reason)
        return [self.vector for _ in texts]


class Table(FakeStore):
    """Gives the rows of each model; the vector must be that model's."""

    def search_by_vector(
        self, vector: Vector, limit: int, filters: SearchFilters, model_tag: str = ""
    ) -> Sequence[ScoredRow]:
        """Return the rows of a model."""
        del filters
        assert vector == (model_tag or "main").encode()
        return ROWS[model_tag][:limit]


def backends(
    main: str = "", other: str = "", scale: Callable[[], CosineScale | None] = lambda: NARROW
) -> Backends:
    further = FurtherQueries(
        name="`other`",
        tag="tag",
        embedder=Queries(b"tag", other),
        cosine_scale=scale,
    )
    return Backends(
        Table(),
        Queries(b"main", main),
        cosine_scale=lambda: MAIN,
        further_models=[further],
    )


def found(searched: Backends, limit: int = 10) -> tuple[list[str], str]:
    rows, note = find_nearest_of_all("query", limit, SearchFilters(), searched)
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    return [row.id for row in rows], note


def test_hits_of_two_models_are_merged_by_what_their_cosines_say() -> None:
    assert found(backends()) == (["main good", "other good", "main bad", "other bad"], "")
    rows, _ = find_nearest_of_all("query", 10, SearchFilters(), backends())
    assert [round(row.score, 3) for row in rows] == [0.45, 0.45, 0.05, 0.025]


def test_no_more_than_the_limit_are_returned() -> None:
    assert found(backends(), 2) == (["main good", "other good"], "")


def test_the_nearest_row_of_a_model_without_a_scale_is_in_the_middle() -> None:
    rows = [ScoredRow("a", 0.9), ScoredRow("b", 0.8)]
    assert on_scale(rows, NARROW, None) == on_scale(rows, None, None) == rows
    assert on_scale([], None, MAIN) == []
    best, other = on_scale(rows, None, MAIN)
    assert (best.score, 0 < other.score < 0.25) == (0.25, True), "neither unrelated nor related"


def test_no_cosine_on_another_scale_is_above_one() -> None:
    narrow = CosineScale(0.70, 0.75)
    assert [row.score for row in on_scale([ScoredRow("far beyond", 0.99)], narrow, MAIN)] == [1.0]


def test_unrelated_and_related_are_the_ends_of_both_scales() -> None:
    ends = [ScoredRow("unrelated", 0.7), ScoredRow("related", 0.9)]
    assert [round(row.score, 6) for row in on_scale(ends, NARROW, MAIN)] == [0.0, 0.5]


def test_a_model_that_is_away_is_named_and_the_others_answer() -> None:
    names, note = found(backends(other="no answer"))
    assert names == ["main good", "main bad"]
    assert note == "documents of `other` are not searched by meaning: no answer"
    names, note = found(backends(main="asleep"))
    assert names == ["other good", "other bad"]
    assert note == "documents of the main model are not searched by meaning: asleep"


def test_without_any_model_the_search_fails() -> None:
    with pytest.raises(EmbedderError, match="asleep"):
        found(backends("asleep", "no answer"))
