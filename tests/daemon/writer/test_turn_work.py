"""When the writer may ask the model."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from anchord.daemon.writer.turn_work import TurnWork
from anchord.errors import EmbedderError


@pytest.mark.parametrize(
    ("state", "may_ask"),
    [("off", True), ("starting", True), ("ready", True), ("busy", True), ("preparing", False)],
)
def test_the_writer_does_not_wait_until_the_model_is_prepared(
    state: str,
    may_ask: bool,  # noqa: FBT001 - a column of the table
) -> None:
    writer = Mock()
    writer.profile.embedder.state = state
    work = TurnWork(writer, Mock(), Mock(), Mock())
    assert work.may_use_model(0.0) is may_ask


def test_nor_is_a_model_asked_again_at_once_that_has_just_failed() -> None:
    writer = Mock()
    writer.profile.embedder.state = "ready"
    work = TurnWork(writer, Mock(), Mock(), Mock())
    work.try_with_model(Mock(side_effect=EmbedderError("the model is gone", "")))
    assert not work.may_use_model(0.0)
    assert work.may_use_model(float("inf"))
