"""Which files left a tree, which of them only moved, and whether so many left at once that somebody should be asked.

An unmounted disk, a folder emptied by mistake and a sync client that lost its account look like a deletion of everything.
The rows of a root that loses more than half of its files at once are therefore held until somebody confirms, or until the
files are back. A file whose inode, size and time of writing turn up under another name has moved; it is not missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from anchord.model import UNSEEN, Fingerprint, Known, Origin, Walk

LEAST_FILES = 50
"""Fewer are let go without asking, as long as the root is on the device that it was on."""


@dataclass(frozen=True, slots=True)
class Leave:
    """What may leave a root without asking the guard again."""

    confirmed: bool = False
    """Everything: a person said so."""
    let_go: Collection[Origin] = ()
    """These files: they were through the guard before."""
    recent: int = 0
    """How many left a moment ago: they count as missing at once with those that are missing now."""


def moves(gone: Mapping[str, Fingerprint], new: Mapping[str, Fingerprint]) -> dict[str, str]:
    """Return (new path -> old path) of the files that stand elsewhere now; of hard links each is used once."""
    by_identity: dict[tuple[int, int, int, int], list[str]] = {}
    for path, fingerprint in gone.items():
        by_identity.setdefault(_identity(fingerprint), []).append(path)
    found = {}
    for path, fingerprint in new.items():
        left = by_identity.get(_identity(fingerprint))
        if left and fingerprint.inode:
            found[path] = left.pop(0)
    return found


def note_of(root: str) -> str:
    """Return the key of the note how many files had left just before a root's rows were held: for as long as they are."""
    return f"left before the hold of {root}"


def is_alarming(lost: Mapping[str, Fingerprint], known: Mapping[str, Known], walk: Walk, recent: int = 0) -> bool:
    """Whether too much is missing: of a whole root, or of what was on a device of which nothing is seen any more."""
    if not lost:
        return False
    seen = {UNSEEN.device, walk.device, *(found.fingerprint.device for found in walk.found)}
    left = Counter(fingerprint.device for fingerprint in lost.values())
    before = Counter(each.fingerprint.device for each in known.values())
    by_device = any(must_hold(count, before[device], same_device=device in seen) for device, count in left.items())
    return by_device or must_hold(len(lost) + recent, len(known) + recent, same_device=True)


def missing(walk: Walk, known: Mapping[str, Known]) -> dict[str, Fingerprint]:
    """Return the known files that a walk did not see and could have seen, as they were."""
    seen = {found.path for found in walk.found} | {path for path, _ in walk.problems}
    return {
        path: known[path].fingerprint
        for path in sorted(path for path in known if path not in seen)
        if not any(path.startswith(folder + "/") for folder in walk.unread)
    }


def must_hold(missing: int, known: int, *, same_device: bool) -> bool:
    """Whether the rows of `missing` files out of `known` should wait for a confirmation."""
    enough = missing >= LEAST_FILES or not same_device
    return missing > 0 and enough and 2 * missing > known


def _identity(fingerprint: Fingerprint) -> tuple[int, int, int, int]:
    """What a rename leaves alone; the time of change is not among it."""
    return fingerprint.device, fingerprint.inode, fingerprint.size, fingerprint.mtime_ns
