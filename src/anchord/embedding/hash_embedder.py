"""`provider = "hash"`: an embedder without a model, for tests and benchmarks.

The hash of each word chooses a dimension and a sign, and adds 1 there. So texts that share words
have similar vectors, and search can be tested. A little noise from the whole text separates texts
that consist of the same words.
"""

from __future__ import annotations

import math
import re
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence

from anchord.core.ids import hash_vector_seed
from anchord.core.types import Vector

_WORD = re.compile(r"\w+")
_NOISE = 1e-3
_DIMENSION = 384


class HashEmbedder:
    """Deterministic vectors from the words of texts; never fails."""

    dimension = _DIMENSION
    model_id = f"hash-{_DIMENSION}/1"
    fallback_reason = ""
    is_immediate = True
    is_prepared = True

    def __init__(self, dimension: int = 0) -> None:
        """Start with no texts counted.

        Args:
            dimension: Numbers in a vector; 0 means 384.
        """
        if dimension:
            self.dimension = dimension
            self.model_id = f"hash-{dimension}/1"
        self.embedded = 0
        """Texts since the start, queries included."""
        self.texts_per_second = 0.0
        """Texts a second of the last call."""

    def prepare_in_background(self) -> None:
        """Do nothing: there is no model."""

    def note_waiter(self) -> None:
        """Do nothing: there is no model."""

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:  # noqa: ARG002 - queries are texts
        """Return an L2-normalised float32 vector for each text, in order."""
        self.embedded += len(texts)
        started = time.perf_counter()
        vectors = [_embed_text(text, self.dimension) for text in texts]
        elapsed_s = time.perf_counter() - started
        self.texts_per_second = len(texts) / max(elapsed_s, 1e-6)
        return vectors

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Yield one batch of all texts, as index of a text -> its vector."""
        yield dict(enumerate(self.embed(texts)))

    @property
    def state(self) -> str:
        """Always `ready`."""
        return "ready"

    def status_fields(self) -> dict[str, object]:
        """Return an empty dict: there is nothing to show besides the state and the rate."""
        return {}

    def stop_idle_workers(self) -> None:
        """Do nothing: there are no processes."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _embed_text(text: str, dimension: int) -> Vector:
    numbers = [0.0] * dimension
    for word in _WORD.findall(text.lower()):
        seed = hash_vector_seed(word)
        # The highest of the 64 bits is the sign.
        numbers[seed % dimension] += 1.0 if seed >> 63 else -1.0
    text_seed = hash_vector_seed("\0" + text)
    for byte in range(8):
        position = (text_seed >> (8 * byte)) % dimension
        numbers[position] += _NOISE * (byte + 1)
    length = math.sqrt(sum(number * number for number in numbers))
    return array("f", (number / length for number in numbers)).tobytes()
