"""Read dates as people write them, and return them in ISO 8601, UTC, as the table holds them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from anchord.core.ids import make_doc_id
from anchord.core.quoting import quote_name
from anchord.core.types import DatedFiles, RootedPath
from anchord.errors import UsageError

_AGE = re.compile(r"(\d{1,6})\s*(min|h|d|w|m|y)$")
_UNITS = {
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "m": timedelta(days=30),
    "y": timedelta(days=365),
}
_DAY_LENGTH = len("2026-01-31")
_HINT = "use 2026-01-31, 2026-01-31T12:00, or an age such as 7d (min, h, d, w, m, y)"


def parse_time(text: str, now: datetime, *, is_range_end: bool = False) -> str:
    """Return a date in ISO 8601, UTC, with milliseconds.

    Args:
        text: A date, a date and time, or an age such as "7d"; "" gives "".
        now: The current time. Its zone is that of dates without one.
        is_range_end: Whether a date without a time is the end of that day.

    Raises:
        UsageError: The text is no date.
    """
    if not text:
        return ""
    text = text.strip()
    age = _AGE.match(text.lower())
    try:
        if age:
            return _iso_utc(now - int(age[1]) * _UNITS[age[2]])
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=now.tzinfo)
        if is_range_end and len(text) == _DAY_LENGTH:
            moment += timedelta(days=1)
        return _iso_utc(moment)
    except (ValueError, OverflowError):
        raise UsageError(f"cannot read {quote_name(text)} as a date", _HINT) from None


def _iso_utc(moment: datetime) -> str:
    # Not strftime: it writes a year before 1000 with fewer than four digits.
    written = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return written.replace("+00:00", "Z")


def find_dated_files(
    since: str, until: str, change_times: Iterable[tuple[RootedPath, int]]
) -> DatedFiles:
    """Return the files that changed last in a span of time.

    Args:
        since: Its begin as `parse_time` returns it; "" for none.
        until: Its end, which is not part of it; "" for none.
        change_times: Each file with its time of change, in ns.
    """
    begin_ns = _nanoseconds(since) if since else -math.inf
    end_ns = _nanoseconds(until) if until else math.inf
    inside: list[RootedPath] = []
    outside: list[RootedPath] = []
    for origin, changed_ns in change_times:
        (inside if begin_ns <= changed_ns < end_ns else outside).append(origin)
    is_complement = len(outside) < len(inside)
    shorter = outside if is_complement else inside
    return DatedFiles(tuple(map(make_doc_id, shorter)), is_complement)


def _nanoseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1_000) * 1_000_000
