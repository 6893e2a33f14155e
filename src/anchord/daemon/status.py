"""What `anchord status` reports about the running daemon."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

import psutil

from anchord._version import __version__
from anchord.core.quoting import escape_non_utf8, quote_command, quote_name
from anchord.daemon.answers import failure_message, failures_of, index_answer, recent_change
from anchord.daemon.archive_counts import ArchiveCounts
from anchord.daemon.backups import Backups
from anchord.daemon.missing_vectors import MissingVectors, find_missing_vectors
from anchord.daemon.model_status import embedder_status, lost_models
from anchord.daemon.writer.file_queue import Urgency
from anchord.daemon.writer.loop import WriterLoop
from anchord.daemon.writer.stats import p50_and_p95
from anchord.index.integrity.repair import list_repairs
from anchord.index.metrics import WorkCounters
from anchord.index.session import IndexWriter
from anchord.ipc.messages.status import (
    Failure,
    GenerationStatus,
    Progress,
    RecentChange,
    RootStatus,
    StatusAnswer,
    StoreStatus,
    UpkeepStatus,
    WaitingFile,
)
from anchord.ipc.messages.upkeep import IndexAnswer
from anchord.search.coverage import Coverage
from anchord.sources.watch.root_watcher import RootState
from anchord.store.catalog.catalog import SqliteCatalog

_WAITING_FILES_SHOWN = 8


class StatusReporter:
    """Reads the state of a running writer from other threads, without waiting for it.

    The fields of what it returns are part of the interface: `anchord status --json` prints them.
    """

    def __init__(self, pipeline: WriterLoop, writer: IndexWriter) -> None:
        """Start the uptime's clock."""
        self.config_error = ""
        """Why the last reload of the configuration was refused, "" if it was not."""
        self.restart_error = ""
        """Why the daemon needs a restart that waits or did not help, "" if it needs none."""
        self.store = writer.store
        """The table that is counted. The daemon replaces it by a read-only handle of its own."""
        self.reranker_problem: Callable[[], str] = lambda: ""
        """Returns why searches go on without the reranker, "" if they do not."""
        self.backups: Backups | None = None
        """The backups, whose progress is reported."""
        self._loop = pipeline
        self._writer = writer
        self._started_at = time.monotonic()
        self._process = psutil.Process()
        self._archive_counts = ArchiveCounts(writer.paths, pipeline.maintenance.page_check.make_due)

    # Reports

    def build_report(self, catalog: SqliteCatalog) -> StatusAnswer:
        """Return the whole status; ages and rates are as of now.

        Args:
            catalog: A connection of the calling thread.

        Raises:
            StoreError: The catalog or the table cannot be read.
        """
        now = time.monotonic()
        loop, stats, queue = self._loop, self._loop.stats, self._loop.work_queue
        detached = self._archive_counts.detached()  # First: it finds out why it cannot count.
        state, reasons = self.state_and_reasons()
        counts_by_root, left_out = catalog.counts_by_root(), catalog.left_out_by_root()
        store = self._store_report()
        missing = self._missing_vectors()
        return StatusAnswer(
            state=state,
            degraded=tuple(reasons),
            pid=os.getpid(),
            uptime_s=round(now - self._started_at, 1),
            version=__version__,
            recipe=self._writer.profile.recipe.digest(),
            roots=tuple(
                self._root_report(name, counts_by_root.get(name, (0, 0)), left_out.get(name, 0))
                for name in list(queue.root_watcher.states)
            ),
            files=sum(files for files, _ in counts_by_root.values()),
            chunks=store.rows,
            pending=loop.pending_count,
            left_s=stats.throughput.estimate_remaining_s(loop.pending_count),
            without_vector=missing.chunk_count,
            vectors_left_s=missing.left_s,
            failed=self.failures(catalog),
            detached=detached,
            kept=self._archive_counts.kept(),
            embedded_total=stats.totals.embedded,
            reused_total=stats.totals.reused,
            commits_total=self._writer.indexer.commit_count,
            overflows=queue.root_watcher.overflow_count,
            reconciles=queue.reconcile_count,
            last_event_age_s=_age_s(queue.last_event_at, now),
            last_commit_age_s=_age_s(stats.last_commit_at, now),
            last_verified_age_s=_age_s(stats.last_verified_at, now),
            latency_ms=p50_and_p95(list(stats.latencies_ms)),
            embedder=embedder_status(self._writer.profile),
            store=store,
            upkeep=self._maintenance_report(),
            on_battery=loop.backlog_waits_for_mains,
            generation=self._generation_report(),
            repairs=tuple(list_repairs(self._writer)),
            waiting=self._waiting_report(),
            recent=self._recent_report(now),
            rss_bytes=self._process.memory_info().rss,
            cpu_s=round(sum(self._process.cpu_times()[:2]), 2),
            reranker_problem=self.reranker_problem(),
        )

    def progress(self) -> Progress:
        """Return the few figures that `subscribe` streams several times a second."""
        loop, missing = self._loop, self._missing_vectors()
        return Progress(
            state=self.state_and_reasons()[0],
            pending=loop.pending_count,
            left_s=loop.stats.throughput.estimate_remaining_s(loop.pending_count),
            done=loop.stats.files_done,
            embedded_total=loop.stats.totals.embedded,
            rate=round(self._writer.profile.embedder.texts_per_second, 1),
            backup=self.backups.progress if self.backups else None,
            verify=loop.stats.verify_progress,
            without_vector=missing.chunk_count,
            vectors_left_s=missing.left_s,
            model=self._writer.profile.embedder.state,
        )

    def failures(self, catalog: SqliteCatalog) -> tuple[Failure, ...]:
        """Return the files and folders that are not or not fully indexed, and why, by path."""
        states = self._root_states()
        paths = {state.root.name: state.root.path for state in states}
        files = failures_of(catalog, paths, self._loop.stats.changing_since_ns)
        folders = [
            failure_message(state.root.path, path, problem, since_ns)
            for state in states
            for path, (problem, since_ns) in state.folder_problems.items()
        ]
        return tuple(sorted([*files, *folders], key=lambda failure: failure.path))

    def index_summary(
        self, counters: WorkCounters, catalog: SqliteCatalog, warnings: Sequence[str] = ()
    ) -> IndexAnswer:
        """Return what one index run did, and what the index holds now.

        Args:
            counters: The work of this run alone.
            catalog: A connection of the calling thread.
            warnings: Sentences about what was not indexed, besides those about roots.
        """
        about_roots: list[str] = []
        for state in self._root_states():
            held = _held_deletions(state) if state.held_deletions else ""
            reasons = filter(None, (state.walk_error, held))
            about_roots += [f"{quote_name(state.root.name)}: {reason}" for reason in reasons]
        return index_answer(
            counters,
            catalog.counts_by_root(),
            self.store.count_rows(),
            [*about_roots, *warnings],
            self.failures(catalog),
        )

    # State

    def state_and_reasons(self) -> tuple[str, list[str]]:
        """Return the state and, if it is "degraded", the reasons for people.

        The state is one of starting, degraded, paused, scanning, indexing, checking and idle.
        "checking": the table has not been compared with the catalog yet, and that is due.
        """
        if not self._loop.started:
            return "starting", []
        if not self._loop.alive:
            return "degraded", ["the writer thread has ended; `anchord restart` starts it again"]
        reasons = [*self._daemon_problems(), *self._root_problems(), *self._index_problems()]
        if reasons:
            return "degraded", reasons
        return self._healthy_state(), []

    def _healthy_state(self) -> str:
        """Return the state of a daemon without problems: the first of these that applies."""
        loop = self._loop
        queue = loop.work_queue
        has_backlog = queue.files.count(Urgency.LATER) or loop.next_generation or queue.vectors
        if loop.paused or (loop.backlog_waits_for_mains and has_backlog):
            return "paused"
        if not all(state.is_scanned for state in self._root_states()):
            return "scanning"
        if loop.pending_count or loop.work.root_name or loop.work_queue.vectors:
            return "indexing"
        return "checking" if loop.index_check.is_due else "idle"

    def coverage(self) -> Coverage:
        """Return how much of the files the index covers now, for answers to searches."""
        loop, states = self._loop, self._root_states()
        found = sum(state.file_count for state in states)
        state, reasons = self.state_and_reasons()
        is_blocked = bool(loop.blocked_reason or loop.folder_problem)
        is_unread = loop.index_check.is_due or not all(state.is_scanned for state in states)
        missing = self._missing_vectors()
        return Coverage(
            is_complete=not (len(loop.work_queue) or is_blocked or is_unread or loop.paused),
            state=state,
            reason=reasons[0] if reasons else "",
            waiting=loop.work_queue.file_count,
            found=found,
            held={each.root.name: each.held_deletions for each in states if each.held_deletions},
            chunks=self.store.count_rows() if missing.chunk_count else 0,
            without_vector=missing.chunk_count,
            vectors_left_s=missing.left_s,
        )

    def _daemon_problems(self) -> Iterator[str]:
        if self.config_error:
            yield self.config_error
        if self._loop.folder_problem:
            yield f"{self._loop.folder_problem}: anchord restarts and repairs the index"
        elif self._loop.blocked_reason:
            yield f"indexing is blocked: {self._loop.blocked_reason}; anchord keeps retrying"
        if problem := self._loop.work.model_problem:
            yield f"no vectors can be made: {problem}; word search works, anchord keeps retrying"
        if stuck_s := self._writer.heartbeat.overdue_s:
            yield f"the writer has been stuck for {stuck_s:.0f} s; `anchord restart` ends it"
        if self.restart_error:
            yield self.restart_error

    def _root_problems(self) -> Iterator[str]:
        watcher = self._loop.work_queue.root_watcher
        for state in self._root_states():
            root = f"root {quote_name(state.root.name)}"
            if state.walk_error:
                yield f"{root}: {state.walk_error}; its indexed files stay searchable"
            if state.held_deletions:
                yield f"{root}: {_held_deletions(state)}"
            if polling_reason := watcher.polling_reason(state.root.name):
                yield f"{root}: {polling_reason}"

    def _index_problems(self) -> Iterator[str]:
        for error in self._loop.maintenance.errors:
            yield f"maintenance of the index failed: {error}"
        if cause := self._archive_counts.error:
            yield f"conversations cannot be counted: {cause.message}"
        if problem := self._writer.keeper.problem:
            yield f"transcripts are read and not kept byte for byte: {problem}"
        yield from lost_models(self._writer.profile)

    def _root_states(self) -> list[RootState]:
        # Copied in one step: the writer thread adds and removes roots.
        return list(self._loop.work_queue.root_watcher.states.values())

    # Parts of the report

    def _root_report(self, name: str, counts: tuple[int, int], left_out: int) -> RootStatus:
        """Return a root's part; `counts` are its files and chunks."""
        watcher = self._loop.work_queue.root_watcher
        state = watcher.states[name]
        files, chunks = counts
        return RootStatus(
            name=name,
            path=escape_non_utf8(state.root.path),
            kind=state.root.kind,
            state=self._root_state_name(state),
            files=files,
            chunks=chunks,
            skipped=state.skipped_count,
            left_out=left_out,
            watching=state.is_watched,
            held=state.held_deletions,
            watches=watcher.watch_count(name),
            polled_dirs=len(watcher.polled_folders(name)),
            conversations=self._archive_counts.of_root(name),
        )

    def _root_state_name(self, state: RootState) -> str:
        """Return what matters most about a root: the first of these that applies."""
        if state.walk_error:
            return "offline"
        if state.held_deletions:
            return "held"
        if not state.is_scanned:
            return "scanning"
        if self._loop.work.root_name == state.root.name:
            return "indexing"
        return "idle"

    def _missing_vectors(self) -> MissingVectors:
        rate = self._writer.profile.embedder.texts_per_second
        return find_missing_vectors(self._loop.work_queue.vectors, self.store, rate)

    def _store_report(self) -> StoreStatus:
        store = self.store.stats()
        return StoreStatus(
            rows=store.rows,
            fragments=store.fragments,
            versions=store.versions,
            bytes=store.bytes,
        )

    def _maintenance_report(self) -> UpkeepStatus:
        maintenance = self._loop.maintenance
        return UpkeepStatus(
            passes=maintenance.compaction_count,
            seconds=round(maintenance.compaction_seconds, 2),
            mended=maintenance.differences_found,
        )

    def _generation_report(self) -> GenerationStatus | None:
        """Return how far the next generation is, None when none is being built."""
        building = self._loop.next_generation
        if building is None:
            return None
        return GenerationStatus(
            why=building.reason,
            done=building.files_done,
            due=building.files_due,
            waits_for=tuple(building.unavailable_roots),
        )

    def _waiting_report(self) -> tuple[WaitingFile, ...]:
        return tuple(
            WaitingFile(root=file.root, path=escape_non_utf8(file.path), why=reason)
            for file, reason in self._loop.work_queue.next_files(_WAITING_FILES_SHOWN)
        )

    def _recent_report(self, now: float) -> tuple[RecentChange, ...]:
        """Return the last outcomes, newest first."""
        outcomes = list(self._loop.stats.recent_outcomes)
        return tuple(recent_change(each, now - done_at) for done_at, each in reversed(outcomes))


def _held_deletions(state: RootState) -> str:
    command = quote_command("anchord confirm-delete", state.root.name)
    remedy = f"restore them, or confirm with {command}"
    return f"{state.held_deletions} files disappeared at once and stay searchable; {remedy}"


def _age_s(then: float | None, now: float) -> float | None:
    """Return the seconds since a time, 0 for one in the future, None for never."""
    return None if then is None else round(max(0.0, now - then), 1)
