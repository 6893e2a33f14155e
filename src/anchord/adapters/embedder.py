"""Texts -> vectors by sentence-transformers in a process of its own, so that this process never holds torch.

The worker is started when there is work, ends after a while without, and is started again when it died. Requests are small
batches of like lengths; between any two of them an urgent text (a query) goes first.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

from anchord.adapters.models import ModelFiles
from anchord.adapters.worker import read_frame, write_frame
from anchord.errors import EmbedderError
from anchord.model import Vector

_BATCH_CHARS = 16_000
_BATCH_TEXTS = 32
_START_TIMEOUT_S = 180.0
_BATCH_TIMEOUT_S = 300.0
_HINT = "the daemon tries again by itself; `anchord status` tells when it works"


class WorkerEmbedder:
    """`provider = "sentence-transformers"`."""

    def __init__(self, files: ModelFiles, threads: int, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare; nothing is started before the first text."""
        self.dimension = files.dimension
        self.embedded = 0
        self.rate = 0.0
        """Texts a second in the last batch."""
        self._files = files
        self._threads = threads or max(1, (os.cpu_count() or 2) // 2)
        self._idle_s = idle_s
        self._clock = clock
        self._worker: _Worker | None = None
        self._closed = False
        self._last_used = 0.0
        self._turn = threading.Condition()
        self._busy = False
        self._urgent_waiting = 0

    @cached_property
    def model(self) -> str:
        """Name the model by the digest of its weights and settings."""
        return f"sentence-transformers/{self._files.identity()}"

    @property
    def state(self) -> str:
        """`off`, `ready` or `busy`."""
        if self._busy:
            return "busy"
        return "off" if self._worker is None or self._worker.process.poll() is not None else "ready"

    def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Vector]:
        """Return a vector a text.

        Raises:
            EmbedderError: the worker cannot be started, died, hung, or gave numbers that are none.
        """
        vectors: list[Vector] = [b""] * len(texts)
        for batch in _batches(texts):
            for index, vector in zip(batch, self._embed_batch([texts[i] for i in batch], urgent=urgent), strict=True):
                vectors[index] = vector
        return vectors

    def rest(self) -> None:
        """End the worker when it has had nothing to do for a while; called now and then."""
        with self._turn:
            if self._worker and not self._busy and self._clock() - self._last_used > self._idle_s:
                self._end()

    def close(self) -> None:
        """End the worker, in the middle of a batch too."""
        self._closed = True
        with self._turn:
            if self._busy and self._worker:
                self._worker.process.kill()  # Whoever waits for its answer sees the pipe end, and cleans up.
            else:
                self._end()

    def _embed_batch(self, texts: Sequence[str], *, urgent: bool) -> list[Vector]:
        self._take_turn(urgent=urgent)
        began = self._clock()
        try:
            vectors = self._ask(texts)
        except BaseException:
            self._end()  # Half an answer may still be on the pipe: only a new worker is in step again.
            raise
        finally:
            self._last_used = self._clock()
            with self._turn:
                self._busy = False
                self._turn.notify_all()
        self.embedded += len(texts)
        self.rate = len(texts) / max(self._last_used - began, 1e-6)
        return vectors

    def _take_turn(self, *, urgent: bool) -> None:
        with self._turn:
            self._urgent_waiting += urgent
            try:
                self._turn.wait_for(lambda: not self._busy and (urgent or not self._urgent_waiting))
                self._busy = True
            finally:
                self._urgent_waiting -= urgent

    def _ask(self, texts: Sequence[str]) -> list[Vector]:
        answer = self._started().answer(_BATCH_TIMEOUT_S, list(texts))
        numbers = answer.get("vectors")
        size = 4 * self.dimension
        if not isinstance(numbers, bytes) or len(numbers) != size * len(texts):
            raise EmbedderError(f"the model failed: {answer.get('error', 'an answer of the wrong size')}", _HINT)
        if not math.isfinite(sum(array("f", numbers))):
            raise EmbedderError("the model gave numbers that are none (NaN or infinite)", _HINT)
        return [numbers[n * size : (n + 1) * size] for n in range(len(texts))]

    def _started(self) -> _Worker:
        if self._closed:
            raise EmbedderError("anchord is stopping")
        if self._worker is None or self._worker.process.poll() is not None:
            self._end()
            self._worker = _Worker(self._files.folder, self._threads)
            ready = self._worker.answer(_START_TIMEOUT_S).get("ready")
            if ready != self.dimension:
                raise EmbedderError(f"the model gives {ready} numbers where its files say {self.dimension}", _HINT)
        return self._worker

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker:
            worker.end()


class _Worker:
    """A running embedding process and its pipe."""

    def __init__(self, folder: Path, threads: int) -> None:
        """Start it; its first answer says that the model is loaded."""
        environment = os.environ | {
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONWARNINGS": "ignore",
        }
        # In a session of its own, so that Ctrl-C reaches only the parent, which ends it in good order.
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "anchord.adapters.worker", str(folder), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise EmbedderError(f"the embedding process cannot be started: {error}", _HINT) from error
        self._requests = cast("BinaryIO", self.process.stdin)
        self._answers = cast("BinaryIO", self.process.stdout)

    def answer(self, timeout_s: float, request: object = None) -> dict[str, object]:
        """Send a request, if there is one, and return the next answer.

        Raises:
            EmbedderError: the whole of it did not come in time, or the process ended.
        """
        overdue = threading.Event()

        def give_up() -> None:
            overdue.set()
            self.process.kill()  # Which ends the pipe, and with it the wait.

        timer = threading.Timer(timeout_s, give_up)
        timer.start()
        try:
            if request is not None:
                write_frame(self._requests, request)
            answer = read_frame(self._answers)
        except OSError:
            answer = None
        finally:
            timer.cancel()
        if isinstance(answer, dict):
            return answer
        if overdue.is_set():
            raise EmbedderError(f"the embedding process gave no answer in {timeout_s:.0f} s", _HINT)
        raise EmbedderError("the embedding process ended before it answered", _HINT)

    def end(self) -> None:
        """Close the pipe, which ends the process; kill it when it does not."""
        for stream in (self._requests, self._answers):
            with suppress(OSError):
                stream.close()
        try:
            self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _batches(texts: Sequence[str]) -> list[list[int]]:
    """Group by length: a batch is padded to its longest text."""
    batches: list[list[int]] = []
    chars = 0
    for index in sorted(range(len(texts)), key=lambda i: len(texts[i])):
        if not batches or chars + len(texts[index]) > _BATCH_CHARS or len(batches[-1]) == _BATCH_TEXTS:
            batches.append([])
            chars = 0
        batches[-1].append(index)
        chars += len(texts[index])
    return batches
