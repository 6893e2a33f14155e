"""The one writer's loop: hints settle, fresh saves go before the backlog, and everything is done between two commits.

Runs in a thread of its own. Other threads only leave things for it: hints (a set of paths), jobs (functions to run between
two commits) and tickets (calls of `sync` that wait). What fails is kept and tried again later, with a growing pause and a
reason that status shows; `except Exception` stands here once and nowhere else.

`sync` does not trust events: its barrier is a walk of every root that starts after the call. Whatever the walk finds changed,
and everything that was waiting, must have an outcome before the call returns. So it holds when every event was lost.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from anchord.adapters.watch import Watcher
from anchord.config import WatchConfig
from anchord.core.rules import changes_rules
from anchord.core.settle import Settling
from anchord.errors import AnchordError
from anchord.model import Action, Fingerprint, Origin, Outcome, Problem, Root, printable
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
class RootState:
    """What status says of a root. `trouble`: why its folder cannot be walked; its rows are kept meanwhile."""

    root: Root
    scanned: bool = False
    trouble: str = ""
    skipped: int = 0
    folder_problems: dict[str, tuple[Problem, int]] = field(default_factory=dict)
    watching: bool = False
    watch_trouble: str = ""
    identity: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Counters:
    """Since the start of the process."""

    done: int = 0
    """Files that had an outcome."""
    embedded: int = 0
    reused: int = 0
    reconciles: int = 0
    upserted: int = 0
    deleted: int = 0
    last_event: float | None = None
    last_commit: float | None = None
    last_verified: float | None = None
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=1000))


@dataclass(slots=True)
class _Ticket:
    """A waiting `sync`: the files that still need an outcome, None until its walk began."""

    done: threading.Event = field(default_factory=threading.Event)
    waiting: set[Origin] | None = None


class Pipeline:
    """The writer's loop and what it shows of itself."""

    def __init__(self, writer: Writer, config: WatchConfig) -> None:
        """Prepare; `start` runs it."""
        self.counters = Counters()
        self.states: dict[str, RootState] = {root.name: RootState(root) for root in writer.roots}
        self.trouble = ""
        """Why work is held up, "" when it is not."""
        self.paused = False
        self.busy_with = ""
        self._writer = writer
        self._config = config
        self._settling = Settling(config.settle_ms / 1000, config.max_wait_ms / 1000)
        self._wake = threading.Condition()
        self._hints: dict[Origin, float] = {}
        self._jobs: deque[Callable[[], None]] = deque()
        self._tickets: list[_Ticket] = []
        self._new_tickets: list[_Ticket] = []
        self._fresh: dict[Origin, float] = {}
        self._backlog: dict[Origin, None] = {}
        self._retries: dict[Origin, int] = {}
        self._resume_at = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._next_reconcile = 0.0
        self._next_supervise = 0.0
        self._maintained_at = 0
        self._audit_due = False
        self._stopping = False
        self._watcher: Watcher | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    # For other threads

    def start(self) -> None:
        """Watch first, then scan: what changes in between is seen twice rather than not at all."""
        if self._config.mode != "poll":
            self._watcher = Watcher(self.hint)
        for state in self.states.values():
            self._watch(state)
        self._audit_due = self._writer.catalogue.noted("clean") != "1" or self._counts_differ()
        self._writer.catalogue.note("clean", "0")
        self._thread.start()

    def stop(self) -> None:
        """End within seconds: a batch that is being embedded is given up, and made up for at the next start."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        self._writer.embedder.close()
        if self._thread.is_alive():
            self._thread.join()
        if self._watcher:
            self._watcher.close()
        for ticket in [*self._tickets, *self._new_tickets]:
            ticket.done.set()
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
        ticket = _Ticket()
        with self._wake:
            self._new_tickets.append(ticket)
            self._wake.notify_all()
        return ticket.done.wait(timeout_s) and not self._stopping

    def call(self, job: Callable[[], T]) -> Future[T]:
        """Run a function in the writer's thread, between two commits."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - carried to the caller, who raises it again
                future.set_exception(error)

        with self._wake:
            self._jobs.append(run)
            self._wake.notify_all()
        return future

    def pause(self, *, paused: bool) -> None:
        """Stop or go on indexing; hints are collected meanwhile."""
        with self._wake:
            self.paused = paused
            self._wake.notify_all()

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
    def overflows(self) -> int:
        """Count the times that the system dropped events."""
        return self._watcher.overflows if self._watcher else 0

    def watches(self, name: str) -> int:
        """Count the folders of a root that the system watches for us."""
        return self._watcher.count(name) if self._watcher else 0

    @property
    def alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive()

    # In the writer's thread

    def add_root(self, root: Root) -> None:
        """Take in a root."""
        self._writer.keep_root(root)
        state = self.states[root.name] = RootState(root)
        self._watch(state)
        self._reconcile(root.name)

    def remove_root(self, name: str) -> int:
        """Let go of a root and its rows."""
        if self._watcher:
            self._watcher.unwatch(name)
        self.states.pop(name)
        self._settling.drop(name)
        for waiting in (self._fresh, self._backlog):
            for origin in [origin for origin in waiting if origin.root == name]:
                self._settle_ticket(origin)
                del waiting[origin]
        self._end_tickets()
        return self._writer.drop_root(name)

    def catch_up(self) -> None:
        """Walk every root and bring all of it up to date; for jobs that need an index without anything pending."""
        self._drain(everything=True)
        for name in list(self.states):
            self._reconcile(name)
        while (self._fresh or self._backlog) and not self._stopping:
            self._index(list(self._fresh or self._backlog))

    def enqueue(self, origins: list[Origin]) -> None:
        """Put files before the backlog."""
        self._fresh.update(dict.fromkeys(origins, time.monotonic()))

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
            self._sleep(now + 0.5 if self.paused else self._resume_at)
            return
        self._supervise(now)
        self._begin_tickets()
        if now >= self._next_reconcile:
            self._reconcile_all(now)
        elif self._fresh:
            self._index(list(self._fresh))
        elif self._backlog:
            self._index(list(self._backlog)[:_BACKLOG_FILES])
        elif self._audit_due:
            self._audit()
        else:
            self._rest(now)

    def _drain(self, *, everything: bool) -> None:
        """Move hints through the settling into the fresh files."""
        with self._wake:
            hints, self._hints = self._hints, {}
        for origin, at in hints.items():
            if origin.root in self.states:
                self._settling.hint(origin, at)
        for origin, first in self._settling.due(time.monotonic(), all_of_it=everything):
            self._look(origin, first)

    def _look(self, origin: Origin, first: float) -> None:
        if not origin.path or changes_rules(origin.path):
            self._reconcile(origin.root, first=first)
        elif isinstance(self._writer.files.fingerprint(origin), Fingerprint):
            self._fresh.setdefault(origin, first)
        else:
            self._reconcile(origin.root, origin.path, first)

    def _reconcile(self, name: str, prefix: str = "", first: float | None = None) -> None:
        """Walk a tree; what it finds is fresh when a hint led there and backlog else."""
        state = self.states[name]
        found = self._writer.indexer.reconcile(name, prefix)
        waiting: dict[Origin, float] | dict[Origin, None] = self._backlog if first is None else self._fresh
        for origin in found.due:
            if origin not in self._fresh:
                waiting.setdefault(origin, first)  # type: ignore[arg-type] # None goes to the backlog alone
        if prefix:
            return
        self.counters.reconciles += 1
        if found.trouble != state.trouble:
            log.warning("root.trouble", root=name, reason=found.trouble or "over")
        state.trouble, state.skipped, state.scanned = found.trouble, found.skipped, True
        now = time.time_ns()
        state.folder_problems = {
            path: (problem, state.folder_problems.get(path, (problem, now))[1]) for path, problem in found.folder_problems
        }

    def _reconcile_all(self, now: float) -> None:
        polls = self._config.mode == "poll" or any(state.watch_trouble for state in self.states.values())
        self._next_reconcile = now + (self._config.poll_s if polls else self._config.reconcile_s)
        for name in list(self.states):
            self._reconcile(name)

    def _begin_tickets(self) -> None:
        """Walk once for all calls of `sync` that came until now."""
        with self._wake:
            tickets, self._new_tickets = self._new_tickets, []
        if not tickets:
            return
        self._drain(everything=True)
        for name in list(self.states):
            self._reconcile(name, first=time.monotonic())
        waiting = {*self._fresh, *self._backlog}
        for ticket in tickets:
            ticket.waiting = set(waiting)
        self._tickets += tickets
        self._end_tickets()

    def _settle_ticket(self, origin: Origin) -> None:
        for ticket in self._tickets:
            if ticket.waiting:
                ticket.waiting.discard(origin)

    def _end_tickets(self) -> None:
        for ticket in self._tickets:
            if not ticket.waiting:
                ticket.done.set()
        self._tickets = [ticket for ticket in self._tickets if ticket.waiting]

    def _index(self, origins: list[Origin]) -> None:
        fresh = origins[0] in self._fresh
        self.busy_with = origins[0].root
        wrote = 0
        try:
            for outcome in self._writer.indexer.index(origins, lambda: self._enough(fresh=fresh)):
                self._settled(outcome)
                wrote += outcome.upserted + outcome.deleted
        finally:
            self.busy_with = ""
            self._end_tickets()
        if wrote:
            self.counters.last_commit = time.monotonic()
        self._pause_s, self.trouble = _FIRST_PAUSE_S, ""

    def _enough(self, *, fresh: bool) -> bool:
        """Whether to leave the rest of a batch: to stop, to pause, or because something fresher came."""
        return self._stopping or self.paused or (not fresh and bool(self._hints or self._new_tickets or self._jobs))

    def _settled(self, outcome: Outcome) -> None:
        origin = outcome.origin
        first = self._fresh.pop(origin, None)
        self._backlog.pop(origin, None)
        if outcome.action is Action.RETRY and self._retries.get(origin, 0) < _MAX_RETRIES:
            self._retries[origin] = self._retries.get(origin, 0) + 1
            self._settling.hint(origin, time.monotonic())
        else:
            self._retries.pop(origin, None)
            self._settle_ticket(origin)
        counters = self.counters
        counters.done += 1
        counters.embedded += outcome.embedded
        counters.reused += outcome.reused
        counters.upserted += outcome.upserted
        counters.deleted += outcome.deleted
        if first is not None and (outcome.upserted or outcome.deleted):
            counters.latencies_ms.append((time.monotonic() - first) * 1000)
        if outcome.action is not Action.SKIPPED:
            log_outcome(outcome)

    def _audit(self) -> None:
        self._audit_due = False
        doubtful = self._writer.indexer.audit()
        log.info("index.audited", doubtful=len(doubtful))
        self.enqueue(list(doubtful))

    def _rest(self, now: float) -> None:
        """Nothing waits: keep the table in shape, let the model go, sleep until something is due."""
        idle = now - (self.counters.last_commit or now)
        commits = self.commits - self._maintained_at
        if commits >= _MAINTAIN_COMMITS or (commits >= _IDLE_COMMITS and idle >= _IDLE_MAINTAIN_S):
            self._maintained_at = self.commits
            self._writer.store.maintain()
            log.info("store.maintained")
        self._writer.embedder.rest()
        times = [self._next_reconcile, self._next_supervise, self._settling.next_at() or self._next_reconcile]
        self._sleep(min(times))

    def _sleep(self, until: float) -> None:
        with self._wake:
            if not (self._hints or self._jobs or self._new_tickets or self._stopping) or self.paused:
                self._wake.wait(max(0.0, min(until - time.monotonic(), _SUPERVISE_S)))

    def _hold(self, error: Exception) -> None:
        """Keep what waits and try again after a pause that grows."""
        known = isinstance(error, AnchordError)
        reason = error.message if isinstance(error, AnchordError) else f"internal error: {type(error).__name__}"
        if not self._stopping:
            self.trouble = reason
            log.error("writer.held", reason=reason, retry_s=self._pause_s, exc_info=not known)
        self._resume_at = time.monotonic() + self._pause_s
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)

    def _counts_differ(self) -> bool:
        wanted = sum(chunks for _, chunks in self._writer.catalogue.counts().values())
        return self._writer.store.count() != wanted

    # Roots

    def _watch(self, state: RootState) -> None:
        state.identity = _identity(state.root.path)
        if self._watcher is None:
            return
        state.watch_trouble = ""
        try:
            self._watcher.watch(state.root)
            state.watching = True
        except OSError as error:
            state.watching = False
            if state.identity != (0, 0):
                state.watch_trouble = f"cannot be watched ({os.strerror(error.errno or 0).lower()}): polled instead"

    def _supervise(self, now: float) -> None:
        """See every few seconds whether a root's folder is still the one that is watched."""
        if now < self._next_supervise:
            return
        self._next_supervise = now + _SUPERVISE_S
        for name, state in self.states.items():
            dead = state.watching and self._watcher is not None and not self._watcher.watches(name)
            if dead or _identity(state.root.path) != state.identity:
                self._watch(state)
                self._reconcile(name, first=now)


def log_outcome(outcome: Outcome) -> None:
    """Write an outcome to the log; never content."""
    log.info(
        "file.handled",
        action=str(outcome.action),
        root=outcome.origin.root,
        path=printable(outcome.origin.path),
        reason=outcome.reason,
        chunks=outcome.chunks,
        kept=outcome.kept,
        shifted=outcome.shifted,
        upserted=outcome.upserted,
        deleted=outcome.deleted,
        embedded=outcome.embedded,
        reused=outcome.reused,
    )


def _identity(path: str) -> tuple[int, int]:
    """Device and inode of a folder, zeros when there is none."""
    try:
        seen = os.stat(path)
    except OSError:
        return (0, 0)
    return (seen.st_dev, seen.st_ino)
