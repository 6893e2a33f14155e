"""Decisions as a table: observed and recorded state -> decision and reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.change_detection import RACY_WINDOW_NS, decide_for_file
from anchord.core.types import (
    NO_FINGERPRINT,
    Absent,
    Decision,
    FileRecord,
    Fingerprint,
    PathMatch,
    Problem,
    ReadFile,
    RemoveFromIndex,
    SkipFile,
)

LIMIT = 1_000
WRITTEN = 100_000_000_000
SEEN = Fingerprint(size=10, mtime_ns=WRITTEN, ctime_ns=WRITTEN, inode=7, device=1)
KNOWN = FileRecord(
    fingerprint=SEEN,
    read_ns=WRITTEN + RACY_WINDOW_NS + 1,
    content_digest="d",
    recipe_digest="r",
    is_confirmed=True,
)
IN = PathMatch(is_included=True, reason="a markdown file")
OUT = PathMatch(is_included=False, reason="ignored by .gitignore:1 *.md")
DENIED = Problem("permission denied: not indexed")
REFUSED = FileRecord(
    fingerprint=NO_FINGERPRINT,
    read_ns=WRITTEN,
    content_digest="",
    recipe_digest="r",
    is_confirmed=True,
    problem=DENIED,
)
TOO_LARGE = Problem("1,001 bytes, over the limit of 1,000: not indexed")
LARGE = SEEN._replace(size=LIMIT + 1)
GONE = Absent()

CASES: dict[str, tuple[PathMatch, Fingerprint | Absent | Problem, FileRecord | None, Decision]] = {
    "nothing there, nothing known": (IN, GONE, None, SkipFile("no such file")),
    "a folder": (IN, Absent("a folder"), None, SkipFile("a folder")),
    "a known file went": (IN, GONE, KNOWN, RemoveFromIndex("the file is gone")),
    "a known file became a folder": (IN, Absent("a folder"), KNOWN, RemoveFromIndex("the file is gone")),
    "a known file went and is ignored": (OUT, GONE, KNOWN, RemoveFromIndex("the file is gone")),
    "a listed problem went": (IN, GONE, REFUSED, RemoveFromIndex("the file is gone")),
    "ignored, not known": (OUT, SEEN, None, SkipFile(OUT.reason)),
    "ignored, known": (OUT, SEEN, KNOWN, RemoveFromIndex(OUT.reason)),
    "ignored, a listed problem": (OUT, DENIED, REFUSED, RemoveFromIndex(OUT.reason)),
    "ignored, a problem not listed": (OUT, DENIED, None, SkipFile(OUT.reason)),
    "a problem, not known": (IN, DENIED, None, RemoveFromIndex(DENIED.reason, DENIED)),
    "a problem that rows are kept beside": (
        IN, DENIED, KNOWN._replace(problem=DENIED), RemoveFromIndex(DENIED.reason, DENIED)
    ),
    "a problem, known before": (IN, DENIED, KNOWN, RemoveFromIndex(DENIED.reason, DENIED)),
    "a problem, listed already": (IN, DENIED, REFUSED, SkipFile(DENIED.reason)),
    "a problem, listed but not confirmed": (
        IN, DENIED, REFUSED._replace(is_confirmed=False), RemoveFromIndex(DENIED.reason, DENIED)
    ),
    "another problem than the listed one": (IN, Problem("a socket"), REFUSED, RemoveFromIndex("a socket", Problem("a socket"))),
    "too large, not known": (IN, LARGE, None, RemoveFromIndex(TOO_LARGE.reason, TOO_LARGE)),
    "too large, known when small": (IN, LARGE, KNOWN, RemoveFromIndex(TOO_LARGE.reason, TOO_LARGE)),
    "too large, listed already": (
        IN, LARGE, REFUSED._replace(fingerprint=LARGE, problem=TOO_LARGE), SkipFile(TOO_LARGE.reason)
    ),
    "exactly as large as the limit": (IN, SEEN._replace(size=LIMIT), None, ReadFile("new file")),
    "a new file": (IN, SEEN, None, ReadFile("new file")),
    "an empty new file": (IN, SEEN._replace(size=0), None, ReadFile("new file")),
    "not confirmed": (IN, SEEN, KNOWN._replace(is_confirmed=False), ReadFile("an earlier update of it was interrupted")),
    "another recipe": (IN, SEEN, KNOWN._replace(recipe_digest="r2"), ReadFile("the recipe changed")),
    "a problem is over": (IN, SEEN, REFUSED, ReadFile("its size changed")),
    "another size": (IN, SEEN._replace(size=11), KNOWN, ReadFile("its size changed")),
    "written": (IN, SEEN._replace(mtime_ns=WRITTEN - 5), KNOWN, ReadFile("its modification time changed")),
    "swapped": (IN, SEEN._replace(inode=8), KNOWN, ReadFile("its inode changed")),
    "written, times set back": (IN, SEEN._replace(ctime_ns=WRITTEN + 5), KNOWN, ReadFile("its ctime changed")),
    "on another device": (IN, SEEN._replace(device=2), KNOWN, ReadFile("its device changed")),
    "as it was": (IN, SEEN, KNOWN, SkipFile("size, times and inode are unchanged since the last read")),
    "read with a partial problem": (
        IN, SEEN, KNOWN._replace(problem=Problem("not UTF-8", is_partial=True)),
        SkipFile("size, times and inode are unchanged since the last read"),
    ),
    "read and found binary": (
        IN, SEEN, KNOWN._replace(problem=Problem("binary content: not indexed")),
        SkipFile("size, times and inode are unchanged since the last read"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("verdict", "seen", "known", "decision"), CASES.values(), ids=CASES)
def test_decision(
    verdict: PathMatch,
    seen: Fingerprint | Absent | Problem,
    known: FileRecord | None,
    decision: Decision,
) -> None:
    assert decide_for_file(verdict, seen, known, "r", LIMIT) == decision


def test_a_file_refused_for_an_older_limit_is_read_once_it_fits() -> None:
    refused = KNOWN._replace(fingerprint=LARGE, content_digest="", problem=TOO_LARGE)
    assert isinstance(decide_for_file(IN, LARGE, refused, "r", 2 * LIMIT), ReadFile)


@pytest.mark.parametrize(
    ("age_ns", "trusted"),
    [
        (-1, False),
        (0, False),
        (RACY_WINDOW_NS - 1, False),
        (RACY_WINDOW_NS, False),
        (RACY_WINDOW_NS + 1, True),
    ],
)
@pytest.mark.parametrize("changed", ["mtime_ns", "ctime_ns"])
def test_a_fingerprint_is_trusted_when_it_was_old_enough_as_the_file_was_read(
    changed: str,
    age_ns: int,
    trusted: bool,  # noqa: FBT001 - a table
) -> None:
    times = {"mtime_ns": 0, "ctime_ns": 0} | {changed: WRITTEN}
    seen = Fingerprint(
        size=10, mtime_ns=times["mtime_ns"], ctime_ns=times["ctime_ns"], inode=7, device=1
    )
    known = KNOWN._replace(fingerprint=seen, read_ns=WRITTEN + age_ns)
    assert isinstance(decide_for_file(IN, seen, known, "r", LIMIT), SkipFile) == trusted


def test_a_file_from_the_future_is_read_each_time() -> None:
    seen = SEEN._replace(mtime_ns=10 * WRITTEN)
    decision = decide_for_file(IN, seen, KNOWN._replace(fingerprint=seen), "r", LIMIT)
    assert decision == ReadFile("it changed within 2 s of the last read")


FINGERPRINTS = st.builds(Fingerprint, *[st.integers(0, 3)] * 5)


@given(FINGERPRINTS, FINGERPRINTS)
def test_any_difference_in_the_fingerprint_is_read(before: Fingerprint, after: Fingerprint) -> None:
    known = KNOWN._replace(fingerprint=before, read_ns=10 * RACY_WINDOW_NS)
    assert isinstance(decide_for_file(IN, after, known, "r", LIMIT), ReadFile) == (before != after)


@given(FINGERPRINTS)
def test_what_was_never_seen_equals_no_file(seen: Fingerprint) -> None:
    assert isinstance(
        decide_for_file(
            IN,
            seen,
            KNOWN._replace(fingerprint=NO_FINGERPRINT, read_ns=10 * RACY_WINDOW_NS),
            "r",
            LIMIT,
        ),
        ReadFile,
    )
