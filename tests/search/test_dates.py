"""Parsing the dates that people write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from anchord.core.ids import make_doc_id
from anchord.core.types import RootedPath
from anchord.errors import UsageError
from anchord.search.dates import find_dated_files, parse_time

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
    assert parse_time(text, NOW) == written


def test_the_end_of_a_day_is_the_beginning_of_the_next() -> None:
    assert parse_time("2026-01-31", NOW, is_range_end=True) == "2026-02-01T00:00:00.000Z"
    assert parse_time("2026-01-31T08:30", NOW, is_range_end=True) == "2026-01-31T08:30:00.000Z"


def test_a_day_without_a_zone_is_one_of_here() -> None:
    here = NOW.astimezone(timezone(timedelta(hours=2)))
    assert parse_time("2026-01-31", here) == "2026-01-30T22:00:00.000Z"


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "7", "-1d", "999999y"])
def test_what_is_no_time_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_time(text, NOW)
    assert "2026-01-31" in refused.value.hint


def _ns(day: int) -> int:
    return int(datetime(2026, 3, day, tzinfo=UTC).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        ("2026-03-02T00:00:00.000Z", "", {2, 3}),
        ("", "2026-03-02T00:00:00.000Z", {1}),
        ("2026-03-02T00:00:00.000Z", "2026-03-03T00:00:00.000Z", {2}),
        ("2026-03-01T00:00:00.001Z", "2026-03-03T00:00:00.001Z", {2, 3}),
        ("2026-03-09T00:00:00.000Z", "", set()),
        ("0001-01-02T00:00:00.000Z", "9999-01-02T00:00:00.000Z", {1, 2, 3}),
        ("", "2026-03-09T00:00:00.000Z", {1, 2, 3}),
    ],
)
def test_files_of_a_span_of_time_are_named_by_the_shorter_list(
    since: str, until: str, days: set[int]
) -> None:
    origins = {day: RootedPath("notes", f"{day}.md") for day in (1, 2, 3)}
    found = find_dated_files(since, until, [(origins[day], _ns(day)) for day in origins])
    named = {day for day, origin in origins.items() if make_doc_id(origin) in found.doc_ids}
    assert (set(origins) - named if found.is_complement else named) == days
    assert len(found.doc_ids) <= 1
