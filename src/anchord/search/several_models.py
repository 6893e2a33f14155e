"""Search by meaning in an index with several models.

The query is embedded by each model and compared with the vectors of that model alone. Cosines of
two models mean different things, so those of the further models are expressed on the main model's
scale before the rows are merged: what is unrelated and what is related for one model has the score
of that for the main one (`cosine_scale`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anchord.core.types import ScoredRow, SearchFilters
from anchord.errors import EmbedderError
from anchord.search.backends import Backends, FurtherQueries
from anchord.search.confidence import CosineScale

_LEAST_COSINE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The nearest rows of one model, or why there are none."""

    name: str
    rows: Sequence[ScoredRow] = ()
    error: EmbedderError | None = None


def find_nearest_of_all(
    text: str, limit: int, filters: SearchFilters, backends: Backends
) -> tuple[Sequence[ScoredRow], str]:
    """Return the rows that are nearest to a query in meaning, whatever their model.

    Args:
        text: The query.
        limit: Maximum number of rows.
        filters: Rows that do not match are left out.
        backends: The table and the models.

    Returns:
        Rows by descending score, a cosine on the main model's scale; and a sentence about models
        that are not available, else "".

    Raises:
        EmbedderError: No model is available.
    """
    store = backends.store

    def find_by_main() -> _Found:
        def find() -> Sequence[ScoredRow]:
            (vector,) = backends.embedder.embed([text], is_query=True)
            return store.search_by_vector(vector, limit, filters)

        return _unless_away("the main model", find)

    def find_by_further() -> list[_Found]:
        found = []
        for model in backends.further_models:

            def find(model: FurtherQueries = model) -> Sequence[ScoredRow]:
                (vector,) = model.embedder.embed([text], is_query=True)
                rows = store.search_by_vector(vector, limit, filters, model.tag)
                if not rows:
                    return rows
                return on_scale(rows, model.cosine_scale(), backends.cosine_scale())

            found.append(_unless_away(model.name, find))
        return found

    of_main, of_further = backends.run_both(find_by_main, find_by_further)
    found = [of_main, *of_further]
    failed = [each for each in found if each.error]
    if len(failed) == len(found) and of_main.error:
        raise of_main.error
    rows = sorted((row for each in found for row in each.rows), key=lambda row: -row.score)
    notes = [
        f"documents of {each.name} are not searched by meaning: {each.error.message}"
        for each in failed
        if each.error
    ]
    return rows[:limit], "; ".join(notes)


def on_scale(
    rows: Sequence[ScoredRow], scale: CosineScale | None, wanted: CosineScale | None
) -> Sequence[ScoredRow]:
    """Return rows with their cosines expressed on another model's scale.

    Args:
        rows: Rows with their cosines.
        scale: What those say; None if that is unknown: then the nearest row is in the middle.
        wanted: What the cosines of the other model say; None likewise: then the rows keep theirs.
    """
    if wanted is None or not rows:
        return rows
    span = wanted.related - wanted.unrelated
    if scale is None:
        # Nothing says what these cosines mean: the nearest row is neither unrelated nor related.
        best = max(*(row.score for row in rows), _LEAST_COSINE)
        return [
            row._replace(score=wanted.unrelated + span / 2 * (row.score / best)) for row in rows
        ]
    factor = span / (scale.related - scale.unrelated)
    return [
        row._replace(score=min(1.0, wanted.unrelated + factor * (row.score - scale.unrelated)))
        for row in rows
    ]


def _unless_away(name: str, find: Callable[[], Sequence[ScoredRow]]) -> _Found:
    try:
        return _Found(name=name, rows=find())
    except EmbedderError as error:
        return _Found(name=name, error=error)
