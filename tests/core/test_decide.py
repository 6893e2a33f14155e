"""Decisions as a table: what is seen, what is known, and what follows with which reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.decide import RACY_NS, decide
from anchord.model import UNSEEN, Absent, Decision, Fingerprint, Forget, Known, Problem, Read, Skip, Verdict

LIMIT = 1_000
WRITTEN = 100_000_000_000
SEEN = Fingerprint(size=10, mtime_ns=WRITTEN, ctime_ns=WRITTEN, inode=7, device=1)
KNOWN = Known(SEEN, read_ns=WRITTEN + RACY_NS + 1, digest="d", recipe="r", settled=True)
IN = Verdict(included=True, reason="a markdown file")
OUT = Verdict(included=False, reason="ignored by .gitignore:1 *.md")
DENIED = Problem("permission denied: not indexed")
REFUSED = Known(UNSEEN, WRITTEN, digest="", recipe="r", settled=True, problem=DENIED)
TOO_LARGE = Problem("1,001 bytes, over the limit of 1,000: not indexed")
LARGE = SEEN._replace(size=LIMIT + 1)
GONE = Absent()

CASES: dict[str, tuple[Verdict, Fingerprint | Absent | Problem, Known | None, Decision]] = {
    "nothing there, nothing known": (IN, GONE, None, Skip("no such file")),
    "a folder": (IN, Absent("a folder"), None, Skip("a folder")),
    "a known file went": (IN, GONE, KNOWN, Forget("the file is gone")),
    "a known file became a folder": (IN, Absent("a folder"), KNOWN, Forget("the file is gone")),
    "a known file went and is ignored": (OUT, GONE, KNOWN, Forget("the file is gone")),
    "a listed problem went": (IN, GONE, REFUSED, Forget("the file is gone")),
    "ignored, not known": (OUT, SEEN, None, Skip(OUT.reason)),
    "ignored, known": (OUT, SEEN, KNOWN, Forget(OUT.reason)),
    "ignored, a listed problem": (OUT, DENIED, REFUSED, Forget(OUT.reason)),
    "ignored, a problem not listed": (OUT, DENIED, None, Skip(OUT.reason)),
    "a problem, not known": (IN, DENIED, None, Forget(DENIED.reason, DENIED)),
    "a problem, known before": (IN, DENIED, KNOWN, Forget(DENIED.reason, DENIED)),
    "a problem, listed already": (IN, DENIED, REFUSED, Skip(DENIED.reason)),
    "a problem, listed but not confirmed": (
        IN, DENIED, REFUSED._replace(settled=False), Forget(DENIED.reason, DENIED)
    ),
    "another problem than the listed one": (IN, Problem("a socket"), REFUSED, Forget("a socket", Problem("a socket"))),
    "too large, not known": (IN, LARGE, None, Forget(TOO_LARGE.reason, TOO_LARGE)),
    "too large, known when small": (IN, LARGE, KNOWN, Forget(TOO_LARGE.reason, TOO_LARGE)),
    "too large, listed already": (
        IN, LARGE, REFUSED._replace(fingerprint=LARGE, problem=TOO_LARGE), Skip(TOO_LARGE.reason)
    ),
    "exactly as large as the limit": (IN, SEEN._replace(size=LIMIT), None, Read("new file")),
    "a new file": (IN, SEEN, None, Read("new file")),
    "an empty new file": (IN, SEEN._replace(size=0), None, Read("new file")),
    "not confirmed": (IN, SEEN, KNOWN._replace(settled=False), Read("an earlier change was not confirmed")),
    "another recipe": (IN, SEEN, KNOWN._replace(recipe="r2"), Read("the recipe changed")),
    "a problem is over": (IN, SEEN, REFUSED, Read("its size changed")),
    "another size": (IN, SEEN._replace(size=11), KNOWN, Read("its size changed")),
    "written": (IN, SEEN._replace(mtime_ns=WRITTEN - 5), KNOWN, Read("its time of writing changed")),
    "swapped": (IN, SEEN._replace(inode=8), KNOWN, Read("its inode changed")),
    "written, times set back": (IN, SEEN._replace(ctime_ns=WRITTEN + 5), KNOWN, Read("its time of change changed")),
    "on another device": (IN, SEEN._replace(device=2), KNOWN, Read("its device changed")),
    "as it was": (IN, SEEN, KNOWN, Skip("size, times and inode are as when it was read")),
    "read with a partial problem": (
        IN, SEEN, KNOWN._replace(problem=Problem("not UTF-8", partial=True)),
        Skip("size, times and inode are as when it was read"),
    ),
    "read and found binary": (
        IN, SEEN, KNOWN._replace(problem=Problem("binary content: not indexed")),
        Skip("size, times and inode are as when it was read"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("verdict", "seen", "known", "decision"), CASES.values(), ids=CASES)
def test_decision(verdict: Verdict, seen: Fingerprint | Absent | Problem, known: Known | None, decision: Decision) -> None:
    assert decide(verdict, seen, known, "r", LIMIT) == decision


def test_a_file_refused_for_an_older_limit_is_read_once_it_fits() -> None:
    refused = KNOWN._replace(fingerprint=LARGE, digest="", problem=TOO_LARGE)
    assert isinstance(decide(IN, LARGE, refused, "r", 2 * LIMIT), Read)


@pytest.mark.parametrize(
    ("age_ns", "trusted"), [(-1, False), (0, False), (RACY_NS - 1, False), (RACY_NS, False), (RACY_NS + 1, True)]
)
@pytest.mark.parametrize("changed", ["mtime_ns", "ctime_ns"])
def test_a_fingerprint_is_trusted_when_it_was_old_enough_as_the_file_was_read(
    changed: str,
    age_ns: int,
    trusted: bool,  # noqa: FBT001 - a table
) -> None:
    times = {"mtime_ns": 0, "ctime_ns": 0} | {changed: WRITTEN}
    seen = Fingerprint(10, times["mtime_ns"], times["ctime_ns"], 7, 1)
    known = KNOWN._replace(fingerprint=seen, read_ns=WRITTEN + age_ns)
    assert isinstance(decide(IN, seen, known, "r", LIMIT), Skip) == trusted


def test_a_file_from_the_future_is_read_each_time() -> None:
    seen = SEEN._replace(mtime_ns=10 * WRITTEN)
    decision = decide(IN, seen, KNOWN._replace(fingerprint=seen), "r", LIMIT)
    assert decision == Read("changed too shortly before it was last read to trust its times")


FINGERPRINTS = st.builds(Fingerprint, *[st.integers(0, 3)] * 5)


@given(FINGERPRINTS, FINGERPRINTS)
def test_any_difference_in_the_fingerprint_is_read(before: Fingerprint, after: Fingerprint) -> None:
    known = KNOWN._replace(fingerprint=before, read_ns=10 * RACY_NS)
    assert isinstance(decide(IN, after, known, "r", LIMIT), Read) == (before != after)


@given(FINGERPRINTS)
def test_what_was_never_seen_equals_no_file(seen: Fingerprint) -> None:
    assert isinstance(decide(IN, seen, KNOWN._replace(fingerprint=UNSEEN, read_ns=10 * RACY_NS), "r", LIMIT), Read)
