"""Vectors that a new generation leaves behind, because it began with an empty table."""

from __future__ import annotations

import time

from anchord.core.ids import is_due, without_model_tag
from anchord.core.ports import VectorCache
from anchord.store.table.arrow_vectors import iter_vectors
from anchord.store.table.table import LanceStore


def cache_leaving_vectors(former: LanceStore, following: LanceStore, cache: VectorCache) -> None:
    """Put the vectors of a table that another one lacks into the vector cache.

    A setting that is changed back embeds nothing then.

    Args:
        former: The table that is about to be deleted.
        following: The table that takes its place.
        cache: The vector cache.

    Raises:
        StoreError: A table cannot be read.
    """
    kept: set[str] = set()
    for batch in following.scan(["vector_key"]):
        kept.update(map(without_model_tag, batch["vector_key"].to_pylist()))
    for batch in former.scan(["vector_key", *former.vector_columns]):
        vectors = zip(batch["vector_key"].to_pylist(), iter_vectors(batch), strict=True)
        leaving = {
            key: vector
            for key, vector in vectors
            if not is_due(key) and without_model_tag(key) not in kept
        }
        cache.put(leaving, time.time_ns())
