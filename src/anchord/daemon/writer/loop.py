"""The writer thread's loop: it indexes what waits, the most urgent first, and then maintains.

Other threads never touch the index. They leave three things for the loop: hints (paths that may
have changed), jobs (functions to run between two commits) and calls of `sync`.

A step that fails is retried with backoff; status shows the reason. This module has the only
`except Exception` of the loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

import structlog

from anchord.config.schema import Config
from anchord.core.types import Root, RootedPath, RootRemoval
from anchord.daemon.host.battery import on_battery
from anchord.daemon.writer.backoff import Backoff
from anchord.daemon.writer.file_queue import Turn, Urgency
from anchord.daemon.writer.generation_builds import GenerationBuilds
from anchord.daemon.writer.index_check import IndexCheck
from anchord.daemon.writer.jobs import JobQueue, run_steps
from anchord.daemon.writer.maintenance import KEEP_TIME_S, Maintenance
from anchord.daemon.writer.outcomes import OutcomeHandler
from anchord.daemon.writer.stats import WriterStats
from anchord.daemon.writer.sync_barrier import SyncBarrier
from anchord.daemon.writer.turn_work import TurnWork
from anchord.daemon.writer.work_queue import WorkQueue
from anchord.errors import AnchordError, StoreError
from anchord.index.generation import GenerationBuild
from anchord.index.session import IndexWriter
from anchord.store.table.connection import TableReadError

log = structlog.get_logger()
T = TypeVar("T")

_SUPERVISE_S = 2.0
"""How often roots, battery and memory are looked at; also the longest sleep of the loop."""


class WriterLoop:
    """The writer thread. `start` and `stop` it once; status reads its public fields.

    Methods under "In the writer thread" may only run there: from another thread, `submit` them.
    """

    def __init__(
        self,
        writer: IndexWriter,
        config: Config,
        request_restart: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare the loop; nothing runs before `start`.

        Args:
            writer: The opened index; the caller closes it after `stop`.
            config: What the daemon was started with.
            request_restart: Called with a reason when only a new process can help. It must return
                at once: the loop goes on until `stop`.
        """
        self.stats = WriterStats()
        self.work_queue = WorkQueue(writer, config.watch)
        self.index_check = IndexCheck(writer)
        self.maintenance = Maintenance(writer, config.store.max_memory_mb, self.index_check)
        self.paused = False
        """Whether `pause` was called: hints are collected, jobs run, nothing is indexed."""
        self.folder_problem = ""
        """Why nothing is indexed any more: the data folder or a database is gone. "" if not."""
        self.backlog_waits_for_mains = False
        """Whether all but saves and deletions waits for mains: `[embedding] on_battery`."""
        self.index_check.on_repair = lambda: self.maintenance.on_index_merge()  # noqa: PLW0108 - set later
        self.run_promotion: Callable[[Callable[[], None]], None] = lambda promote: promote()
        """Called with the function that promotes a generation, to run it while no query runs."""
        self.request_memory_restart = request_restart
        """Called with a reason when this process uses too much memory, as often as it finds so."""
        self._writer = writer
        self._uses_events = config.watch.mode != "poll"
        self._pauses_on_battery = config.embedding.on_battery == "pause"
        self._request_restart = request_restart
        self.builds = GenerationBuilds(writer)
        """For the writer thread: jobs start and suspend builds."""
        self._barrier = SyncBarrier(self.index_check.has_all_files)
        self._outcomes = OutcomeHandler(self.work_queue, self._barrier, self.stats)
        self._jobs = JobQueue()
        self.backoff = Backoff(writer.paths)
        """What failed steps mean for the next one."""
        self.work = TurnWork(writer, self._outcomes, self.maintenance, self.backoff)
        self._next_supervise = 0.0
        self._started_at = time.monotonic()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    # For other threads

    def start(self) -> None:
        """Begin to watch the roots and start the thread, whose first step walks every root.

        Watching begins first: a change between the two is seen twice rather than not at all.
        A generation whose build was interrupted goes on, one that nobody needs is deleted.

        Raises:
            StoreError: The catalog or the table cannot be read.
        """
        self.work_queue.root_watcher.start(use_events=self._uses_events)
        self.index_check.start()
        self.builds.resume_or_delete()
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it: seconds, since a batch that is being embedded is dropped.

        Dropped work is done again at the next start. Waiting jobs fail with AnchordError, waiting
        calls of `sync` return False. A generation that is being built stays on disk.
        """
        self._stopping = True
        self._wake_writer()
        self._writer.profile.close()
        self._writer.configured_profile.close()
        if self.started:
            self._thread.join()
        self.work_queue.root_watcher.close()
        self.maintenance.close()
        self._barrier.close()
        self._jobs.close()
        self.builds.close()
        if not self.backoff.unexpected_errors:
            # On a full disk this fails; then the next start compares all ids, as after a crash.
            with suppress(StoreError):
                self.index_check.record_end()

    def wait_for_sync(self, timeout_s: float | None, *, words_only: bool = False) -> bool:
        """Block until everything that was written before the call is searchable.

        Args:
            timeout_s: Longest wait in seconds; None waits without a limit.
            words_only: Do not wait until a search by meaning finds everything.

        Returns:
            False if the timeout expired, indexing was paused, or the writer stopped first; without
            a timeout also if every step has failed for `LONGEST_BLOCK_S`.
        """
        self.work.end_pauses(words_only=words_only)
        return self._barrier.wait(timeout_s, self._wake_writer, words_only=words_only)

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Run a function in the writer thread, between two commits; return its future.

        The future raises what the function raised, or AnchordError if the writer has stopped.
        """
        return self._jobs.submit(job, self._wake_writer)

    def set_paused(self, *, paused: bool) -> None:
        """Pause or resume indexing.

        Hints are still collected while paused. A pause makes all waiting calls of `sync` return
        without success.
        """
        self.paused = paused
        self._barrier.set_blocked(blocked=paused)
        self._wake_writer()

    @property
    def next_generation(self) -> GenerationBuild | None:
        """The generation that is being built, None when none is."""
        return self.builds.current

    @property
    def blocked_reason(self) -> str:
        """Why the last step failed and is being retried, "" when it succeeded."""
        return self.backoff.reason

    @property
    def pending_count(self) -> int:
        """How many files and hints wait, those of the next generation included."""
        return len(self.work_queue) + self.builds.files_due

    @property
    def started(self) -> bool:
        """Whether `start` was called."""
        return self._thread.ident is not None

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _wake_writer(self) -> None:
        with self.work_queue.wake_condition:
            self.work_queue.wake_condition.notify_all()

    # In the writer thread: jobs

    def add_root(self, root: Root) -> None:
        """Add a root to the index, watch it and walk it; its files are queued.

        A root of the same name is replaced: its folder may have changed.
        """
        self._writer.add_root(root)
        self.work_queue.root_watcher.add(root)
        self.work_queue.reconcile(root.name)

    def remove_root(self, name: str) -> RootRemoval:
        """Stop watching a root, delete its rows, and detach its conversations.

        Raises:
            StoreError: The table or the catalog cannot be changed.
        """
        self.work_queue.root_watcher.remove(name)
        for file in self.work_queue.drop_root_hints(name):
            self._outcomes.mark_done(file)
        for file in self.work_queue.vectors.drop_root(name):
            self._barrier.mark_vectors_done(file)
        self._barrier.release_finished_calls()
        if self.next_generation:
            self.next_generation.drop_root(name)
        return self._writer.drop_root(name)

    def walk_and_index_all(self) -> None:
        """Walk every root and index all that waits; for jobs that need an up-to-date index.

        Blocks until the queues are empty or the loop stops. Does nothing while paused.
        """
        if self.paused:
            return
        self.work_queue.drain_hints(skip_debounce=True)
        self.work_queue.reconcile_all()
        self.work.finish_all(self._is_stopping)

    # In the writer thread: the loop

    def _run(self) -> None:
        run_steps(self._step, self.back_off, lambda: self._stopping, self._give_up)

    def _give_up(self) -> None:
        """Let nobody wait for this thread, and ask for a process with another one."""
        self._barrier.close()
        self._jobs.close()
        self._request_restart("the writer thread has ended")

    def _step(self) -> None:
        """Take in what other threads left, then do the most urgent piece of work, or sleep."""
        now, queue = time.monotonic(), self.work_queue
        self._writer.heartbeat.beat()
        is_unsaved = self.index_check.own_files.is_unsaved
        if (is_unsaved and now < self.backoff.resume_at) or self._has_lost_files():
            # What waits may not be written to a lost file: it does not keep the loop busy.
            self._sleep(now + _SUPERVISE_S, wakes_for_work=False)
            return
        queue.drain_hints(skip_debounce=False)
        self._jobs.run_pending()
        self._writer.heartbeat.beat()
        if self.paused:
            self._sleep(now + _SUPERVISE_S)
            return
        if now < self.backoff.resume_at:
            self._sleep(self.backoff.resume_at)
            return
        # Neither paused nor backing off: the index may be changed from here on.
        if self.index_check.is_repair_due:
            if self.builds.is_from_scratch:
                # It replaces the table, which may be on a part of the disk that cannot be read.
                self._build()
                self._sleep(self.builds.next_step_at)
                return
            self._check_index()
        self.work.find_missing_vectors()
        if now >= self._next_supervise:
            self._supervise(now)
        if self._barrier.has_new_calls:
            self._walk_for_sync()
        for name in queue.root_checks.pop_settled():
            # Its rules are believed now: calls of `sync` wait for the files that came with them.
            self._barrier.replace_pending(RootedPath(name, ""), queue.pending_paths)
        if not queue.walk_if_due(now):
            self._do_most_urgent_work(now)

    def _do_most_urgent_work(self, now: float) -> None:
        """Do one kind of work; the next step looks again at what is most urgent."""
        queue, has_model = self.work_queue, self.work.may_use_model(now)
        saved_only = self.backlog_waits_for_mains
        # A build may replace the model that failed: it gets a turn before the next try.
        builds_first = self.work.has_failed_fill and self.builds.is_due(now) and not saved_only
        turn = queue.next_turn(without_later=saved_only, without_vectors=not has_model)
        if turn:
            self.work.index(turn.files, lambda: self._should_end_turn(turn))
        elif self.index_check.is_due:
            # The index is up to date, or the rest of it waits for mains.
            self._check_index()
        elif has_model and not builds_first and queue.vectors.has_next(saved_only=saved_only):
            self.work.try_to_fill_vectors(self._should_end_fill, saved_only=saved_only)
        elif has_model and self.builds.is_due(now) and not saved_only:
            self.work.try_with_model(self._build)
        else:
            # Nothing to do before the next hint, walk or job.
            self._rest(now)

    def _supervise(self, now: float) -> None:
        """Every 2 s: follow roots that were moved or remounted, check battery and memory."""
        self._next_supervise = now + _SUPERVISE_S
        self.index_check.audit_if_due(now)
        watcher = self.work_queue.root_watcher
        for root in watcher.retargeted_roots():
            log.info("root.retargeted", root=root.name)
            self.add_root(root)
        for name in self.work_queue.root_checks.find_changed(watcher, now):
            self.work_queue.reconcile(name)
        # Whoever waits in `sync` asked for all files: they do not wait for mains then.
        may_wait = self._pauses_on_battery and not self._barrier.has_waiters
        self.backlog_waits_for_mains = may_wait and on_battery()
        if self.maintenance.exceeds_memory_limit():
            self.request_memory_restart("anchord uses more memory than max_memory_mb allows")

    def _walk_for_sync(self) -> None:
        """Walk every root once for all calls of `sync` that came until now.

        Invariant: the calls are accepted before the walk begins, so the walk sees everything that
        was written before each of them. And the table was compared with the catalog if that was
        due, so that the files whose rows are missing are among those that the calls wait for.
        """
        self.index_check.look_for_altered_files()
        if self.index_check.is_due:
            self._check_index()
        self.work.find_missing_vectors()
        queue = self.work_queue
        with self._barrier.accept_for_walk() as call_count:
            queue.drain_hints(skip_debounce=True)
            queue.reconcile_all()
        self._barrier.set_pending_paths(queue.pending_paths, call_count, queue.vectors.snapshot())

    def _is_stopping(self) -> bool:
        """Whether to stop at once. The indexer asks before each file: a sign of life, too."""
        self._writer.heartbeat.beat()
        return self._stopping or self._has_lost_files()

    def _should_end_turn(self, turn: Turn) -> bool:
        """Whether to leave the rest of some files for later: something more urgent has come."""
        if self._is_stopping() or self.paused:
            return True
        now = time.monotonic()
        if not turn.may_be_interrupted(now):
            return False
        has_to_wait = self._jobs or self._barrier.has_new_calls or self.backlog_waits_for_mains
        is_postponed = bool(has_to_wait) and turn.urgency is Urgency.LATER
        return is_postponed or self.work_queue.has_more_urgent(turn.urgency, now)

    def _should_end_fill(self) -> bool:
        """Whether to leave the rest of some vectors for later: something else has come."""
        if self._is_stopping() or self.paused or self._jobs or self._barrier.has_new_calls:
            return True
        without_later = self.backlog_waits_for_mains
        has_files = self.work_queue.has_files_before_vectors(without_later=without_later)
        has_wanted = self.work_queue.vectors.has_wanted and not without_later
        return has_files or has_wanted or self.index_check.is_due

    def check_index(self, failed_at: float) -> None:
        """Read the whole table and repair it, unless that was done after a read failed.

        Args:
            failed_at: When rows could not be read, by the monotonic clock.

        Raises:
            StoreError: The table cannot be repaired.
        """
        if self.index_check.began_at < failed_at:
            self.index_check.request_repair()
            if self.index_check.is_repair_due:
                self._check_index()

    def _check_index(self) -> None:
        """Compare the table with the catalog, repair it if that is due, and queue its files."""
        self._index_again(self.index_check.run())

    def _index_again(self, files: Sequence[RootedPath]) -> None:
        """Queue files whose rows were lost; calls of `sync` that wait now wait for them, too."""
        self.work_queue.enqueue(files)
        self.work_queue.vectors.is_known = False
        self._barrier.expect_files(files)

    def _has_lost_files(self) -> bool:
        """Whether the data folder or a database is gone. Then a new process must take over."""
        if not self.folder_problem and (problem := self.index_check.own_files.find_problem()):
            log.error("daemon.files_lost", reason=problem)
            self.folder_problem = problem
            self._barrier.set_blocked(blocked=True)
            self._request_restart(problem)
        return bool(self.folder_problem)

    def _build(self) -> None:
        """Index the next files of a new generation; promote it once it holds everything."""
        building, turn = self.next_generation, Turn([], Urgency.LATER)
        unseen = self.work_queue.root_watcher.unseen_roots
        outcomes = self.builds.index_next_files(unseen, lambda: self._should_end_turn(turn))
        if building is None or outcomes is None:
            return
        for outcome in outcomes:
            self.stats.record_outcome(outcome)
        if building.is_finished:
            self.run_promotion(building.promote)
            self.index_check.note_new_table()
            self.builds.current = None
            self.stats.last_commit_at = time.monotonic()
            # Its table may have been cloned from one with chunks that lacked their vectors.
            self.work_queue.vectors.is_known = False
            # Files may have changed since the build read them.
            self.work_queue.reconcile_all()
        # Last: a promotion that fails each time must not look like a step that succeeded.
        self.backoff.reset()

    def _rest(self, now: float) -> None:
        """Maintain the index, stop idle worker processes, sleep until something is due."""
        # Unexpected errors still count: maintenance below may be what raises them.
        self.backoff.clear_reason()
        self.work.forget_model_problem(is_building=bool(self.next_generation))
        if not (self.work_queue or self.work_queue.root_checks.unsettled_roots):
            self._barrier.stop_waiting_for_files()
        stats, maintenance = self.stats, self.maintenance
        if maintenance.is_check_due(now):
            self.index_check.look_for_altered_files()
        maintenance.compact_if_due(idle_s=now - (stats.last_commit_at or self._started_at))
        if files := maintenance.check_and_repair_if_due(now):
            self._index_again(files)
        stats.record_verified(maintenance.last_checked_at)
        maintenance.keep_transcripts(seconds=KEEP_TIME_S)
        self._writer.stop_idle_processes()
        maintenance.stop_worker_if_idle()
        self._sleep(min(self.work_queue.next_due_at(), self._next_supervise))

    def _sleep(self, until: float, *, wakes_for_work: bool = True) -> None:
        """Wait until a time, a hint, a job or a call of `sync`; 2 s at most.

        Args:
            until: By the monotonic clock.
            wakes_for_work: Whether to return at once while any of these wait.
        """
        with self.work_queue.wake_condition:
            has_work = self.work_queue.has_hints or self._jobs or self._barrier.has_new_calls
            # While paused, calls of `sync` stay where they are: they must not keep the loop busy.
            if self._stopping or (has_work and wakes_for_work and not self.paused):
                return
            timeout_s = min(until - time.monotonic(), _SUPERVISE_S)
            self.work_queue.wake_condition.wait(max(0.0, timeout_s))

    def back_off(self, error: Exception) -> None:
        """Record and log an error, and delay the next step; never blocks.

        Queued work stays queued. The delay doubles up to a minute, and status shows the error.
        After four unexpected errors in a row the process restarts.
        """
        if isinstance(error, TableReadError):
            self.index_check.request_repair()
        if not self._stopping:
            needs_restart = self.backoff.record_error(error)
            log_failure = log.warning if isinstance(error, AnchordError) else log.exception
            reason, retry_s = self.blocked_reason, self.backoff.pause_s
            log_failure("writer.step_failed", reason=reason, retry_s=retry_s)
            if needs_restart:
                self._request_restart(self.blocked_reason)
        if self.backoff.is_lasting:
            self._barrier.interrupt_calls_without_timeout()
        self.backoff.start_pause()
