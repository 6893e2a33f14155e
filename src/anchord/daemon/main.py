"""The daemon process: opens the index, serves the socket, and reports to systemd.

The main thread runs the socket's event loop and nothing that can block. Methods run in a pool of
threads with reading handles of their own, so that a query is answered while the writer is busy.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from anchord.config.paths import Paths
from anchord.config.schema import Config
from anchord.daemon.calls import Call, set_current_call
from anchord.daemon.handlers import RpcHandlers
from anchord.daemon.host.malloc import limit_malloc_arenas
from anchord.daemon.restarts import MIN_UPTIME_S, next_restart_count, restart_pause_s
from anchord.daemon.service.sd_notify import (
    inherited_socket,
    is_under_systemd,
    notify_status,
    notify_systemd,
    watchdog_timeout_s,
)
from anchord.daemon.service.socket_handover import hand_over, handed_over_socket
from anchord.daemon.shared_reader import open_daemon_reader
from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import AlreadyRunningError, AnchordError, StoreUnavailableError
from anchord.index.opening import open_writer
from anchord.index.session import IndexWriter
from anchord.ipc.connections import MAX_CONNECTIONS
from anchord.ipc.messages.base import Params
from anchord.ipc.methods import Handler
from anchord.ipc.protocol import parse_params
from anchord.ipc.server import RpcMethod, Server

log = structlog.get_logger()

_CONTROL_METHODS = frozenset(
    ["hello", "ping", "status", "errors", "pause", "resume", "shutdown", "roots", "roots.list"]
)
"""They read or set a little, wait for nothing, and must be answered whatever else is going on."""
_QUERY_METHODS = frozenset({"search", "show", "explain", "sessions", "session", "dump", "recall"})
"""They read the index. All other methods wait for the writer, and so does a fresh search."""
_CONTROL_THREADS = 8
_QUERY_THREADS = 4
"""Python runs one at a time: more would only make each slower, and the control methods too."""
_LAST_ANSWER_S = 0.05
_NOTIFY_S = 10.0
"""How often systemd is sent the status, or three times per watchdog timeout if that is shorter."""
_OPENING_S = 900
"""How long systemd lets the index open: a damaged one is rebuilt on the way."""
_RESTARTS = "ANCHORD_RESTARTS"
"""Environment variable: how many restarts of its own, in a row, led to this process."""
_UNAVAILABLE_S = 70.0
_LONGEST_PAUSE_S = 10.0
_LOCK_TRIES = 20
_LOCK_PAUSE_S = 0.5


MoreHandlers = Callable[[Sequence[Handler[Any, Any]]], Sequence[Handler[Any, Any]]]
"""Returns further methods, given the daemon's own."""


def run_daemon(
    paths: Paths,
    config: Config,
    root_paths: list[str],
    root_kind: str = "project",
    more_handlers: MoreHandlers = lambda _: (),
) -> None:
    """Run the daemon; block until a signal or the socket stops it.

    When only a new process can help, the index is closed and this process replaces itself by a new
    one with the same command line: the function does not return then.

    Args:
        paths: Where this anchord keeps its files.
        config: The configuration; roots can be reloaded later, other settings cannot.
        root_paths: Folders to index besides the configured roots.
        root_kind: Kind of the roots that are made for them, "project" or "conversations".
        more_handlers: Returns methods to serve besides the daemon's own.

    Raises:
        AlreadyRunningError: Another process writes this index, or answers on its socket.
        StoreUnavailableError: A file of the index cannot be used now; the same start may succeed
            later. Under systemd it is waited for about a minute first.
        StoreError: The index cannot be opened.
        UsageError: A folder cannot be a root.
    """
    limit_malloc_arenas()
    notify_status("opening the index", f"EXTEND_TIMEOUT_USEC={_OPENING_S}000000")
    writer = _open_writer_after_restart(paths, config, root_paths, root_kind)
    _use_private_temp_folder(paths.temp_folder)
    try:
        restart = asyncio.run(_serve(writer, config, more_handlers))
    finally:
        writer.close()
        log.info("daemon.stopped")
    if restart:
        log.warning(
            "daemon.restarting",
            reason=restart.reason,
            count=restart.count,
        )
        os.environ[_RESTARTS] = str(restart.count)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command line


def _open_writer_after_restart(
    paths: Paths, config: Config, root_paths: list[str], root_kind: str
) -> IndexWriter:
    """Open the index; after a restart, wait up to 10 s for the lock.

    Child processes of the process before may hold it for a moment.
    """
    tries = _LOCK_TRIES if _restart_count() else 1
    for _ in range(tries):
        try:
            return _open_writer_when_available(
                paths,
                config,
                root_paths,
                root_kind,
            )
        except AlreadyRunningError:
            time.sleep(_LOCK_PAUSE_S)
    return open_writer(paths, config, root_paths, root_kind)


