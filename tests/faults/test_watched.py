"""The same operations under a running service with a real watcher; `watched` has the checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.watched import WAYS, Watched


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Give a running service over some files."""
    made = Watched(tmp_path, "watched")
    yield made
    made.close()


def test_changes_under_a_running_service_converge_and_embed_what_is_new(watched: Watched) -> None:
    for way in WAYS * 2:
        watched.step(way)
    assert watched.figures.operations > len(WAYS)
    assert watched.figures.embedded == watched.figures.needed > 0
    assert watched.figures.dropped > 0
