"""The one writer's loop: hints settle, fresh saves go before the backlog, and everything is done between two commits.

Runs in a thread of its own. Other threads only leave things for it: hints (a set of paths), jobs (functions to run between
two commits) and calls of `sync` (`barrier`). What fails is kept and tried again later, with a growing pause and a reason
that status shows; the loop's own `except Exception` stands here and nowhere else.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import structlog

from anchord.adapters.power import on_battery
from anchord.barrier import Barrier
from anchord.config import Config
from anchord.errors import AnchordError, StoreDamagedError, StoreError
from anchord.generation import Building, Order, discard, left_over, needed
from anchord.jobs import Jobs
from anchord.model import Action, Origin, Outcome, Root
from anchord.survey import Survey
from anchord.tally import Pace, Tally, log_outcome
from anchord.upkeep import Upkeep
from anchord.workspace import Writer

log = structlog.get_logger()
T = TypeVar("T")

_SUPERVISE_S = 2.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_MAX_RETRIES = 50
_RECENT = 20
_BACKLOG_FILES = 200
_WAIT_FOR_ROOT_S = 15.0
_ERRORS_BEFORE_RESTART = 4
_AUDIT_S = 7 * 24 * 3600.0


@dataclass(slots=True)
class Counters:
    """Since the start of the process; times are of the steady clock."""

    done: int = 0
    """Files that had an outcome."""
    work: Tally = field(default_factory=Tally)
    pace: Pace = field(default_factory=Pace)
    last_commit: float | None = None
    last_verified: float | None = None
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    """From a save's first event to its being searchable."""
    recent: deque[tuple[float, Outcome]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """What was done last, with when."""

    def add(self, outcome: Outcome) -> None:
        """Count a handled file."""
        now = time.monotonic()
        self.done += 1
        self.work.add(outcome)
        self.pace.step(now)
        if outcome.action not in (Action.UNCHANGED, Action.SKIPPED):
            self.recent.append((now, outcome))


class Pipeline:
    """The writer's loop and what it shows of itself."""

    def __init__(self, writer: Writer, config: Config, restart: Callable[[str], None] = lambda _: None) -> None:
        """Prepare; `start` runs it. `restart` is asked, with the reason, when only a new process can help."""
        self.counters = Counters()
        self.survey = Survey(writer, config.watch)
        self.upkeep = Upkeep(writer, config.store.max_memory_mb * 1_000_000)
        self.building: Building | None = None
        """The generation that is being built."""
        self.trouble = ""
        """Why work is held up, "" when it is not."""
        self.paused = False
        self.busy_with = ""
        """The root whose files are being indexed."""
        self.on_battery = False
        """Whether the backlog waits for mains."""
        self.replacing: Callable[[Callable[[], None]], None] = lambda promote: promote()
        """Is given what puts a new generation in place, to call it when nobody reads the present one."""
        self._writer = writer
        self._events = config.watch.mode != "poll"
        self._spares_battery = config.embedding.on_battery == "pause"
        self._restart = restart
        self._barrier = Barrier()
        self._jobs = Jobs()
        self._retries: dict[Origin, int] = {}
        self._resume_at = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._errors = 0
        self._next_supervise = 0.0
        self._began = time.monotonic()
        self._build_at = 0.0
        self._audit_due = False
        self._next_audit = time.monotonic() + _AUDIT_S
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    # For other threads

    def start(self) -> None:
        """Watch first, then scan: what changes in between is seen twice rather than not at all."""
        self.survey.roots.start(events=self._events)
        writer = self._writer
        wanted = sum(chunks for _, chunks in writer.catalogue.counts().values())
        self._audit_due = not writer.was_clean or writer.store.count() != wanted
        writer.catalogue.note("clean", "0")
        order = needed(writer) or left_over(writer)
        if order:
            self.building = Building(writer, order)
        else:
            discard(writer)
        self._thread.start()

    def stop(self) -> None:
        """End within seconds: a batch that is being embedded is given up, and made up for at the next start."""
        self._stopping = True
        self._ring()
        self._writer.means.embedder.close()
        self._writer.wanted.embedder.close()
        if self.started:
            self._thread.join()
        self.survey.roots.close()
        self.upkeep.close()
        self._barrier.close()
        self._jobs.close()
        if self.building:
            self.building.close()
        if not self._errors:
            with suppress(StoreError):  # On a full disk the next start compares all ids, as after a crash.
                self._writer.catalogue.note("clean", "1")

    def sync(self, timeout_s: float | None) -> bool:
        """Return True when everything written before the call is searchable, False when the time is over."""
        return self._barrier.wait(timeout_s, self._ring)

    def call(self, job: Callable[[], T]) -> Future[T]:
        """Run a function in the writer's thread, between two commits."""
        return self._jobs.call(job, self._ring)

    def pause(self, *, paused: bool) -> None:
        """Stop or go on indexing; hints are collected meanwhile."""
        self.paused = paused
        self._ring()

    @property
    def pending(self) -> int:
        """Count the files and hints that wait."""
        return len(self.survey) + (self.building.due if self.building else 0)

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
        with self.survey.wake:
            self.survey.wake.notify_all()

    # In the writer's thread: jobs

    def add_root(self, root: Root) -> None:
        """Take in a root, or its new folder."""
        self._writer.keep_root(root)
        self.survey.roots.add(root)
        self.survey.reconcile(root.name)

    def remove_root(self, name: str) -> int:
        """Let go of a root and its rows; return how many there were."""
        self.survey.roots.remove(name)
        for origin in self.survey.drop(name):
            self._finish(origin)
        self._barrier.release()
        if self.building:
            self.building.drop_root(name)
        return self._writer.drop_root(name)

    def build(self, order: Order) -> None:
        """Begin a new generation, in place of one that was being built."""
        self.drop_building()
        self.building, self._build_at = Building(self._writer, order), 0.0

    def drop_building(self) -> Order | None:
        """Give up a generation that is being built; return its order, to be given again."""
        building, self.building = self.building, None
        if building is None:
            return None
        building.abandon()
        return building.order

    def catch_up(self) -> None:
        """Walk every root and bring all of it up to date; for jobs that need an index without anything pending."""
        if self.paused:
            return
        survey = self.survey
        survey.drain(everything=True)
        survey.reconcile_all()
        while (survey.fresh or survey.backlog) and not self._stopping:
            self._index(list(survey.fresh or survey.backlog), self._ending)

    # In the writer's thread: the loop

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._step()
            except Exception as error:  # noqa: BLE001 - the loop must go on; status shows the reason
                self._hold(error)

    def _step(self) -> None:
        now, survey = time.monotonic(), self.survey
        self._writer.pulse.beat()
        survey.drain(everything=False)
        self._jobs.run()
        self._writer.pulse.beat()
        if self.paused or now < self._resume_at:
            self._sleep(now + _SUPERVISE_S if self.paused else self._resume_at)
            return
        if now >= self._next_supervise:
            self._supervise(now)
        if self._barrier.called:
            self._open_barrier()
        if survey.is_time(now):
            return
        if survey.fresh:
            self._index(list(survey.fresh), lambda: self._ending() or self.paused)
        elif survey.backlog and not self.on_battery:
            self._index(list(survey.backlog)[:_BACKLOG_FILES], self._backlog_should_wait)
        elif self._audit_due or now >= self._next_audit:
            self._audit()
        elif self.building and now >= self._build_at and not self.on_battery:
            self._build(self.building)
        else:
            self._rest(now)

    def _supervise(self, now: float) -> None:
        self._next_supervise = now + _SUPERVISE_S
        for root in self.survey.roots.retargeted():
            log.info("root.retargeted", root=root.name)
            self.add_root(root)
        for name in self.survey.roots.supervise():
            self.survey.reconcile(name)
        # Whoever waits in `sync` asked for it by name.
        self.on_battery = self._spares_battery and not self._barrier.waiting and on_battery()
        if self.upkeep.is_too_large():
            self._restart("its memory grew over [store] max_memory_mb")

    def _open_barrier(self) -> None:
        """Walk once for all calls of `sync` that came until now."""
        newest = self._barrier.take()
        self.survey.drain(everything=True)
        self.survey.reconcile_all()
        self._barrier.name({*self.survey.fresh, *self.survey.backlog}, newest)

    def _index(self, origins: list[Origin], enough: Callable[[], bool]) -> None:
        self.busy_with = origins[0].root
        commits = self.commits
        try:
            for outcome in self._writer.indexer.index(origins, enough, self.survey.gone):
                self._take_outcome(outcome)
        finally:
            self.busy_with = ""
            self._barrier.release()
        self._worked(commits)
        self.upkeep.fold_if_due()

    def _worked(self, commits: int) -> None:
        if self.commits > commits:
            self.counters.last_commit = time.monotonic()
        self._pause_s, self.trouble, self._errors = _FIRST_PAUSE_S, "", 0

    def _ending(self) -> bool:
        """Whether to leave the rest of a batch. It is asked before each file: so the one before is done."""
        self._writer.pulse.beat()
        return self._stopping

    def _backlog_should_wait(self) -> bool:
        """Whether to leave the rest of a batch: to stop, to pause, or because something fresher came."""
        if self._ending() or self.paused or self.on_battery or self._jobs or self._barrier.called:
            return True
        return bool(self.survey.fresh) or self.survey.pressing(time.monotonic())

    def _take_outcome(self, outcome: Outcome) -> None:
        origin, counters, survey = outcome.origin, self.counters, self.survey
        first = survey.fresh.get(origin)
        if outcome.action is Action.RETRY and self._retries.get(origin, 0) < _MAX_RETRIES:
            self._retries[origin] = self._retries.get(origin, 0) + 1
            survey.again(origin)
            return
        if outcome.action is Action.INDEXED and origin in survey.moved:
            outcome = replace(outcome, action=Action.MOVED, reason=f"moved from {survey.moved[origin]}")
        self._finish(origin)
        counters.add(outcome)
        if first is not None and (outcome.upserted or outcome.deleted):
            counters.latencies_ms.append((time.monotonic() - first) * 1000)
        if outcome.action is not Action.SKIPPED:
            log_outcome(outcome)

    def _finish(self, origin: Origin) -> None:
        self.survey.finish(origin)
        self._retries.pop(origin, None)
        self._barrier.settle(origin)

    def _audit(self) -> None:
        doubtful = self._writer.indexer.audit()
        self._audit_due, self._next_audit = False, time.monotonic() + _AUDIT_S
        log.info("index.audited", doubtful=len(doubtful))
        self.survey.enqueue(doubtful)

    def _build(self, building: Building) -> None:
        """Do a part of a new generation; put it in place once it is ready. Rows that are held or away it could not make."""
        states = self.survey.roots.states
        building.waits_for = tuple(name for name, state in states.items() if state.trouble or state.held)
        if building.waits_for:
            self._build_at = time.monotonic() + _WAIT_FOR_ROOT_S
            return
        for outcome in building.step(self._backlog_should_wait):
            self.counters.add(outcome)
        self._worked(self.commits)
        if building.waits_for:
            self._build_at = time.monotonic() + _WAIT_FOR_ROOT_S
        if building.finished:
            self.replacing(building.promote)
            self.building = None
            self.counters.last_commit = time.monotonic()
            self.survey.reconcile_all()

    def _rest(self, now: float) -> None:
        """Nothing waits: keep the table in shape, check some of it, let the model go, sleep until something is due."""
        self._pause_s, self.trouble = _FIRST_PAUSE_S, ""
        self.upkeep.fold_if_due(idle_s=now - (self.counters.last_commit or self._began))
        self.survey.enqueue(self.upkeep.check_if_due(now))
        if self.upkeep.checked_at is not None:
            self.counters.last_verified = max(self.upkeep.checked_at, self.counters.last_verified or 0.0)
        self._writer.means.embedder.rest()
        self._writer.grammars.rest()
        self.upkeep.rest()
        self._sleep(min(self.survey.next_at(), self._next_supervise))

    def _sleep(self, until: float) -> None:
        with self.survey.wake:
            busy = self.survey.hinted or self._jobs or self._barrier.called
            if not self._stopping and (self.paused or not busy):
                self.survey.wake.wait(max(0.0, min(until - time.monotonic(), _SUPERVISE_S)))

    def _hold(self, error: Exception) -> None:
        """Keep what waits and try again after a pause that grows; what a new process alone can mend gets one."""
        known = isinstance(error, AnchordError)
        if not self._stopping:
            self.trouble = error.message if isinstance(error, AnchordError) else f"internal error: {type(error).__name__}"
            log.error("writer.held", reason=self.trouble, retry_s=self._pause_s, exc_info=not known)
            self._errors += not known
            if isinstance(error, StoreDamagedError) or self._errors >= _ERRORS_BEFORE_RESTART:
                self._errors = max(self._errors, 1)  # So that this stop is not called a clean one.
                self._restart(self.trouble)
        self._resume_at = time.monotonic() + self._pause_s
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
