"""What left a tree, what only moved, and when so much is missing that somebody must be asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.guard import LEAST_FILES, is_alarming, missing, moves, must_hold
from anchord.model import UNSEEN, Fingerprint, Found, Known, Problem, Walk


def print_of(inode: int, size: int = 5, mtime: int = 7, ctime: int = 7, device: int = 1) -> Fingerprint:
    return Fingerprint(size, mtime, ctime, inode, device)


def known(inode: int, device: int = 1) -> Known:
    return Known(print_of(inode, device=device), 0, "digest", "recipe", settled=True)


def test_a_file_with_the_same_inode_size_and_time_has_moved() -> None:
    gone, new = {"old.md": print_of(1)}, {"new.md": print_of(1, ctime=99), "other.md": print_of(2)}
    assert moves(gone, new) == {"new.md": "old.md"}


@pytest.mark.parametrize("other", [print_of(2), print_of(1, size=6), print_of(1, mtime=8), print_of(1, device=2)])
def test_a_file_that_differs_in_any_of_these_is_another(other: Fingerprint) -> None:
    assert moves({"old.md": print_of(1)}, {"new.md": other}) == {}


def test_a_file_that_was_never_seen_is_nobodys_old_place() -> None:
    assert moves({"old.md": UNSEEN}, {"new.md": UNSEEN}) == {}


_names = st.text("abc", min_size=1, max_size=3)
_prints = st.builds(print_of, st.integers(1, 4))


@given(st.dictionaries(_names, _prints), st.dictionaries(_names, _prints))
def test_each_old_place_is_left_once_and_each_new_one_reached_once(
    gone: dict[str, Fingerprint], new: dict[str, Fingerprint]
) -> None:
    found = moves(gone, new)
    assert len(set(found.values())) == len(found)
    assert found.keys() <= new.keys()
    assert set(found.values()) <= gone.keys()


@pytest.mark.parametrize(
    ("lost", "of", "same_device", "held"),
    [
        (LEAST_FILES, LEAST_FILES, True, True),
        (LEAST_FILES - 1, LEAST_FILES - 1, True, False),
        (LEAST_FILES, 2 * LEAST_FILES, True, False),
        (LEAST_FILES + 1, 2 * LEAST_FILES, True, True),
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
    assert must_hold(lost, of, same_device=same_device) is held


def test_a_small_disk_below_a_large_root_is_held_when_nothing_of_it_is_seen() -> None:
    everything = {f"a{n}.md": known(n) for n in range(500)} | {"disk/b.md": known(1, device=9)}
    walk = Walk(tuple(Found(path, each.fingerprint) for path, each in everything.items() if path[0] == "a"), device=1)
    assert missing(walk, everything) == {"disk/b.md": print_of(1, device=9)}
    assert is_alarming(missing(walk, everything), everything, walk)


def test_what_left_a_moment_ago_counts_with_what_is_missing_now() -> None:
    rest = {f"{n}.md": known(n) for n in range(LEAST_FILES - 10)}
    walk = Walk(device=1)
    assert not is_alarming(missing(walk, rest), rest, walk)
    assert is_alarming(missing(walk, rest), rest, walk, recent=10)
    assert not is_alarming({}, rest, walk, recent=1_000)


def test_what_cannot_be_seen_is_not_missing() -> None:
    everything = {"a.md": known(1), "locked/b.md": known(2), "pipe.md": known(3)}
    walk = Walk(problems=(("pipe.md", Problem("a named pipe")),), unread=("locked",), device=1)
    assert set(missing(walk, everything)) == {"a.md"}
