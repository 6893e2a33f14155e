"""`provider = "sentence-transformers"`: texts -> vectors on this machine, in processes of their own: this one has no torch.

Daily work runs in the light process (`onnx_worker`), on a model that was exported once (`prepared`). Where that cannot be, the
model runs as it is (`torch_worker`), and `why` says the reason; where an accelerator is clearly faster, a backlog runs there.

No text is ever cut: the tokens of each are counted before it is sent, and one that is over the model's window (a defect of the
chunker, and counted) is embedded in pieces whose vectors are added up.
"""

from __future__ import annotations

import math
import os
import subprocess
import threading
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from anchord.adapters import prepared
from anchord.adapters.lane import Lane, Made
from anchord.adapters.models import ModelFiles
from anchord.adapters.prepared import CPU, INT8, Facts
from anchord.adapters.serving import Settings
from anchord.adapters.tokenizer import TokenCounter, counter_of
from anchord.core.batches import batches
from anchord.core.isolate import isolate
from anchord.errors import BatchFailedError, EmbedderError
from anchord.model import Vector

ONNX = "anchord.adapters.onnx_worker"
TORCH = "anchord.adapters.torch_worker"

_BATCH = (512, 32)
"""Tokens and texts of a batch on a processor: larger ones are slower and take more memory (README, benchmark)."""
_LARGE_BATCH = (32_768, 512)
"""The same on an accelerator."""
_BACKLOG_TEXTS = 64
"""From so many texts on an accelerator is worth waking."""
_AROUND = 4
"""Tokens of a text in a batch besides its own: special ones."""
_RATE_S = 60.0
_AGAIN_S = 600.0
"""After so long it is tried again to make a model ready, where that failed for want of something."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the processes run."""

    models: Path
    """Where exported models are kept."""
    precision: str = "fp32"
    threads: int = 0
    """0: half of the processors."""
    idle_s: float = 300.0
    growth: int = 1_000_000_000
    """Bytes by which a process may grow after its model is loaded, before it is replaced; 0: any."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text, or a part of one that is over the window."""

    number: int
    """Of its text."""
    text: str
    tokens: int


