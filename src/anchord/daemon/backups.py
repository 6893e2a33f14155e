"""Backups of a running daemon: one at a time, and none beside `forget`.

The writer only pins what there is, between two commits; copying runs in the caller's thread.
`forget` promises that a text is in no file of the index when it returns, and a backup keeps files
and pages of databases until it is done. So each waits for a person to call it again while the other
runs.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from anchord.daemon.answers import backup_answer
from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import AnchordError
from anchord.index.backup import BackupRequest, backup_home, require_outside_roots
from anchord.index.session import IndexWriter
from anchord.index.staged_backup import stage_home, staging_folder
from anchord.ipc.messages.status import DoneOfTotal
from anchord.ipc.messages.upkeep import BackupAnswer, BackupParams
from anchord.store.backup.manifest import folder_id
from anchord.store.backup.pin import PinnedHome
from anchord.store.backup.snapshot import SnapshotResult

log = structlog.get_logger()

_PIN_TIMEOUT_S = 1_800.0
"""Seconds for pinning. On a file system without hard links, the table is copied in that time."""
_BYTES_PER_MB = 1_000_000


class Backups:
    """Runs backups. Any thread may call it."""

    def __init__(self, writer: IndexWriter, writer_loop: WriterLoop) -> None:
        """Prepare; nothing runs.

        Args:
            writer: The opened index.
            writer_loop: Its loop.
        """
        self._writer = writer
        self._loop = writer_loop
        self._lock = threading.Lock()
        self._is_closing = False
        self._progress: tuple[int, int] | None = None

    @property
    def progress(self) -> DoneOfTotal | None:
        """Megabytes that are copied, and those in all; None while no backup copies."""
        progress = self._progress
        if progress is None:
            return None
        done, total = progress
        return DoneOfTotal(
            done=done // _BYTES_PER_MB,
            total=max(1, total // _BYTES_PER_MB),
        )

    def run(self, params: BackupParams) -> BackupAnswer:
        """Make a backup and return what was copied. Blocks until it is done.

        The answer has the `folder_id` of the snapshot, so that a client that sees another folder at
        its path notices.

        Raises:
            AnchordError: It failed, another backup or `forget` runs, or the daemon is stopping.
        """
        with self.excluded():
            began = time.monotonic()
            try:
                result = self._back_up(params)
            finally:
                self._progress = None
            answer = backup_answer(result, folder_id(result.folder))
            log.info(
                "backup.made",
                seconds=round(time.monotonic() - began, 3),
                snapshot=answer.snapshot,
                files=answer.files,
                bytes=answer.bytes,
                copied_files=answer.copied_files,
                copied_bytes=answer.copied_bytes,
                deleted=answer.deleted,
            )
        return answer

    def _back_up(self, params: BackupParams) -> SnapshotResult:
        paths, config = self._writer.paths, self._writer.config
        pin, on_progress = self._pin_in_writer, self._record_progress
        if params.staged:
            return stage_home(
                paths,
                config,
                run_pin=pin,
                on_progress=on_progress,
            )
        # Roots that were added since the start are not in `config`.
        require_outside_roots(params.target, self._writer.roots)
        request = BackupRequest(params.target, params.keep)
        return backup_home(
            paths,
            config,
            request,
            run_pin=pin,
            on_progress=on_progress,
        )

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """Keep backups from running while the block runs.

        Raises:
            AnchordError: A backup, or another such block, is running.
        """
        if not self._lock.acquire(blocking=False):
            raise AnchordError(
                "a backup or `anchord forget` is running", "try again when it is done"
            )
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def excluded_for_forget(self) -> Iterator[None]:
        """Keep backups from running while the block runs, and delete the one a client may copy.

        A staged snapshot has texts that must go.

        Raises:
            AnchordError: As `excluded`.
        """
        with self.excluded():
            shutil.rmtree(staging_folder(self._writer.paths), ignore_errors=True)
            yield

    def close(self) -> None:
        """Make a running backup stop within a megabyte. Returns at once."""
        self._is_closing = True

    def _pin_in_writer(self, pin: Callable[[], PinnedHome]) -> PinnedHome:
        def job() -> PinnedHome:
            self._writer.heartbeat.beat(_PIN_TIMEOUT_S)
            try:
                return pin()
            finally:
                self._writer.heartbeat.beat()

        return self._loop.submit(job).result()

    def _record_progress(self, done: int, total: int) -> None:
        if self._is_closing:
            raise AnchordError("anchord is stopping: there is no new backup", "back up again")
        self._progress = (done, total)
