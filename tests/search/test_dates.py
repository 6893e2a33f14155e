"""Finding the files that changed in a span of time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from anchord.core.ids import make_doc_id
from anchord.core.types import RootedPath
from anchord.search.dates import find_dated_files


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