class LocalEmbedder:
    """A sentence-transformers model on this machine."""

    provider = "sentence-transformers"

    def __init__(self, files: ModelFiles, options: Options, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare; nothing is started before the first text."""
        self.dimension = files.dimension
        self.embedded = 0
        """Texts since the start; queries do not count."""
        self.over_window = 0
        """Texts that were over the window, and embedded in pieces."""
        self.refused = 0
        """Texts that no process survives; they have a vector of zeros, and are found by words alone."""
        self._files = files
        self._options = options
        self._clock = clock
        self._one_prepares = threading.Lock()
        self._is_preparing = False
        self._exporting: subprocess.Popen[bytes] | None = None
        self._facts: Facts | None = None
        self._try_again_at = 0.0
        self._trouble = ""
        self._light: Lane | None = None
        self._large: Lane | None = None
        self._closed = False
        self._done: deque[tuple[float, float, int]] = deque()
        """(end, seconds, texts) of the last batches."""

    @cached_property
    def _identity(self) -> str:
        return self._files.identity()

    @property
    def model(self) -> str:
        """Name the model by the digest of its weights and settings, and by its precision where that is coarser."""
        return f"{self.provider}/{self._identity}" + (f"/{INT8}" if self._options.precision == INT8 else "")

    @property
    def rate(self) -> float:
        """Texts a second of the model's own time lately; 0 when nothing was embedded yet."""
        done = list(self._done)
        busy = sum(seconds for _, seconds, _ in done)
        return sum(texts for _, _, texts in done) / busy if busy else 0.0

    @property
    def state(self) -> str:
        """`off`, `preparing`, `starting`, `ready` or `busy`."""
        if self._is_preparing:
            return "preparing"
        states = [lane.state for lane in self._lanes()]
        return next((state for state in ("busy", "starting", "ready") if state in states), "off")

    @property
    def why(self) -> str:
        """Why something slower serves than could, "" where nothing does or nothing is known yet."""
        return self._trouble or (self._facts.why if self._facts else "")

    def describe(self) -> dict[str, object]:
        """Return what status tells beside state and rate."""
        facts = self._facts
        return {
            "runtime": facts.runtime if facts else None,
            "device": (facts.device if self._large else CPU) if facts else None,
            "precision": self._options.precision,
            "measured": dict(facts.rates) if facts else {},
            "starts": sum(lane.starts for lane in self._lanes()),
            "rss_bytes": sum(lane.memory for lane in self._lanes()),
            "refused": self.refused,
            "over_window": self.over_window,
        }

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Vector]:
        """Return a vector a text; queries go before everything else.

        Raises:
            EmbedderError: no vectors can be had now.
        """
        if query and self._is_preparing:
            raise EmbedderError("the model is being made ready for this machine", "it takes some ten seconds, once")
        vectors = {number: vector for batch in self._stream(texts, query=query) for number, vector in batch.items()}
        return [vectors[number] for number in range(len(texts))]

    def stream(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Yield batch by batch what is made, as number of a text -> its vector, in any order.

        Raises:
            EmbedderError: no more can be had now; what was yielded counts.
        """
        return self._stream(texts, query=False)

    def rest(self) -> None:
        """End processes that had nothing to do for a while; called now and then."""
        for lane in self._lanes():
            lane.rest()

    def close(self) -> None:
        """End the processes, in the middle of a batch too."""
        self._closed = True
        if exporting := self._exporting:
            exporting.kill()
        for lane in self._lanes():
            lane.close()

    # Texts to batches, and back

    def _stream(self, texts: Sequence[str], *, query: bool) -> Iterator[dict[int, Vector]]:
        if not texts:
            return
        light, large = self._ready()
        lane, size = (large, _LARGE_BATCH) if large and not query and len(texts) >= _BACKLOG_TEXTS else (light, _BATCH)
        pieces = list(self._pieces(texts))
        waiting = Counter(piece.number for piece in pieces)
        split = {number for number, count in waiting.items() if count > 1}
        parts: dict[int, list[tuple[Vector | None, int]]] = {}
        for batch in batches([piece.tokens + _AROUND for piece in pieces], *size):
            some, whole = [pieces[index] for index in batch], dict[int, Vector]()
            try:
                for index, vector in self._made(some, lane, query=query):
                    piece = some[index]
                    parts.setdefault(piece.number, []).append((vector, piece.tokens))
                    waiting[piece.number] -= 1
                    if not waiting[piece.number]:
                        made = _joined(parts.pop(piece.number))
                        self._count_in(made, query=query, split=piece.number in split)
                        whole[piece.number] = bytes(4 * self.dimension) if made is None else made
            except EmbedderError:
                if whole:
                    yield whole  # What was made before the failure counts.
                raise
            yield whole

    def _pieces(self, texts: Sequence[str]) -> Iterator[_Piece]:
        for number, (text, tokens) in enumerate(zip(texts, self._count.once(texts), strict=True)):
            if tokens <= self._files.window:
                yield _Piece(number, text, tokens)
            else:
                yield from (_Piece(number, part, self._count.once([part])[0]) for part in self._parts(text))

    def _parts(self, text: str) -> list[str]:
        """Split a text that is over the window; a part ends after white space where it can."""
        if self._count.once([text])[0] <= self._files.window:
            return [text]
        middle = len(text) // 2
        with suppress(StopIteration):
            middle = next(at for at in range(middle, max(middle - 200, 1), -1) if text[at - 1].isspace())
        return [*self._parts(text[:middle]), *self._parts(text[middle:])] if middle else [text]

    def _made(self, pieces: Sequence[_Piece], lane: Lane, *, query: bool) -> Iterator[tuple[int, Vector | None]]:
        longest = max(piece.tokens for piece in pieces)

        def embed(some: Sequence[str]) -> list[Vector]:
            made = self._through(lane, some, longest * len(some), query=query)
            if not query:
                self._note(made.seconds, len(some))
            return made.vectors

        return isolate([piece.text for piece in pieces], embed, BatchFailedError)

    def _through(self, lane: Lane, texts: Sequence[str], tokens: int, *, query: bool) -> Made:
        """Send a batch through a lane; where an accelerator cannot be used any more, through the light one."""
        if lane is self._light or self._large is None:
            return (self._light or lane).embed(texts, tokens, query=query)
        try:
            return lane.embed(texts, tokens, query=query)
        except BatchFailedError:
            raise
        except EmbedderError as error:
            if self._closed or self._light is None:
                raise
            self._trouble = f"the accelerator cannot be used: {error.message}"
            self._large = None
            return self._light.embed(texts, tokens, query=query)

    def _count_in(self, made: Vector | None, *, query: bool, split: bool) -> None:
        if query and made is None:
            raise EmbedderError("the model cannot embed this query", "search --mode text finds by words")
        if not query:
            self.embedded += 1
            self.refused += made is None
            self.over_window += split

    def _note(self, seconds: float, texts: int) -> None:
        now = self._clock()
        self._done.append((now, seconds, texts))
        while now - self._done[0][0] > _RATE_S:
            self._done.popleft()

    @cached_property
    def _count(self) -> TokenCounter:
        return counter_of(self._files.tokenizer)

    # Which processes

    def _lanes(self) -> list[Lane]:
        return [lane for lane in (self._light, self._large) if lane]

    def _ready(self) -> tuple[Lane, Lane | None]:
        """Return the lane for single texts and queries, and the one for a large backlog if it has one of its own."""
        if self._light is None:
            with self._one_prepares:
                if self._light is None and not self._closed:
                    self._prepare()
        if self._closed or self._light is None:
            raise EmbedderError("anchord is stopping")
        return self._light, self._large

    def _prepare(self) -> None:
        facts, file = self._found()
        if self._closed:
            return
        self._facts = facts
        if facts.runtime == "onnx":
            self._large = self._lane(TORCH, self._settings(device=facts.device)) if facts.device != CPU else None
            self._light = self._lane(ONNX, self._settings(onnx=str(file)))
        elif self._options.precision == INT8:
            raise EmbedderError(f"no int8 of this model: {facts.why}", 'set precision = "fp32" under [embedding]')
        else:
            self._light = self._lane(TORCH, self._settings())

    def _found(self) -> tuple[Facts, Path]:
        """Return what is known of the model on this machine; find it out first where nothing is, but not all the time."""
        options = self._options
        found = prepared.find(options.models, self._identity, options.precision)
        if found is None and self._facts and self._clock() < self._try_again_at:
            return self._facts, options.models
        if found is None:
            prepared.sweep(options.models, time.time())
            self._is_preparing = True
            try:
                found = prepared.prepare(options.models, self._identity, options.precision, self._settings(), self._kill_later)
            finally:
                self._is_preparing = False
                self._exporting = None
            self._try_again_at = self._clock() + _AGAIN_S
        return found

    def _kill_later(self, process: subprocess.Popen[bytes]) -> None:
        self._exporting = process
        if self._closed:
            process.kill()

    def _lane(self, program: str, settings: Settings) -> Lane:
        return Lane(program, settings, self._options.idle_s, self._options.growth, self._clock)

    def _settings(self, onnx: str = "", device: str = CPU) -> Settings:
        files, threads = self._files, self._options.threads or max(1, (os.cpu_count() or 2) // 2)
        return Settings(
            folder=str(files.folder), threads=threads, dimension=files.dimension, window=files.window,
            tokenizer=str(files.tokenizer), query_prefix=files.query_prefix, text_prefix=files.text_prefix, onnx=onnx,
            device=device,
        )  # fmt: skip


def _joined(parts: Sequence[tuple[Vector | None, int]]) -> Vector | None:
    """Return the vector of a text in pieces: their sum, each by its tokens, of length one. None: the model refuses them all."""
    known = [(vector, tokens) for vector, tokens in parts if vector is not None]
    if len(parts) == 1 or not known:
        return parts[0][0] if len(parts) == 1 else None
    numbers = [0.0] * (len(known[0][0]) // 4)
    for vector, tokens in known:
        for at, number in enumerate(array("f", vector)):
            numbers[at] += number * tokens
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return array("f", (number / length for number in numbers)).tobytes()
