"""Batches contain every text once, keep their limits and have little padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.embedding.batching import batch_by_token_count

Batches = list[list[int]]

TOKENS = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 600)), max_size=120)
MOST_TOKENS = st.integers(1, 600)
MOST_TEXTS = st.integers(1, 40)


def alike(shortest: int, longest: int) -> bool:
    """At most a tenth or eight tokens longer, in integers to avoid rounding."""
    return 10 * longest <= 11 * shortest or longest <= shortest + 8


def computed(batch: Sequence[int], tokens: Sequence[int]) -> int:
    """Return the tokens that a model computes: the longest text's number for each text."""
    return len(batch) * max(tokens[index] for index in batch)


def in_tokens(made: Batches, tokens: Sequence[int]) -> Batches:
    return [[tokens[index] for index in batch] for batch in made]


@given(TOKENS, MOST_TOKENS, MOST_TEXTS)
def test_every_text_is_in_one_batch_once(
    tokens: list[int], most_tokens: int, most_texts: int
) -> None:
    made = batch_by_token_count(tokens, most_tokens, most_texts)
    assert sorted(chain.from_iterable(made)) == list(range(len(tokens)))
    assert all(made)


@given(TOKENS, MOST_TOKENS, MOST_TEXTS)
def test_no_batch_is_over_a_limit_but_that_of_a_single_text(
    tokens: list[int], most_tokens: int, most_texts: int
) -> None:
    made = batch_by_token_count(tokens, most_tokens, most_texts)
    assert all(len(batch) <= most_texts for batch in made)
    assert all(computed(batch, tokens) <= most_tokens for batch in made if len(batch) > 1)


@given(TOKENS, MOST_TOKENS, MOST_TEXTS)
def test_the_texts_of_a_batch_are_of_like_lengths(
    tokens: list[int], most_tokens: int, most_texts: int
) -> None:
    made = in_tokens(batch_by_token_count(tokens, most_tokens, most_texts), tokens)
    assert all(alike(min(batch), max(batch)) for batch in made)


@given(TOKENS, MOST_TOKENS, MOST_TEXTS)
def test_at_most_a_tenth_is_padding_beside_the_spare_tokens(
    tokens: list[int], most_tokens: int, most_texts: int
) -> None:
    for batch in batch_by_token_count(tokens, most_tokens, most_texts):
        needed = sum(tokens[index] for index in batch)
        padding = computed(batch, tokens) - needed
        assert padding <= max(needed / 10, 8 * (len(batch) - 1))


@given(TOKENS, MOST_TOKENS, MOST_TEXTS)
def test_short_texts_go_first_and_equal_ones_in_their_order(
    tokens: list[int], most_tokens: int, most_texts: int
) -> None:
    order = list(chain.from_iterable(batch_by_token_count(tokens, most_tokens, most_texts)))
    assert order == sorted(range(len(tokens)), key=lambda index: (tokens[index], index))


@given(TOKENS, MOST_TOKENS, MOST_TEXTS)
def test_a_batch_is_full_before_the_next_begins(
    tokens: list[int], most_tokens: int, most_texts: int
) -> None:
    for batch, following in pairwise(batch_by_token_count(tokens, most_tokens, most_texts)):
        more = [*batch, following[0]]
        shortest, longest = tokens[batch[0]], tokens[following[0]]
        assert (
            len(more) > most_texts
            or computed(more, tokens) > most_tokens
            or not alike(shortest, longest)
        )


@given(TOKENS, MOST_TEXTS)
def test_a_text_that_is_over_the_limit_is_alone(tokens: list[int], most_texts: int) -> None:
    for batch in in_tokens(batch_by_token_count(tokens, 50, most_texts), tokens):
        assert max(batch) <= 50 or len(batch) == 1


def test_no_texts_are_no_batches() -> None:
    assert batch_by_token_count([], 512, 32) == []


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([7], [[7]]),
        ([9_000, 9_000], [[9_000], [9_000]]),
        ([100] * 7, [[100] * 5, [100] * 2]),
        ([1] * 40, [[1] * 32, [1] * 8]),
        ([9, 1, 10, 2], [[1, 2, 9], [10]]),
        ([100, 110, 111], [[100, 110], [111]]),
        ([250, 3, 256, 4], [[3, 4], [250, 256]]),
        ([0, 0, 8, 9], [[0, 0, 8], [9]]),
        ([256, 257, 0], [[0], [256], [257]]),
    ],
    ids=str,
)
def test_an_example(tokens: list[int], expected: list[list[int]]) -> None:
    assert in_tokens(batch_by_token_count(tokens, 512, 32), tokens) == expected
