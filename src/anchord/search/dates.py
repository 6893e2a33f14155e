"""Read dates as people write them, and return them in ISO 8601, UTC, as the table holds them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from anchord.core.quoting import quote_name
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
    milliseconds = moment.microsecond // 1000
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds:03}Z"
