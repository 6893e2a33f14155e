"""Fingerprint + known + recipe -> Skip, Read or Forget, with the reason that `explain` prints.

Stop as early as the data allows: equal fingerprints need no read, equal digests no parse. A fingerprint is only trusted when
the file had been left alone for a moment before it was read (the racy rule, as git's): within the granularity of the
clock a second write can leave size and times as they were.
"""

from __future__ import annotations

from anchord.model import Absent, Decision, Fingerprint, Forget, Known, Problem, Read, Skip, Verdict

RACY_NS = 2_000_000_000
"""FAT keeps times to two seconds; nothing in use is coarser."""


_SAME = Skip("size, times and inode are as when it was read")


def decide(
    verdict: Verdict, seen: Fingerprint | Absent | Problem, known: Known | None, recipe: str, max_bytes: int
) -> Decision:
    """Decide about one path, without its content."""
    if isinstance(seen, Absent):
        return _leave(known, "the file is gone" if known else seen.reason)
    if not verdict.included:
        return _leave(known, verdict.reason)
    if isinstance(seen, Problem):
        return _refuse(known, seen)
    if seen.size > max_bytes:
        return _refuse(known, Problem(f"{seen.size:,} bytes, over the limit of {max_bytes:,}: not indexed"))
    return _decide_known(seen, known, recipe)


def is_as_read(seen: Fingerprint, known: Known, recipe: str) -> bool:
    """Whether a file is as it was when it was read and indexed, by this recipe."""
    same = known.fingerprint == seen and known.settled and known.recipe == recipe
    return same and bool(known.digest) and seen.mtime_ns < (trusted := known.read_ns - RACY_NS) and seen.ctime_ns < trusted


def _leave(known: Known | None, reason: str) -> Decision:
    return Forget(reason) if known else Skip(reason)


def _refuse(known: Known | None, problem: Problem) -> Decision:
    if known and known.settled and known.problem == problem and not known.digest:
        return Skip(problem.reason)
    return Forget(problem.reason, problem)


def _decide_known(seen: Fingerprint, known: Known | None, recipe: str) -> Decision:
    if known is None:
        return Read("new file")
    if is_as_read(seen, known, recipe):
        return _SAME
    reasons = {
        "an earlier change was not confirmed": not known.settled,
        "the recipe changed": known.recipe != recipe,
        _difference(known.fingerprint, seen): known.fingerprint != seen,
        "it was refused before and fits now": not known.digest,
        "changed too shortly before it was last read to trust its times": _is_racy(seen, known),
    }
    return Read(next(reason for reason, holds in reasons.items() if holds))


def _is_racy(seen: Fingerprint, known: Known) -> bool:
    return max(seen.mtime_ns, seen.ctime_ns) >= known.read_ns - RACY_NS


def _difference(before: Fingerprint, after: Fingerprint) -> str:
    named = {"size": "its size", "mtime_ns": "its time of writing", "inode": "its inode", "ctime_ns": "its time of change"}
    for name, words in named.items():
        if getattr(before, name) != getattr(after, name):
            return f"{words} changed"
    return "its device changed"
