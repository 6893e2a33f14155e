"""`verify` over an index that is being written: compare, repair, and compare again."""

from __future__ import annotations

import time

from anchord.daemon.writer.loop import WriterLoop
from anchord.errors import StoreDamagedError
from anchord.index.integrity.repair import delete_damaged_rows, verify_index
from anchord.index.integrity.verify import VerifyResult
from anchord.index.session import IndexWriter
from anchord.ipc.messages.status import DoneOfTotal
from anchord.ipc.messages.upkeep import VerifyParams
from anchord.store.table.connection import TableReadError

_ROUNDS = 3


class Verification:
    """Compares the index with a clean rebuild, in the writer thread."""

    def __init__(self, writer: IndexWriter, writer_loop: WriterLoop) -> None:
        """Prepare; nothing runs.

        Args:
            writer: The opened index.
            writer_loop: Its loop.
        """
        self._writer = writer
        self._loop = writer_loop

    def run(self, params: VerifyParams) -> VerifyResult:
        """Compare the index with a clean rebuild; with `repair`, delete and redo what differs.

        A difference counts only if it is still there after two more walks: files may change while
        they are compared. Wait before the call until no generation is being built: until then the
        index is still that of the older configuration, and everything would differ.

        Raises:
            EmbedderError: The model is not available.
            StoreDamagedError: A database is damaged. The daemon restarts and repairs it.
            StoreError: The store cannot be read.
        """
        result = self._compare(params.vectors)
        for _ in range(_ROUNDS - 1):
            if result.differences:
                result = self._compare(params.vectors)
        if params.repair and result.differences:
            self._repair(result)
            result = self._compare(params.vectors)
        if not result.differences:
            self._loop.stats.last_verified_at = time.monotonic()
        return result

    def _compare(self, vectors: int | None) -> VerifyResult:
        """Index what is due, then compare. If rows cannot be read, repair the table first."""

        def job() -> VerifyResult:
            began = time.monotonic()
            try:
                self._loop.walk_and_index_all()
                return verify_index(self._writer, vectors, show_progress)
            except TableReadError:
                self._loop.check_index(began)
            except StoreDamagedError as error:
                # Only a new process can save what is readable. No file of its own is at fault.
                self._loop.back_off(error)
                raise
            self._loop.walk_and_index_all()
            return verify_index(self._writer, vectors, show_progress)

        def show_progress(done: int, total: int) -> None:
            self._loop.stats.verify_progress = DoneOfTotal(
                done=done,
                total=total,
            )

        try:
            return self._loop.submit(job).result()
        finally:
            self._loop.stats.verify_progress = None

    def _repair(self, result: VerifyResult) -> None:
        def job() -> None:
            files = delete_damaged_rows(self._writer, result.differences)
            self._loop.work_queue.enqueue(files)

        self._loop.submit(job).result()
