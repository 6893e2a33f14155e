"""What a search reads from: the table, the model, and what the model's cosines say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from anchord.core.ports import ChunkStore
from anchord.search.confidence import CosineScale
from anchord.search.known_queries import QueryEmbedder

A = TypeVar("A")
B = TypeVar("B")


class RunBoth(Protocol):
    """Runs two independent functions, possibly in parallel, and returns both results."""

    def __call__(self, first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]:
        """Run both; what one of them raises is raised."""


def run_sequentially(first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]:
    """Run two functions one after the other; return both results."""
    return first(), second()


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherQueries:
    """A further model of the index, for queries."""

    name: str
    """For people."""
    tag: str
    """As `ChunkStore.search_by_vector` takes it."""
    embedder: QueryEmbedder
    cosine_scale: Callable[[], CosineScale | None]
    """Returns what its cosines say, None if that is unknown."""


@dataclass(frozen=True, slots=True)
class Backends:
    """What a search reads from."""

    store: ChunkStore
    embedder: QueryEmbedder
    """The main model."""
    run_both: RunBoth = run_sequentially
    """Runs the vector search and the word search; callers with threads run them in parallel."""
    cosine_scale: Callable[[], CosineScale | None] = lambda: None
    """Returns what the model's cosines say, None if that is unknown; called where there are any."""
    all_have_vectors: bool = True
    """Whether every row of the index has its vector."""
    further_models: Sequence[FurtherQueries] = ()
