"""Embed each query once, although it may be searched for several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anchord.core.types import Vector


class QueryEmbedder(Protocol):
    """Turns queries into vectors, as `Embedder` does."""

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Return one vector a text."""


@dataclass(slots=True)
class KnownQueries:
    """Remembers the vectors of queries: for one search, or for all of an evaluation."""

    embedder: QueryEmbedder
    vectors: dict[str, Vector] = field(default_factory=dict)

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Return one vector a text; only new texts are embedded."""
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if new:
            self.vectors.update(zip(new, self.embedder.embed(new, is_query=is_query), strict=True))
        return [self.vectors[text] for text in texts]
