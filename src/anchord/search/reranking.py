"""Sort the best hits of a search again, by a model that reads the query and a text together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anchord.core.ports import ChunkStore, TextScorer
from anchord.core.types import Hit
from anchord.errors import EmbedderError
from anchord.search.confidence import Confidence
from anchord.search.judging import Judge

MAX_RERANKED = 10
"""Scoring a chunk takes a tenth of a second and more of CPU with a small model, so few are."""
_LEAD = 0.2
"""The best hit is well ahead of the best one of another file by this share of its score."""
SURE = "the best hit is sure"


@dataclass(frozen=True, slots=True)
class Reranked:
    """What a reranker made of the hits of a search."""

    hits: Sequence[Hit]
    """All hits, best first."""
    count: int = 0
    """How many of them it sorted."""
    reason: str = ""
    """Why it sorted none; "" if it did."""


def rerank_hits(
    hits: Sequence[Hit], judge: Judge, reranker: TextScorer, store: ChunkStore
) -> Reranked:
    """Sort the best 10 hits again, by how well their texts answer a query; the others follow.

    The best of the new order gets the highest of the old scores, and so on: scores still
    decrease. Hits whose row was just deleted are left out. Nothing is sorted where the best hit is
    strong and well ahead of the best of another file, or where the reranker is not available.

    Args:
        hits: Best first.
        judge: Says how surely they are about the query.
        reranker: The model.
        store: Where their texts are read.
    """
    rows = {row.id: row for row in store.get_display_rows([hit.id for hit in hits[:MAX_RERANKED]])}
    best = [hit for hit in hits[:MAX_RERANKED] if hit.id in rows]
    texts = [f"{rows[hit.id].header_path}\n{rows[hit.id].text}" for hit in best]
    others = hits[MAX_RERANKED:]
    if not best or _is_sure(hits, best, texts, judge):
        return Reranked([*best, *others], reason=SURE if best else "")
    try:
        relevances = reranker.score_texts(judge.query.text, texts)
    except EmbedderError as error:
        return Reranked([*best, *others], reason=error.message)
    by_relevance = sorted(
        zip(relevances, best, strict=True),
        key=lambda relevance_and_hit: (-relevance_and_hit[0], relevance_and_hit[1].id),
    )
    scores = sorted((hit.score for hit in best), reverse=True)
    reranked = [
        replace(hit, score=score) for (_, hit), score in zip(by_relevance, scores, strict=True)
    ]
    return Reranked([*reranked, *others], count=len(best))


def _is_sure(hits: Sequence[Hit], best: Sequence[Hit], texts: Sequence[str], judge: Judge) -> bool:
    """Return whether the best hit needs no second opinion.

    Args:
        hits: All hits, best first.
        best: The best of them.
        texts: The texts of these.
        judge: Says how surely they are about the query.
    """
    first = hits[0]
    other_files = (hit for hit in hits if hit.location.origin != first.location.origin)
    rival = next(other_files, None)
    if rival is not None and rival.score > (1 - _LEAD) * first.score:
        return False
    judgements, _ = judge.judge(list(zip(best, texts, strict=True)))
    judgement = judgements.get(first.id)
    return judgement is not None and judgement.confidence is Confidence.STRONG
