"""Rules of the core that one line of code decides."""

from __future__ import annotations

import pytest

from anchord.core.change_detection import RACY_WINDOW_NS, decide_for_file
from anchord.core.deletion_guard import recent_deletions_meta_key, should_hold_deletions
from anchord.core.types import FileRecord, Fingerprint, PathMatch, Problem, ReadFile

WRITTEN = 100_000_000_000
SEEN = Fingerprint(size=10, mtime_ns=WRITTEN, ctime_ns=WRITTEN, inode=7, device=1)


@pytest.mark.parametrize("read_ns", [WRITTEN, WRITTEN + RACY_WINDOW_NS + 1])
def test_an_unchanged_file_that_was_never_indexed_is_read_and_says_why(read_ns: int) -> None:
    refused = FileRecord(
        fingerprint=SEEN,
        read_ns=read_ns,
        content_digest="",
        recipe_digest="r",
        is_confirmed=True,
        problem=Problem("permission denied: not indexed"),
    )
    decision = decide_for_file(PathMatch(is_included=True, reason="in"), SEEN, refused, "r", 1_000)
    assert decision == ReadFile("it could not be indexed before and can be now")


def test_each_root_has_a_count_of_recent_deletions_of_its_own() -> None:
    # The key is stored: another one would forget the count of a hold that waits.
    assert recent_deletions_meta_key("notes") == "left before the hold of notes"
    assert recent_deletions_meta_key("notes") != recent_deletions_meta_key("docs")


@pytest.mark.parametrize(
    ("missing", "known", "is_held"), [(0, 0, False), (0, 5, False), (1, 1, True), (1, 2, False)]
)
def test_on_a_device_that_is_gone_one_missing_file_is_held_and_none_is_not(
    missing: int,
    known: int,
    is_held: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert should_hold_deletions(missing, known, same_device=False) is is_held
