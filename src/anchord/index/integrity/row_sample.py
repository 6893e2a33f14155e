"""A random sample of the rows whose vectors a verification embeds again."""

from __future__ import annotations

import random
from collections.abc import Mapping

from anchord.core.types import RootedPath
from anchord.index.rows import PreparedRow


class RowSample:
    """A random sample of rows, each equally likely (reservoir sampling)."""

    def __init__(self, size: int | None) -> None:
        """Sample up to `size` rows; None takes all."""
        self.chosen: list[tuple[str, RootedPath, str]] = []
        """(row id, file, embedded text)."""
        self._size = size
        self._offered = 0
        self._random = random.Random()  # noqa: S311 - a sample

    def offer(self, rows_by_id: Mapping[str, tuple[RootedPath, PreparedRow]]) -> None:
        """Offer rows, as row id -> its file and itself, to the sample."""
        for row_id, (origin, prepared) in rows_by_id.items():
            candidate = (row_id, origin, prepared.embed_text)
            self._offered += 1
            if self._size is None or len(self.chosen) < self._size:
                self.chosen.append(candidate)
                continue
            # Invariant: each of the n rows offered so far is in the sample with probability size/n.
            index = self._random.randrange(self._offered)
            if index < self._size:
                self.chosen[index] = candidate
