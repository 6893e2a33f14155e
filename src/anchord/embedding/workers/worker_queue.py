"""A queue of callers that share one embedding process.

The process is started when there is work. It is ended after a while without work, and replaced when
it died, hung, grew too large, or is to run with other settings. Between two batches, a waiting
query goes before everything else.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from anchord.core.types import Vector
from anchord.embedding.workers.export_cache import offline_environment
from anchord.embedding.workers.worker_main import WorkerSettings
from anchord.errors import BatchFailedError, EmbedderError
from anchord.ipc.worker_process import WorkerProcess, WorkerProcessError

START_TIMEOUT_S = 180.0
BATCH_TIMEOUT_S = 60.0
"""For any batch. A batch takes less than a second; one that takes a minute has hung."""
EXTRA_TIMEOUT_PER_TOKEN_S = 0.02
"""Added to it for each token, because long texts take longer."""
RETRY_HINT = "the daemon retries by itself; `anchord status` shows when it works again"

_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class EmbeddedBatch:
    """The vectors of a batch, and how long the model took."""

    vectors: list[Vector]
    """One for each text, in order."""
    seconds: float


class WorkerQueue:
    """One embedding process and the callers that wait for it. Safe to use from any thread."""

    def __init__(
        self,
        worker_module: str,
        settings: WorkerSettings,
        idle_s: float,
        max_growth_bytes: int,
        clock: Callable[[], float],
    ) -> None:
        """Start nothing yet; the first text starts the process.

        Args:
            worker_module: The module that the process runs.
            settings: The settings of the process, unless `required_settings` says otherwise.
            idle_s: Seconds without work after which `stop_worker_if_idle` ends the process.
            max_growth_bytes: How much the memory of the process may grow after its model is loaded.
                It is then replaced. 0 means without limit.
            clock: Returns the time in seconds.
        """
        self.start_count = 0
        """How often a process was started."""
        self._worker_module = worker_module
        self.settings = settings
        self.required_settings: WorkerSettings | None = None
        """Texts that are no queries replace a process with other settings; None: any will do."""
        self._started_with = settings
        self._idle_s = idle_s
        self._max_growth_bytes = max_growth_bytes
        self._clock = clock
        self._process: WorkerProcess | None = None
        self._loaded_bytes: int | None = None
        """Memory of the process when its model was loaded; None before that."""
        self._closed = False
        self._last_used = 0.0
        self._turn = threading.Condition()
        """Guards the next two, and signals the end of a batch."""
        self._busy = False
        self._queries_waiting = 0

    @property
    def state(self) -> str:
        """`off`, `starting`, `ready` or `busy`."""
        process = self._process
        if process is None or not process.is_alive:
            return "starting" if self._busy else "off"
        if self._loaded_bytes is None:
            return "starting"
        return "busy" if self._busy else "ready"

    @property
    def memory_bytes(self) -> int:
        """Memory of the process in bytes; 0 without a process."""
        process = self._process
        return process.memory_bytes if process and process.is_alive else 0

    def embed(self, texts: Sequence[str], token_count: int, *, query: bool) -> EmbeddedBatch:
        """Embed one batch; blocks until it is this caller's turn and the batch is done.

        Ends the worker process after a failure, and after a batch if its memory has grown too
        large; the next batch starts another one.

        Args:
            texts: The texts of the batch.
            token_count: Tokens of all texts together; the timeout depends on it.
            query: Whether the texts are queries. Queries go first.

        Raises:
            BatchFailedError: The process died, hung, or returned no usable vectors.
            EmbedderError: The process cannot be started, or the queue is closed.
        """
        self._wait_for_turn(query=query)
        try:
            process = self._running_process(None if query else self.required_settings)
            batch = self._embed_batch(
                process,
                texts,
                token_count,
                query=query,
            )
        except BaseException:
            # Half an answer may still be in the pipe: only a new process starts at a frame again.
            self._end()
            raise
        else:
            if self._has_grown_too_large():
                self._end()
            return batch
        finally:
            self._last_used = self._clock()
            with self._turn:
                self._busy = False
                self._turn.notify_all()

    def stop_worker_if_idle(self) -> None:
        """End the process if it has had no work for `idle_s` seconds. Call it from time to time."""
        with self._turn:
            is_idle = not self._busy and self._clock() - self._last_used > self._idle_s
            if self._process and is_idle:
                self._end()

    def close(self) -> None:
        """End the process, even in the middle of a batch; no later batch starts a new one."""
        self._closed = True
        with self._turn:
            if not self._busy:
                self._end()
            elif self._process:
                # The caller that waits for its answer sees the end of the pipe, and cleans up.
                self._process.popen.kill()

    def _wait_for_turn(self, *, query: bool) -> None:
        with self._turn:
            self._queries_waiting += query
            try:
                self._turn.wait_for(lambda: self._is_turn_of(query=query))
                self._busy = True
            finally:
                self._queries_waiting -= query

    def _is_turn_of(self, *, query: bool) -> bool:
        if self._busy:
            return False
        return query or not self._queries_waiting

    def _has_grown_too_large(self) -> bool:
        if not self._max_growth_bytes:
            return False
        return self.memory_bytes > (self._loaded_bytes or 0) + self._max_growth_bytes

    def _embed_batch(
        self, process: WorkerProcess, texts: Sequence[str], token_count: int, *, query: bool
    ) -> EmbeddedBatch:
        timeout_s = BATCH_TIMEOUT_S + token_count * EXTRA_TIMEOUT_PER_TOKEN_S
        request = {"texts": list(texts), "query": query}
        started = self._clock()
        try:
            answer = process.call_or_kill(timeout_s, request)
        except WorkerProcessError as error:
            raise BatchFailedError(f"the embedding process {error}", RETRY_HINT) from None
        seconds = self._clock() - started
        return EmbeddedBatch(self._vectors_of(answer, len(texts)), seconds)

    def _vectors_of(self, answer: dict[str, object], text_count: int) -> list[Vector]:
        """Return the vectors of an answer.

        Raises:
            BatchFailedError: The answer is an error, or its vectors are of the wrong size or have
                numbers that are not finite.
        """
        numbers = answer.get("vectors")
        vector_bytes = _FLOAT_BYTES * self.settings.dimension
        if not isinstance(numbers, bytes) or len(numbers) != vector_bytes * text_count:
            reason = answer.get("error", "an answer of the wrong size")
            raise BatchFailedError(f"the model failed: {reason}", RETRY_HINT)
        # A sum is finite only if every number in it is.
        if not math.isfinite(sum(array("f", numbers))):
            raise BatchFailedError(
                "the model returned numbers that are NaN or infinite", RETRY_HINT
            )
        starts = range(0, len(numbers), vector_bytes)
        return [numbers[start : start + vector_bytes] for start in starts]

    def _running_process(self, settings: WorkerSettings | None) -> WorkerProcess:
        """Return the process; start one and wait for its model if there is none with the settings.

        Raises:
            EmbedderError: It cannot be started, or the queue is closed.
        """
        self._refuse_if_closed()
        has_settings = settings in (None, self._started_with)
        if self._process is not None and self._process.is_alive and has_settings:
            return self._process
        self._end()
        self.start_count += 1
        self._started_with = settings or self.settings
        settings_json = msgspec.json.encode(self._started_with).decode()
        try:
            process = WorkerProcess(self._worker_module, (settings_json,), offline_environment())
            self._process = process
            # `close` may have run before it could see this process.
            self._refuse_if_closed()
            dimension = process.call_or_kill(START_TIMEOUT_S).get("ready")
        except WorkerProcessError as error:
            raise EmbedderError(f"the embedding process {error}", RETRY_HINT) from None
        if dimension != self.settings.dimension:
            raise EmbedderError(
                f"the model's vectors have {dimension} dimensions, "
                f"its files say {self.settings.dimension}",
                RETRY_HINT,
            )
        self._loaded_bytes = process.memory_bytes
        return process

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise EmbedderError("anchord is stopping")

    def _end(self) -> None:
        process, self._process, self._loaded_bytes = self._process, None, None
        if process:
            process.shut_down()
