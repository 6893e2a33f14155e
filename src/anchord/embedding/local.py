"""`provider = "sentence-transformers"`: embeds texts on this machine, in worker processes.

A model is exported to ONNX once on a machine (`workers.export_cache`) and then runs in a light
process (`workers.onnx_worker`). A model that cannot be exported runs with torch
(`workers.torch_worker`); `fallback_reason` gives the reason. Where an accelerator is clearly
faster, large backlogs run there with torch.

No text is ever cut. The tokens of each text are counted first; a text above the model's window is a
defect of the chunker. It is counted, and embedded in pieces whose vectors are joined.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from anchord.core.types import Vector
from anchord.embedding.batching import batch_by_token_count
from anchord.embedding.model_files import ModelFiles
from anchord.embedding.pace import Pace
from anchord.embedding.poison_text import embed_isolating_failures
from anchord.embedding.precision import int8_failure, int8_id, resolve_precision
from anchord.embedding.text_pieces import TextPiece, VectorAssembler, split_texts
from anchord.embedding.throughput import Throughput
from anchord.embedding.tokenizer import TokenCounter, shared_token_counter
from anchord.embedding.worker_options import WorkerOptions
from anchord.embedding.workers import export_cache
from anchord.embedding.workers.export_cache import CPU, INT8, ExportInfo
from anchord.embedding.workers.worker_main import WorkerSettings
from anchord.embedding.workers.worker_queue import EmbeddedBatch, WorkerQueue
from anchord.errors import BatchFailedError, EmbedderError

ONNX_WORKER_MODULE = "anchord.embedding.workers.onnx_worker"
TORCH_WORKER_MODULE = "anchord.embedding.workers.torch_worker"

_CPU_BATCH = (512, 32)
"""The most tokens and texts of a batch: larger ones are slower and take more memory."""
_ACCELERATOR_BATCH = (32_768, 512)
_BACKLOG_TEXTS = 64
"""The fewest texts that are worth starting another process for."""
_SPECIAL_TOKENS = 4
"""Tokens in a batch that a text needs besides its own."""
_EXPORT_RETRY_S = 600.0
"""Seconds before an export that failed for lack of room or memory is tried again."""


class LocalEmbedder:
    """A sentence-transformers model on this machine. Any thread may use it."""

    provider = "sentence-transformers"
    is_immediate = False

    def __init__(
        self, files: ModelFiles, options: WorkerOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Remember the settings; the first text exports the model if needed and starts a process.

        Args:
            files: the model.
            options: how its processes run.
            clock: seconds of a monotonic clock.
        """
        self.dimension = files.dimension
        self.embedded = 0
        """Texts since the start; queries do not count."""
        self.over_window = 0
        """Texts above the window, which were embedded in pieces."""
        self.refused = 0
        """Texts on which every process fails. Their vectors are zeros; only words find them."""
        self._files = files
        self._options = options
        self._clock = clock
        self._prepare_lock = threading.Lock()
        self._is_preparing = False
        self._preparation: threading.Thread | None = None
        self._export_process: subprocess.Popen[bytes] | None = None
        self._export_info: ExportInfo | None = None
        self._retry_export_at = 0.0
        self._accelerator_failure = ""
        self._default_queue: WorkerQueue | None = None
        self._accelerator_queue: WorkerQueue | None = None
        self._backlog_settings: WorkerSettings | None = None
        """Of the default queue's process while nobody waits; None where it is never replaced."""
        self._pace = Pace(options.threads, clock)
        self._closed = False
        self._throughput = Throughput(clock)

    @cached_property
    def _model_digest(self) -> str:
        return self._files.compute_digest()

    @property
    def model_id(self) -> str:
        """The digest of the model's weights and settings, and its precision if that is int8.

        Reads all files of the model at the first call.
        """
        return int8_id(self._plain_id) if self.precision == INT8 else self._plain_id

    @property
    def _plain_id(self) -> str:
        return f"{self.provider}/{self._model_digest}"

    @cached_property
    def precision(self) -> str:
        """How the model runs, "fp32" or "int8", for as long as this object lives.

        May read all files of the model at the first call.
        """
        return resolve_precision(self._options, self._plain_id, self._find_export)

    @property
    def is_prepared(self) -> bool:
        """Whether it is known which runtime serves the model here, and its export exists.

        Reads all files of the model at the first call, and a small file until it is prepared.
        """
        return self._default_queue is not None or self._find_export() is not None

    def prepare_in_background(self) -> None:
        """Export the model in a thread unless that was done or is being done.

        An export that fails is not tried again for ten minutes; texts raise what went wrong.
        """
        if self._closed or self._is_being_prepared or self.is_prepared:
            return
        self._preparation = threading.Thread(
            target=self._try_to_prepare, name="prepare-model", daemon=True
        )
        self._preparation.start()

    @property
    def _is_being_prepared(self) -> bool:
        is_in_background = self._preparation is not None and self._preparation.is_alive()
        return self._is_preparing or is_in_background

    def _try_to_prepare(self) -> None:
        with suppress(EmbedderError):
            self._ready_queues()

    def note_waiter(self) -> None:
        """Note that somebody waits for vectors: the model takes more of the machine for 30 s.

        A backlog for which nobody waits is embedded at a low priority with half of the processors.
        All else, queries too, has the usual priority and all processors but one.
        """
        self._pace.note_waiter()

    @property
    def texts_per_second(self) -> float:
        """Texts a second of the model's own time, in the last 60 s of work; 0 without any."""
        return self._throughput.texts_per_second

    @property
    def state(self) -> str:
        """One of `off`, `preparing`, `starting`, `ready` and `busy`."""
        if self._is_being_prepared:
            return "preparing"
        states = {queue.state for queue in self._queues()}
        return next((state for state in ("busy", "starting", "ready") if state in states), "off")

    @property
    def fallback_reason(self) -> str:
        """Why the model runs slower than it could; "" if it does not, or nothing is known yet."""
        if self._accelerator_failure:
            return self._accelerator_failure
        return self._export_info.why if self._export_info else ""

    def status_fields(self) -> dict[str, object]:
        """Return what `anchord status` shows of the model besides its state and rate."""
        info, queues = self._export_info, self._queues()
        device = None
        if info:
            device = info.device if self._accelerator_queue else CPU
        return {
            "runtime": info.runtime if info else None,
            "device": device,
            "precision": self.precision,
            "measured": dict(info.rates) if info else {},
            "starts": sum(queue.start_count for queue in queues),
            "rss_bytes": sum(queue.memory_bytes for queue in queues),
            "refused": self.refused,
            "over_window": self.over_window,
        }

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Embed texts; blocks until all are done.

        Args:
            texts: the texts.
            is_query: whether they are queries. Queries get the query prefix and go before all other
                work; during an export they fail at once.

        Returns:
            An L2-normalised float32 vector for each text, in order; all zeros for a text that the
            model rejects.

        Raises:
            EmbedderError: the model cannot be used now, or it rejects a query.
        """
        if is_query and self._is_being_prepared:
            raise EmbedderError(
                "the model is being prepared for this machine", "this takes about ten seconds, once"
            )
        vectors: dict[int, Vector] = {}
        for batch in self._stream(texts, query=is_query):
            vectors.update(batch)
        return [vectors[number] for number in range(len(texts))]

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Yield batches in any order, each as index of a text -> its vector (see `embed`).

        Raises:
            EmbedderError: the model cannot be used now; the vectors yielded before are valid.
        """
        return self._stream(texts, query=False)

    def stop_idle_workers(self) -> None:
        """Stop processes without work for `idle_s` seconds; the next text starts them again."""
        for queue in self._queues():
            queue.stop_worker_if_idle()

    def close(self) -> None:
        """Stop the processes, in the middle of a batch too; later calls raise EmbedderError."""
        self._closed = True
        if exporting := self._export_process:
            exporting.kill()
        for queue in self._queues():
            queue.close()

    # Texts to batches, and back

    def _stream(self, texts: Sequence[str], *, query: bool) -> Iterator[dict[int, Vector]]:
        if not texts:
            return
        queue, (max_tokens, max_texts) = self._choose_queue(len(texts), query=query)
        count_tokens = self._token_counter.count_without_caching
        pieces = list(split_texts(texts, count_tokens, self._files.window))
        assembler = VectorAssembler(pieces)
        token_counts = [piece.token_count + _SPECIAL_TOKENS for piece in pieces]
        remaining = len(pieces)
        for indexes in batch_by_token_count(token_counts, max_tokens, max_texts):
            batch = [pieces[index] for index in indexes]
            complete: dict[int, Vector] = {}
            self._set_pace(remaining, query=query)
            remaining -= len(batch)
            try:
                for index, vector in self._embed_batch(batch, queue, query=query):
                    piece = batch[index]
                    if assembler.add(piece, vector):
                        number = piece.text_number
                        complete[number] = self._finish_text(assembler, number, query=query)
            except EmbedderError:
                # Vectors made before the failure are valid.
                if complete:
                    yield complete
                raise
            yield complete

    def _choose_queue(self, text_count: int, *, query: bool) -> tuple[WorkerQueue, tuple[int, int]]:
        """Return the queue for texts, and the most tokens and texts of a batch in it."""
        default_queue, accelerator_queue = self._ready_queues()
        if accelerator_queue and not query and text_count >= _BACKLOG_TEXTS:
            return accelerator_queue, _ACCELERATOR_BATCH
        return default_queue, _CPU_BATCH

    def _set_pace(self, text_count: int, *, query: bool) -> None:
        """Set how the default queue's process must run for so many texts; few take any process."""
        if query:
            self._pace.note_waiter()
        elif queue := self._default_queue:
            backlog = self._backlog_settings if text_count >= _BACKLOG_TEXTS else None
            queue.required_settings = backlog and self._pace.adapt(backlog)

    def _embed_batch(
        self, pieces: Sequence[TextPiece], queue: WorkerQueue, *, query: bool
    ) -> Iterator[tuple[int, Vector | None]]:
        longest = max(piece.token_count for piece in pieces)

        def embed(texts: Sequence[str]) -> list[Vector]:
            batch = self._send(queue, texts, longest * len(texts), query=query)
            if not query:
                self._throughput.record(batch.seconds, len(texts))
            return batch.vectors

        return embed_isolating_failures([piece.text for piece in pieces], embed, BatchFailedError)

    def _send(
        self, queue: WorkerQueue, texts: Sequence[str], token_count: int, *, query: bool
    ) -> EmbeddedBatch:
        """Embed a batch in a queue; if an accelerator fails for good, in the default queue.

        Raises:
            BatchFailedError: the model failed on these texts.
            EmbedderError: the model cannot be used now.
        """
        if queue is self._default_queue or self._accelerator_queue is None:
            # Also a batch that was meant for an accelerator which failed meanwhile.
            return (self._default_queue or queue).embed(texts, token_count, query=query)
        try:
            return queue.embed(texts, token_count, query=query)
        except BatchFailedError:
            raise
        except EmbedderError as error:
            if self._closed or self._default_queue is None:
                raise
            self._accelerator_failure = f"the accelerator cannot be used: {error.message}"
            self._accelerator_queue = None
            return self._default_queue.embed(texts, token_count, query=query)

    def _finish_text(self, assembler: VectorAssembler, number: int, *, query: bool) -> Vector:
        """Count a complete text; return its vector, zeros if the model rejects it.

        Raises:
            EmbedderError: the model rejects a query.
        """
        vector = assembler.take(number)
        if query and vector is None:
            raise EmbedderError(
                "the model cannot embed this query", "search --mode text finds by words"
            )
        if not query:
            self.embedded += 1
            self.refused += vector is None
            self.over_window += assembler.is_split(number)
        return bytes(4 * self.dimension) if vector is None else vector

    @cached_property
    def _token_counter(self) -> TokenCounter:
        return shared_token_counter(self._files.tokenizer)

    # Processes

    def _queues(self) -> list[WorkerQueue]:
        return [queue for queue in (self._default_queue, self._accelerator_queue) if queue]

    def _ready_queues(self) -> tuple[WorkerQueue, WorkerQueue | None]:
        """Return the default queue and the accelerator's, or None; export the model if need be.

        Raises:
            EmbedderError: the embedder was closed, or the model has no int8 version.
        """
        if self._default_queue is None:
            with self._prepare_lock:
                if self._default_queue is None and not self._closed:
                    self._open_queues()
        if self._closed or self._default_queue is None:
            raise EmbedderError("anchord is stopping")
        return self._default_queue, self._accelerator_queue

    def _open_queues(self) -> None:
        info, model_file = self._find_or_make_export()
        if self._closed:
            return
        self._export_info = info
        if info.runtime == "onnx":
            if info.device != CPU:
                settings = self._settings(device=info.device)
                self._accelerator_queue = self._open_queue(TORCH_WORKER_MODULE, settings)
            self._backlog_settings = self._settings(onnx=str(model_file))
            # Last, because other threads take a default queue as the sign that both are open.
            self._default_queue = self._open_queue(
                ONNX_WORKER_MODULE, self._pace.fast(self._backlog_settings)
            )
        elif self.precision == INT8:
            raise int8_failure(self._options, self._plain_id, info.why)
        else:
            self._default_queue = self._open_queue(TORCH_WORKER_MODULE, self._settings())

    def _find_or_make_export(self) -> tuple[ExportInfo, Path]:
        """Return what is known of the model on this machine, and the exported file.

        Exports the model where nothing is known, at most every ten minutes. Without an export, the
        path is the folder of the exports.
        """
        options = self._options
        if found := self._find_export():
            return found
        if self._export_info and self._clock() < self._retry_export_at:
            return self._export_info, options.exports_folder
        export_cache.delete_interrupted_exports(options.exports_folder, time.time())
        self._is_preparing = True
        try:
            made = export_cache.export_and_cache_model(
                options.exports_folder,
                self._model_digest,
                self.precision,
                self._pace.adapt(self._settings()),
                self._remember_export_process,
            )
        finally:
            self._is_preparing = False
            self._export_process = None
        self._retry_export_at = self._clock() + _EXPORT_RETRY_S
        return made

    def _find_export(self, precision: str = "") -> tuple[ExportInfo, Path] | None:
        options = self._options
        older_folder = options.older_exports_folder or options.exports_folder
        return export_cache.find_or_share_export(
            options.exports_folder,
            older_folder,
            self._model_digest,
            precision or self.precision,
        )

    def _remember_export_process(self, process: subprocess.Popen[bytes]) -> None:
        self._export_process = process
        # `close` may have run between the start of the process and this call.
        if self._closed:
            process.kill()

    def _open_queue(self, worker_module: str, settings: WorkerSettings) -> WorkerQueue:
        options = self._options
        return WorkerQueue(
            worker_module, settings, options.idle_s, options.max_growth_bytes, self._clock
        )

    def _settings(self, onnx: str = "", device: str = CPU) -> WorkerSettings:
        """Return a worker's settings; `onnx` is the path of the exported model, "" for none."""
        files = self._files
        return WorkerSettings(
            folder=str(files.folder),
            threads=self._pace.backlog_threads,
            dimension=files.dimension,
            window=files.window,
            tokenizer=str(files.tokenizer),
            query_prefix=files.query_prefix,
            text_prefix=files.text_prefix,
            onnx=onnx,
            device=device,
        )
