"""How often the daemon may replace its own process."""

from __future__ import annotations

import pytest

from anchord.daemon.restarts import MIN_UPTIME_S, next_restart_count, restart_pause_s


def test_the_first_restart_is_at_once_and_the_second_within_seconds() -> None:
    assert restart_pause_s(0, 1.0) == 0
    assert 0 < restart_pause_s(1, 1.0) <= 5


def test_a_process_that_has_run_ten_minutes_begins_a_new_series() -> None:
    assert restart_pause_s(5, MIN_UPTIME_S) == 0
    assert next_restart_count(5, MIN_UPTIME_S) == 1
    assert next_restart_count(5, MIN_UPTIME_S - 1) == 6


@pytest.mark.parametrize("step_s", [0.0, 1.0, 30.0])
def test_a_fault_that_no_restart_cures_leads_to_twelve_restarts_in_an_hour_at_most(
    step_s: float,
) -> None:
    now_s, count = 0.0, 0
    while now_s < 3600:
        now_s += step_s + restart_pause_s(count, step_s)
        count = next_restart_count(count, step_s)
        assert count <= 13
    assert restart_pause_s(count, step_s) == MIN_UPTIME_S - step_s
