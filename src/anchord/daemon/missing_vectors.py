"""How many chunks only words find so far, and how long making their vectors will take."""

from __future__ import annotations

from typing import NamedTuple

from anchord.core.ports import ChunkStore
from anchord.daemon.writer.vector_queue import VectorQueue


class MissingVectors(NamedTuple):
    """Chunks without vectors."""

    chunk_count: int
    left_s: float | None
    """Seconds until they have them; None for unknown."""


def find_missing_vectors(
    vectors: VectorQueue, store: ChunkStore, texts_per_second: float
) -> MissingVectors:
    """Count the chunks without vectors; asks the table only if there may be one.

    Args:
        vectors: The files that wait for vectors.
        store: The table.
        texts_per_second: The model's throughput; 0 is unknown.

    Raises:
        StoreError: The table cannot be read.
    """
    count = store.count_due() if vectors.may_lack_some else 0
    left_s = round(count / texts_per_second, 1) if count and texts_per_second else None
    return MissingVectors(count, left_s)
