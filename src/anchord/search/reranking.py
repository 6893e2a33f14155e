"""Sort the best hits of a search again, by a model that reads the query and a text together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anchord.core.ports import ChunkStore, Reranker
from anchord.core.types import Hit

MAX_RERANKED = 30


def rerank_hits(
    hits: Sequence[Hit], query: str, reranker: Reranker, store: ChunkStore
) -> list[Hit]:
    """Sort the best 30 hits again, by how well their texts answer a query; the others follow.

    The best of the new order gets the highest of the old scores, and so on: scores still
    decrease. Hits whose row was just deleted are left out.

    Raises:
        EmbedderError: The reranker is not available.
    """
    texts = {
        row.id: f"{row.header_path}\n{row.text}"
        for row in store.get_display_rows([hit.id for hit in hits[:MAX_RERANKED]])
    }
    best = [hit for hit in hits[:MAX_RERANKED] if hit.id in texts]
    relevances = reranker.score_texts(query, [texts[hit.id] for hit in best]) if best else []
    by_relevance = sorted(
        zip(relevances, best, strict=True),
        key=lambda relevance_and_hit: (-relevance_and_hit[0], relevance_and_hit[1].id),
    )
    scores = sorted((hit.score for hit in best), reverse=True)
    reranked = [
        replace(hit, score=score) for (_, hit), score in zip(by_relevance, scores, strict=True)
    ]
    return [*reranked, *hits[MAX_RERANKED:]]
