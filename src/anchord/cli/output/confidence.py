"""How surely a hit is about the query, in words for the terminal."""

from __future__ import annotations

from anchord.ipc.messages.searching import Passage, SearchAnswer

NOTHING_ABOUT = "Nothing here seems to be about this. Nearest:"


def is_off_topic(answer: SearchAnswer) -> bool:
    """Return whether results are shown that nothing suggests are about the query."""
    return bool(answer.groups) and not answer.about


def weak_mark(hit: Passage) -> str:
    """Return what stands before the score of a weak hit; "" for others."""
    return "weak " if hit.confidence == "weak" else ""


def confidence_of(hit: Passage) -> str:
    """Return a hit's confidence and its parts, without markup; "" if it is unknown."""
    parts = hit.confidence_parts
    if parts is None:
        return ""
    meaning = "" if parts.meaning is None else f"meaning {parts.meaning:.2f}, "
    words = f"{parts.words:.0%} of the words, {parts.all_words:.0%} in the best hits"
    return f"{hit.confidence} {parts.score:.2f} ({meaning}{words})"
