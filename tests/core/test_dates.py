"""Parsing the dates that people write."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from anchord.core.dates import parse_time, parse_time_span
from anchord.errors import UsageError

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        ("2026-01-31", "2026-01-31T00:00:00.000Z"),
        ("2026-01-31T08:30", "2026-01-31T08:30:00.000Z"),
        ("2026-01-31T08:30:00+02:00", "2026-01-31T06:30:00.000Z"),
        ("0001-01-02", "0001-01-02T00:00:00.000Z"),
        ("7d", "2026-03-03T12:00:00.000Z"),
        ("2w", "2026-02-24T12:00:00.000Z"),
        ("90min", "2026-03-10T10:30:00.000Z"),
        ("3 H", "2026-03-10T09:00:00.000Z"),
    ],
)
def test_a_time_is_written_in_utc(text: str, written: str) -> None:
    assert parse_time(text, NOW, zone=UTC) == written


def test_the_end_of_a_day_is_the_beginning_of_the_next() -> None:
    assert parse_time("2026-01-31", NOW, zone=UTC, is_range_end=True) == "2026-02-01T00:00:00.000Z"
    assert parse_time("20260131", NOW, zone=UTC, is_range_end=True) == "2026-02-01T00:00:00.000Z"
    assert (
        parse_time("2026-01-31T08:30", NOW, zone=UTC, is_range_end=True)
        == "2026-01-31T08:30:00.000Z"
    )


def test_a_day_without_a_zone_is_one_of_here() -> None:
    here = timezone(timedelta(hours=2))
    assert parse_time("2026-01-31", NOW, zone=here) == "2026-01-30T22:00:00.000Z"


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "7", "-1d", "999999y"])
def test_what_is_no_time_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_time(text, NOW)
    assert "2026-01-31" in refused.value.hint


@pytest.mark.parametrize("hours", [-12, 0, 14])
def test_the_first_and_the_last_day_of_the_calendar_are_days_in_every_zone(hours: int) -> None:
    here = timezone(timedelta(hours=hours))
    assert parse_time("0001-01-01", NOW, zone=here) < "0001-01-02"
    assert parse_time("9999-12-31", NOW, zone=here, is_range_end=True) > "9999-12-31T09"


def test_a_day_without_a_zone_has_the_summer_time_of_its_season(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert parse_time("2026-07-01", NOW) == "2026-06-30T22:00:00.000Z"
        assert parse_time("2026-01-01", NOW) == "2025-12-31T23:00:00.000Z"
        assert parse_time("9999-12-31", NOW, is_range_end=True) > "9999-12-31T22"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_span_that_ends_before_it_begins_is_refused() -> None:
    day = "2026-01-31"
    begin, end = parse_time_span(day, day, NOW)
    assert datetime.fromisoformat(end) - datetime.fromisoformat(begin) == timedelta(days=1)
    with pytest.raises(UsageError, match="is not before"):
        parse_time_span("2026-02-01", day, NOW)
