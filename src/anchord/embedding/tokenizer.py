"""Counts tokens without loading the model. The only user of tokenizers in this process.

A `tokenizer.json` may truncate and pad by itself (MiniLM's does, at 128). Both are switched off:
otherwise every count would be 128.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

_CACHED_TEXTS = 200_000


class TokenCounter:
    """Counts tokens, special tokens not included.

    Calls cache their counts, because an edit chunks a whole file again, and most of its lines come
    again. Only one thread at a time may call it; `count_without_caching` is thread-safe.
    """

    def __init__(self, tokenizer_file: Path) -> None:
        """Load a tokenizer.json.

        Raises:
            Exception: the file cannot be read or parsed; the library raises no narrower class.
        """
        self._tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._counts: dict[str, int] = {"": 0}

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, in order, from the cache where it is known."""
        if len(self._counts) > _CACHED_TEXTS:
            self._counts = {"": 0}
        counts = self._counts
        missing = list({text for text in texts if text not in counts})
        if missing:
            counts.update(zip(missing, self.count_without_caching(missing), strict=True))
        return [counts[text] for text in texts]

    def count_without_caching(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, in order. Thread-safe."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    @property
    def special_token_count(self) -> int:
        """The special tokens that the model adds to a text."""
        return int(self._tokenizer.num_special_tokens_to_add(is_pair=False))


@lru_cache(maxsize=4)
def shared_token_counter(tokenizer_file: Path) -> TokenCounter:
    """Return the counter of a tokenizer.json, the same for all callers.

    Raises:
        Exception: as `TokenCounter`.
    """
    return TokenCounter(tokenizer_file)
