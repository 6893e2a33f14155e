"""How long the rest will take: told from what was done lately, and not before that says anything."""

from __future__ import annotations

import pytest

from anchord.index.metrics import Throughput


def paced(*times: float) -> Throughput:
    """Return a pace after a file at each of these times."""
    pace = Throughput()
    for time in times:
        pace.record_file(time)
    return pace


def test_nothing_is_told_before_there_is_a_pace() -> None:
    assert paced().estimate_remaining_s(10) is None
    assert paced(1.0, 1.1, 1.2).estimate_remaining_s(10) is None


def test_nothing_is_left_of_nothing() -> None:
    assert paced(1, 2, 3, 4).estimate_remaining_s(0) is None


def test_two_files_a_second_take_half_a_second_each() -> None:
    assert paced(*(number / 2 for number in range(40))).estimate_remaining_s(10) == pytest.approx(
        5.0
    )


def test_what_was_long_ago_does_not_count() -> None:
    slow, quick = range(0, 1_000, 10), [1_000 + number / 4 for number in range(400)]
    assert paced(*slow, *quick).estimate_remaining_s(100) == pytest.approx(25.0, rel=0.02)
