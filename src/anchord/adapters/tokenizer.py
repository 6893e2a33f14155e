"""Counts model tokens without the model. The only user of tokenizers.

A `tokenizer.json` may carry truncation and padding of its own (MiniLM's does, at 128): both are taken off, or every
count would be 128.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

_CACHED_TEXTS = 200_000


class TokenCounter:
    """Texts -> numbers of tokens, special tokens left out. Remembers lines, for files are re-chunked whole."""

    def __init__(self, file: Path) -> None:
        """Load a tokenizer.json."""
        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._counts: dict[str, int] = {"": 0}

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        if len(self._counts) > _CACHED_TEXTS:
            self._counts = {"": 0}
        counts = self._counts
        missing = list({text for text in texts if text not in counts})
        if missing:
            encodings = self._tokenizer.encode_batch_fast(missing, add_special_tokens=False)
            counts.update(zip(missing, map(len, encodings), strict=True))
        return [counts[text] for text in texts]

    def once(self, texts: Sequence[str]) -> list[int]:
        """Return the same for texts that will not come again; for any thread."""
        return list(map(len, self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)))

    @property
    def special(self) -> int:
        """Tokens that the model needs around a text."""
        return int(self._tokenizer.num_special_tokens_to_add(is_pair=False))


@lru_cache(maxsize=4)
def counter_of(file: Path) -> TokenCounter:
    """Return the counter of a tokenizer.json, one for all who ask."""
    return TokenCounter(file)
