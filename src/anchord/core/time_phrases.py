"""Times in everyday English: "yesterday", "last week", "in March", "2 weeks ago"."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from anchord.core.lazy_re import lazy_re

_MONTHS = [
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_FIXED_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_AGO = lazy_re(r"(\d{1,5}|[a-z]+) (minute|hour|day|week|month|year)s? ago")
_PERIOD = lazy_re(r"(this|last) (week|month|year)")
_WEEKDAY = lazy_re(rf"(?:(last|on) )?({'|'.join(_WEEKDAYS)})")
_MONTH = lazy_re(rf"(?:(last|in) )?({'|'.join(_MONTHS)})(?: (\d{{4}}))?")
_IN_QUERY = lazy_re(
    r"\b(?:yesterday|(?:this|last) (?:week|month|year)|(?:\d{1,3}|an?|one|two|three|four|five|six) "
    rf"(?:hour|day|week|month|year)s? ago|(?:last|on) (?:{'|'.join(_WEEKDAYS)})"
    rf"|(?:last|in) (?:{'|'.join(_MONTHS)})(?: \d{{4}})?)\b",
    re.IGNORECASE,
)


def find_time_phrase(query: str) -> str:
    """Return the first time that a query names as `parse_time_phrase` reads it, "" for none.

    A word that has other meanings too, such as "may" or "today", is not taken for one.
    """
    found = _IN_QUERY.search(query)
    return found[0] if found else ""


def parse_time_phrase(phrase: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the begin and the end of the time that a phrase means.

    A week begins on Monday. A month or a weekday without "last" is the latest one that has begun.

    Args:
        phrase: For example "yesterday", "last week", "in March", "march 2025", "monday",
            "2 weeks ago"; in any case.
        now: The local time, without a zone.

    Returns:
        Local times without a zone. Both are the same for "ago". None for any other text.

    Raises:
        ValueError: It is before the first day of the calendar; also OverflowError.
    """
    words = " ".join(phrase.lower().split())
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if words in {"today", "yesterday"}:
        begin = today - timedelta(days=words == "yesterday")
        return begin, begin + timedelta(days=1)
    if ago := _AGO.fullmatch(words):
        return _ago(ago[1], ago[2], now)
    if period := _PERIOD.fullmatch(words):
        return _period(period[2], today, is_last=period[1] == "last")
    if weekday := _WEEKDAY.fullmatch(words):
        days = (today.weekday() - _WEEKDAYS.index(weekday[2])) % 7
        begin = today - timedelta(days=days or 7 * (weekday[1] == "last"))
        return begin, begin + timedelta(days=1)
    if month := _MONTH.fullmatch(words):
        number = _MONTHS.index(month[2]) + 1
        is_past = month[1] == "last"
        year = today.year - (number >= today.month if is_past else number > today.month)
        return _month(int(month[3] or year), number)
    return None


def _ago(count: str, unit: str, now: datetime) -> tuple[datetime, datetime] | None:
    number = int(count) if count.isdecimal() else _COUNTS.get(count)
    if number is None:
        return None
    if unit in _FIXED_UNITS:
        moment = now - number * _FIXED_UNITS[unit]
    else:
        months = now.year * 12 + now.month - 1 - number * (12 if unit == "year" else 1)
        begin, end = _month(months // 12, months % 12 + 1)
        last_day = (end - timedelta(days=1)).day
        moment = now.replace(
            year=begin.year,
            month=begin.month,
            day=min(now.day, last_day),
        )
    return moment, moment


def _period(unit: str, today: datetime, *, is_last: bool) -> tuple[datetime, datetime]:
    """Return this or the last week, month or year."""
    if unit == "week":
        begin = today - timedelta(days=today.weekday() + 7 * is_last)
        return begin, begin + timedelta(days=7)
    if unit == "year":
        begin = today.replace(year=today.year - is_last, month=1, day=1)
        return begin, begin.replace(year=begin.year + 1)
    months = today.year * 12 + today.month - 1 - is_last
    return _month(months // 12, months % 12 + 1)


def _month(year: int, month: int) -> tuple[datetime, datetime]:
    begin = datetime(year, month, 1)  # noqa: DTZ001 - local times have no zone here
    return begin, begin.replace(year=year + month // 12, month=month % 12 + 1)
