"""Groups texts into batches of similar lengths, so that a model spends little on padding.

A model computes a batch as if all its texts were as long as the longest.
"""

from __future__ import annotations

from collections.abc import Sequence

_MAX_LENGTH_RATIO = 1.1
"""The longest text of a batch over its shortest: at most a tenth is padding."""
_MAX_LENGTH_DIFFERENCE = 8
"""Texts that differ by no more tokens may share a batch whatever their ratio."""


def batch_by_token_count(
    token_counts: Sequence[int], max_tokens: int, max_texts: int
) -> list[list[int]]:
    """Group texts into batches, shortest texts first.

    Args:
        token_counts: the number of tokens of each text.
        max_tokens: the most tokens of a batch, padding included. A longer text is a batch by
        itself.
        max_texts: the most texts of a batch.

    Returns:
        Batches of indexes into `token_counts`; each index is in one batch.
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(token_counts)), key=token_counts.__getitem__):
        token_count = token_counts[index]
        if batches and len(batches[-1]) < max_texts:
            batch = batches[-1]
            # Texts come by length: this one is the longest of its batch, the first one the
            # shortest.
            fits = token_count * (len(batch) + 1) <= max_tokens
            if fits and _are_similar(token_counts[batch[0]], token_count):
                batch.append(index)
                continue
        batches.append([index])
    return batches


def _are_similar(shortest: int, longest: int) -> bool:
    return longest <= max(shortest * _MAX_LENGTH_RATIO, shortest + _MAX_LENGTH_DIFFERENCE)
