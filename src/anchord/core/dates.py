"""Read dates as people write them, and return them in ISO 8601, UTC, as the table holds them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from anchord.core.quoting import quote_name
from anchord.core.time_phrases import parse_time_phrase
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
"""ISO 8601 has shorter days, such as 20260131, and no shorter times."""
_HINT = (
    "use 2026-01-31, 2026-01-31T12:00, an age such as 7d (min, h, d, w, m, y), or words: "
    "yesterday, last week, in March, monday, 2 weeks ago"
)


def parse_time_span(since: str, until: str, now: datetime) -> tuple[str, str]:
    """Return the two ends of a span of time as `parse_time` does.

    Args:
        since: Its begin; "" for none.
        until: Its end; "" for none. A date without a time is the end of that day, and a time in
            words, such as "last week", its end.
        now: As in `parse_time`.

    Raises:
        UsageError: A text is no date, or the begin is not before the end.
    """
    begin = parse_time(since, now)
    end = parse_time(until, now, is_range_end=True)
    if begin and end and begin >= end:
        raise UsageError(
            f"{quote_name(since)} (since) is not before {quote_name(until)} (until)",
            "give the earlier date to `since`",
        )
    return begin, end


def parse_age(text: str) -> timedelta:
    """Return an age such as "30d" or "2w" as a span of time longer than zero.

    Raises:
        UsageError: The text is no age.
    """
    age = _AGE.match(text.strip().lower())
    if not age or not int(age[1]):
        raise UsageError(
            f"cannot read {quote_name(text)} as an age", "use 30d, 12h or 2w (min, h, d, w, m, y)"
        )
    return int(age[1]) * _UNITS[age[2]]


def parse_time(
    text: str, now: datetime, *, zone: tzinfo | None = None, is_range_end: bool = False
) -> str:
    """Return a date in ISO 8601, UTC, with milliseconds.

    Args:
        text: A date, a date and time, an age such as "7d", or a time in words as
            `parse_time_phrase` reads it; "" gives "".
        now: The current time, with a zone.
        zone: The zone of a date that names none; None is this machine's.
        is_range_end: Whether a date without a time is the end of that day, and a time in words its
            end.

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
        phrase = parse_time_phrase(text, now.astimezone(zone).replace(tzinfo=None))
        if phrase:
            return _iso_utc(phrase[is_range_end].replace(tzinfo=zone))
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise UsageError(f"cannot read {quote_name(text)} as a date", _HINT) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    if is_range_end and len(text) <= _DAY_LENGTH:
        # After the last day of the calendar there is none.
        moment += min(timedelta(days=1), datetime.max.replace(tzinfo=moment.tzinfo) - moment)
    return _iso_utc(moment)


def nanoseconds_of(moment: str) -> int:
    """Return the nanoseconds since 1970 of a date as `parse_time` returns it."""
    return int(datetime.fromisoformat(moment).timestamp() * 1_000) * 1_000_000


def format_utc(time_ns: int) -> str:
    """Return nanoseconds since 1970 as a date in ISO 8601, UTC; "" beyond the calendar."""
    try:
        return _iso_utc(datetime.fromtimestamp(time_ns / 1e9, UTC))
    except (ValueError, OverflowError, OSError):
        return ""


def _iso_utc(moment: datetime) -> str:
    try:
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        # In UTC it is before the first day of the calendar, or after the last.
        moment = moment.replace(tzinfo=UTC)
    # Not strftime: it writes a year before 1000 with fewer than four digits.
    written = moment.isoformat(timespec="milliseconds")
    return written.replace("+00:00", "Z")
