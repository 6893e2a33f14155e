"""What people write for a time -> ISO 8601 in UTC, as the columns of conversations have it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from anchord.errors import UsageError

_AGO = re.compile(r"(\d{1,6})\s*(min|h|d|w|m|y)$")
_UNITS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1),
          "m": timedelta(days=30), "y": timedelta(days=365)}  # fmt: skip
_HINT = "write 2026-01-31, 2026-01-31T12:00, or 7d (also min, h, w, m, y) for so long ago"


def moment(text: str, now: datetime, *, end: bool = False) -> str:
    """Return a point in time; with `end` a day means its end. A time without a zone is that of `now`'s zone.

    Raises:
        UsageError: it is no time.
    """
    if not text:
        return ""
    ago = _AGO.match(text.strip().lower())
    try:
        if ago:
            return _written(now - int(ago[1]) * _UNITS[ago[2]])
        found = datetime.fromisoformat(text.strip())
        found = found if found.tzinfo else found.replace(tzinfo=now.tzinfo)
        return _written(found + timedelta(days=1) if end and len(text.strip()) == len("2026-01-31") else found)
    except (ValueError, OverflowError):
        raise UsageError(f"`{text}` is no time", _HINT) from None


def _written(found: datetime) -> str:
    return found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{found.microsecond // 1000:03}Z"
