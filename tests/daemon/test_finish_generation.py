"""Waiting for a new index: what a `forget` makes begin again is waited for, too."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from anchord.daemon.readiness import finish_generation
from anchord.daemon.writer.backoff import Backoff
from anchord.errors import StoreError


class Loop:
    """A writer loop, seen from outside, over some moments."""

    def __init__(self, *moments: tuple[bool, object]) -> None:
        """Take, for each moment, whether it builds and what."""
        self._moments: Iterator[tuple[bool, object]] = iter(moments)
        self.next_generation: object = None
        self.alive = True
        self.folder_problem = ""
        self.paused = False
        self.backoff = Backoff(SimpleNamespace())  # type: ignore[arg-type]
        self.work = SimpleNamespace(model_backoff=self.backoff)
        self.builds = self
        self.looks = 0

    @property
    def is_building(self) -> bool:
        """Go on to the next moment."""
        self.looks += 1
        is_building, self.next_generation = next(self._moments)
        return is_building


def building(*unavailable_roots: str) -> object:
    return SimpleNamespace(unavailable_roots=unavailable_roots)


def finish(loop: Any) -> list[str]:  # noqa: ANN401 - it stands for a writer loop
    return finish_generation(loop)


def test_a_build_that_is_about_to_begin_anew_is_waited_for() -> None:
    loop = Loop((True, building()), (True, None), (True, building()), (False, None))
    assert finish(loop) == []
    assert loop.looks == 4


def test_a_build_that_waits_for_a_root_is_not_waited_for() -> None:
    (reason,) = finish(Loop((True, building("notes"))))
    assert reason.endswith('not all files of "notes" can be seen')


def test_what_keeps_failing_ends_the_wait() -> None:
    loop = Loop((True, building()))
    loop.backoff.patience_s = 0.0
    loop.backoff.record_error(StoreError("no", "yes"))
    with pytest.raises(StoreError, match="the new index cannot be finished: no"):
        finish(loop)
