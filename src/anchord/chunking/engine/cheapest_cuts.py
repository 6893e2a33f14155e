"""Pack the pieces of a text into chunks at least cost, by dynamic programming."""

from __future__ import annotations

from collections.abc import Sequence

from anchord.chunking.engine.layout import (
    BLOCK,
    LAST_RESORT,
    LIST_ITEM,
    MIN_HEADING_STRENGTH,
    TABLE_ROW,
    TEXT_LINE,
)

_OVER_LIMIT_COST = 100.0
_CUT_COSTS = (
    (MIN_HEADING_STRENGTH, 0.0),
    (BLOCK, 0.15),
    (LIST_ITEM, 0.3),
    (TABLE_ROW, 0.5),
    (TEXT_LINE, 0.7),
    (LAST_RESORT + 1, 0.9),
)
"""Minimum strength -> cost of a cut, in chunks; the first that applies."""
_LAST_RESORT_COST = 3.0


def find_cheapest_cuts(
    positions: Sequence[int], inner_strengths: Sequence[int], limit: int
) -> list[int]:
    """Return the stops at which to cut a text, last one first.

    Args:
        positions: Weight of the text before each stop; the first and the last stop are its ends.
        inner_strengths: Strength of a cut at each stop between them.
        limit: Most weight of a chunk.
    """
    inner_costs = [_cut_cost(strength) for strength in inner_strengths]
    cut_costs = [0.0, *inner_costs, 0.0]
    previous = _cheapest_path(positions, cut_costs, limit)
    cuts: list[int] = []
    stop = previous[-1]
    while stop:
        cuts.append(stop)
        stop = previous[stop]
    return cuts


def _cheapest_path(
    positions: Sequence[int], cut_costs: Sequence[float], limit: int
) -> Sequence[int]:
    """Return for each stop the stop at which the chunk before it starts, at least total cost.

    A chunk costs 1, and the cut at its end. One lighter than half the limit costs up to 1 more, one
    over the limit 100 more. `positions` are prefix sums of weights.
    """
    half = limit / 2
    total_costs = [0.0]
    previous = [0]
    for stop in range(1, len(positions)):
        last_start = stop - 1
        least, best_start = float("inf"), last_start
        end_position = positions[stop]
        end_cost = cut_costs[stop]
        for start in range(last_start, -1, -1):
            weight = end_position - positions[start]
            # Invariant: weights only grow from here on. An atom over the limit still needs a chunk.
            if weight > limit and start < last_start:
                break
            cost = total_costs[start] + 1 + end_cost
            if weight > limit:
                cost += _OVER_LIMIT_COST
            if weight < half:
                missing_share = (half - weight) / half
                cost += missing_share**2
            if cost < least:
                least, best_start = cost, start
        total_costs.append(least)
        previous.append(best_start)
    return previous


def _cut_cost(strength: int) -> float:
    """Return what a cut of a strength costs, in chunks."""
    for min_strength, cost in _CUT_COSTS:
        if strength >= min_strength:
            return cost
    return _LAST_RESORT_COST
