"""How many texts a second a model embeds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

_WINDOW_S = 60.0


class Throughput:
    """Remembers the batches of the last 60 s of work. Any thread may read it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without batches.

        Args:
            clock: Seconds of a monotonic clock.
        """
        self._clock = clock
        self._batches: deque[tuple[float, float, int]] = deque()
        """(time of the end, seconds, texts) of each batch."""

    def record(self, seconds: float, text_count: int) -> None:
        """Record a batch that ends now."""
        now = self._clock()
        self._batches.append((now, seconds, text_count))
        while now - self._batches[0][0] > _WINDOW_S:
            self._batches.popleft()

    @property
    def texts_per_second(self) -> float:
        """Texts a second of the model's own time; 0 without any."""
        batches = list(self._batches)
        busy_s = sum(seconds for _, seconds, _ in batches)
        texts = sum(count for _, _, count in batches)
        return texts / busy_s if busy_s else 0.0
