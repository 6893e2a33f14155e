"""Reranks with a CrossEncoder, in a process that starts with the first call and stops when idle."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from anchord.embedding.model_files import find_model_folder
from anchord.embedding.workers.export_cache import offline_environment
from anchord.errors import EmbedderError
from anchord.ipc.worker_process import WorkerProcess, WorkerProcessError

_WORKER_MODULE = "anchord.embedding.workers.rerank_worker"
_LOAD_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 30.0
_HINT = "check [search] reranker"


class CrossEncoderReranker:
    """Scores texts for a query. Any thread may use it; calls run one after the other."""

    def __init__(self, model: str, idle_s: float) -> None:
        """Find the model; nothing is downloaded, and no process is started yet.

        Args:
            model: a folder, or an id in the hub's cache.
            idle_s: seconds without a call after which the process is stopped.

        Raises:
            ConfigError: there is no such model, or its weights are in a format that can execute
            code.
        """
        self._folder = find_model_folder(model)
        self._name = model
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._idle_timer: threading.Timer | None = None

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, in order; a higher one is better.

        Blocks for up to 30 s, the first call up to 120 s more while the process loads the model.

        Raises:
            EmbedderError: the model cannot be loaded, failed or did not answer in time.
        """
        with self._lock:
            self._cancel_idle_timer()
            request = {"query": query, "texts": list(texts)}
            try:
                answer = self._running_process().call_or_kill(_ANSWER_TIMEOUT_S, request)
            except WorkerProcessError as error:
                self._stop()
                raise EmbedderError(f"the reranker {self._name} {error}", _HINT) from error
            self._start_idle_timer()
            scores = answer.get("scores")
            if not isinstance(scores, list) or len(scores) != len(texts):
                raise EmbedderError(
                    f"the reranker {self._name} failed ({answer.get('error')})", _HINT
                )
            return [float(score) for score in scores]

    def close(self) -> None:
        """Stop the process after the call in progress; the next call starts another."""
        with self._lock:
            self._cancel_idle_timer()
            self._stop()

    def _cancel_idle_timer(self) -> None:
        if self._idle_timer:
            self._idle_timer.cancel()

    def _start_idle_timer(self) -> None:
        self._idle_timer = threading.Timer(self._idle_s, self.close)
        self._idle_timer.daemon = True
        self._idle_timer.start()

    def _running_process(self) -> WorkerProcess:
        """Return the process; start one and load the model if none runs."""
        if self._process and self._process.is_alive:
            return self._process
        self._stop()
        self._process = WorkerProcess(_WORKER_MODULE, (str(self._folder),), offline_environment())
        loaded = self._process.call_or_kill(_LOAD_TIMEOUT_S)
        if "error" in loaded:
            self._stop()
            raise EmbedderError(
                f"the reranker {self._name} cannot be loaded: {loaded['error']}", _HINT
            )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process:
            process.shut_down()
