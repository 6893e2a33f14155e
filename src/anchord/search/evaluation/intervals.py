"""How sure a mean of many questions is: bootstrap intervals, and the margin of the best variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

_RESAMPLES = 1_000
_TAIL = 0.025
_SEED = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def has_zero(self) -> bool:
        """Whether it may as well be 0."""
        return self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Margin:
    """By how much the best variant is better than the second."""

    best: str
    second: str
    difference: Estimate


def estimate_mean(values: Sequence[float]) -> Estimate:
    """Return the mean of values, and the interval of means of values drawn from them at random.

    Args:
        values: One value a question; the same values always give the same interval.
    """
    if not values:
        return Estimate(0.0, 0.0, 0.0)
    random = Random(_SEED)  # noqa: S311 - a sample
    means = sorted(fmean(random.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    tail = round(_TAIL * _RESAMPLES)
    return Estimate(fmean(values), means[tail], means[-1 - tail])


def best_margin(values_by_name: Mapping[str, Sequence[float]]) -> Margin | None:
    """Return how much better the best is than the second, question by question.

    Args:
        values_by_name: Name -> one value a question, of the same questions in the same order.

    Returns:
        The margin; None where there are no two to compare.
    """
    ranked = sorted(values_by_name, key=lambda name: -fmean(values_by_name[name] or [0.0]))
    if len(ranked) < 2:
        return None
    best, second = ranked[:2]
    pairs = zip(values_by_name[best], values_by_name[second], strict=True)
    return Margin(best, second, estimate_mean([one - other for one, other in pairs]))
