"""What the index depends on besides the files. A changed recipe re-reads every file by itself; nobody is asked to reindex."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cached_property

from anchord.chunkers import VERSION
from anchord.chunkers.layout import Limits
from anchord.core.identity import fields_digest

ROW_VERSION = "1"
"""Raise it with any change to what `Row` holds for the same chunk."""

_AROUND = 32
"""Tokens of a window that are not the chunk's own: a repeated fence or table opening, or the heading above."""
_LARGEST_BODY = 430


@dataclass(frozen=True)
class Recipe:
    """Limits of the chunker and identity of the model; `digest` names the whole."""

    limits: Limits
    model: Callable[[], str]
    """Asked when the digest is needed: hashing the weights takes a moment that a mere search can spare."""
    tokenizer: str
    """Identity of the tokenizer, and of the grammars that code is cut by."""

    @cached_property
    def digest(self) -> str:
        """Return the recipe as one short text."""
        return fields_digest(VERSION, ROW_VERSION, self.model(), self.tokenizer, *map(str, astuple(self.limits)))


def limits_of(window: int, tokens: int | None, heading_depth: int | None) -> Limits:
    """Return chunk limits for a model's window, made smaller by a setting that counts the two special tokens."""
    return limits_for(min(window, tokens - 2) if tokens else window, heading_depth)


def limits_for(window: int, heading_depth: int | None) -> Limits:
    """Return chunk limits for a model that takes `window` tokens besides the special ones."""
    body = min(max(window - _AROUND, 16), _LARGEST_BODY)
    return Limits(body=body, window=window, heading_depth=heading_depth or 6)
