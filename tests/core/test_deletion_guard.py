"""Missing files, moved files, and when a mass deletion needs a confirmation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.deletion_guard import (
    MIN_FILES_TO_HOLD,
    DeletionPolicy,
    find_missing_files,
    find_moves,
    is_mass_deletion,
    should_hold_deletions,
)
from anchord.core.types import (
    NO_FINGERPRINT,
    FileRecord,
    Fingerprint,
    FoundFile,
    Problem,
    WalkResult,
)


def print_of(
    inode: int, size: int = 5, mtime: int = 7, ctime: int = 7, device: int = 1
) -> Fingerprint:
    return Fingerprint(size=size, mtime_ns=mtime, ctime_ns=ctime, inode=inode, device=device)


def known(inode: int, device: int = 1) -> FileRecord:
    return FileRecord(
        fingerprint=print_of(inode, device=device),
        read_ns=0,
        content_digest="digest",
        recipe_digest="recipe",
        is_confirmed=True,
    )


def test_a_file_with_the_same_inode_size_and_time_has_moved() -> None:
    gone, new = {"old.md": print_of(1)}, {"new.md": print_of(1, ctime=99), "other.md": print_of(2)}
    assert find_moves(gone, new) == {"new.md": "old.md"}


@pytest.mark.parametrize(
    "other", [print_of(2), print_of(1, size=6), print_of(1, mtime=8), print_of(1, device=2)]
)
def test_a_file_that_differs_in_any_of_these_is_another(other: Fingerprint) -> None:
    assert find_moves({"old.md": print_of(1)}, {"new.md": other}) == {}


def test_a_file_that_was_never_seen_is_nobodys_old_place() -> None:
    assert find_moves({"old.md": NO_FINGERPRINT}, {"new.md": NO_FINGERPRINT}) == {}


_names = st.text("abc", min_size=1, max_size=3)
_prints = st.builds(print_of, st.integers(1, 4))


@given(st.dictionaries(_names, _prints), st.dictionaries(_names, _prints))
def test_each_old_place_is_left_once_and_each_new_one_reached_once(
    gone: dict[str, Fingerprint], new: dict[str, Fingerprint]
) -> None:
    found = find_moves(gone, new)
    assert len(set(found.values())) == len(found)
    assert found.keys() <= new.keys()
    assert set(found.values()) <= gone.keys()


@pytest.mark.parametrize(
    ("lost", "of", "same_device", "held"),
    [
        (MIN_FILES_TO_HOLD, MIN_FILES_TO_HOLD, True, True),
        (MIN_FILES_TO_HOLD - 1, MIN_FILES_TO_HOLD - 1, True, False),
        (MIN_FILES_TO_HOLD, 2 * MIN_FILES_TO_HOLD, True, False),
        (MIN_FILES_TO_HOLD + 1, 2 * MIN_FILES_TO_HOLD, True, True),
        (1, 1, False, True),
        (1, 2, False, False),
        (0, 0, False, False),
        (0, 10, True, False),
    ],
)
def test_more_than_half_and_at_least_fifty_are_held_and_any_number_of_another_device(
    lost: int,
    of: int,
    same_device: bool,  # noqa: FBT001 - a column of the table
    held: bool,  # noqa: FBT001 - likewise
) -> None:
    assert should_hold_deletions(lost, of, same_device=same_device) is held


def test_a_small_disk_below_a_large_root_is_held_when_nothing_of_it_is_seen() -> None:
    everything = {f"a{n}.md": known(n) for n in range(500)} | {"disk/b.md": known(1, device=9)}
    walk = WalkResult(
        files=tuple(
            FoundFile(path, each.fingerprint) for path, each in everything.items() if path[0] == "a"
        ),
        top_device=1,
    )
    assert find_missing_files(walk, everything) == {"disk/b.md": print_of(1, device=9)}
    assert is_mass_deletion(find_missing_files(walk, everything), everything, walk)


def test_a_few_files_missing_on_a_disk_that_is_still_seen_are_not_held() -> None:
    everything = {"kept.md": known(1, device=9)} | {f"{n}.md": known(n, device=9) for n in (2, 3)}
    walk = WalkResult(files=(FoundFile("kept.md", print_of(1, device=9)),), top_device=1)
    assert not is_mass_deletion(find_missing_files(walk, everything), everything, walk)


def test_files_that_left_a_moment_ago_also_count_among_the_known_ones() -> None:
    """60 of 130 is less than half, though 60 would be more than half of 110."""
    records = {f"{n}.md": known(n) for n in range(110)}
    missing = {f"{n}.md": print_of(n) for n in range(40)}
    walk = WalkResult(top_device=1)
    assert not is_mass_deletion(missing, records, walk, recent_count=20)
    assert is_mass_deletion(missing, records, walk, recent_count=40)


def test_without_a_policy_no_deletion_is_confirmed_and_none_was_recent() -> None:
    assert DeletionPolicy() == DeletionPolicy(all_confirmed=False, released=(), recent_count=0)
    records = {f"{n}.md": known(n) for n in range(49)}
    assert not is_mass_deletion(
        {path: print_of(1) for path in records}, records, WalkResult(top_device=1)
    )


def test_what_left_a_moment_ago_counts_with_what_is_missing_now() -> None:
    rest = {f"{n}.md": known(n) for n in range(MIN_FILES_TO_HOLD - 10)}
    walk = WalkResult(top_device=1)
    assert not is_mass_deletion(find_missing_files(walk, rest), rest, walk)
    assert is_mass_deletion(find_missing_files(walk, rest), rest, walk, recent_count=10)
    assert not is_mass_deletion({}, rest, walk, recent_count=1_000)


def test_what_cannot_be_seen_is_not_missing() -> None:
    everything = {"a.md": known(1), "locked/b.md": known(2), "pipe.md": known(3)}
    walk = WalkResult(
        file_problems=(("pipe.md", Problem("a named pipe")),),
        unreadable_folders=("locked",),
        top_device=1,
    )
    assert set(find_missing_files(walk, everything)) == {"a.md"}


@pytest.mark.parametrize(
    ("lost", "of", "is_held"),
    [(50, 50, True), (49, 49, False), (50, 99, True), (50, 100, False), (51, 101, True)],
)
def test_fifty_files_and_more_than_half_wait_for_a_confirmation(
    lost: int,
    of: int,
    is_held: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """The documentation states these numbers, so the test does not import them."""
    assert should_hold_deletions(lost, of, same_device=True) is is_held
