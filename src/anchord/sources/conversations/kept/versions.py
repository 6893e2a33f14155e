"""Which states of a transcript are kept, and which of them a restore gives: pure decisions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MAX_COMPARED_BYTES = 4 << 20
"""Of a larger file that is written again as a whole, every state is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVersion:
    """A state of a transcript. A state that only grew is the same version."""

    id: int
    size: int
    """Bytes."""
    saved_ns: int
    """When it was stored or grew last, in nanoseconds since the epoch."""
    is_sound: bool
    """False if a part of it is NUL bytes."""


def best_version(versions: Iterable[KeptVersion]) -> KeptVersion | None:
    """Return the version that a restore gives: the longest sound one, of equal ones the latest.

    A transcript that was cut off, emptied or filled with NUL bytes is shorter, or not sound.
    """
    return max(
        versions,
        key=lambda each: (each.is_sound, each.size, each.saved_ns),
        default=None,
    )


def places_to_compare(count: int, size: int) -> tuple[int, ...]:
    """Return which pieces of a version show whether a file has only grown: first, last and one.

    Args:
        count: How many pieces the version has.
        size: The file's size: with each growth another piece is looked at.
    """
    return tuple(sorted({0, size % count, count - 1})) if count else ()


def may_replace(former: KeptVersion, newer: KeptVersion) -> bool:
    """Return whether a newer version may hold all of a former one; the contents decide then."""
    is_longer = newer.is_sound and newer.size >= former.size
    return is_longer and newer.size <= MAX_COMPARED_BYTES
