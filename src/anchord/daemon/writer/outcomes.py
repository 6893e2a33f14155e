"""What happens once a file was handled: it leaves the queue and calls of `sync`, or is retried."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from anchord.core.types import Action, FileOutcome, RootedPath
from anchord.daemon.writer.file_queue import Urgency
from anchord.daemon.writer.stats import WriterStats
from anchord.daemon.writer.sync_barrier import SyncBarrier
from anchord.daemon.writer.work_queue import WorkQueue
from anchord.index.metrics import log_outcome
from anchord.index.vector_fill import made_vectors

_MAX_RETRIES = 50
"""A file that changes while it is read is retried so often, then its outcome counts."""


@dataclass(slots=True)
class OutcomeHandler:
    """Takes the outcomes of the indexer. For the writer thread."""

    queue: WorkQueue
    barrier: SyncBarrier
    stats: WriterStats
    _retries: dict[RootedPath, int] = field(default_factory=dict)

    def handle(self, outcome: FileOutcome) -> None:
        """Count an outcome and take its file off the queue; a retry goes back into the queue."""
        file, queue = outcome.origin, self.queue
        hinted_at = queue.hinted_at.get(file)
        retries = self._retries.get(file, 0)
        if outcome.action is Action.RETRY and retries < _MAX_RETRIES:
            self._retries[file] = retries + 1
            queue.requeue_later(file)
            return
        # Final: the file is indexed, deleted, skipped or failed, and calls of `sync` may go on.
        old_path = queue.moved_from.get(file)
        if outcome.action is Action.INDEXED and old_path is not None:
            reason = f"moved from {old_path}"
            outcome = replace(outcome, action=Action.MOVED, reason=reason)
        if outcome.due:
            urgency, time_s = queue.files.place_of(file) or (Urgency.LATER, time.time())
            queue.vectors.add(file, urgency, time_s)
            self.barrier.expect_vectors(file)
        self.mark_done(file)
        self.stats.record_outcome(outcome)
        has_changes = bool(outcome.upserted or outcome.deleted)
        if hinted_at is not None and has_changes:
            latency_s = time.monotonic() - hinted_at
            self.stats.latencies_ms.append(latency_s * 1000)
        if outcome.action is not Action.SKIPPED:
            log_outcome(outcome)

    def handle_vectors(self, outcome: FileOutcome) -> None:
        """Count the vectors that a file got, and take it off the queue of vectors.

        A file that has changed is indexed again. One that cannot be read waits for a walk.
        """
        file, queue = outcome.origin, self.queue
        queue.vectors.remove(file)
        if made := made_vectors(outcome):
            self.stats.record_outcome(made)
            log_outcome(made)
        if outcome.action is Action.RETRY:
            queue.enqueue([file])
            self.barrier.expect_file_again(file)
            return
        if outcome.action is Action.SKIPPED:
            queue.vectors.set_unreadable(file)
        self.barrier.mark_vectors_done(file)

    def mark_done(self, file: RootedPath) -> None:
        """Take a file off the queue, and let the calls of `sync` no longer wait for it."""
        self.queue.remove(file)
        self._retries.pop(file, None)
        self.barrier.mark_done(file)
