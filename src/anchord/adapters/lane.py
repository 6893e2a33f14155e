"""A lane, in which one embedding process works for many callers.

The process is started when there is work, ends after a while without, and is replaced when it died, hung, or grew too large.
Between any two batches a query goes before everything else.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from anchord.adapters.child import Child, ChildError
from anchord.adapters.prepared import offline
from anchord.adapters.serving import Settings
from anchord.errors import BatchFailedError, EmbedderError
from anchord.model import Vector

START_TIMEOUT_S = 180.0
BATCH_TIMEOUT_S = 60.0
"""A batch takes less than a second; what takes a minute does not end. Long texts have more time:"""
TOKEN_TIMEOUT_S = 0.02
HINT = "the daemon tries again by itself; `anchord status` tells when it works"


@dataclass(frozen=True, slots=True)
class Made:
    """Vectors, and the seconds that the model took for them."""

    vectors: list[Vector]
    seconds: float


class Lane:
    """One embedding process, and whoever waits for it."""

    def __init__(self, program: str, settings: Settings, idle_s: float, growth: int, clock: Callable[[], float]) -> None:
        """Prepare; nothing is started before the first text. `growth`: bytes by which the process may grow, 0 for any."""
        self.starts = 0
        self._program = program
        self._settings = settings
        self._idle_s = idle_s
        self._growth = growth
        self._clock = clock
        self._process: Child | None = None
        self._loaded: int | None = None
        """Bytes that the process held once its model was loaded; None before."""
        self._closed = False
        self._last_used = 0.0
        self._turn = threading.Condition()
        self._busy = False
        self._queries_waiting = 0

    @property
    def state(self) -> str:
        """`off`, `starting`, `ready` or `busy`."""
        process = self._process
        if process is None or not process.alive:
            return "starting" if self._busy else "off"
        return "starting" if self._loaded is None else "busy" if self._busy else "ready"

    @property
    def memory(self) -> int:
        """Bytes that the process holds; 0 without one."""
        process = self._process
        return process.memory if process and process.alive else 0

    def embed(self, texts: Sequence[str], tokens: int, *, query: bool) -> Made:
        """Return a vector a text, of one batch of so many tokens.

        Raises:
            BatchFailedError: the process died, hung, or gave numbers that are none. EmbedderError: it cannot be started.
        """
        self._take_turn(query=query)
        try:
            made = self._ask(texts, tokens, query=query)
        except BaseException:
            self._end()  # Half an answer may still be on the pipe: only a new process is in step again.
            raise
        else:
            if self._growth and self.memory > (self._loaded or 0) + self._growth:
                self._end()
            return made
        finally:
            self._last_used = self._clock()
            with self._turn:
                self._busy = False
                self._turn.notify_all()

    def rest(self) -> None:
        """End the process when it has had nothing to do for a while; called now and then."""
        with self._turn:
            if self._process and not self._busy and self._clock() - self._last_used > self._idle_s:
                self._end()

    def close(self) -> None:
        """End the process, in the middle of a batch too."""
        self._closed = True
        with self._turn:
            if self._busy and self._process:
                self._process.running.kill()  # Whoever waits for its answer sees the pipe end, and cleans up.
            elif not self._busy:
                self._end()

    def _take_turn(self, *, query: bool) -> None:
        with self._turn:
            self._queries_waiting += query
            try:
                self._turn.wait_for(lambda: not self._busy and (query or not self._queries_waiting))
                self._busy = True
            finally:
                self._queries_waiting -= query

    def _ask(self, texts: Sequence[str], tokens: int, *, query: bool) -> Made:
        process = self._started()
        began = self._clock()
        try:
            timeout_s = BATCH_TIMEOUT_S + tokens * TOKEN_TIMEOUT_S
            answer = process.answer(timeout_s, {"texts": list(texts), "query": query})
        except ChildError as error:
            raise BatchFailedError(f"the embedding process {error}", HINT) from None
        seconds = self._clock() - began
        numbers = answer.get("vectors")
        size = 4 * self._settings.dimension
        if not isinstance(numbers, bytes) or len(numbers) != size * len(texts):
            raise BatchFailedError(f"the model failed: {answer.get('error', 'an answer of the wrong size')}", HINT)
        if not math.isfinite(sum(array("f", numbers))):
            raise BatchFailedError("the model gave numbers that are none (NaN or infinite)", HINT)
        return Made([numbers[n * size : (n + 1) * size] for n in range(len(texts))], seconds)

    def _started(self) -> Child:
        self._refuse_closed()
        if self._process is None or not self._process.alive:
            self._end()
            self.starts += 1
            try:
                self._process = Child(self._program, (msgspec.json.encode(self._settings).decode(),), offline())
                self._refuse_closed()  # `close` cannot have seen it.
                ready = self._process.answer(START_TIMEOUT_S).get("ready")
            except ChildError as error:
                raise EmbedderError(f"the embedding process {error}", HINT) from None
            if ready != self._settings.dimension:
                raise EmbedderError(f"the model gives {ready} numbers where its files say {self._settings.dimension}", HINT)
            self._loaded = self._process.memory
        return self._process

    def _refuse_closed(self) -> None:
        if self._closed:
            raise EmbedderError("anchord is stopping")

    def _end(self) -> None:
        process, self._process, self._loaded = self._process, None, None
        if process:
            process.end()
