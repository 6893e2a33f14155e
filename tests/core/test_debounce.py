"""The debouncer returns no path too early or too late, and loses none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.debounce import Debouncer
from anchord.core.types import RootedPath

QUIET, LONGEST = 10, 50
A, B, WHOLE = RootedPath("r", "a.md"), RootedPath("r", "b.md"), RootedPath("r", "")


def settling(burst: int = 2_000) -> Debouncer:
    return Debouncer(QUIET, LONGEST, burst)


def test_nothing_waits_at_first() -> None:
    assert settling().pop_due(1e9) == []
    assert settling().next_due_at() is None
    assert len(settling()) == 0


def test_a_path_is_due_after_its_quiet_time() -> None:
    waiting = settling()
    waiting.add_hint(A, 100)
    assert waiting.next_due_at() == 100 + QUIET
    assert waiting.pop_due(100 + QUIET - 1) == []
    assert waiting.pop_due(100 + QUIET) == [(A, 100)]
    assert waiting.pop_due(1e9) == []


def test_another_hint_starts_the_quiet_time_again() -> None:
    waiting = settling()
    waiting.add_hint(A, 100)
    waiting.add_hint(A, 105)
    assert waiting.pop_due(114) == []
    assert waiting.pop_due(115) == [(A, 100)]


def test_a_path_that_never_rests_is_due_after_the_longest_wait() -> None:
    waiting = settling()
    for now in range(100, 100 + LONGEST, 5):
        waiting.add_hint(A, now)
        assert waiting.pop_due(now) == []
    assert waiting.pop_due(100 + LONGEST) == [(A, 100)]


def test_a_hint_after_a_path_was_due_starts_again() -> None:
    waiting = settling()
    waiting.add_hint(A, 100)
    waiting.pop_due(200)
    waiting.add_hint(A, 300)
    assert waiting.pop_due(309) == []
    assert waiting.pop_due(310) == [(A, 300)]


def test_paths_settle_apart() -> None:
    waiting = settling()
    waiting.add_hint(A, 100)
    waiting.add_hint(B, 105)
    assert len(waiting) == 2
    assert waiting.pop_due(110) == [(A, 100)]
    assert waiting.next_due_at() == 115
    assert waiting.pop_due(115) == [(B, 105)]


def test_everything_can_be_taken_at_once() -> None:
    waiting = settling()
    waiting.add_hint(A, 100)
    waiting.add_hint(B, 101)
    assert sorted(waiting.pop_due(101, include_unsettled=True)) == [(A, 100), (B, 101)]
    assert len(waiting) == 0


def test_a_hint_for_the_whole_root_takes_in_those_for_its_paths() -> None:
    waiting = settling()
    waiting.add_hint(A, 100)
    waiting.add_hint(WHOLE, 105)
    waiting.add_hint(B, 107)
    assert len(waiting) == 1
    assert waiting.pop_due(116) == []
    assert waiting.pop_due(117) == [(WHOLE, 100)]


def test_a_burst_becomes_one_hint_for_the_root_and_leaves_other_roots_alone() -> None:
    waiting = settling(burst=3)
    other = RootedPath("other", "a.md")
    waiting.add_hint(other, 100)
    for n in range(4):
        waiting.add_hint(RootedPath("r", f"{n}.md"), 100 + n)
    assert len(waiting) == 2
    assert sorted(waiting.pop_due(1000)) == [(other, 100), (WHOLE, 100)]


def test_as_many_paths_as_the_burst_are_kept_apart() -> None:
    waiting = settling(burst=3)
    for n in range(3):
        waiting.add_hint(RootedPath("r", f"{n}.md"), 100)
        waiting.add_hint(RootedPath("r", f"{n}.md"), 101)
    assert len(waiting) == 3


def test_a_root_in_a_lasting_burst_is_still_due_in_time() -> None:
    waiting = settling(burst=3)
    for now in range(100, 100 + LONGEST):
        waiting.add_hint(RootedPath("r", f"{now}.md"), now)
        assert waiting.pop_due(now) == []
    assert waiting.pop_due(100 + LONGEST) == [(WHOLE, 100)]


def test_a_root_that_is_dropped_is_not_due() -> None:
    waiting = settling()
    waiting.add_hint(A, 100)
    waiting.add_hint(RootedPath("other", "a.md"), 100)
    waiting.drop_root("r")
    waiting.drop_root("unheard of")
    assert waiting.pop_due(1e9) == [(RootedPath("other", "a.md"), 100)]


@dataclass(frozen=True)
class Hint:
    """A hint, and the time since the hint before."""

    after: int
    origin: RootedPath


ORIGINS = st.builds(
    RootedPath, st.sampled_from(["r", "s"]), st.sampled_from(["", "a", "b", "c", "d", "e"])
)
HINTS = st.lists(st.builds(Hint, st.integers(0, 15), ORIGINS), max_size=40)
BURST = st.sampled_from([1, 3, 100])


def timed(hints: Sequence[Hint]) -> list[tuple[int, RootedPath]]:
    at, times = 1000, []
    for hint in hints:
        at += hint.after
        times.append((at, hint.origin))
    return times


def covers(taken: RootedPath, hinted: RootedPath) -> bool:
    return taken == hinted or taken == RootedPath(hinted.root, "")


@given(HINTS, BURST)
def test_every_hint_is_due_by_the_longest_wait_after_it(hints: Sequence[Hint], burst: int) -> None:
    waiting = settling(burst)
    hinted = timed(hints)
    taken: list[tuple[int, RootedPath]] = []
    end = hinted[-1][0] + LONGEST + 1 if hinted else 1001
    for now in range(1000, end):
        for _, origin in (hint for hint in hinted if hint[0] == now):
            waiting.add_hint(origin, now)
        taken += [(now, origin) for origin, _ in waiting.pop_due(now)]
    assert len(waiting) == 0
    for at, origin in hinted:
        assert any(at <= now <= at + LONGEST and covers(found, origin) for now, found in taken)


@given(HINTS, BURST)
def test_nothing_is_due_before_its_quiet_time_unless_it_waited_longest(
    hints: Sequence[Hint], burst: int
) -> None:
    waiting = settling(burst)
    hinted = timed(hints)
    for count, (at, origin) in enumerate(hinted, 1):
        waiting.add_hint(origin, at)
        for found, first in waiting.pop_due(at):
            covered = [
                when for when, hint in hinted[:count] if first <= when and covers(found, hint)
            ]
            assert at >= max(covered) + QUIET or at >= first + LONGEST
            assert first in [when for when, hint in hinted if hint.root == found.root]


@given(HINTS, BURST)
def test_the_next_time_is_when_something_is_due_and_not_before(
    hints: Sequence[Hint], burst: int
) -> None:
    waiting = settling(burst)
    for at, origin in timed(hints):
        waiting.add_hint(origin, at)
    while (moment := waiting.next_due_at()) is not None:
        assert waiting.pop_due(moment - 1) == []
        assert waiting.pop_due(moment)


@given(HINTS, BURST)
def test_collapsing_bounds_the_queue_and_loses_nothing(hints: Sequence[Hint], burst: int) -> None:
    waiting = settling(burst)
    hinted = timed(hints)
    for at, origin in hinted:
        waiting.add_hint(origin, at)
        assert len(waiting) <= 2 * burst
    taken = [origin for origin, _ in waiting.pop_due(0, include_unsettled=True)]
    assert len(taken) == len(set(taken))
    assert all(any(covers(found, origin) for found in taken) for _, origin in hinted)


@pytest.mark.parametrize("burst", [1, 2])
def test_a_path_taken_before_a_burst_may_come_again_with_the_root(burst: int) -> None:
    waiting = settling(burst)
    waiting.add_hint(A, 100)
    assert waiting.pop_due(110) == [(A, 100)]
    for n in range(burst + 1):
        waiting.add_hint(RootedPath("r", f"{n}.md"), 120)
    assert waiting.pop_due(130) == [(WHOLE, 120)]