def _open_writer_when_available(
    paths: Paths, config: Config, root_paths: list[str], root_kind: str
) -> IndexWriter:
    """Open the index; under systemd, wait for a file that is locked or whose disk is full.

    systemd gives up after five starts within five minutes. So a start that waits this long before
    it fails is repeated for ever. A person who starts the daemon gets the reason at once.
    """
    deadline = time.monotonic() + (_UNAVAILABLE_S if is_under_systemd() else 0.0)
    pause_s = 1.0
    while True:
        try:
            return open_writer(paths, config, root_paths, root_kind)
        except StoreUnavailableError as error:
            if time.monotonic() + pause_s > deadline:
                raise
            log.warning(
                "daemon.waits",
                reason=error.message,
                hint=error.hint,
                retry_s=pause_s,
            )
            notify_status(f"waiting: {error.message}")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)


def _use_private_temp_folder(folder: Path) -> None:
    """Make this process write temporary files to an empty folder that only its user can read.

    The table writes rows there while it merges them. A daemon that was killed leaves some, which
    are deleted here: the writer's lock is held, so no other daemon uses them.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["TMPDIR"] = str(folder)


def _restart_count() -> int:
    text = os.environ.get(_RESTARTS, "0")
    return int(text) if text.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class Restart:
    """A new process that takes over."""

    reason: str
    count: int
    """How many restarts in a row have led to it."""


class _Shutdown:
    """The request to end this process, and whether a new one is to take its place."""

    def __init__(self, event_loop: asyncio.AbstractEventLoop) -> None:
        self.requested = asyncio.Event()
        self.restart: Restart | None = None
        """Set when a new process must take over, None when the daemon just ends."""
        self._event_loop = event_loop
        self._started_at = time.monotonic()
        self._is_restart_scheduled = False

    def request(self) -> None:
        """Ask for the end, once the answer to the request is written; any thread may call it."""
        self._event_loop.call_soon_threadsafe(
            self._event_loop.call_later, _LAST_ANSWER_S, self.requested.set
        )

    def request_restart(self, reason: str) -> float:
        """Ask for a new process, now or after a pause; any thread may call it.

        Returns:
            The pause in seconds: 0 unless this process itself took over from another one less than
            ten minutes ago.
        """
        pause_s = restart_pause_s(_restart_count(), self._uptime_s)
        if not self._is_restart_scheduled:
            self._is_restart_scheduled = True
            restart = Restart(reason, next_restart_count(_restart_count(), self._uptime_s))
            self._event_loop.call_soon_threadsafe(
                self._event_loop.call_later, pause_s, self._request_restart_now, restart
            )
        return pause_s

    def request_useful_restart(self, reason: str) -> bool:
        """Ask for a new process, unless one was started less than ten minutes ago.

        Any thread may call it.

        Returns:
            False if it was: then the restart did not help, and another one would only repeat it.
        """
        if _restart_count() and self._uptime_s < MIN_UPTIME_S:
            return False
        self.request_restart(reason)
        return True

    @property
    def _uptime_s(self) -> float:
        return time.monotonic() - self._started_at

    def _request_restart_now(self, restart: Restart) -> None:
        self.restart = restart
        self.requested.set()


async def _serve(
    writer: IndexWriter, config: Config, more_handlers: MoreHandlers
) -> Restart | None:
    """Serve until a shutdown is requested; return the new process that is needed, if one is."""
    event_loop = asyncio.get_running_loop()
    shutdown = _Shutdown(event_loop)

    def request_restart(reason: str) -> None:
        pause_s = shutdown.request_restart(reason)
        if pause_s:
            log.warning(
                "daemon.restart_waits",
                reason=reason,
                seconds=round(pause_s),
            )
            handlers.status.restart_error = (
                f"{reason}; anchord restarted {_restart_count()} times just before, and waits "
                f"{pause_s:.0f} s before it does so again"
            )

    def request_memory_restart(reason: str) -> None:
        if not shutdown.request_useful_restart(reason):
            handlers.status.restart_error = f"{reason}; a restart did not help"

    watchdog_s = watchdog_timeout_s()
    writer.heartbeat.step_timeout_s = min(writer.heartbeat.step_timeout_s, watchdog_s)
    writer_loop = WriterLoop(writer, config, request_restart)
    writer_loop.request_memory_restart = request_memory_restart
    handlers = RpcHandlers(
        writer,
        open_daemon_reader(writer),
        writer_loop,
        shutdown.request,
    )
    writer_loop.run_promotion = handlers.switch_generation
    writer_loop.maintenance.on_index_merge = handlers.reopen_reader
    threads = _Threads()
    server = _make_server(writer.paths.socket_file, handlers, more_handlers, threads)
    for number in (signal.SIGTERM, signal.SIGINT):
        event_loop.add_signal_handler(number, shutdown.requested.set)
    event_loop.add_signal_handler(signal.SIGHUP, threads.waits.submit, handlers.handle_sighup)
    for repair in writer.repairs:
        log.warning("index.repaired", what=repair)
    try:
        await event_loop.run_in_executor(threads.queries, writer_loop.start)
        await server.start()
        threads.queries.submit(handlers.warm_up_text_search)
        log.info(
            "daemon.ready",
            pid=os.getpid(),
            socket=str(writer.paths.socket_file),
            roots=len(writer.roots),
        )
        notify_systemd("READY=1")
        while not shutdown.requested.is_set():
            _report_health(writer, writer_loop, handlers)
            with suppress(AnchordError, OSError):  # Nothing to report to: it is tried again.
                # A home without its data is not this daemon's any more.
                if not writer_loop.folder_problem and await server.listen_again_if_lost():
                    log.warning("daemon.socket_lost", socket=str(writer.paths.socket_file))
            try:
                await asyncio.wait_for(shutdown.requested.wait(), min(_NOTIFY_S, watchdog_s / 3))
            except TimeoutError:
                continue
    finally:
        _report_end(is_restart=shutdown.restart is not None)
        log.info("daemon.stopping", pending=writer_loop.pending_count)
        await asyncio.to_thread(writer_loop.stop)
        await server.close(hand_over if shutdown.restart else None)
        handlers.close()
        threads.shut_down()
    return shutdown.restart


class _Threads:
    """The threads in which methods run. No kind of method takes the threads of another.

    A call that waits for the writer has a thread of its own: there are as many as clients, and the
    call of a client that leaves is cancelled.
    """

    def __init__(self) -> None:
        self._control = ThreadPoolExecutor(_CONTROL_THREADS, "control")
        self.queries = ThreadPoolExecutor(_QUERY_THREADS, "query")
        self.waits = ThreadPoolExecutor(MAX_CONNECTIONS + 1, "wait")

    def pool_for(self, method: str, params: Params) -> ThreadPoolExecutor:
        if method in _CONTROL_METHODS:
            return self._control
        waits = method not in _QUERY_METHODS or getattr(params, "fresh", False)
        return self.waits if waits else self.queries

    def shut_down(self) -> None:
        for pool in (self._control, self.queries, self.waits):
            pool.shutdown(wait=False, cancel_futures=True)


def _make_server(
    socket_file: Path, handlers: RpcHandlers, more_handlers: MoreHandlers, threads: _Threads
) -> Server:
    """Return the server of the socket.

    systemd may have opened the socket already, or this daemon before it restarted.
    """
    own = handlers.handlers()
    methods = {
        handler.method.name: _run_in_thread(threads, handler)
        for handler in (*own, *more_handlers(own))
    }
    systemd_socket = inherited_socket(socket_file)
    return Server(
        socket_file,
        methods,
        handlers.status.progress,
        systemd_socket or handed_over_socket(socket_file),
        owns_path=systemd_socket is None,
    )


def _run_in_thread(threads: _Threads, handler: Handler[Any, Any]) -> RpcMethod:
    async def method(params: dict[str, Any]) -> object:
        parsed = parse_params(handler.method.params, params)
        call = Call()
        context = contextvars.copy_context()
        context.run(set_current_call, call)
        pool = threads.pool_for(handler.method.name, parsed)
        running = asyncio.get_running_loop().run_in_executor(
            pool, context.run, handler.answer, parsed
        )
        try:
            return await running
        except asyncio.CancelledError:
            call.cancel()
            raise

    return method


def _report_health(writer: IndexWriter, writer_loop: WriterLoop, handlers: RpcHandlers) -> None:
    """Send systemd the status; ping its watchdog only while the writer makes progress.

    A socket that answers beside a writer that is dead or stuck is not healthy: without the ping,
    systemd restarts the daemon.
    """
    state, _ = handlers.status.state_and_reasons()
    status = f"{state}, {writer_loop.pending_count} pending"
    is_healthy = writer_loop.alive and not writer.heartbeat.overdue_s
    notify_status(status, *(["WATCHDOG=1"] if is_healthy else []))


def _report_end(*, is_restart: bool) -> None:
    """Tell systemd that this process ends.

    One that replaces itself must not say "stopping": systemd would kill the new process when the
    time to stop is over.
    """
    if is_restart:
        notify_status("restarting", "RELOADING=1")
    else:
        notify_status("stopping", "STOPPING=1")
