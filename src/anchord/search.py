"""Query -> hits: found by meaning and by words, fused by scores, grouped by file.

Scores, not ranks, are fused (convex combination): half the cosine, scaled between the worst and the best found, half the
BM25 score over the best. Measured against reciprocal ranks in SEARCH.md: better or equal on every set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from anchord.errors import EmbedderError
from anchord.model import Filters, Hit, Origin, Scored
from anchord.ports import Catalogue, Embedder, Store

CANDIDATES = 100
VECTOR_SHARE = 0.5
MODES = ("hybrid", "vector", "text")


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for, how (`hybrid`, `vector` or `text`), and where."""

    text: str
    mode: str = "hybrid"
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, best first, and what is to be said of it."""

    hits: tuple[Hit, ...]
    note: str = ""


def search(question: Question, store: Store, embedder: Embedder, catalogue: Catalogue) -> Answer:
    """Return hits, best first, with the lines they have now; rows that left their file since are not among them.

    While no vector of the query can be had, a hybrid search goes by words alone, and says so.

    Raises:
        EmbedderError: a search by vectors alone cannot be done now.
    """
    text, mode, filters, note = question.text, question.mode, question.filters, ""
    near: Sequence[Scored] = ()
    if mode != "text" and text.strip():
        try:
            near = store.nearest(embedder.embed([text], query=True)[0], CANDIDATES, filters)
        except EmbedderError as error:
            if mode == "vector":
                raise
            mode, note = "text", f"found by words alone: {error.message}"
    words = store.matching(text, CANDIDATES, filters) if mode != "vector" else ()
    hits = fuse(near, words, {"vector": 1.0, "text": 0.0}.get(mode, VECTOR_SHARE))
    spots = catalogue.spots([hit.row.id for hit in hits])
    placed = [(hit, spots[hit.row.id]) for hit in hits if hit.row.id in spots]
    return Answer(tuple(replace(hit, start_line=spot.start_line, end_line=spot.end_line) for hit, spot in placed), note)


def fuse(near: Sequence[Scored], words: Sequence[Scored], vector_share: float) -> list[Hit]:
    """Combine two lists into one, without lines yet; a row that one way did not find counts as its worst there."""
    cosines = {scored.row.id: scored.cosine for scored in near if scored.cosine is not None}
    scores = {scored.row.id: scored.bm25 for scored in words if scored.bm25 is not None}
    low, high = min(cosines.values(), default=0.0), max(cosines.values(), default=1.0)
    top = max(scores.values(), default=1.0)
    hits = []
    for row in {scored.row.id: scored.row for scored in (*near, *words)}.values():
        cosine, bm25 = cosines.get(row.id), scores.get(row.id)
        meaning = 0.0 if cosine is None else (cosine - low) / (high - low) if high > low else 1.0
        wording = 0.0 if bm25 is None else bm25 / top if top > 0 else 0.0
        score = vector_share * meaning + (1 - vector_share) * wording
        hits.append(Hit(row, 0, 0, score, cosine, bm25))
    return sorted(hits, key=lambda hit: (-hit.score, hit.row.id))


def grouped(hits: Sequence[Hit], limit: int) -> list[list[Hit]]:
    """Group hits by file, each best first, in the order of their best; `limit` groups."""
    groups: dict[Origin, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(Origin(hit.row.root, hit.row.path), []).append(hit)
    return list(groups.values())[:limit]
