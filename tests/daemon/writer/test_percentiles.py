"""Latencies in the status."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anchord.daemon.writer.stats import p50_and_p95
from anchord.ipc.messages.status import Percentiles


def test_of_nothing_there_are_none() -> None:
    assert p50_and_p95([]) == Percentiles(p50=None, p95=None)


def test_of_two_values_the_95_percent_is_the_larger() -> None:
    assert p50_and_p95([421.8, 373.4]) == Percentiles(p50=397.6, p95=421.8)


def test_of_a_hundred_values_95_are_within_the_95_percent() -> None:
    assert p50_and_p95([float(n) for n in range(100, 0, -1)]) == Percentiles(p50=50.5, p95=95.0)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_the_half_is_never_above_the_95_percent(values: list[float]) -> None:
    percentiles = p50_and_p95(values)
    assert percentiles.p50 is not None
    assert percentiles.p95 is not None
    assert min(values) - 0.1 <= percentiles.p50 <= percentiles.p95 + 0.1 <= max(values) + 0.2
