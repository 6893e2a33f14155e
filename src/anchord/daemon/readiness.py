"""Why the index cannot be brought up to date now, for the commands that would wait for that."""

from __future__ import annotations

import time

from anchord.core.quoting import quote_names
from anchord.daemon.calls import current_call
from anchord.daemon.writer.backoff import Backoff
from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import PausedError, StoreError

_SHORTEST_WAIT_S = 0.05
_POLL_BUILD_S = 0.05
"""How often a call that waits for a new generation looks whether it serves."""


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


def find_lasting_failure(loop: WriterLoop, *, words_only: bool = False) -> Backoff | None:
    """Return what has failed for too long for a call to wait for; None if nothing has.

    Args:
        loop: The writer loop.
        words_only: Whether the call waits for no vectors: then the model does not matter.
    """
    needed = (loop.backoff,) if words_only else (loop.backoff, loop.work.model_backoff)
    return next((backoff for backoff in needed if backoff.is_lasting), None)


def finish_generation(loop: WriterLoop) -> list[str]:
    """Wait while a generation is being built.

    Returns:
        A sentence that says why it cannot be finished now; none if it is.

    Raises:
        StoreUnavailableError: Every step has failed for too long.
        PausedError, StoreError: As `require_indexing`.
    """
    call = current_call()
    while loop.builds.is_building and loop.alive and not call.is_cancelled:
        require_indexing(loop)
        if failed := find_lasting_failure(loop):
            raise failed.as_error("the new index cannot be finished")
        building = loop.next_generation
        if building and (names := quote_names(building.unavailable_roots, if_none="")):
            return [f"the new index cannot be finished: not all files of {names} can be seen"]
        time.sleep(_POLL_BUILD_S)
    return []
