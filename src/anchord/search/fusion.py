"""Combine the scores of both searches into one list.

Scores are fused, not ranks (convex combination). The cosine is scaled to 0..1 between the worst and
the best one found, the BM25 score is divided by the best. It is better than or equal to reciprocal
rank fusion on every measured set (docs/design/search.md). Three boosts follow. Chunks that contain
an identifier or a path of the query letter by letter rank higher, the more of the query those are.
So do chunks below a heading whose words are all in the query, and those with a term that a question
quotes. Last, the other chunks of a file can count too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from anchord.core.types import ChunkLocation, Hit, RootedPath, ScoredRow
from anchord.sources.conversations.exchange_document import is_exchange_path

EXACT_MATCH_WEIGHT = 0.25
"""For a query of identifiers only; multiplied by their share of the query's words."""
HEADING_MATCH_WEIGHT = 0.15
PHRASE_MATCH_WEIGHT = 0.1
_SUPPORT_FACTORS = (0.5, 0.25, 0.125, 0.0625)
"""How much the second to fifth best chunk of a file count; with all of them at 1 it is 0.94."""
_EXCHANGE_SUPPORT = 0.5
"""What takes the place of other chunks for an exchange, as a share of its own score: as much as the
files among the best ten have on average (median 0.51, mean 0.48)."""


@dataclass(frozen=True, slots=True)
class Boosts:
    """What ranks a chunk higher than its fused score."""

    exact_match_ids: AbstractSet[str] = frozenset()
    """Chunks that contain an identifier of the query letter by letter."""
    identifier_share: float = 1.0
    """The share of identifiers among the query's words, 0 to 1."""
    heading_match_by_id: Mapping[str, float] = field(default_factory=dict)
    """Chunk id -> how well the query matches its heading, above 0 and up to 1."""
    file_weight: float = 0.0
    """How much the other chunks of a file count, 0 to 1."""
    phrase_match_ids: AbstractSet[str] = frozenset()
    """Chunks that contain a phrase that the query quotes and does not require."""


def fuse_scores(
    vector_results: Sequence[ScoredRow],
    text_results: Sequence[ScoredRow],
    locations: Mapping[str, ChunkLocation],
    vector_weight_of: Callable[[ChunkLocation], float],
    boosts: Boosts = Boosts(),
) -> list[Hit]:
    """Combine the results of both searches into one list, best first.

    Args:
        vector_results: Rows with their cosine.
        text_results: Rows with their BM25 score.
        locations: Chunk id -> where it is now. Chunks without a location are left out.
        vector_weight_of: Returns the cosine's weight for a location, 0 to 1.
        boosts: What ranks chunks higher.

    Returns:
        A hit for each row of either list and each exact match. A row that one search did not find
        counts 0 there.
    """
    cosines = {found.id: found.score for found in vector_results}
    bm25_scores = {found.id: found.score for found in text_results}
    cosine_ranks, bm25_ranks = _ranks(vector_results), _ranks(text_results)
    lowest_cosine = min(cosines.values(), default=0.0)
    cosine_range = max(cosines.values(), default=1.0) - lowest_cosine
    best_bm25 = max(bm25_scores.values(), default=1.0)
    exact_share = EXACT_MATCH_WEIGHT * boosts.identifier_share if boosts.exact_match_ids else 0.0
    heading_share = HEADING_MATCH_WEIGHT if boosts.heading_match_by_id else 0.0
    phrase_share = PHRASE_MATCH_WEIGHT if boosts.phrase_match_ids else 0.0
    fused_share = 1 - exact_share - heading_share - phrase_share
    scores: dict[str, float] = {}
    lifted_ids = boosts.exact_match_ids | boosts.phrase_match_ids
    for chunk_id in {*cosines, *bm25_scores, *lifted_ids} & locations.keys():
        location = locations[chunk_id]
        cosine, bm25 = cosines.get(chunk_id), bm25_scores.get(chunk_id)
        vector_weight = vector_weight_of(location)
        vector_score = _scaled_cosine(cosine, lowest_cosine, cosine_range)
        text_score = bm25 / best_bm25 if bm25 is not None and best_bm25 > 0 else 0.0
        fused = vector_weight * vector_score + (1 - vector_weight) * text_score
        is_exact = chunk_id in boosts.exact_match_ids
        heading_match = boosts.heading_match_by_id.get(chunk_id, 0.0)
        boost = exact_share * is_exact + heading_share * heading_match
        boost += phrase_share * (chunk_id in boosts.phrase_match_ids)
        scores[chunk_id] = fused_share * fused + boost
    if boosts.file_weight:
        scores = _with_support(scores, locations, boosts.file_weight)
    hits = [
        Hit(
            id=chunk_id,
            location=locations[chunk_id],
            score=score,
            cosine=cosines.get(chunk_id),
            bm25=bm25_scores.get(chunk_id),
            cosine_rank=cosine_ranks.get(chunk_id),
            bm25_rank=bm25_ranks.get(chunk_id),
            contains_identifier=chunk_id in boosts.exact_match_ids,
            matches_heading=chunk_id in boosts.heading_match_by_id,
        )
        for chunk_id, score in scores.items()
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def _with_support(
    scores: Mapping[str, float], locations: Mapping[str, ChunkLocation], weight: float
) -> dict[str, float]:
    """Mix into each score how well the other chunks of the file fit: all of one file alike."""
    scores_by_file: dict[RootedPath, list[float]] = {}
    for chunk_id, score in scores.items():
        scores_by_file.setdefault(locations[chunk_id].origin, []).append(score)
    support_by_file = {file: _support(scores) for file, scores in scores_by_file.items()}

    def supported(chunk_id: str, score: float) -> float:
        origin = locations[chunk_id].origin
        support = support_by_file[origin]
        if is_exchange_path(origin.path):
            support = _EXCHANGE_SUPPORT * score
        return (1 - weight) * score + weight * support

    return {chunk_id: supported(chunk_id, score) for chunk_id, score in scores.items()}


def _support(scores: Iterable[float]) -> float:
    """Return how well the second to fifth best chunk of a file fit, 0 to 1."""
    others = sorted(scores, reverse=True)[1 : 1 + len(_SUPPORT_FACTORS)]
    return sum(factor * score for factor, score in zip(_SUPPORT_FACTORS, others, strict=False))


def _scaled_cosine(cosine: float | None, lowest: float, cosine_range: float) -> float:
    """Scale a cosine to 0..1 among those found; 0 if it was not found, 1 if all are equal."""
    if cosine is None:
        return 0.0
    return (cosine - lowest) / cosine_range if cosine_range > 0 else 1.0


def _ranks(found: Sequence[ScoredRow]) -> dict[str, int]:
    ordered = sorted(found, key=lambda scored: (-scored.score, scored.id))
    return {scored.id: rank for rank, scored in enumerate(ordered, 1)}
