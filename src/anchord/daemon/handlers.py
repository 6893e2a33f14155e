"""The socket's methods: each takes parsed parameters and returns JSON values.

They run in threads beside the writer's. What changes the index is submitted to the writer thread
and waited for; what reads it uses handles of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import structlog

from anchord._version import __version__
from anchord.config.roots import roots_to_json
from anchord.config.schema import make_root_config
from anchord.core.quoting import quote_names
from anchord.core.types import SearchFilters, escape_non_utf8
from anchord.daemon.backups import Backups
from anchord.daemon.calls import current_call
from anchord.daemon.readiness import require_indexing, require_settled_rules, why_not_up_to_date
from anchord.daemon.root_changes import RootChanges
from anchord.daemon.shared_reader import SharedReader
from anchord.daemon.status import StatusReporter
from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import AnchordError, TimeoutExpiredError
from anchord.index.generation import REBUILD, RECHUNK, BuildRequest, require_local_table
from anchord.index.integrity.purge import preview_purge, purge_path, unforget_path
from anchord.index.integrity.repair import delete_damaged_rows, verify_index, verify_result_as_dict
from anchord.index.integrity.verify import VerifyResult
from anchord.index.metrics import WorkCounters
from anchord.index.reconcile import ReconcileResult
from anchord.index.session import IndexReader, IndexWriter
from anchord.ipc import protocol
from anchord.ipc.protocol import Params
from anchord.search.answers import handle_dump, handle_explain, handle_search, handle_show
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table.connection import TableReadError

log = structlog.get_logger()

_VERIFY_ROUNDS = 3
_POLL_BUILD_S = 0.05
"""How long a query waits for the repair of a table that it could not read."""
T = TypeVar("T")

HandlerTable = dict[str, tuple[type[Params], Callable[[Any], object]]]
"""Method name -> type of its parameters, and the function that answers."""


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
        self._writer = writer
        self._loop = pipeline
        self._request_shutdown = request_shutdown
        self._shared_reader = SharedReader(writer, reader)
        self._roots = RootChanges(writer, pipeline)
        self._reload_lock = threading.Lock()
        self._backups = Backups(writer, pipeline)
        self.status.backups = self._backups

    def handlers_by_name(self) -> HandlerTable:
        """Return the methods by the name that the socket uses, with their parameters' types."""
        return {
            "hello": (Params, self._hello),
            "ping": (Params, lambda _: "pong"),
            "status": (Params, self._status),
            "errors": (Params, self._errors),
            "search": (protocol.SearchParams, self._search),
            "show": (protocol.ShowParams, self._show),
            "explain": (protocol.ExplainParams, self._explain),
            "dump": (Params, self._dump),
            "roots": (Params, self._list_roots),
            "roots.list": (Params, self._list_roots),
            "roots.add": (protocol.AddRootParams, self._add_root),
            "roots.remove": (protocol.RootNameParams, self._remove_root),
            "reload": (Params, lambda _: self.reload_roots()),
            "index": (protocol.IndexParams, self._index),
            "sync": (protocol.SyncParams, self._sync),
            "verify": (protocol.VerifyParams, self._verify),
            "rescan": (protocol.RootNameParams, self._rescan),
            "confirm-delete": (protocol.RootNameParams, self._confirm_delete),
            "reindex": (protocol.ReindexParams, self._reindex),
            "rebuild": (Params, lambda _: self._build(REBUILD)),
            "forget": (protocol.ForgetParams, self._forget),
            "backup": (protocol.BackupParams, self._backups.run),
            "pause": (Params, lambda _: self._set_paused(paused=True)),
            "resume": (Params, lambda _: self._set_paused(paused=False)),
            "shutdown": (Params, self._shut_down),
        }

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

    def reload_roots(self) -> dict[str, Any]:
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
            log.info("config.reloaded", **self.reload_roots())
        except AnchordError as error:
            self.status.config_error = f"the configuration was not reloaded: {error.message}"
            log.warning("config.reload_failed", reason=error.message)

    # Methods that read

    def _hello(self, _params: Params) -> object:
        return {
            "protocol": protocol.PROTOCOL_VERSION,
            "version": __version__,
            "pid": os.getpid(),
        }

    def _query(self, answer: Callable[[IndexReader, SqliteCatalog], T]) -> T:
        """Answer from the index; if rows cannot be read, repair the table and answer again."""
        return self._shared_reader.query_or_repair(
            answer, lambda since: self._loop.submit(lambda: self._loop.check_index(since))
        )

    def _status(self, _params: Params) -> object:
        return self._shared_reader.query(lambda _, catalog: self.status.build_report(catalog))

    def _errors(self, _params: Params) -> object:
        return self._shared_reader.query(lambda _, catalog: self.status.failures(catalog))

    def _search(self, params: protocol.SearchParams) -> object:
        if params.fresh:
            self._sync()
        # Looked at before the search: what is indexed meanwhile makes its answer no more complete.
        return self._query(
            lambda reader, catalog: handle_search(reader, catalog, params, self.status.coverage())
        )

    def _show(self, params: protocol.ShowParams) -> object:
        return self._query(lambda reader, catalog: handle_show(reader, catalog, params))

    def _explain(self, params: protocol.ExplainParams) -> object:
        return self._shared_reader.query(
            lambda reader, catalog: handle_explain(reader, catalog, params.path)
        )

    def _dump(self, _params: Params) -> object:
        return self._query(lambda reader, catalog: list(handle_dump(reader, catalog)))

    def _list_roots(self, _params: Params) -> object:
        return self._shared_reader.query(
            lambda reader, catalog: roots_to_json(reader.roots, catalog.counts_by_root())
        )

    def _summarize_since(self, before: WorkCounters) -> object:
        """Return the summary of an index run that began when the counters were as in `before`."""
        work = self._loop.stats.totals.since(before)
        return self._shared_reader.query(
            lambda _, catalog: self.status.index_summary(work, catalog)
        )

    # Methods that wait for the writer

    def _index(self, params: protocol.IndexParams) -> object:
        """Add roots for folders that are in none, wait until all is indexed, and sum up."""
        require_indexing(self._loop)
        before = self._loop.stats.totals.copy()
        self._roots.add_uncovered(params.paths)
        self._sync()
        return self._summarize_since(before)

    def _sync(self, params: protocol.SyncParams = protocol.SYNC_ALL) -> dict[str, Any]:
        """Wait until everything that was written before the call is searchable."""
        require_indexing(self._loop)
        began = time.monotonic()
        in_time = self._loop.wait_for_sync(params.timeout, words_only=params.words)
        waited_s = time.monotonic() - began
        if not in_time:
            require_indexing(self._loop)
            reason = why_not_up_to_date(self._loop)
            raise TimeoutExpiredError(
                f"not up to date after {waited_s:.1f} s: {reason}",
                "`anchord status` shows what anchord is doing",
            )
        states = list(self._loop.work_queue.root_watcher.states.values())
        return {
            "synced": True,
            "waited_s": round(waited_s, 3),
            "away": [state.root.name for state in states if state.walk_error],
            "held": {
                state.root.name: state.held_deletions for state in states if state.held_deletions
            },
        }

    def _rescan(self, params: protocol.RootNameParams) -> object:
        """Walk one root, or all, and wait until what differs is indexed."""
        require_indexing(self._loop)
        queue = self._loop.work_queue
        names = list(queue.root_watcher.states)
        if params.name:
            names = [self._roots.require_root(params.name)]
        for name in names:
            self._walk_root(name)
        return self._sync()

    def _confirm_delete(self, params: protocol.RootNameParams) -> object:
        """Delete the rows of files whose deletion was held for a confirmation."""
        name = self._roots.require_root(params.name)
        require_indexing(self._loop)
        state = self._loop.work_queue.root_watcher.states[name]
        held_deletions, was_refused = state.held_deletions, state.is_refused
        result = self._walk_root(name, deletions_confirmed=True)
        if was_refused:
            held_deletions = len(result.gone_or_emptied)
        self._sync()
        return {"name": name, "let_go": held_deletions}

    def _walk_root(self, name: str, *, deletions_confirmed: bool = False) -> ReconcileResult:
        queue = self._loop.work_queue
        return self._loop.submit(
            lambda: queue.reconcile(name, deletions_confirmed=deletions_confirmed)
        ).result()

    def _reindex(self, params: protocol.ReindexParams) -> object:
        """Read every file again; with `force_rechunk`, build a new generation from all files."""
        require_indexing(self._loop)
        if params.force_rechunk:
            return self._build(RECHUNK)
        before = self._loop.stats.totals.copy()
        self._loop.submit(self._writer.catalog.mark_all_for_reread).result()
        self._sync()
        return self._summarize_since(before)

    def _build(self, build_request: BuildRequest) -> object:
        """Build a new generation and wait until it serves."""
        require_local_table(self._writer)
        require_indexing(self._loop)
        before = self._loop.stats.totals.copy()
        self._loop.submit(lambda: self._loop.start_generation(build_request)).result()
        self._wait_for_generation()
        return self._summarize_since(before)

    def _wait_for_generation(self) -> None:
        """Wait while a generation is being built; raise when it waits for a root itself."""
        call = current_call()
        while (building := self._loop.next_generation) and self._loop.alive:
            if call.is_cancelled:
                return
            require_indexing(self._loop)
            if names := quote_names(building.unavailable_roots, if_none=""):
                raise AnchordError(
                    f"the new index cannot be finished: not all files of {names} can be seen",
                    "`anchord status` shows why; once that is solved, the new index takes over",
                )
            time.sleep(_POLL_BUILD_S)

    def _forget(self, params: protocol.ForgetParams) -> object:
        """Take a path out of the index for good, or with `undo` let it in again and index it."""
        path = params.exact_path
        if params.preview:
            return self._loop.submit(lambda: preview_purge(self._writer, path)).result()
        if params.undo:
            answer = self._loop.submit(lambda: self._unforget(path)).result()
            if not self._loop.paused:
                self._sync()
            return answer
        with self._backups.excluded_for_forget():
            return self._loop.submit(lambda: self._purge(path)).result()

    def _unforget(self, path: str) -> dict[str, Any]:
        root_name = unforget_path(self._writer, path)
        self._loop.work_queue.reconcile(root_name)
        return {"path": escape_non_utf8(path), "root": root_name}

    def _purge(self, path: str) -> dict[str, Any]:
        """Delete a path's rows. A generation that is being built may hold some: it starts again."""
        build_request = self._loop.abandon_generation()
        purged = purge_path(self._writer, path)
        self._loop.index_check.note_files()
        if build_request:
            self._loop.start_generation(build_request)
        self._loop.work_queue.enqueue(purged.files_to_reread)
        return purged.as_dict()

    def _verify(self, params: protocol.VerifyParams) -> object:
        """Compare the index with a clean rebuild; with `repair`, delete and redo what differs.

        A difference counts only if it is still there after two more walks: files may change while
        they are compared. A generation that is being built is waited for: until it serves, the
        index is what an older configuration made.
        """
        require_settled_rules(self._loop)
        self._wait_for_generation()
        result = self._verify_once(params.vectors)
        for _ in range(_VERIFY_ROUNDS - 1):
            if result.differences:
                result = self._verify_once(params.vectors)
        if result.differences and params.repair:
            self._repair(result)
            result = self._verify_once(params.vectors)
        if not result.differences:
            self._loop.stats.last_verified_at = time.monotonic()
        return verify_result_as_dict(result)

    def _verify_once(self, vectors: int | None) -> VerifyResult:
        """Index what is due, then compare. If rows cannot be read, repair the table first."""

        def job() -> VerifyResult:
            began = time.monotonic()
            try:
                self._loop.walk_and_index_all()
                return verify_index(self._writer, vectors, show_progress)
            except TableReadError:
                self._loop.check_index(began)
            self._loop.walk_and_index_all()
            return verify_index(self._writer, vectors, show_progress)

        def show_progress(done: int, total: int) -> None:
            self._loop.stats.verify_progress = {"done": done, "total": total}

        try:
            return self._loop.submit(job).result()
        finally:
            self._loop.stats.verify_progress = None

    def _repair(self, result: VerifyResult) -> None:
        def job() -> None:
            self._loop.work_queue.enqueue(delete_damaged_rows(self._writer, result.differences))

        self._loop.submit(job).result()

    # Methods that control the daemon

    def _set_paused(self, *, paused: bool) -> object:
        self._loop.set_paused(paused=paused)
        return {"paused": paused}

    def _shut_down(self, _params: Params) -> object:
        self._request_shutdown()
        return {"stopping": True, "pid": os.getpid()}

    def _add_root(self, params: protocol.AddRootParams) -> object:
        """Write a root into the configuration file, then reload."""
        root = self._roots.add_to_config(make_root_config(params.path, params.kind, params.name))
        self.reload_roots()
        return {"name": root.name, "path": root.path, "kind": root.kind}

    def _remove_root(self, params: protocol.RootNameParams) -> object:
        """Take a root out of the configuration file, and delete its rows; keep conversations."""
        removal = self._roots.remove(params.name)
        return {
            "name": params.name,
            "removed_chunks": removal.row_count,
            "detached_exchanges": removal.exchange_count,
        }
