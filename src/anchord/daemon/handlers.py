"""The methods over an index that is written: each takes parsed parameters and returns its answer.

They run in threads beside the writer's. What changes the index is submitted to the writer thread
and waited for; what reads it uses handles of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import structlog

from anchord._version import __version__
from anchord.config.schema import make_root_config
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import RootedPath, SearchFilters
from anchord.daemon.answers import forget_answer, forget_preview, removed_root, verify_answer
from anchord.daemon.backups import Backups
from anchord.daemon.readiness import (
    find_lasting_failure,
    finish_generation,
    require_indexing,
    require_settled_rules,
    why_not_up_to_date,
)
from anchord.daemon.reading import READING, answer_from_index
from anchord.daemon.root_changes import RootChanges
from anchord.daemon.shared_reader import SharedReader
from anchord.daemon.status import StatusReporter
from anchord.daemon.verification import Verification
from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import AnchordError, TimeoutExpiredError
from anchord.index.generation import REBUILD, RECHUNK, BuildRequest, require_local_table
from anchord.index.integrity.purge import preview_purge, purge_path, unforget_path
from anchord.index.integrity.table_repair import retry_after_repair
from anchord.index.metrics import WorkCounters
from anchord.index.reconcile import ReconcileResult
from anchord.index.session import IndexReader, IndexWriter
from anchord.ipc import methods
from anchord.ipc.messages.base import Params
from anchord.ipc.messages.control import HelloAnswer, PauseAnswer, ShutdownAnswer
from anchord.ipc.messages.roots import (
    AddedRoot,
    AddRootParams,
    ReloadAnswer,
    RemovedRoot,
    RootNameParams,
)
from anchord.ipc.messages.searching import SearchAnswer, SearchParams
from anchord.ipc.messages.status import Failure, StatusAnswer
from anchord.ipc.messages.upkeep import (
    SYNC_ALL,
    ConfirmedDeletion,
    ForgetAnswer,
    ForgetParams,
    IndexAnswer,
    IndexParams,
    ReindexParams,
    SyncAnswer,
    SyncParams,
    VerifyAnswer,
    VerifyParams,
)
from anchord.ipc.methods import Handler
from anchord.ipc.protocol import PROTOCOL_VERSION
from anchord.ipc.requests import Call
from anchord.search.search_answer import handle_search
from anchord.store.catalog.catalog import SqliteCatalog

log = structlog.get_logger()

T = TypeVar("T")
P = TypeVar("P", bound=Params)
A = TypeVar("A")


class RpcHandlers:
    """The methods of a running daemon. Any thread may call them, side by side."""

    def __init__(
        self,
        writer: IndexWriter,
        reader: IndexReader,
        pipeline: WriterLoop,
        request_shutdown: Callable[[], None],
    ) -> None:
        """Prepare the methods.

        Args:
            writer: The opened index; only jobs in the writer thread change it.
            reader: Reading handles on the same index, taken over: promotions replace its store.
            pipeline: The writer's loop.
            request_shutdown: Called by `shutdown`; must return at once.
        """
        self.status = StatusReporter(pipeline, writer)
        self.status.store = reader.store
        if reranker := reader.reranker:
            self.status.reranker_problem = lambda: reranker.problem
        self._writer = writer
        self._loop = pipeline
        self._request_shutdown = request_shutdown
        self._shared_reader = SharedReader(writer, reader)
        self._roots = RootChanges(writer, pipeline)
        self._reload_lock = threading.Lock()
        self._backups = Backups(writer, pipeline)
        self._verification = Verification(writer, pipeline)
        self.status.backups = self._backups

    def handlers(self) -> tuple[Handler[Any, Any], ...]:
        """Return the methods with the functions that answer them."""
        return (
            Handler(methods.HELLO, self._hello),
            Handler(methods.PING, lambda _: "pong"),
            Handler(methods.STATUS, self._status),
            Handler(methods.ERRORS, self._errors),
            Handler(methods.SEARCH, self._search),
            *(Handler(each, partial(self._read, each)) for each in READING),
            Handler(methods.ROOTS_ADD, self._add_root),
            Handler(methods.ROOTS_REMOVE, self._remove_root),
            Handler(methods.RELOAD, lambda _: self.reload_roots()),
            Handler(methods.INDEX, self._index),
            Handler(methods.SYNC, self._sync),
            Handler(methods.VERIFY, self._verify),
            Handler(methods.RESCAN, self._rescan),
            Handler(methods.CONFIRM_DELETE, self._confirm_delete),
            Handler(methods.REINDEX, self._reindex),
            Handler(methods.REBUILD, lambda _: self._build(REBUILD)),
            Handler(methods.FORGET, self._forget),
            Handler(methods.BACKUP, self._backups.run),
            Handler(methods.PAUSE, lambda _: self._set_paused(paused=True)),
            Handler(methods.RESUME, lambda _: self._set_paused(paused=False)),
            Handler(methods.SHUTDOWN, self._shut_down),
        )

    def reopen_reader(self) -> None:
        """Open the table again for queries: its index files or its whole generation have changed.

        Raises:
            StoreError: The table cannot be opened; queries go on with the old handles.
        """
        self._shared_reader.reopen()
        self.status.store = self._shared_reader.current.store

    def switch_generation(self, promote: Callable[[], None]) -> None:
        """Call `promote`, which puts a new generation in place, and reopen, while no query runs.

        The table and the catalog are replaced one after the other: a query between the two would
        find nothing. Queries that still run after 2 seconds are not waited for.
        """

        def promote_and_reopen() -> None:
            promote()
            self.reopen_reader()

        self._shared_reader.run_alone(promote_and_reopen)

    def close(self) -> None:
        """Close the connections that queries used. The writer and the reader stay open."""
        self._backups.close()
        self._shared_reader.close()

    def warm_up_text_search(self) -> None:
        """Run one text search, so that the first user need not wait for libraries to load."""
        with suppress(AnchordError):
            store = self._shared_reader.current.store
            store.search_by_words("warm", 1, SearchFilters())

    def reload_roots(self) -> ReloadAnswer:
        """Read the configuration file again and add, change and remove roots accordingly.

        Blocks until the writer thread is done. Other settings take effect at the next start.

        Returns:
            The names of the roots under `added` (changed ones included) and `removed`.

        Raises:
            ConfigError: The configuration is wrong; nothing has changed.
        """
        # One call after the other: the second must see the roots that the first one added.
        with self._reload_lock:
            wanted_roots = self._roots.gather_from_config()
            self.status.config_error = ""
            return self._roots.apply(wanted_roots)

    def handle_sighup(self) -> None:
        """Reload the roots. An error does not raise: it goes to the log and to status."""
        try:
            changes = self.reload_roots()
            log.info("config.reloaded", added=changes.added, removed=changes.removed)
        except AnchordError as error:
            self.status.config_error = f"the configuration was not reloaded: {error.message}"
            log.warning("config.reload_failed", reason=error.message)

    # Methods that read

    def _hello(self, _params: Params) -> HelloAnswer:
        return HelloAnswer(protocol=PROTOCOL_VERSION, version=__version__, pid=os.getpid())

    def _query(self, answer: Callable[[IndexReader, SqliteCatalog], T]) -> T:
        """Answer from the index; if rows cannot be read, repair the table and answer again."""
        return self._shared_reader.query_or_repair(
            answer, lambda since: self._loop.submit(lambda: self._loop.check_index(since))
        )

    def _status(self, _params: Params) -> StatusAnswer:
        return self._shared_reader.query(lambda _, catalog: self.status.build_report(catalog))

    def _errors(self, _params: Params) -> tuple[Failure, ...]:
        return self._shared_reader.query(lambda _, catalog: self.status.failures(catalog))

    def _search(self, params: SearchParams) -> SearchAnswer:
        if params.fresh:
            self._sync()
        # Looked at before the search: what is indexed meanwhile makes its answer no more complete.
        answer = self._query(
            lambda reader, catalog: handle_search(reader, catalog, params, self.status.coverage())
        )
        found = {RootedPath(hit.root, hit.path) for group in answer.groups for hit in group}
        self._loop.work_queue.vectors.add_wanted(found)
        return answer

    def _read(self, method: methods.Method[P, A], params: P) -> A:
        """Answer as a process without a daemon does."""
        call = Call(method, params)
        return self._query(
            lambda reader, catalog: answer_from_index(reader, catalog, call, self.status.coverage)
        )

    def _summarize_since(self, before: WorkCounters, warnings: Sequence[str] = ()) -> IndexAnswer:
        """Return the summary of an index run that began when the counters were as in `before`."""
        work = self._loop.stats.totals.since(before)
        return self._shared_reader.query(
            lambda _, catalog: self.status.index_summary(work, catalog, warnings)
        )

    # Methods that wait for the writer

    def _index(self, params: IndexParams) -> IndexAnswer:
        """Add roots for folders that are in none, wait until all is indexed, and sum up."""
        require_indexing(self._loop)
        before = self._loop.stats.totals.copy()
        self._roots.add_uncovered(params.paths)
        # A changed strategy or model needs a new generation: only that one is up to date.
        unfinished = finish_generation(self._loop)
        self._sync()
        return self._summarize_since(before, unfinished)

    def _sync(self, params: SyncParams = SYNC_ALL) -> SyncAnswer:
        """Wait until everything that was written before the call is searchable."""
        require_indexing(self._loop)
        began = time.monotonic()
        in_time = self._loop.wait_for_sync(params.timeout, words_only=params.words)
        waited_s = time.monotonic() - began
        if not in_time:
            require_indexing(self._loop)
            failed = find_lasting_failure(self._loop, words_only=params.words)
            if params.timeout is None and failed:
                raise failed.as_error("the index cannot be brought up to date")
            reason = why_not_up_to_date(self._loop)
            raise TimeoutExpiredError(
                f"not up to date after {waited_s:.1f} s: {reason}",
                "`anchord status` shows what anchord is doing",
            )
        states = list(self._loop.work_queue.root_watcher.states.values())
        return SyncAnswer(
            synced=True,
            waited_s=round(waited_s, 3),
            away=tuple(state.root.name for state in states if state.walk_error),
            held={
                state.root.name: state.held_deletions for state in states if state.held_deletions
            },
        )

    def _rescan(self, params: RootNameParams) -> SyncAnswer:
        """Walk one root, or all, and wait until what differs is indexed."""
        require_indexing(self._loop)
        if params.name:
            names = [self._roots.require_root(params.name)]
        else:
            names = list(self._loop.work_queue.root_watcher.states)
        for name in names:
            self._walk_root(name)
        return self._sync()

    def _confirm_delete(self, params: RootNameParams) -> ConfirmedDeletion:
        """Delete the rows of files whose deletion was held for a confirmation."""
        name = self._roots.require_root(params.name)
        require_indexing(self._loop)
        state = self._loop.work_queue.root_watcher.states[name]
        if not state.is_scanned:
            self._walk_root(name)
        held_deletions, was_refused = state.held_deletions, state.is_refused
        result = self._walk_root(name, deletions_confirmed=True)
        if was_refused:
            held_deletions = len(result.gone_or_emptied)
        self._sync()
        return ConfirmedDeletion(name=name, let_go=held_deletions)

    def _walk_root(self, name: str, *, deletions_confirmed: bool = False) -> ReconcileResult:
        queue = self._loop.work_queue
        return self._loop.submit(
            lambda: queue.reconcile(name, deletions_confirmed=deletions_confirmed)
        ).result()

    def _reindex(self, params: ReindexParams) -> IndexAnswer:
        """Read every file again; with `force_rechunk`, build a new generation from all files."""
        require_indexing(self._loop)
        if params.force_rechunk:
            return self._build(RECHUNK)
        before = self._loop.stats.totals.copy()
        self._loop.submit(self._writer.catalog.mark_all_for_reread).result()
        self._sync()
        return self._summarize_since(before)

    def _build(self, build_request: BuildRequest) -> IndexAnswer:
        """Build a new generation and wait until it serves, and holds every row."""
        require_local_table(self._writer)
        require_indexing(self._loop)
        before = self._loop.stats.totals.copy()
        self._loop.submit(lambda: self._loop.builds.start(build_request)).result()
        self._wait_for_generation()
        # Rows that the former table had lost are found by the audit of the new one.
        self._sync()
        return self._summarize_since(before)

    def _wait_for_generation(self) -> None:
        """Wait while a generation is being built.

        Raises:
            StoreUnavailableError: Every step has failed for too long.
            AnchordError: The build waits for a root itself, or indexing is paused.
        """
        for reason in finish_generation(self._loop):
            raise AnchordError(
                reason, "`anchord status` shows why; once that is solved, the new index takes over"
            )

    def _forget(self, params: ForgetParams) -> ForgetAnswer:
        """Take a path out of the index for good, or with `undo` let it in again and index it."""
        path = params.exact_path
        if params.preview:
            preview = self._loop.submit(lambda: preview_purge(self._writer, path)).result()
            return forget_preview(preview)
        if params.undo:
            answer = self._loop.submit(lambda: self._unforget(path)).result()
            if not self._loop.paused:
                self._sync()
            return answer
        with self._backups.excluded_for_forget():
            return self._loop.submit(lambda: self._purge(path)).result()

    def _unforget(self, path: str) -> ForgetAnswer:
        root_name = unforget_path(self._writer, path)
        self._loop.work_queue.reconcile(root_name)
        return ForgetAnswer(path=escape_non_utf8(path), root=root_name)

    def _purge(self, path: str) -> ForgetAnswer:
        """Delete a path's rows. A generation that is being built may hold some: it starts again."""
        with self._loop.builds.suspended():
            purged = retry_after_repair(self._writer, lambda: purge_path(self._writer, path))
        for name, state in self._loop.work_queue.root_watcher.states.items():
            if state.held_deletions:  # They may have been of this path.
                self._loop.work_queue.reconcile(name)
        self._loop.work_queue.enqueue(purged.files_to_reread)
        return forget_answer(purged)

    def _verify(self, params: VerifyParams) -> VerifyAnswer:
        require_settled_rules(self._loop)
        self._wait_for_generation()
        return verify_answer(self._verification.run(params))

    # Methods that control the daemon

    def _set_paused(self, *, paused: bool) -> PauseAnswer:
        self._loop.set_paused(paused=paused)
        return PauseAnswer(paused=paused)

    def _shut_down(self, _params: Params) -> ShutdownAnswer:
        self._request_shutdown()
        return ShutdownAnswer(stopping=True, pid=os.getpid())

    def _add_root(self, params: AddRootParams) -> AddedRoot:
        """Write a root into the configuration file, then reload."""
        root = self._roots.add_to_config(make_root_config(params.path, params.kind, params.name))
        self.reload_roots()
        return AddedRoot(name=root.name, path=root.path, kind=root.kind)

    def _remove_root(self, params: RootNameParams) -> RemovedRoot:
        """Take a root out of the configuration file, and delete its rows; keep conversations."""
        removal = self._roots.remove(params.name)
        return removed_root(params.name, removal)
