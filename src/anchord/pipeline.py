"""The one writer's loop: hints settle, fresh saves go before the backlog, and everything is done between two commits.

Runs in a thread of its own. Other threads only leave things for it: hints (a set of paths), jobs (functions to run between
two commits) and calls of `sync` (`barrier`). What fails is kept and tried again later, with a growing pause and a reason
that status shows; the loop's own `except Exception` stands here and nowhere else.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from anchord.barrier import Barrier
from anchord.config import WatchConfig
from anchord.core.rules import changes_rules
from anchord.core.settle import Settling
from anchord.errors import AnchordError
from anchord.model import Action, Fingerprint, Origin, Outcome, Root
from anchord.tally import Tally, log_outcome
from anchord.watching import RootWatch
from anchord.workspace import Writer

log = structlog.get_logger()
T = TypeVar("T")

_SUPERVISE_S = 2.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_MAINTAIN_COMMITS = 100
_IDLE_MAINTAIN_S = 30.0
_IDLE_COMMITS = 20
_MAX_RETRIES = 50
_BACKLOG_FILES = 200


@dataclass(slots=True)
class Counters:
    """Since the start of the process; times are of the steady clock."""

    done: int = 0
    """Files that had an outcome."""
    work: Tally = field(default_factory=Tally)
    reconciles: int = 0
    last_event: float | None = None
    last_commit: float | None = None
    last_verified: float | None = None
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    """From a save's first event to its being searchable."""


