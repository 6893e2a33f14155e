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


@pytest.mark.parametrize("models", [1, 2])
def test_files_of_a_model_that_is_away_go_behind_those_that_may_have_another(models: int) -> None:
    writer, outcomes = Mock(), Mock()
    writer.profile.embedders = [Mock() for _ in range(models)]
    writer.indexer.commit_count = 0
    writer.indexer.vector_fill.failed_files = [FILE]
    writer.indexer.vector_fill.fill.side_effect = EmbedderError("the model is gone", "")
    outcomes.queue.vectors.next_files.return_value = [FILE, RootedPath("r", "b.md")]
    work = TurnWork(writer, outcomes, Mock(), Mock())
    work.try_to_fill_vectors(lambda: False, saved_only=False)
    calls = [given.args for given in outcomes.queue.vectors.set_back.call_args_list]
    assert calls == ([([FILE],)] if models > 1 else [])


def test_the_queue_is_told_of_vectors_before_their_file_leaves_it() -> None:
    writer, parts = Mock(), Mock()
    writer.indexer.commit_count = 0
    writer.profile.embedders = []
    outcomes = [Mock(origin=FILE, embedded=embedded) for embedded in (0, 3)]
    writer.indexer.vector_fill.fill.return_value = outcomes
    parts.outcomes.barrier.has_waiters = False
    parts.outcomes.queue.vectors.next_files.return_value = [FILE]
    TurnWork(writer, parts.outcomes, Mock(), Mock()).fill_vectors(lambda: False)
    names = [name for name, _, _ in parts.mock_calls]
    assert names[1:4] == [
        "outcomes.handle_vectors",
        "outcomes.queue.vectors.note_made",
        "outcomes.handle_vectors",
    ]


def test_a_fill_that_failed_is_remembered_until_a_build_had_its_turn() -> None:
    work = TurnWork(Mock(), Mock(), Mock(), Mock())
    work.fill_vectors = Mock(side_effect=EmbedderError("the model is gone", ""))  # type: ignore[method-assign]
    assert not work.has_failed_fill
    work.try_to_fill_vectors(lambda: False, saved_only=False)
    assert work.has_failed_fill
    work.try_with_model(Mock(side_effect=EmbedderError("the model is gone", "")))
    assert not work.has_failed_fill, "a build that fails as well does not keep vectors waiting"
    work.try_to_fill_vectors(lambda: False, saved_only=False)
    work.fill_vectors = Mock()
    work.try_to_fill_vectors(lambda: False, saved_only=False)
    assert not work.has_failed_fill
