"""Judge what a search found: how surely each hit is about the query, and whether any of them is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from anchord.core.ports import ChunkStore
from anchord.core.query_syntax import ParsedQuery
from anchord.core.types import Hit
from anchord.search.backends import Backends
from anchord.search.confidence import (
    Confidence,
    CosineScale,
    Judgement,
    is_about,
    judge_hits,
    other_evidence,
    shown_evidence,
)
from anchord.search.passages import Passage

Judged = tuple[Mapping[str, Judgement], bool]
"""How surely each hit is about the query, by its id; and whether any of them is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """What the hits of one search are judged by."""

    query: ParsedQuery
    scale: CosineScale | None
    """What the model's cosines say; None if that is unknown."""
    highest_other_cosine: float | None
    """Upper bound on the cosine of hits that only words found; None if nothing bounds it."""
    by_words: bool
    """Whether words were searched."""
    due_ids_among: Callable[[Sequence[str]], Collection[str]] = lambda _: ()
    """Returns which rows lack their own vector: one of the text that they replaced says nothing."""

    def may_be_strong(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Return the hits that would be strong matches if they had every word of the query."""
        scale, bound = self.scale, self.highest_other_cosine
        if scale is None or bound is None:
            return hits
        nearness = (
            (hit, scale.nearness(bound if hit.cosine is None else hit.cosine)) for hit in hits
        )
        return [
            hit
            for hit, meaning in nearness
            if Judgement(meaning, 1.0, 1.0).confidence is Confidence.STRONG
        ]

    def judge(self, evidence: Sequence[tuple[Hit, str]]) -> Judged:
        """Judge hits, each with its path, headings and content."""
        due_ids = frozenset(self.due_ids_among([hit.id for hit, _ in evidence]))
        evidence = [
            (replace(hit, cosine=None) if hit.id in due_ids else hit, text)
            for hit, text in evidence
        ]
        judgements = judge_hits(
            self.query,
            evidence,
            self.scale,
            self.highest_other_cosine,
            by_words=self.by_words,
        )
        judged = [hit for hit, _ in evidence]
        return judgements, is_about(judged, judgements, by_words=self.by_words)

    def judge_shown(
        self, hits: Sequence[Hit], groups: Sequence[Sequence[Passage]], store: ChunkStore
    ) -> Judged:
        """Judge what is shown; the best others are read only where they can change something.

        Args:
            hits: All hits, best first.
            groups: What is shown of them.
            store: Where the texts of others are read.
        """
        shown = shown_evidence(groups)
        judgements, about = self.judge(shown)
        if about and all(judgement.all_words == 1 for judgement in judgements.values()):
            return judgements, about
        others = other_evidence(hits, groups, store)
        return self.judge([*shown, *others]) if others else (judgements, about)


def judge_of(
    query: ParsedQuery,
    hits: Sequence[Hit],
    backends: Backends,
    mode: str,
    *,
    is_model_away: bool = False,
) -> Judge:
    """Return what judges the hits of a search.

    Args:
        query: The query.
        hits: All hits.
        backends: What the search reads from.
        mode: How was searched.
        is_model_away: Whether the rows of a model were not compared with the query.
    """
    lowest_cosine = min((hit.cosine for hit in hits if hit.cosine is not None), default=None)
    judge = Judge(
        query=query,
        scale=None if lowest_cosine is None else backends.cosine_scale(),
        highest_other_cosine=None if is_model_away else lowest_cosine,
        by_words=mode != "vector",
    )
    if backends.all_have_vectors:
        return judge
    return replace(
        judge,
        highest_other_cosine=None,
        due_ids_among=backends.store.due_ids_among,
    )


def strong_groups(
    groups: Sequence[Sequence[Passage]], judgements: Mapping[str, Judgement]
) -> tuple[tuple[Passage, ...], ...]:
    """Return the passages of groups that are strong matches; groups without such are left out."""
    strong = (
        tuple(each for each in group if judgements[each.hit.id].confidence is Confidence.STRONG)
        for group in groups
    )
    return tuple(filter(None, strong))
