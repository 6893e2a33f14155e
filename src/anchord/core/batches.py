"""Texts -> batches for a model: of like lengths, within a number of tokens, so that little is computed for padding.

A batch is computed as if all its texts were as long as the longest of them.
"""

from __future__ import annotations

from collections.abc import Sequence

_SPREAD = 1.1
"""The longest text of a batch over the shortest: at most a tenth is padding."""
_SPARE = 8
"""Short texts may differ by so many tokens all the same."""


def batches(tokens: Sequence[int], most_tokens: int, most_texts: int) -> list[list[int]]:
    """Return the texts' numbers in batches, shortest first. `tokens`: of each text; a batch holds one text at least."""
    made: list[list[int]] = []
    for index in sorted(range(len(tokens)), key=tokens.__getitem__):
        if not made or not _fits(made[-1], tokens, tokens[index], (most_tokens, most_texts)):
            made.append([])
        made[-1].append(index)
    return made


def _fits(batch: Sequence[int], tokens: Sequence[int], longest: int, most: tuple[int, int]) -> bool:
    most_tokens, most_texts = most
    alike = longest <= max(tokens[batch[0]] * _SPREAD, tokens[batch[0]] + _SPARE)
    return alike and len(batch) < most_texts and longest * (len(batch) + 1) <= most_tokens
