"""The service: lock, pipeline, socket, signals, and what systemd is told.

The main thread runs the socket's loop and nothing that can block; methods run in a pool of threads with reading handles of
their own, so that a status comes while the writer is deep in a batch.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from anchord.adapters.lance import LanceStore
from anchord.config import Config
from anchord.ipc.protocol import Params, read_params
from anchord.ipc.server import Method, Server
from anchord.methods import Methods
from anchord.pipeline import Pipeline
from anchord.places import Places
from anchord.workspace import Reader, Writer, open_writer, store_uri

log = structlog.get_logger()

_THREADS = 40
_NOTIFY_S = 10.0


def run_daemon(places: Places, config: Config, paths: list[str]) -> None:
    """Serve until told to stop.

    Raises:
        AlreadyRunningError, StoreError, UsageError: as `open_writer` says.
    """
    writer = open_writer(places, config, paths)
    try:
        asyncio.run(_serve(writer, config))
    finally:
        writer.close()
        log.info("daemon.stopped")


async def _serve(writer: Writer, config: Config) -> None:
    loop, ending = asyncio.get_running_loop(), asyncio.Event()

    def shut_down() -> None:
        loop.call_soon_threadsafe(ending.set)

    pipeline = Pipeline(writer, config.watch)
    methods = Methods(writer, _reader(writer), pipeline, shut_down)
    pool = ThreadPoolExecutor(_THREADS, "answer")
    table = {name: _in_pool(pool, kind, method) for name, (kind, method) in methods.table().items()}
    server = Server(writer.places.socket, table, methods.status.progress)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    loop.add_signal_handler(signal.SIGHUP, pool.submit, methods.hang_up)
    try:
        await loop.run_in_executor(pool, pipeline.start)
        await server.start()
        log.info("daemon.ready", pid=os.getpid(), socket=str(writer.places.socket), roots=len(writer.roots))
        _notify("READY=1")
        while not ending.is_set():
            if pipeline.alive:  # A loop that answers beside a dead writer is not well: then systemd's watchdog may bite.
                _notify(f"WATCHDOG=1\nSTATUS={methods.status.state()[0]}, {pipeline.pending} pending")
            try:
                await asyncio.wait_for(ending.wait(), _NOTIFY_S)
            except TimeoutError:
                continue
    finally:
        _notify("STOPPING=1")
        log.info("daemon.stopping", pending=pipeline.pending)
        await asyncio.to_thread(pipeline.stop)
        await server.close()
        pool.shutdown(wait=False, cancel_futures=True)


def _reader(writer: Writer) -> Reader:
    """Return reading handles beside the writer's: its table handle moves with its own commits."""
    store = LanceStore(store_uri(writer.places, writer.config), writer.embedder.dimension, "", read_only=True)
    return Reader(
        writer.places, writer.config, writer.roots, writer.model, writer.catalogue, store, writer.embedder, writer.files,
        writer.recipe, writer.count,
    )  # fmt: skip


def _in_pool(pool: ThreadPoolExecutor, kind: type[Params], method: Callable[[Any], object]) -> Method:
    async def run(params: dict[str, Any]) -> object:
        parsed = read_params(kind, params)
        return await asyncio.get_running_loop().run_in_executor(pool, method, parsed)

    return run


def _notify(message: str) -> None:
    """Tell systemd (sd_notify(3)): one datagram to $NOTIFY_SOCKET, "@" standing for an abstract name; else nothing."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notifier:
        notifier.connect("\0" + address[1:] if address.startswith("@") else address)
        notifier.sendall(message.encode())
