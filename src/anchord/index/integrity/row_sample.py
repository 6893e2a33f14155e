"""A random sample of the rows whose vectors a verification embeds again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from anchord.core.types import RootedPath
from anchord.index.rows import PreparedRow


class SampledRow(NamedTuple):
    """A row whose vector is made again."""

    row_id: str
    origin: RootedPath
    vector_key: str
    embed_text: str


class RowSample:
    """A random sample of rows, each equally likely (reservoir sampling)."""

    def __init__(self, size: int | None) -> None:
        """Sample up to `size` rows; None takes all."""
        self.chosen: list[SampledRow] = []
        self._size = size
        self._offered = 0
        self._random = random.Random()  # noqa: S311 - a sample

    def offer(self, rows_by_id: Mapping[str, tuple[RootedPath, PreparedRow]]) -> None:
        """Offer rows, as row id -> its file and itself, to the sample."""
        for row_id, (origin, prepared) in rows_by_id.items():
            key = prepared.row.vector_key
            candidate = SampledRow(row_id, origin, key, prepared.embed_text)
            self._offered += 1
            if self._size is None or len(self.chosen) < self._size:
                self.chosen.append(candidate)
                continue
            # Invariant: each of the n rows offered so far is in the sample with probability size/n.
            index = self._random.randrange(self._offered)
            if index < self._size:
                self.chosen[index] = candidate
