"""An index that is opened in this process: every method of the daemon, without a daemon.

Methods that only read work beside a running daemon. The first method that writes takes the writer
lock and starts the daemon's own writer thread, until the engine is closed.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import ExitStack
from typing import Self, TypeVar, cast

import structlog

from anchord.config.file import load_config
from anchord.config.paths import Paths, find_paths
from anchord.daemon.access import generation_id, open_index_reader
from anchord.daemon.handlers import RpcHandlers
from anchord.daemon.main import open_daemon_reader
from anchord.daemon.reading import answer_from_index, reads_only
from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import AnchordError, UsageError
from anchord.index.session import IndexReader, open_writer
from anchord.ipc import methods
from anchord.ipc.callers import BlockingMethods
from anchord.ipc.messages.status import Progress
from anchord.ipc.protocol import check_params
from anchord.ipc.requests import Call

A = TypeVar("A")

_WITHOUT_INDEXING = frozenset(
    {methods.FORGET.name, methods.ROOTS_ADD.name, methods.ROOTS_REMOVE.name, methods.BACKUP.name}
)
"""Methods that change the index and need not bring it up to date: nothing else is indexed for
them."""
_DAEMON_ONLY = frozenset({methods.SHUTDOWN.name, methods.PAUSE.name, methods.RESUME.name})


class Engine(BlockingMethods):
    """An index that is opened in this process, as a context manager that closes it.

    Only one thread may use an engine at a time.
    """

    def __init__(self, home: str | os.PathLike[str] | None = None) -> None:
        """Prepare; nothing is opened before the first call.

        Args:
            home: Where anchord keeps its files, as ANCHORD_HOME; None for the places of this user
                and of ANCHORD_HOME.
        """
        environment = (
            os.environ if home is None else {**os.environ, "ANCHORD_HOME": os.fspath(home)}
        )
        self._paths = find_paths(environment)
        self._reader: IndexReader | None = None
        self._reader_generation = 0
        self._open_files = ExitStack()
        self._service: InProcessService | None = None
        if not structlog.is_configured():
            _log_warnings_to_stderr()

    @classmethod
    def at(cls, paths: Paths) -> Self:
        """Return an engine of the index whose files are in these places."""
        engine = cls()
        engine._paths = paths
        return engine

    def __enter__(self) -> Self:
        """Return the engine."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the index."""
        self.close()

    def close(self) -> None:
        """Close the index, and release the writer lock. Closing twice is no error."""
        self._close_reader()
        if self._service:
            self._service.close()
            self._service = None

    def ask(self, call: Call[A], /) -> A:
        """Answer a call in this process. Blocks until it is done.

        Args:
            call: What one of `ipc.requests` returned.

        Raises:
            AlreadyRunningError: The method writes, and another process holds the writer lock.
            UsageError: A parameter is out of range, or only a daemon has the method.
            StoreError: There is no index, or it cannot be read.
            AnchordError: As the method says.
        """
        check_params(call.params)
        if call.method.name in _DAEMON_ONLY:
            raise UsageError(f"only a daemon can `{call.method.name}`", "`Client` asks it")
        if self._service is None and reads_only(call):
            return self._read(call)
        if self._service is None:
            self._close_reader()
            needs_roots = call.method.name not in _WITHOUT_INDEXING
            self._service = InProcessService(self._paths, require_roots=needs_roots)
        return self._service.ask(call)

    def _read(self, call: Call[A]) -> A:
        """Answer from reading handles; again from new ones if the index was replaced meanwhile."""
        while True:
            generation = generation_id(self._paths)
            if self._reader is None or generation != self._reader_generation:
                self._close_reader()
                self._reader = self._open_files.enter_context(open_index_reader(self._paths))
                self._reader_generation = generation
            try:
                answer = answer_from_index(self._reader, self._reader.catalog, call)
            except AnchordError:
                if generation_id(self._paths) == generation:
                    raise
            else:
                # An answer that began in one generation and ended in the next one may mix both.
                if generation_id(self._paths) == generation:
                    return answer

    def _close_reader(self) -> None:
        self._open_files.close()
        self._reader = None


def _log_warnings_to_stderr() -> None:
    """Keep the log out of the standard output of a program that has not configured structlog."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


class InProcessService:
    """The daemon's writer thread and its methods in this process. Holds the writer lock.

    Nothing is watched: a method that brings the index up to date walks the roots.
    """

    def __init__(self, paths: Paths, *, require_roots: bool) -> None:
        """Open the index for writing, and start the writer thread. Nothing is indexed yet.

        Args:
            paths: The files and folders of this anchord.
            require_roots: Refuse, before anything changes, if there is no root at all.

        Raises:
            AlreadyRunningError: Another process holds the writer lock.
            StoreError: The index cannot be opened.
            UsageError: `require_roots`, and there is none.
        """
        config = load_config(paths.config_file).without_watching()
        paths.create_folders()
        with ExitStack() as undo:
            self._writer = open_writer(paths, config, [], require_roots=require_roots)
            undo.callback(self._writer.close)
            self._loop = WriterLoop(self._writer, config)
            reader = open_daemon_reader(self._writer)
            self._methods = RpcHandlers(self._writer, reader, self._loop, lambda: None)
            undo.callback(self._methods.close)
            self._loop.paused = True
            self._loop.run_promotion = self._methods.switch_generation
            self._loop.maintenance.on_index_merge = self._methods.reopen_reader
            self._loop.start()
            undo.pop_all()
        self._handlers = {each.method.name: each.answer for each in self._methods.handlers()}

    @property
    def progress(self) -> Progress:
        """What the writer is doing now."""
        return self._methods.status.progress()

    def ask(self, call: Call[A]) -> A:
        """Answer a call whose parameters are in range.

        The first method that needs an index that is up to date starts the indexing.

        Raises:
            AnchordError: As the method says.
        """
        if call.method.name not in _WITHOUT_INDEXING:
            self._loop.set_paused(paused=False)
        return cast("A", self._handlers[call.method.name](call.params))

    def close(self) -> None:
        """End the writer thread, and close the index."""
        self._loop.stop()
        self._methods.close()
        self._writer.close()
