"""Intervals of means: the same for the same values, around the mean, and wide where questions are few."""

from __future__ import annotations

import pytest

from anchord.search.evaluation.intervals import Estimate, best_margin, estimate_mean
from anchord.search.evaluation.links import LinkResolver


def test_an_interval_holds_the_mean_and_comes_out_the_same_again() -> None:
    values = [0.0, 1.0, 1.0, 0.5] * 20
    found = estimate_mean(values)
    assert found.mean == pytest.approx(0.625)
    assert found.low < found.mean < found.high
    assert found == estimate_mean(values)
    few = estimate_mean(values[:8])
    assert few.high - few.low > found.high - found.low
    assert estimate_mean([]) == Estimate(0.0, 0.0, 0.0)


def test_a_margin_is_real_only_where_its_interval_leaves_0_out() -> None:
    better = best_margin({"a": [0.0] * 30, "b": [1.0] * 30})
    assert better is not None
    assert (better.best, better.second, better.difference.has_zero) == ("b", "a", False)
    alike = best_margin({"a": [0.0, 1.0] * 15, "b": [1.0, 0.0] * 14 + [1.0, 1.0]})
    assert alike is not None
    assert alike.difference.has_zero
    assert best_margin({"a": [1.0]}) is None


def test_a_link_below_a_prefix_of_the_site_leads_to_its_page() -> None:
    resolver = LinkResolver({"guide/x.md": "", "y.md": ""})

    def lead(target: str) -> str | None:
        return resolver.resolve_link("y.md", target, is_wiki=False)

    assert lead("/docs/guide/x/") == "guide/x.md"
    assert lead("/site/docs/guide/x") == "guide/x.md"
    assert lead("/docs/guide/none/") is None
