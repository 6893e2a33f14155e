"""A command that cannot be served now reports why, and how many changes wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from anchord.daemon.readiness import require_indexing, why_not_up_to_date
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
