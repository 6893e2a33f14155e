"""The counter of the bundled model's tokens, loaded once for all targets."""

from __future__ import annotations

from functools import cache

from anchord.embedding.model_files import find_model
from anchord.embedding.tokenizer import TokenCounter


@cache
def count() -> TokenCounter:
    """Return the real counter: no other adds up as the model's does."""
    return TokenCounter(find_model("all-MiniLM-L6-v2").tokenizer)