class Pipeline:
    """The writer's loop and what it shows of itself."""

    def __init__(self, writer: Writer, config: WatchConfig) -> None:
        """Prepare; `start` runs it."""
        self.counters = Counters()
        self.roots = RootWatch(writer.roots, self.hint)
        self.trouble = ""
        """Why work is held up, "" when it is not."""
        self.paused = False
        self.busy_with = ""
        """The root whose files are being indexed."""
        self._writer = writer
        self._config = config
        self._settling = Settling(config.settle_ms / 1000, config.max_wait_ms / 1000)
        self._barrier = Barrier()
        self._wake = threading.Condition()
        self._hints: dict[Origin, float] = {}
        self._jobs: deque[Callable[[], None]] = deque()
        self._fresh: dict[Origin, float] = {}
        """Files that a hint led to, with the time of the hint."""
        self._backlog: dict[Origin, None] = {}
        """Files that a walk found."""
        self._retries: dict[Origin, int] = {}
        self._resume_at = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._next_reconcile = 0.0
        self._next_supervise = 0.0
        self._maintained_at = 0
        self._audit_due = False
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    # For other threads

    def start(self) -> None:
        """Watch first, then scan: what changes in between is seen twice rather than not at all."""
        self.roots.start(events=self._config.mode != "poll")
        catalogue = self._writer.catalogue
        wanted = sum(chunks for _, chunks in catalogue.counts().values())
        self._audit_due = catalogue.noted("clean") != "1" or self._writer.store.count() != wanted
        catalogue.note("clean", "0")
        self._thread.start()

    def stop(self) -> None:
        """End within seconds: a batch that is being embedded is given up, and made up for at the next start."""
        self._stopping = True
        self._ring()
        self._writer.embedder.close()
        if self.started:
            self._thread.join()
        self.roots.close()
        self._barrier.close()
        self._writer.catalogue.note("clean", "1")

    def hint(self, origin: Origin) -> None:
        """Note that a path may have changed; called by watchdog's thread, so it must be quick and never raise."""
        now = time.monotonic()
        self.counters.last_event = now
        with self._wake:
            self._hints[origin] = now
            self._wake.notify_all()

    def sync(self, timeout_s: float | None) -> bool:
        """Return True when everything written before the call is searchable, False when the time is over."""
        return self._barrier.wait(timeout_s, self._ring)

    def call(self, job: Callable[[], T]) -> Future[T]:
        """Run a function in the writer's thread, between two commits."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - carried to the caller, who raises it again
                future.set_exception(error)

        self._jobs.append(run)
        self._ring()
        return future

    def pause(self, *, paused: bool) -> None:
        """Stop or go on indexing; hints are collected meanwhile."""
        self.paused = paused
        self._ring()

    @property
    def pending(self) -> int:
        """Count the files and hints that wait."""
        return len(self._fresh) + len(self._backlog) + len(self._settling) + len(self._hints)

    @property
    def commits(self) -> int:
        """Count the changes that were made to the table."""
        return self._writer.indexer.commits

    @property
    def started(self) -> bool:
        """Whether the loop was ever started."""
        return self._thread.ident is not None

    @property
    def alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive()

    def _ring(self) -> None:
        with self._wake:
            self._wake.notify_all()

    # In the writer's thread: jobs

    def add_root(self, root: Root) -> None:
        """Take in a root."""
        self._writer.keep_root(root)
        self.roots.add(root)
        self._reconcile(root.name)

    def remove_root(self, name: str) -> int:
        """Let go of a root and its rows; return how many there were."""
        self.roots.remove(name)
        self._settling.drop(name)
        for origin in [origin for origin in (*self._fresh, *self._backlog) if origin.root == name]:
            self._finish(origin)
        self._barrier.release()
        return self._writer.drop_root(name)

    def catch_up(self) -> None:
        """Walk every root and bring all of it up to date; for jobs that need an index without anything pending."""
        if self.paused:
            return
        self._drain(everything=True)
        self._reconcile_all()
        while (self._fresh or self._backlog) and not self._stopping:
            self._index(list(self._fresh or self._backlog), lambda: self._stopping)

    def enqueue(self, origins: Iterable[Origin]) -> None:
        """Have files looked at."""
        self._backlog.update(dict.fromkeys(origins))

    # In the writer's thread: the loop

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._step()
            except Exception as error:  # noqa: BLE001 - the loop must go on; status shows the reason
                self._hold(error)

    def _step(self) -> None:
        now = time.monotonic()
        self._drain(everything=False)
        while self._jobs:
            self._jobs.popleft()()
        if self.paused or now < self._resume_at:
            self._sleep(now + _SUPERVISE_S if self.paused else self._resume_at)
            return
        if now >= self._next_supervise:
            self._next_supervise = now + _SUPERVISE_S
            for name in self.roots.supervise():
                self._reconcile(name)
        if self._barrier.called:
            self._open_barrier()
        if now >= self._next_reconcile:
            self._next_reconcile = now + (self._config.poll_s if self.roots.polls else self._config.reconcile_s)
            self._reconcile_all()
        elif self._fresh:
            self._index(list(self._fresh), lambda: self._stopping or self.paused)
        elif self._backlog:
            self._index(list(self._backlog)[:_BACKLOG_FILES], self._backlog_should_wait)
        elif self._audit_due:
            self._audit()
        else:
            self._rest(now)

    def _drain(self, *, everything: bool) -> None:
        """Move hints through the settling to the files that are due."""
        with self._wake:
            hints, self._hints = self._hints, {}
        for origin, at in hints.items():
            if origin.root in self.roots.states:
                self._settling.hint(origin, at)
        for origin, first in self._settling.due(time.monotonic(), all_of_it=everything):
            self._look(origin, first)

    def _look(self, origin: Origin, first: float) -> None:
        """Find out what a hint is about: a file, a folder or something gone, or the rules of the whole root."""
        if not origin.path or changes_rules(origin.path):
            self._reconcile(origin.root)
        elif isinstance(self._writer.files.fingerprint(origin), Fingerprint):
            self._fresh.setdefault(origin, first)
        else:
            for due in self._writer.indexer.reconcile(origin.root, origin.path).due:
                self._fresh.setdefault(due, first)

    def _reconcile(self, name: str) -> None:
        """Walk a root; what it finds to do joins the backlog."""
        state = self.roots.states[name]
        found = self._writer.indexer.reconcile(name)
        self._backlog.update(dict.fromkeys(found.due))
        self.counters.reconciles += 1
        if found.trouble != state.trouble:
            log.warning("root.trouble", root=name, reason=found.trouble or "over")
        state.trouble, state.skipped, state.scanned = found.trouble, found.skipped, True
        state.note_problems(found.folder_problems, time.time_ns())

    def _reconcile_all(self) -> None:
        for name in list(self.roots.states):
            self._reconcile(name)

    def _open_barrier(self) -> None:
        """Walk once for all calls of `sync` that came until now."""
        newest = self._barrier.take()
        self._drain(everything=True)
        self._reconcile_all()
        self._barrier.name({*self._fresh, *self._backlog}, newest)

    def _index(self, origins: list[Origin], enough: Callable[[], bool]) -> None:
        self.busy_with = origins[0].root
        commits = self.commits
        try:
            for outcome in self._writer.indexer.index(origins, enough):
                self._take_outcome(outcome)
        finally:
            self.busy_with = ""
            self._barrier.release()
        if self.commits > commits:
            self.counters.last_commit = time.monotonic()
        self._pause_s, self.trouble = _FIRST_PAUSE_S, ""

    def _backlog_should_wait(self) -> bool:
        """Whether to leave the rest of a batch: to stop, to pause, or because something fresher came."""
        return self._stopping or self.paused or bool(self._hints or self._jobs or self._barrier.called)

    def _take_outcome(self, outcome: Outcome) -> None:
        origin, counters = outcome.origin, self.counters
        first = self._fresh.get(origin)
        if outcome.action is Action.RETRY and self._retries.get(origin, 0) < _MAX_RETRIES:
            self._retries[origin] = self._retries.get(origin, 0) + 1
            self._fresh.pop(origin, None)
            self._backlog.pop(origin, None)
            self._settling.hint(origin, time.monotonic())
            return
        self._finish(origin)
        counters.done += 1
        counters.work.add(outcome)
        if first is not None and (outcome.upserted or outcome.deleted):
            counters.latencies_ms.append((time.monotonic() - first) * 1000)
        if outcome.action is not Action.SKIPPED:
            log_outcome(outcome)

    def _finish(self, origin: Origin) -> None:
        for waiting in (self._fresh, self._backlog, self._retries):
            waiting.pop(origin, None)
        self._barrier.settle(origin)

    def _audit(self) -> None:
        self._audit_due = False
        doubtful = self._writer.indexer.audit()
        log.info("index.audited", doubtful=len(doubtful))
        self.enqueue(doubtful)

    def _rest(self, now: float) -> None:
        """Nothing waits: keep the table in shape, let the model go, sleep until something is due."""
        self._pause_s, self.trouble = _FIRST_PAUSE_S, ""
        commits, idle_s = self.commits - self._maintained_at, now - (self.counters.last_commit or now)
        if commits >= _MAINTAIN_COMMITS or (commits >= _IDLE_COMMITS and idle_s >= _IDLE_MAINTAIN_S):
            self._maintained_at = self.commits
            self._writer.store.maintain()
            log.info("store.maintained")
        self._writer.embedder.rest()
        self._sleep(min(self._next_reconcile, self._next_supervise, self._settling.next_at() or self._next_reconcile))

    def _sleep(self, until: float) -> None:
        with self._wake:
            busy = self._hints or self._jobs or self._barrier.called
            if not self._stopping and (self.paused or not busy):
                self._wake.wait(max(0.0, min(until - time.monotonic(), _SUPERVISE_S)))

    def _hold(self, error: Exception) -> None:
        """Keep what waits and try again after a pause that grows."""
        known = isinstance(error, AnchordError)
        if not self._stopping:
            self.trouble = error.message if isinstance(error, AnchordError) else f"internal error: {type(error).__name__}"
            log.error("writer.held", reason=self.trouble, retry_s=self._pause_s, exc_info=not known)
        self._resume_at = time.monotonic() + self._pause_s
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
