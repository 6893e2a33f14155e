"""What is counted of the vectors that files got."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from anchord.core.types import Action, FileOutcome, RootedPath
from anchord.daemon.writer.outcomes import OutcomeHandler
from anchord.daemon.writer.stats import WriterStats
from anchord.daemon.writer.sync_barrier import SyncBarrier
from anchord.daemon.writer.vector_queue import VectorQueue
from anchord.daemon.writer.work_queue import WorkQueue

FILE = RootedPath("r", "a.md")


@pytest.mark.parametrize("action", [Action.EMBEDDED, Action.RETRY, Action.SKIPPED])
def test_vectors_count_whatever_became_of_their_file(action: Action) -> None:
    queued: list[RootedPath] = []
    queue = SimpleNamespace(vectors=VectorQueue(), enqueue=queued.extend)
    handler = OutcomeHandler(cast("WorkQueue", queue), SyncBarrier(), WriterStats())
    handler.handle_vectors(FileOutcome(origin=FILE, action=action, reason="", embedded=8, reused=2))
    totals = handler.stats.totals
    assert (totals.embedded, totals.reused) == (8, 2)
    assert handler.stats.files_done == 0  # It was counted when words found it.
    assert not totals.actions
    assert queued == ([FILE] if action is Action.RETRY else [])
