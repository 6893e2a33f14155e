"""How old a hit of a search is, in words."""

from __future__ import annotations

from datetime import datetime

from anchord.ipc.messages.searching import Passage


def file_date(hit: Passage) -> str:
    """Return the local day on which a file changed last, and a space.

    Returns:
        "" for an exchange, which has its time in its place, and if the day is not known.
    """
    if hit.session or not hit.date:
        return ""
    return f"{datetime.fromisoformat(hit.date).astimezone():%Y-%m-%d} "


def age_explanation(hit: Passage) -> list[str]:
    """Return what its age left of a hit's score; empty unless older hits are weighed down."""
    if hit.recency is None:
        return []
    return [f"its age leaves {100 * hit.recency:.0f} % of the score"]
