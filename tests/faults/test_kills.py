"""F1: a real daemon, killed by SIGKILL at labelled steps while files change; `kills` has the checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults.killed_daemon import PLACES
from faults.kills import MOMENTS, Victim, run_kills

FAST = (
    ("upsert", "after", 1),
    ("intend", "after", 2),
    ("fill", "before", 1),
)
"""The slow tests kill it at every other step, too."""


@pytest.fixture
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    """Give a home with an index; its path is short enough for a socket."""
    made = Victim(tmp_path_factory.mktemp("k"), "victim")
    yield made
    made.close()


def test_f1_a_daemon_killed_at_three_steps_converges_and_embeds_nothing_twice(
    victim: Victim,
) -> None:
    for place, moment, nth in FAST:
        victim.round(place, moment, nth)
    assert victim.figures.daemon_kills == len(FAST)
    assert victim.figures.embedded == victim.figures.needed


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_f1_a_daemon_killed_anywhere_converges_and_embeds_nothing_twice(
    victim: Victim, place: str
) -> None:
    for moment in MOMENTS:
        for nth in (1, 2):
            victim.round(place, moment, nth)
    assert victim.figures.daemon_kills == 2 * len(MOMENTS)


@pytest.mark.slow
def test_f1_random_kills() -> None:
    figures = run_kills(1, 10)
    assert not figures.divergences, figures.divergences[0]
