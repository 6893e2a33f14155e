"""The barrier behind `sync`: a call returns once everything written before it is searchable.

The barrier does not rely on watch events. After a call, the writer walks every root and hands over
the files that then wait; each outcome takes one file away. So a call that returned has seen a walk
that began after it, even if events were lost before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from anchord.core.types import RootedPath
from anchord.daemon.calls import current_call


@dataclass(slots=True, eq=False)
class _Call:
    """A call of `sync`, and the files it waits for."""

    done: threading.Event = field(default_factory=threading.Event)
    words_only: bool = False
    """Whether to return once words find everything."""
    has_timeout: bool = False
    """Whether the caller has said how long to wait."""
    pending_paths: set[RootedPath] = field(default_factory=set)
    pending_vectors: set[RootedPath] = field(default_factory=set)
    """Files that are indexed and lack vectors."""
    is_interrupted: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether it waits for no file any more."""
        return not (self.pending_paths or self.pending_vectors)


class SyncBarrier:
    """Calls that wait for files. Any thread may `wait`; the writer thread does the rest."""

    def __init__(self, may_release: Callable[[], bool] = lambda: True) -> None:
        """Start without calls.

        Args:
            may_release: Asked before calls return that wait for no file any more. False keeps them:
                `expect_files` must follow.
        """
        self._may_release = may_release
        self._lock = threading.Lock()
        self._new_calls: list[_Call] = []
        """Calls that still need a walk."""
        self._accepted_calls: list[_Call] = []
        """Calls whose walk has begun, oldest first."""
        self._closed = False
        self._blocked = False

    def wait(
        self, timeout_s: float | None, wake: Callable[[], None], *, words_only: bool = False
    ) -> bool:
        """Block until everything that was written before the call is searchable.

        Args:
            timeout_s: Longest wait in seconds; None waits without a limit.
            wake: Called at once, to wake the writer thread.
            words_only: Do not wait for vectors: a search by words finds everything then.

        Returns:
            False if the timeout expired, calls are blocked, the writer ended or the client left.
        """
        call = _Call(
            words_only=words_only,
            has_timeout=timeout_s is not None,
        )
        with self._lock:
            if self._closed or self._blocked:
                return False  # The writer has ended or waits: nobody would release this call.
            self._new_calls.append(call)
        wake()
        client_call = current_call()
        client_call.on_cancel(call.done.set)
        is_done = call.done.wait(timeout_s)
        with self._lock:
            if call in self._new_calls:  # Nobody waits for its walk any more.
                self._new_calls.remove(call)
        is_released = is_done and not call.is_interrupted and not client_call.is_cancelled
        return is_released and not self._closed

    def set_blocked(self, *, blocked: bool) -> None:
        """While blocked, make all calls return False at once: nothing is indexed meanwhile."""
        with self._lock:
            self._blocked = blocked
        if blocked:
            self.interrupt_calls()

    def interrupt_calls(self) -> None:
        """Make all waiting calls return False now. Later calls wait as usual."""
        self._interrupt(lambda _: True)

    def interrupt_calls_without_timeout(self, *, for_vectors: bool = False) -> None:
        """Make calls return False now because what they wait for keeps failing.

        A call with a timeout waits on: its caller has said for how long, and the failure may end.

        Args:
            for_vectors: Only the calls that wait for vectors.
        """
        self._interrupt(
            lambda call: not call.has_timeout and (not for_vectors or bool(call.pending_vectors))
        )

    def _interrupt(self, is_meant: Callable[[_Call], bool]) -> None:
        with self._lock:
            calls = [call for call in (*self._accepted_calls, *self._new_calls) if is_meant(call)]
            self._new_calls = [call for call in self._new_calls if call not in calls]
        for call in calls:
            call.is_interrupted = True
            call.done.set()

    @property
    def has_new_calls(self) -> bool:
        """Whether a call waits for its walk to begin."""
        return bool(self._new_calls)

    @property
    def has_waiters(self) -> bool:
        """Whether any call waits, for its walk or for files."""
        return bool(self._new_calls or self._accepted_calls)

    def accept_new_calls(self) -> int:
        """Accept the new calls; the walk that follows is theirs.

        Returns:
            How many there were, for `set_pending_paths`.
        """
        with self._lock:
            calls, self._new_calls = self._new_calls, []
        self._accepted_calls += calls
        return len(calls)

    @contextmanager
    def accept_for_walk(self) -> Iterator[int]:
        """Accept the new calls for the walk inside; if it fails, they wait for another one.

        Yields:
            How many calls there are, for `set_pending_paths`.
        """
        call_count = self.accept_new_calls()
        try:
            yield call_count
        except BaseException:
            first = len(self._accepted_calls) - call_count
            calls, self._accepted_calls = self._accepted_calls[first:], self._accepted_calls[:first]
            with self._lock:
                self._new_calls = [*calls, *self._new_calls]
            raise

    def set_pending_paths(
        self,
        pending: Iterable[RootedPath],
        call_count: int,
        without_vectors: Iterable[RootedPath] = (),
    ) -> None:
        """Set the files that the newest calls wait for, and release those that need not wait.

        Args:
            pending: All files that wait after the walk.
            call_count: How many calls the walk was for, as `accept_new_calls` returned it.
            without_vectors: All files that are indexed and lack vectors.
        """
        newest_calls = self._accepted_calls[len(self._accepted_calls) - call_count :]
        for call in newest_calls:
            call.pending_paths = set(pending)
            call.pending_vectors = set() if call.words_only else set(without_vectors)
        self.release_finished_calls()

    def replace_pending(self, origin: RootedPath, pending: Iterable[RootedPath]) -> None:
        """Make the calls that wait for one path wait for others instead."""
        for call in self._accepted_calls:
            if origin in call.pending_paths:
                call.pending_paths.remove(origin)
                call.pending_paths.update(pending)
        self.release_finished_calls()

    def expect_files(self, files: Iterable[RootedPath]) -> None:
        """Make all calls wait for files that were found to have lost rows."""
        for call in self._accepted_calls:
            call.pending_paths.update(files)
        self.release_finished_calls()

    def mark_done(self, origin: RootedPath) -> None:
        """Remove a file from all calls. Their threads wait on until `release_finished_calls`."""
        for call in self._accepted_calls:
            call.pending_paths.discard(origin)

    def stop_waiting_for_files(self) -> None:
        """Let no call wait for a file any more. Only while no file and no hint waits.

        A walk may have kept the rows of files that calls waited for: their root's folder is away,
        or their deletion is held. The answer of `sync` names these roots.
        """
        for call in self._accepted_calls:
            call.pending_paths.clear()
        self.release_finished_calls()

    def expect_vectors(self, origin: RootedPath) -> None:
        """Make the calls that wait for a file wait for its vectors too. Before `mark_done`."""
        for call in self._accepted_calls:
            if origin in call.pending_paths and not call.words_only:
                call.pending_vectors.add(origin)

    def expect_file_again(self, origin: RootedPath) -> None:
        """Make the calls that wait for a file's vectors wait for the file: it has changed."""
        for call in self._accepted_calls:
            if origin in call.pending_vectors:
                call.pending_vectors.remove(origin)
                call.pending_paths.add(origin)

    def mark_vectors_done(self, origin: RootedPath) -> None:
        """Remove a file from the vectors that calls wait for, as `mark_done` does for files."""
        for call in self._accepted_calls:
            call.pending_vectors.discard(origin)

    def release_finished_calls(self) -> None:
        """Let the calls return that wait for no file any more."""
        finished = [call for call in self._accepted_calls if call.is_finished]
        if not finished or not self._may_release():
            return
        for call in finished:
            call.done.set()
        self._accepted_calls = [call for call in self._accepted_calls if not call.is_finished]

    def close(self) -> None:
        """Make all calls return False, now and later: the writer ends."""
        with self._lock:
            self._closed = True
            calls = [*self._accepted_calls, *self._new_calls]
        for call in calls:
            call.done.set()
