"""Deletions wait until a root is quiet, 10 s at most; those of 30 s count together."""

from __future__ import annotations

import pytest

from anchord.core.types import RootedPath
from anchord.daemon.writer.deletions import DeletionDebouncer, RecentDeletions

A, B, OTHER = RootedPath("r", "a.md"), RootedPath("r", "b.md"), RootedPath("other", "a.md")


class Clock:
    """The monotonic clock, moved by hand."""

    def __init__(self) -> None:
        """Begin at a time that is not zero."""
        self.now = 1_000.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("anchord.daemon.writer.deletions.time", made)
    return made


def test_a_root_is_due_once_it_was_quiet_for_a_second(clock: Clock) -> None:
    waiting = DeletionDebouncer()
    assert (len(waiting), waiting.next_due_at()) == (0, None)
    waiting.add(A, clock.now)
    clock.now += 0.9
    waiting.add(B, clock.now)
    assert (len(waiting), waiting.next_due_at()) == (2, clock.now + 1)
    clock.now += 0.9
    assert waiting.roots_due(include_unsettled=False) == []
    assert waiting.roots_due(include_unsettled=True) == ["r"]
    clock.now += 0.1
    assert waiting.roots_due(include_unsettled=False) == ["r"]
    assert waiting.pop_root("r") == {"a.md": 1_000.0, "b.md": 1_000.9}
    assert (len(waiting), waiting.pop_root("r")) == (0, {})


def test_a_root_that_is_never_quiet_is_due_ten_seconds_after_the_first_hint(clock: Clock) -> None:
    waiting = DeletionDebouncer()
    waiting.add(OTHER, clock.now)
    for _ in range(19):
        waiting.add(A, clock.now)
        clock.now += 0.5
    assert waiting.next_due_at() == 1_001.0
    assert waiting.roots_due(include_unsettled=False) == ["other"]
    waiting.pop_root("other")
    assert waiting.next_due_at() == 1_010.0
    clock.now += 0.5
    assert waiting.roots_due(include_unsettled=False) == ["r"]


def test_deletions_of_thirty_seconds_count_together_by_root(clock: Clock) -> None:
    recent = RecentDeletions()
    assert recent.count("r") == 0
    recent.record("r", 3)
    clock.now += 10
    recent.record("r", 4)
    recent.record("other", 50)
    clock.now += 20
    assert (recent.count("r"), recent.count("other")) == (7, 50)
    clock.now += 0.1
    assert recent.count("r") == 4
    clock.now += 30
    assert (recent.count("r"), recent.count("other")) == (0, 0)


@pytest.mark.parametrize(
    ("added_at", "due_at"), [(1_008.0, 1_009.0), (1_009.0, 1_010.0), (1_009.9, 1_010.0)]
)
def test_what_comes_late_does_not_prolong_the_ten_seconds(
    clock: Clock, added_at: float, due_at: float
) -> None:
    waiting = DeletionDebouncer()
    waiting.add(A, 1_000.0)
    clock.now = added_at
    waiting.add(A, clock.now)
    assert waiting.next_due_at() == due_at
    clock.now = due_at - 0.01
    assert waiting.roots_due(include_unsettled=False) == []
    clock.now = due_at
    assert waiting.roots_due(include_unsettled=False) == ["r"]
    assert waiting.pop_root("r") == {"a.md": 1_000.0}, "the time of the first hint"


def test_no_deletions_are_no_event(clock: Clock) -> None:
    recent = RecentDeletions()
    recent.record("r", 0)
    assert recent.count("r") == 0
    assert recent._by_root == {}, "nothing is kept for them"
    recent.record("r", 1)
    clock.now += 30.0
    assert recent.count("r") == 1
