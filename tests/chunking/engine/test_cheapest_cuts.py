"""Packing takes the cheapest of all ways to cut: compared with every way there is, and with the costs as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from random import Random

import pytest

from anchord.chunking.engine.cheapest_cuts import find_cheapest_cuts
from anchord.chunking.engine.layout import (
    BLOCK,
    LAST_RESORT,
    LIST_ITEM,
    MIN_HEADING_STRENGTH,
    TABLE_ROW,
    TEXT_LINE,
)

COSTS = {
    MIN_HEADING_STRENGTH + 1: 0.0,
    MIN_HEADING_STRENGTH: 0.0,
    BLOCK: 0.15,
    LIST_ITEM: 0.3,
    TABLE_ROW: 0.5,
    TEXT_LINE: 0.7,
    LAST_RESORT + 1: 0.9,
    LAST_RESORT: 3.0,
}
"""Strength of a cut -> what it costs, in chunks."""


def cost_of(
    cuts: Sequence[int], positions: Sequence[int], strengths: Sequence[int], limit: int
) -> float:
    """Return what cuts cost; only a piece that cannot be cut may be over the limit."""
    stops = [0, *cuts, len(positions) - 1]
    total = sum(COSTS[strengths[cut - 1]] for cut in cuts)
    for start, stop in pairwise(stops):
        weight = positions[stop] - positions[start]
        if weight > limit:
            total += 100 if stop == start + 1 else float("inf")
        missing = max(0.0, limit / 2 - weight) / (limit / 2)
        total += 1 + missing**2
    return total


def sample(seed: int) -> tuple[list[int], list[int]]:
    random = Random(seed)  # noqa: S311 - a sample
    count = random.randrange(2, 9)
    positions = [0]
    for _ in range(count):
        positions.append(positions[-1] + random.choice([5, 20, 45, 50, 90, 100, 101, 130]))
    return positions, [random.choice(list(COSTS)) for _ in range(count - 1)]


@pytest.mark.parametrize("seed", range(60))
def test_no_other_way_to_cut_is_cheaper(seed: int) -> None:
    positions, strengths = sample(seed)
    inner = range(1, len(positions) - 1)
    ways = [cuts for count in range(len(inner) + 1) for cuts in combinations(inner, count)]
    found = find_cheapest_cuts(positions, strengths, 100)
    assert found == sorted(found, reverse=True)
    best = min(cost_of(cuts, positions, strengths, 100) for cuts in ways)
    assert cost_of(found[::-1], positions, strengths, 100) == pytest.approx(best)


def test_a_piece_over_the_limit_is_a_chunk_of_its_own_and_nothing_joins_it() -> None:
    assert find_cheapest_cuts([0, 130, 135, 140], [BLOCK, BLOCK], 100) == [1]
    assert find_cheapest_cuts([0, 5, 135, 140], [BLOCK, BLOCK], 100) == [2, 1]
    assert find_cheapest_cuts([0, 100], [], 100) == []


@pytest.mark.parametrize(("strength", "cost"), list(COSTS.items()))
def test_a_second_chunk_is_worth_a_cut_until_its_cost(strength: int, cost: float) -> None:
    """100 and two pieces of 50: one cut of them costs `cost` more than the other, or is taken."""
    for other, other_cost in COSTS.items():
        found = find_cheapest_cuts([0, 50, 100, 150], [strength, other], 100)
        if cost != other_cost:
            assert found == ([1] if cost < other_cost else [2])
