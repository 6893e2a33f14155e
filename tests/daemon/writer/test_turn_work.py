"""When the writer may ask the model, and what it tells it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from anchord.core.types import RootedPath
from anchord.daemon.writer.turn_work import TurnWork
from anchord.errors import EmbedderError

FILE = RootedPath("r", "a.md")


@pytest.mark.parametrize(
    ("state", "may_ask"),
    [("off", True), ("starting", True), ("ready", True), ("busy", True), ("preparing", False)],
)
def test_the_writer_does_not_wait_until_the_model_is_prepared(
    state: str,
    may_ask: bool,  # noqa: FBT001 - a column of the table
) -> None:
    writer = Mock()
    writer.profile.embedders = [Mock(state="ready"), Mock(state=state)]
    work = TurnWork(writer, Mock(), Mock(), Mock())
    assert work.may_use_model(0.0) is may_ask


def test_nor_is_a_model_asked_again_at_once_that_has_just_failed() -> None:
    writer = Mock()
    writer.profile.embedders = [Mock(state="ready")]
    work = TurnWork(writer, Mock(), Mock(), Mock())
    work.try_with_model(Mock(side_effect=EmbedderError("the model is gone", "")))
    assert not work.may_use_model(0.0)
    assert work.may_use_model(float("inf"))


@pytest.mark.parametrize("makes_vectors", [False, True])
@pytest.mark.parametrize("has_waiters", [False, True])
def test_the_model_is_told_that_a_call_of_sync_waits(
    makes_vectors: bool,  # noqa: FBT001 - a column of the table
    has_waiters: bool,  # noqa: FBT001 - likewise
) -> None:
    writer, outcomes, note_waiter = Mock(), Mock(), Mock()
    writer.profile.embedders = [Mock(note_waiter=note_waiter)]
    writer.indexer.commit_count = 0
    outcomes.barrier.has_waiters = has_waiters
    outcomes.queue.vectors.next_files.return_value = [FILE]
    told: list[int] = []

    def asking(*given: Any) -> list[object]:  # noqa: ANN401 - what the indexer is given
        told.append(note_waiter.call_count)
        assert given[1]() is False
        told.append(note_waiter.call_count)
        return []

    writer.indexer.index.side_effect = writer.indexer.vector_fill.fill.side_effect = asking
    work = TurnWork(writer, outcomes, Mock(), Mock())
    if makes_vectors:
        work.fill_vectors(lambda: False)
    else:
        work.index([FILE], lambda: False)
    assert told == ([1, 2] if has_waiters else [0, 0])
