"""Why the index cannot be brought up to date now, for the commands that would wait for that."""

from __future__ import annotations

import time

from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import PausedError, StoreError

_SHORTEST_WAIT_S = 0.05


def require_indexing(loop: WriterLoop) -> None:
    """Return if files are indexed at present.

    Raises:
        PausedError: Indexing is paused.
        StoreError: The data folder was deleted; a new process is about to take over.
    """
    if loop.folder_problem:
        raise StoreError(
            f"{loop.folder_problem}: anchord restarts and repairs the index",
            "try again in a few seconds; `anchord status` shows the state",
        )
    if loop.paused:
        raise PausedError(
            f"indexing is paused (changes that wait: {loop.pending_count})",
            "`anchord resume` resumes it",
        )


def require_settled_rules(loop: WriterLoop) -> None:
    """Do `require_indexing`, and wait until the files on disk can be compared with the index.

    An ignore file that may be in the middle of a save is not believed for some seconds: until then
    the index follows its last good rules.

    Raises:
        PausedError, StoreError: As `require_indexing`.
    """

    def walk() -> list[float]:
        loop.work_queue.drain_hints(skip_debounce=True)
        loop.work_queue.reconcile_all()
        return loop.work_queue.root_checks.due_times

    require_indexing(loop)
    while due_times := loop.submit(walk).result():
        time.sleep(max(_SHORTEST_WAIT_S, max(due_times) - time.monotonic()))
        require_indexing(loop)


def why_not_up_to_date(loop: WriterLoop) -> str:
    """Return why a call of `sync` has to wait."""
    if loop.blocked_reason:
        return loop.blocked_reason
    if loop.pending_count or not loop.index_check.is_due:
        vector_files = len(loop.work_queue.vectors)
        if vector_files and not loop.pending_count:
            why = f" ({loop.work.model_problem})" if loop.work.model_problem else ""
            return f"{vector_files} files still wait for vectors{why}; a search by words finds them"
        return f"{loop.pending_count} files still wait"
    return "the index is being checked"
