"""How many chunks only words find so far, and how long making their vectors will take."""

from __future__ import annotations

from typing import Any

from anchord.core.ports import ChunkStore
from anchord.daemon.writer.vector_queue import VectorQueue


def report_missing_vectors(
    vectors: VectorQueue, store: ChunkStore, texts_per_second: float
) -> dict[str, Any]:
    """Count the chunks without vectors; asks the table only if there may be one.

    Args:
        vectors: The files that wait for vectors.
        store: The table.
        texts_per_second: The model's throughput; 0 is unknown.

    Returns:
        `without_vector`, a number of chunks, and `vectors_left_s`, seconds or None for unknown.

    Raises:
        StoreError: The table cannot be read.
    """
    count = store.count_due() if vectors.may_lack_some else 0
    left_s = round(count / texts_per_second, 1) if count and texts_per_second else None
    return {"without_vector": count, "vectors_left_s": left_s}
