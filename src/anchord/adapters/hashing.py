"""An embedder without a model: deterministic numbers from the words of a text. For tests and benchmarks.

Each word adds one to a dimension that its hash chooses, with a sign; a little noise from the whole text keeps different
texts of the same words apart. Texts that share words are near each other, so search can be tested too.
"""

from __future__ import annotations

import math
import re
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence

from anchord.core.identity import hash_vector_seed
from anchord.model import Vector

_WORD = re.compile(r"\w+")
_NOISE = 1e-3


class HashEmbedder:
    """`provider = "hash"`; counts the texts it is given."""

    dimension = 384
    model = "hash-384/1"
    why = ""

    def __init__(self) -> None:
        """Start counting at 0."""
        self.embedded = 0
        self.rate = 0.0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Vector]:  # noqa: ARG002 - no lanes here
        """Return the vectors of texts."""
        self.embedded += len(texts)
        began = time.perf_counter()
        vectors = [_vector(text, self.dimension) for text in texts]
        self.rate = len(texts) / max(time.perf_counter() - began, 1e-6)
        return vectors

    def stream(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Yield the same, in one batch."""
        yield dict(enumerate(self.embed(texts)))

    @property
    def state(self) -> str:
        """Always ready."""
        return "ready"

    def describe(self) -> dict[str, object]:
        """Return what status tells beside state and rate: nothing."""
        return {}

    def rest(self) -> None:
        """Nothing to end."""

    def close(self) -> None:
        """Nothing to close."""


def _vector(text: str, dimension: int) -> Vector:
    numbers = [0.0] * dimension
    for word in _WORD.findall(text.lower()):
        seed = hash_vector_seed(word)
        numbers[seed % dimension] += 1.0 if seed >> 63 else -1.0
    seed = hash_vector_seed("\0" + text)
    for n in range(8):
        numbers[(seed >> (8 * n)) % dimension] += _NOISE * (n + 1)
    length = math.sqrt(sum(number * number for number in numbers))
    return array("f", (number / length for number in numbers)).tobytes()
