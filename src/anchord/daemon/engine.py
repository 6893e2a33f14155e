"""An index that is opened in this process: every method of the daemon, without a daemon.

Methods that only read work beside a running daemon. The first method that writes takes the writer
lock and starts the daemon's own writer thread, until the engine is closed.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import ExitStack, suppress
from typing import Self, TextIO, TypeVar, cast

import structlog

from anchord.config.file import load_config
from anchord.config.paths import Paths, paths_of_home
from anchord.daemon.access import open_index_reader, query_one_generation
from anchord.daemon.handlers import RpcHandlers
from anchord.daemon.host.log_stream import DroppingStream
from anchord.daemon.reading import answer_from_index, reads_only
from anchord.daemon.shared_reader import open_daemon_reader
from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import AnchordError, UsageError
from anchord.index.integrity.repair import list_repairs
from anchord.index.opening import open_writer
from anchord.index.session import IndexReader
from anchord.ipc import methods
from anchord.ipc.callers import BlockingMethods
from anchord.ipc.messages.status import Progress
from anchord.ipc.messages.upkeep import IndexParams
from anchord.ipc.protocol import check_params
from anchord.ipc.requests import Call

A = TypeVar("A")

_WITHOUT_INDEXING = frozenset(
    {methods.FORGET.name, methods.ROOTS_ADD.name, methods.ROOTS_REMOVE.name, methods.BACKUP.name}
)
"""Methods that change the index and need not bring it up to date: nothing else is indexed for
them."""
_LONGEST_UPKEEP_S = 120.0
_DAEMON_ONLY = frozenset({methods.SHUTDOWN.name, methods.PAUSE.name, methods.RESUME.name})


class Engine(BlockingMethods):
    """An index that is opened in this process, as a context manager that closes it.

    Only one thread may use an engine at a time.
    """

    def __init__(self, paths: Paths) -> None:
        """Prepare; nothing is opened before the first call.

        Args:
            paths: The files and folders of this anchord.
        """
        self._paths = paths
        self._reader: IndexReader | None = None
        self._reader_generation = 0
        self._open_files = ExitStack()
        self._service: InProcessService | None = None
        self._is_interrupted = False
        """Whether Ctrl-C came, perhaps while another thread opens the index."""
        if not structlog.is_configured():
            _log_warnings_to_stderr()

    @classmethod
    def of_home(cls, home: str | os.PathLike[str] | None) -> Self:
        """Return an engine of the index in a home, as ANCHORD_HOME; None for this user's own."""
        return cls(paths_of_home(home))

    def __enter__(self) -> Self:
        """Return the engine."""
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Close the index; after an error or Ctrl-C at once."""
        self._close(is_interrupted=error_type is not None)

    def close(self) -> None:
        """Close the index, and release the writer lock. Closing twice is no error."""
        self._close(is_interrupted=False)

    def _close(self, *, is_interrupted: bool) -> None:
        self._is_interrupted = is_interrupted
        self._close_reader()
        service, self._service = self._service, None
        if service:
            if not is_interrupted:
                service.finish()
            service.close()

    @property
    def progress(self) -> Progress | None:
        """How far the indexing is; None before the index is open. Any thread may read it."""
        return self._service.progress if self._service else None

    @property
    def repairs(self) -> list[str]:
        """What was found damaged since the index was opened for writing, a sentence each."""
        return self._service.repairs if self._service else []

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
            raise UsageError(
                f"only a daemon can `{call.method.name}`",
                "start it with `anchord start`, and use `anchord.Client`",
            )
        if self._service is None and reads_only(call):
            return self._read(call)
        if self._service is None:
            self._close_reader()
            gives_roots = isinstance(call.params, IndexParams) and bool(call.params.paths)
            needs_roots = call.method.name not in _WITHOUT_INDEXING and not gives_roots
            service = InProcessService(self._paths, require_roots=needs_roots)
            if self._is_interrupted:
                service.close()
                raise AnchordError("interrupted", "run the command again: it goes on")
            self._service = service
        return self._service.ask(call)

    def _read(self, call: Call[A]) -> A:
        """Answer from reading handles; again from new ones if the index was replaced meanwhile."""

        def answer(generation: int) -> A:
            if self._reader is None or generation != self._reader_generation:
                self._close_reader()
                opening = open_index_reader(self._paths)
                self._reader = self._open_files.enter_context(opening)
                self._reader_generation = generation
            return answer_from_index(self._reader, self._reader.catalog, call)

        return query_one_generation(self._paths, answer)

    def _close_reader(self) -> None:
        self._open_files.close()
        self._reader = None


def _log_warnings_to_stderr() -> None:
    """Keep the log out of the standard output of a program that has not configured structlog."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", DroppingStream(sys.stderr))),
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
            self._writer = open_writer(
                paths,
                config,
                [],
                require_roots=require_roots,
            )
            undo.callback(self._writer.close)
            self._loop = WriterLoop(self._writer, config)
            reader = open_daemon_reader(self._writer)
            self._methods = RpcHandlers(
                self._writer,
                reader,
                self._loop,
                lambda: None,
            )
            undo.callback(self._methods.close)
            self._loop.paused = True
            # Whoever runs a command can solve what failed, and run it again.
            self._loop.backoff.patience_s = self._loop.work.model_backoff.patience_s = 0.0
            self._loop.run_promotion = self._methods.switch_generation
            self._loop.maintenance.on_index_merge = self._methods.reopen_reader
            self._loop.start()
            undo.pop_all()
        self._handlers = {each.method.name: each.answer for each in self._methods.handlers()}

    @property
    def progress(self) -> Progress:
        """What the writer is doing now."""
        return self._methods.status.progress()

    @property
    def repairs(self) -> list[str]:
        """What was found damaged since the index was opened, a sentence each."""
        return list_repairs(self._writer)

    def ask(self, call: Call[A]) -> A:
        """Answer a call whose parameters are in range.

        The first method that needs an index that is up to date starts the indexing.

        Raises:
            AnchordError: As the method says.
        """
        if call.method.name not in _WITHOUT_INDEXING:
            self._loop.set_paused(paused=False)
        return cast("A", self._handlers[call.method.name](call.params))

    def finish(self) -> None:
        """Do the upkeep that a daemon would do while it is idle. Never raises."""
        loop = self._loop
        if loop.paused or loop.blocked_reason or loop.folder_problem or not loop.alive:
            return
        # With a limit: a writer whose files were lost meanwhile runs no job.
        with suppress(AnchordError, TimeoutError):
            loop.submit(loop.maintenance.finish_before_end).result(_LONGEST_UPKEEP_S)

    def close(self) -> None:
        """End the writer thread, and close the index. The lock is released whatever fails."""
        with ExitStack() as closing:
            closing.callback(self._writer.close)
            closing.callback(self._methods.close)
            closing.callback(self._loop.stop)
