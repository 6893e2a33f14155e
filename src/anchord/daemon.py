"""The service: lock, pipeline, socket, signals, and what systemd is told.

The main thread runs the socket's loop and nothing that can block; methods run in a pool of threads with reading handles of
their own, so that a status comes while the writer is deep in a batch.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import structlog

from anchord.adapters.lance import LanceStore
from anchord.adapters.memory import few_arenas
from anchord.adapters.systemd import inherited_socket, notify, watchdog_s
from anchord.config import Config
from anchord.errors import AlreadyRunningError
from anchord.ipc.protocol import Params, read_params
from anchord.ipc.server import Method, Server
from anchord.methods import Methods
from anchord.pipeline import Pipeline
from anchord.places import Places
from anchord.workspace import Reader, Writer, open_writer, reranker_of, store_uri

log = structlog.get_logger()

_THREADS = 40
_NOTIFY_S = 10.0
_OPENING_S = 900
"""So long may opening take where something has to be mended first."""
_RESTARTS = "ANCHORD_RESTARTS"
"""Environment: how often this daemon began anew by itself."""
_LEAST_LIFE_S = 600.0
"""A process that restarted itself lives so long before it does so again."""
_LOCK_TRIES = 20
_LOCK_PAUSE_S = 0.5


def run_daemon(places: Places, config: Config, paths: list[str], kind: str = "project") -> None:
    """Serve until told to stop; `kind` is that of the paths. When only a new process can help, this one becomes it.

    Raises:
        AlreadyRunningError, StoreError, UsageError: as `open_writer` says.
    """
    few_arenas()
    notify(f"STATUS=opening the index\nEXTEND_TIMEOUT_USEC={_OPENING_S}000000")
    writer = _opened(places, config, paths, kind)
    _keep_temporary_files_in(places.temporary)
    try:
        restart = asyncio.run(_serve(writer, config))
    finally:
        writer.close()
        log.info("daemon.stopped")
    if restart:
        log.warning("daemon.restarting", reason=restart)
        os.environ[_RESTARTS] = str(_restarts() + 1)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command line


def _opened(places: Places, config: Config, paths: list[str], kind: str) -> Writer:
    """Open the index; a process that took this one's place in a restart is waited for."""
    for _ in range(_LOCK_TRIES if _restarts() else 1):
        try:
            return open_writer(places, config, paths, kind)
        except AlreadyRunningError:
            time.sleep(_LOCK_PAUSE_S)
    return open_writer(places, config, paths, kind)


def _keep_temporary_files_in(folder: Path) -> None:
    """Have what the store writes for a moment (rows, as they are merged) where only their owner can look.

    A daemon that was killed leaves some: the next one, which holds the lock, deletes them.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["TMPDIR"] = str(folder)


def _restarts() -> int:
    text = os.environ.get(_RESTARTS, "0")
    return int(text) if text.isdecimal() else 0


async def _serve(writer: Writer, config: Config) -> str:
    """Return why a new process is needed, "" when none is."""
    loop, ending, began = asyncio.get_running_loop(), asyncio.Event(), time.monotonic()
    restart = ""

    def shut_down() -> None:
        loop.call_soon_threadsafe(ending.set)

    def begin_anew(reason: str) -> None:
        nonlocal restart
        if time.monotonic() - began >= _LEAST_LIFE_S or not _restarts():
            restart = reason
            shut_down()
        else:
            methods.status.restart_trouble = f"{reason}; a new process did not help"

    pinged_s = watchdog_s()
    writer.pulse.step_s = min(writer.pulse.step_s, pinged_s)
    pipeline = Pipeline(writer, config, begin_anew)
    methods = Methods(writer, reader_beside(writer), pipeline, shut_down)
    pipeline.replacing, pipeline.upkeep.merged = methods.replace, methods.follow
    pool = ThreadPoolExecutor(_THREADS, "answer")
    table = {name: _in_pool(pool, kind, method) for name, (kind, method) in methods.table().items()}
    server = Server(writer.places.socket, table, methods.status.progress, inherited_socket(writer.places.socket))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    loop.add_signal_handler(signal.SIGHUP, pool.submit, methods.hang_up)
    for repair in writer.repairs:
        log.warning("index.repaired", what=repair)
    try:
        await loop.run_in_executor(pool, pipeline.start)
        await server.start()
        pool.submit(methods.warm)
        log.info("daemon.ready", pid=os.getpid(), socket=str(writer.places.socket), roots=len(writer.roots))
        notify("READY=1")
        while not ending.is_set():
            # A loop that answers beside a writer that is dead or stuck is not well: then systemd's watchdog may bite.
            well = pipeline.alive and not writer.pulse.late_s
            notify(("WATCHDOG=1\n" if well else "") + f"STATUS={methods.status.state()[0]}, {pipeline.pending} pending")
            try:
                await asyncio.wait_for(ending.wait(), min(_NOTIFY_S, pinged_s / 3))
            except TimeoutError:
                continue
    finally:
        # One that becomes a new process is not stopping: systemd would give it no more time than to end.
        notify("RELOADING=1\nSTATUS=beginning anew" if restart else "STOPPING=1\nSTATUS=stopping")
        log.info("daemon.stopping", pending=pipeline.pending)
        await asyncio.to_thread(pipeline.stop)
        await server.close()
        methods.close()
        pool.shutdown(wait=False, cancel_futures=True)
    return restart


def reader_beside(writer: Writer) -> Reader:
    """Return reading handles beside the writer's: its table handle moves with its own commits."""
    store = LanceStore(store_uri(writer.places, writer.config), writer.means.dimension, "", read_only=True)
    own = (writer.places, writer.config, writer.roots, writer.means, writer.catalogue)
    return Reader(*own, store, writer.files, writer.grammars, reranker=reranker_of(writer.config))


def _in_pool(pool: ThreadPoolExecutor, kind: type[Params], method: Callable[[Any], object]) -> Method:
    async def run(params: dict[str, Any]) -> object:
        parsed = read_params(kind, params)
        return await asyncio.get_running_loop().run_in_executor(pool, method, parsed)

    return run
