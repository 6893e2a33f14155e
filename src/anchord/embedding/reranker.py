"""Reranks with a CrossEncoder, in a process that starts with the first call and stops when idle."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from anchord.embedding.model_files import find_model_folder
from anchord.embedding.workers.export_cache import offline_environment
from anchord.errors import ConfigError, EmbedderError
from anchord.ipc.worker_process import WorkerProcess, WorkerProcessError

T = TypeVar("T")

_WORKER_MODULE = "anchord.embedding.workers.rerank_worker"
_LOAD_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 30.0
_WATCH_S = 1.0
_RETRY_S = 60.0
"""How long a failure counts: each try to load a model takes seconds of CPU."""
_HINT = "check [search] reranker"


class CrossEncoderReranker:
    """Scores texts for a query. Any thread may use it; calls run one after the other."""

    def __init__(self, model: str, idle_s: float, load_wait_s: float = 0.0) -> None:
        """Remember the model; it is looked for at the first call, and nothing is downloaded.

        Args:
            model: a folder, or an id in the hub's cache.
            idle_s: seconds without a call after which the process is stopped.
            load_wait_s: seconds that a call waits for a model that is being loaded.
        """
        self._name = model
        self._problem: str | None = None
        self._idle_s = idle_s
        self._load_wait_s = load_wait_s
        self._retry_at = float("-inf")
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self._loaded: threading.Event | None = None
        self._idle_timer: threading.Timer | None = None

    @property
    def problem(self) -> str:
        """Why the last call failed, or the first one will, "" if it did not.

        The first time it looks for the model's files.
        """
        if self._problem is None:
            try:
                find_model_folder(self._name)
            except ConfigError as error:
                self._problem = _unusable(error)
        return self._problem or ""

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, in order; a higher one is better.

        Blocks for up to 30 s once the model is loaded. After a failure to load it, each call
        fails at once, until the next try a minute later.

        Raises:
            EmbedderError: the model is being loaded. Or there is none, its weights are in a format
            that can execute code, it cannot be loaded, failed or did not answer in time: this is
            in `problem` too.
        """
        self._wait_for_model()
        return self._run(lambda: self._ask(query, texts))

    def _wait_for_model(self) -> None:
        """Let a thread load the model if it is not, and wait for it as long as a call may."""
        if self._process and self._process.is_alive:
            return
        loaded = self._loaded
        if loaded is None:
            self._raise_recent_problem()
            loaded = self._loaded = threading.Event()
            threading.Thread(
                target=self._load, args=(loaded,), name="reranker", daemon=True
            ).start()
        if not loaded.wait(self._load_wait_s):
            raise EmbedderError(f"the reranker {self._name} is being loaded", "search again later")
        self._raise_recent_problem()

    def _raise_recent_problem(self) -> None:
        if self._problem and time.monotonic() < self._retry_at:
            raise EmbedderError(self._problem, _HINT)

    def _load(self, loaded: threading.Event) -> None:
        """Load the model, and stay as long as its process: that ends with its thread."""
        process = None
        try:
            process = self._run(self._running_process)
        except EmbedderError:  # It is in `problem`.
            self._retry_at = time.monotonic() + _RETRY_S
        self._loaded = None
        loaded.set()
        while process and process.is_alive:
            time.sleep(_WATCH_S)

    def _run(self, job: Callable[[], T]) -> T:
        """Run what uses the process alone; stop the process unless it answered."""
        with self._lock:
            self._cancel_idle_timer()
            try:
                result = job()
            except EmbedderError:
                self._start_idle_timer()
                raise
            except ConfigError as error:
                raise self._failed(_unusable(error)) from error
            except WorkerProcessError as error:
                raise self._failed(f"the reranker {self._name} {error}") from error
            self._problem = ""
            self._start_idle_timer()
            return result

    def _failed(self, problem: str) -> EmbedderError:
        """Stop the process, and remember and return what is wrong."""
        self._stop()
        self._problem = problem
        return EmbedderError(problem, _HINT)

    def _ask(self, query: str, texts: Sequence[str]) -> list[float]:
        request = {"query": query, "texts": list(texts)}
        answer = self._running_process().call_or_kill(_ANSWER_TIMEOUT_S, request)
        scores = answer.get("scores")
        if not isinstance(scores, list) or len(scores) != len(texts):
            self._problem = f"the reranker {self._name} failed ({answer.get('error')})"
            raise EmbedderError(self._problem, _HINT)
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
        folder = str(find_model_folder(self._name))
        self._process = WorkerProcess(_WORKER_MODULE, (folder,), offline_environment())
        loaded = self._process.call_or_kill(_LOAD_TIMEOUT_S)
        if "error" in loaded:
            raise WorkerProcessError(f"cannot be loaded: {loaded['error']}")
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process:
            process.shut_down()


def _unusable(error: ConfigError) -> str:
    return f"the reranker cannot be used: {error.message}"
