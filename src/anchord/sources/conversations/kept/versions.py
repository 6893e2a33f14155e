"""Which states of a transcript are kept, and which of them a restore gives: pure decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_COMPARED_BYTES = 4 << 20
"""Of a larger file that is written again as a whole, the last states are kept."""
MAX_VERSIONS = 10
"""So many states of one file are kept."""


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


def places_to_compare(count: int, size: int, *, is_same_file: bool) -> Sequence[int]:
    """Return which pieces of a version show whether a file has only grown.

    Programs that append keep the file: then the first, the last and one other are enough in a large
    one. Of another file of the same name, and of a small one, all are compared.

    Args:
        count: How many pieces the version has.
        size: The file's size: with each growth another piece is looked at.
        is_same_file: Whether the file has the inode and the device of the version.
    """
    if not is_same_file or size <= MAX_COMPARED_BYTES or not count:
        return range(count)
    return sorted({0, size % count, count - 1})


def superfluous(versions: Sequence[KeptVersion]) -> list[KeptVersion]:
    """Return the versions of a file to delete, so that `MAX_VERSIONS` stay.

    The newest and the one that a restore gives stay; of the others the oldest go.

    Args:
        versions: All of them, oldest first.
    """
    best = best_version(versions)
    others = [each for each in versions[:-1] if each is not best]
    return others[: max(len(versions) - MAX_VERSIONS, 0)]


def may_replace(former: KeptVersion, newer: KeptVersion) -> bool:
    """Return whether a newer version may hold all of a former one; the contents decide then."""
    is_longer = newer.is_sound and newer.size >= former.size
    return is_longer and newer.size <= MAX_COMPARED_BYTES
