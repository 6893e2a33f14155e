"""A command that cannot be served now reports why, and how many changes wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from anchord.daemon.readiness import (
    require_indexing,
    require_settled_rules,
    why_not_up_to_date,
)
from anchord.errors import PausedError, StoreError


def loop(**given: object) -> Any:  # noqa: ANN401 - replaces the writer's loop
    usual = {"folder_problem": "", "paused": False, "pending_count": 0, "blocked_reason": ""}
    return SimpleNamespace(**{**usual, "index_check": SimpleNamespace(is_due=False), **given})


def test_what_indexes_is_required_to_do_nothing_else() -> None:
    require_indexing(loop(pending_count=3, blocked_reason="the disk is full"))


def test_a_pause_is_said_with_the_changes_that_wait() -> None:
    with pytest.raises(PausedError, match=r"changes that wait: 3") as raised:
        require_indexing(loop(paused=True, pending_count=3))
    assert raised.value.hint == "`anchord resume` resumes it"


def test_a_deleted_folder_goes_before_a_pause() -> None:
    problem = "the folder /data was deleted"
    with pytest.raises(StoreError, match=f"{problem}: anchord restarts") as raised:
        require_indexing(loop(folder_problem=problem, paused=True))
    assert "try again in a few seconds" in raised.value.hint


@pytest.mark.parametrize(
    ("blocked", "pending", "without_vectors", "model", "is_check_due", "said"),
    [
        ("the disk is full", 3, 0, "", True, "the disk is full"),
        ("", 3, 0, "", True, "3 files still wait"),
        ("", 3, 7, "it crashed", False, "3 files still wait"),
        ("", 0, 0, "", True, "the index is being checked"),
        ("", 0, 0, "", False, "0 files still wait"),
        ("", 0, 7, "", False, "7 files still wait for vectors; a search by words finds them"),
        (
            "",
            0,
            7,
            "it crashed",
            False,
            "7 files still wait for vectors (it crashed); a search by words finds them",
        ),
    ],
)
def test_sync_says_what_it_waits_for(  # noqa: PLR0917 - the columns of the table
    blocked: str,
    pending: int,
    without_vectors: int,
    model: str,
    is_check_due: bool,  # noqa: FBT001 - a column of the table
    said: str,
) -> None:
    check = SimpleNamespace(is_due=is_check_due)
    queue = SimpleNamespace(vectors=range(without_vectors))
    waiting = loop(
        blocked_reason=blocked,
        pending_count=pending,
        index_check=check,
        work_queue=queue,
        work=SimpleNamespace(model_problem=model),
    )
    assert why_not_up_to_date(waiting) == said


class Settling:
    """A loop whose rules settle at times; a clock that only sleep moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *due_times: list[float]) -> None:
        """Begin at 100 s; each walk finds the next of the times."""
        self.now = 100.0
        self.events: list[object] = []
        self.after_sleep: Callable[[], object] = lambda: None
        checks = SimpleNamespace()
        left = list(due_times)

        def walk() -> None:
            self.events.append("walked")
            checks.due_times = left.pop(0)

        def submit(job: Callable[[], object]) -> Future[object]:
            future: Future[object] = Future()
            future.set_result(job())
            return future

        def sleep(seconds: float) -> None:
            self.events.append(seconds)
            self.now += seconds
            self.after_sleep()

        queue = SimpleNamespace(
            drain_hints=lambda *, skip_debounce: self.events.append(skip_debounce),
            reconcile_all=walk,
            root_checks=checks,
        )
        self.loop = loop(work_queue=queue, submit=submit)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", sleep)


def test_rules_that_settled_are_walked_once_with_all_hints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settling = Settling(monkeypatch, [])
    require_settled_rules(settling.loop)
    assert settling.events == [True, "walked"]


def test_rules_that_settle_are_waited_for_to_the_last_and_walked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settling = Settling(monkeypatch, [103.0, 102.0], [103.01], [90.0], [])
    require_settled_rules(settling.loop)
    walk = [True, "walked"]
    assert settling.events == [*walk, 3.0, *walk, 0.05, *walk, 0.05, *walk]


def test_a_pause_before_or_during_the_wait_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    settling = Settling(monkeypatch, [103.0], [])

    def pause() -> None:
        settling.loop.paused = True

    settling.after_sleep = pause
    for events in ([True, "walked", 3.0], []):
        with pytest.raises(PausedError):
            require_settled_rules(settling.loop)
        assert settling.events == events
        settling.events.clear()
