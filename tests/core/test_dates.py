"""Parsing the dates that people write."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from anchord.core.dates import parse_time, parse_time_span
from anchord.core.time_phrases import find_time_phrase
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


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("today", "2026-03-10", "2026-03-11"),
        ("Yesterday", "2026-03-09", "2026-03-10"),
        ("this week", "2026-03-09", "2026-03-16"),
        ("last  week", "2026-03-02", "2026-03-09"),
        ("this month", "2026-03-01", "2026-04-01"),
        ("last month", "2026-02-01", "2026-03-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("tuesday", "2026-03-10", "2026-03-11"),
        ("last tuesday", "2026-03-03", "2026-03-04"),
        ("on monday", "2026-03-09", "2026-03-10"),
        ("wednesday", "2026-03-04", "2026-03-05"),
        ("march", "2026-03-01", "2026-04-01"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("last march", "2025-03-01", "2025-04-01"),
        ("in december", "2025-12-01", "2026-01-01"),
        ("March 2024", "2024-03-01", "2024-04-01"),
    ],
)
def test_a_time_in_words_begins_and_ends(text: str, begin: str, end: str) -> None:
    """NOW is a Tuesday."""
    assert parse_time(text, NOW, zone=UTC) == f"{begin}T00:00:00.000Z"
    assert parse_time(text, NOW, zone=UTC, is_range_end=True) == f"{end}T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2 weeks ago", "2026-02-24T12:00:00.000Z"),
        ("an hour ago", "2026-03-10T11:00:00.000Z"),
        ("three months ago", "2025-12-10T12:00:00.000Z"),
        ("1 year ago", "2025-03-10T12:00:00.000Z"),
    ],
)
def test_so_long_ago_is_a_moment(text: str, written: str) -> None:
    assert parse_time(text, NOW, zone=UTC) == written
    assert parse_time(text, NOW, zone=UTC, is_range_end=True) == written


def test_a_month_ago_has_a_day_in_a_shorter_month() -> None:
    now = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)
    assert parse_time("a month ago", now, zone=UTC) == "2026-02-28T12:00:00.000Z"


def test_yesterday_is_that_of_the_local_time_zone() -> None:
    late = datetime(2026, 3, 10, 23, 30, tzinfo=UTC)
    east = timezone(timedelta(hours=2))
    assert parse_time("yesterday", late, zone=east) == "2026-03-09T22:00:00.000Z"
    assert parse_time_span("yesterday", "yesterday", late)[0] != ""


@pytest.mark.parametrize(
    ("query", "phrase"),
    [
        ("what did I write about boats last week", "last week"),
        ("the meeting on Monday", "on Monday"),
        ("decisions in March 2025", "in March 2025"),
        ("three days ago something broke", "three days ago"),
        ("may I use it today", ""),
        ("march of progress", ""),
        ("the last weekend", ""),
    ],
)
def test_a_query_names_a_time(query: str, phrase: str) -> None:
    assert find_time_phrase(query) == phrase


def test_a_day_without_a_zone_is_one_of_here() -> None:
    here = timezone(timedelta(hours=2))
    assert parse_time("2026-01-31", NOW, zone=here) == "2026-01-30T22:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "someday",
        "2026-13-01",
        "7",
        "-1d",
        "999999y",
        "next week",
        "zero days ago",
        "99999 years ago",
    ],
)
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
