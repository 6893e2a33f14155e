"""`provider = "openai"`: embeds texts on a server with /v1/embeddings, such as vLLM, TEI or Ollama.

Up to four batches are in flight at once. A request that may work in a moment is retried with
exponential backoff; if it keeps failing, EmbedderError is raised and the caller's work waits. A
batch that the server refuses is sent again text by text.

A server may cut a text that it finds too long without saying so. So the chunker keeps texts within
`max_tokens` of the bundled tokenizer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import msgspec
import tenacity

from anchord.core.ids import hash_fields
from anchord.core.types import Vector
from anchord.embedding.batching import batch_by_token_count
from anchord.embedding.openai_client import (
    RETRY_HINT,
    OpenAIClient,
    RequestLimits,
    RetryLaterError,
)
from anchord.embedding.poison_text import embed_isolating_failures
from anchord.embedding.tokenizer import shared_token_counter
from anchord.errors import BatchFailedError, EmbedderError

T = TypeVar("T")

_EmbeddedTexts = list[tuple[int, Vector | None]]
"""(index in the batch, vector), None for a text that the server refuses."""

_BATCH = (8_192, 32)
"""The most tokens and texts of a request: text-embeddings-inference refuses more texts as it comes,
and a crash loses what is in flight."""
_IN_FLIGHT = 4
_MAX_UNCLAIMED = 8 * _IN_FLIGHT
_TRIES = 5
_QUERY_TRIES = 2
_LIMITS = RequestLimits(timeout_s=120.0, connect_timeout_s=5.0, max_pause_s=60.0)
_QUERY_LIMITS = RequestLimits(timeout_s=20.0, connect_timeout_s=20.0, max_pause_s=2.0)
_LONGEST_BACKOFF_S = 8.0
_DIMENSIONS_FILE = "served.json"
_CLOSE_POLL_S = 0.1
"""How often a thread that waits for the server checks whether anchord is stopping."""
_RATE_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class EmbeddingServer:
    """The server and how it is used. It has no repr, which would show the key."""

    url: str
    """The address up to and including `/v1`."""
    key: str = ""
    """The API key; "" for none."""
    dimension: int = 0
    """Numbers in a vector; 0 for unknown."""
    query_prefix: str = ""
    text_prefix: str = ""


@dataclass(eq=False, slots=True)
class _SentBatch:
    """A batch that a thread sends, or waits to send."""

    texts: Sequence[str]
    is_sent: bool = False
    """Whether the request has begun: the server makes its vectors, whoever waits for them."""
    is_abandoned: bool = False
    """Whether it need not be sent any more."""


class OpenAIEmbedder:
    """A model on a server. Any thread may use it."""

    fallback_reason = ""
    is_immediate = False
    is_prepared = True

    def __init__(
        self,
        name: str,
        server: EmbeddingServer,
        tokenizer: Path,
        dimensions_folder: Path,
        first_retry_pause_s: float = 0.5,
    ) -> None:
        """Check the server's address and key; the server is contacted by the first text.

        Args:
            name: the model's name on the server.
            server: the server.
            tokenizer: the tokenizer.json that measures the batches.
            dimensions_folder: where the dimensions of models are remembered; created if need be.
            first_retry_pause_s: seconds before the second try; the pause doubles up to 8 s.

        Raises:
            ConfigError: the address or the key is invalid, or the key would be sent unencrypted.
        """
        self.embedded = 0
        """Texts since the start; queries do not count."""
        self.refused = 0
        """Texts that the server refuses. Their vectors are zeros; only words find them."""
        self._name = name
        self._server = server
        self._tokenizer = tokenizer
        self._dimensions_file = dimensions_folder / _DIMENSIONS_FILE
        self._first_retry_pause_s = first_retry_pause_s
        self._active_requests = 0
        self._closing = threading.Event()
        self._slots = threading.BoundedSemaphore(_IN_FLIGHT)
        self._dimension_lock = threading.Lock()
        self._recent_batches: deque[tuple[float, int]] = deque()
        """(time of the end, texts) of the batches in the last 60 s."""
        self._unclaimed: deque[tuple[Future[_EmbeddedTexts], _SentBatch]] = deque(
            maxlen=_MAX_UNCLAIMED
        )
        """Requests whose caller left before they were answered."""
        self._unclaimed_lock = threading.Lock()
        # Two more connections than batches, so that queries need not wait for one.
        self._client = OpenAIClient(server.url, server.key, max_connections=_IN_FLIGHT + 2)

    @property
    def dimension(self) -> int:
        """Numbers in a vector: as configured, else as remembered, else as the server answers.

        Raises:
            EmbedderError: the dimension is unknown, and the server does not answer.
        """
        with self._dimension_lock:
            return self._dimension

    @cached_property
    def _dimension(self) -> int:
        known = self._server.dimension or self._read_dimensions().get(self._name)
        return known or self._request_dimension()

    @property
    def model_id(self) -> str:
        """The model's name, prefixes and dimension, as one line.

        Raises:
            EmbedderError: as `dimension`.
        """
        own = hash_fields(self._name, self._server.query_prefix, self._server.text_prefix)
        return f"openai/{own}/{self.dimension}"

    def prepare_in_background(self) -> None:
        """Do nothing: the server has its models ready."""

    def note_waiter(self) -> None:
        """Do nothing: the server does not know priorities."""

    @property
    def texts_per_second(self) -> float:
        """Texts a second since the first batch of the last 60 s of work; 0 without any."""
        batches = list(self._recent_batches)
        if not batches:
            return 0.0
        elapsed_s = time.monotonic() - batches[0][0]
        return sum(count for _, count in batches) / max(elapsed_s, 1.0)

    @property
    def state(self) -> str:
        """`busy` or `ready`."""
        return "busy" if self._active_requests else "ready"

    def status_fields(self) -> dict[str, object]:
        """Return what `anchord status` shows of the model besides its state and rate."""
        return {
            "runtime": "server",
            "device": self._client.host,
            "refused": self.refused,
            "in_flight": self._active_requests,
        }

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Embed texts; blocks until all are done.

        Args:
            texts: the texts.
            is_query: whether they are queries. Queries get the query prefix, go in one request, do
            not
                wait for batches and are retried once.

        Returns:
            An L2-normalised float32 vector for each text, in order; all zeros for a text that the
            server refuses.

        Raises:
            EmbedderError: the server cannot be used now, or it refuses a query.
        """
        if is_query:
            future = self._start_thread(lambda: self._post(texts, query=True))
            self._wait([future])
            return future.result()
        vectors: dict[int, Vector] = {}
        for batch in self.embed_batches(texts):
            vectors.update(batch)
        return [vectors[number] for number in range(len(texts))]

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Yield batches in any order, each as index of a text -> its vector (see `embed`).

        A caller may leave before the end. What is in flight then is not sent again: a later call
        with the same texts gets its vectors.

        Raises:
            EmbedderError: the server cannot be used now. It is raised after the batches in flight;
                the vectors yielded before are valid.
        """
        if not texts:
            return
        in_flight = self._claim(texts)
        numbers_by_text: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            numbers_by_text.setdefault(text, []).append(number)
        claimed = {text for batch in in_flight.values() for text in batch.texts}
        batches = self._split_into_batches(
            [text for text in numbers_by_text if text not in claimed]
        )
        failure: BaseException | None = None
        try:
            while True:
                if failure is None:
                    self._send_batches(in_flight, batches)
                if not in_flight:
                    break
                for future in self._wait(in_flight):
                    batch = in_flight.pop(future)
                    error = future.exception()
                    failure = failure or error
                    if error is None:
                        made = future.result()
                        vectors = ((batch.texts[at], self._count_text(each)) for at, each in made)
                        yield {
                            number: vector
                            for text, vector in vectors
                            for number in numbers_by_text.get(text, ())
                        }
        finally:
            self._leave(in_flight)
        if failure:
            raise failure

    def stop_idle_workers(self) -> None:
        """Do nothing: there are no processes."""

    def close(self) -> None:
        """Abandon the requests in flight; later calls raise EmbedderError."""
        self._closing.set()
        self._client.close()

    # Threads

    def _split_into_batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        token_counts = shared_token_counter(self._tokenizer).count_without_caching(texts)
        for indexes in batch_by_token_count(token_counts, *_BATCH):
            yield [texts[index] for index in indexes]

    def _claim(self, texts: Sequence[str]) -> dict[Future[_EmbeddedTexts], _SentBatch]:
        """Take over the requests with some of these texts whose callers have left."""
        wanted = set(texts)
        with self._unclaimed_lock:
            usable = [
                (future, batch)
                for future, batch in self._unclaimed
                if not (future.done() and future.exception())
            ]
            claimed = {
                future: batch for future, batch in usable if not wanted.isdisjoint(batch.texts)
            }
            self._unclaimed.clear()
            self._unclaimed.extend(each for each in usable if each[0] not in claimed)
        return claimed

    def _leave(self, in_flight: Mapping[Future[_EmbeddedTexts], _SentBatch]) -> None:
        """Let nothing more be sent of these batches, and keep what was sent for later calls."""
        for batch in in_flight.values():
            batch.is_abandoned = True
        with self._unclaimed_lock:
            self._unclaimed.extend(each for each in in_flight.items() if each[1].is_sent)

    def _send_batches(
        self,
        in_flight: dict[Future[_EmbeddedTexts], _SentBatch],
        batches: Iterator[list[str]],
    ) -> None:
        """Start batches until four are in flight or none is left."""
        while len(in_flight) < _IN_FLIGHT and (texts := next(batches, None)):
            batch = _SentBatch(texts)
            in_flight[self._start_thread(partial(self._embed_batch, batch))] = batch

    def _start_thread(self, job: Callable[[], T]) -> Future[T]:
        """Run a job in a daemon thread, for which neither `close` nor the end of the process waits.

        Raises:
            EmbedderError: this embedder was closed.
        """
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - raised again by the caller of `result`
                future.set_exception(error)

        if self._closing.is_set():
            raise EmbedderError("anchord is stopping")
        threading.Thread(target=run, name="served", daemon=True).start()
        return future

    def _wait(self, futures: Iterable[Future[T]]) -> set[Future[T]]:
        """Block until a future is done; return all that are done.

        Raises:
            EmbedderError: this embedder was closed meanwhile.
        """
        while True:
            done = wait(futures, _CLOSE_POLL_S, FIRST_COMPLETED).done
            if self._closing.is_set():
                raise EmbedderError("anchord is stopping")
            if done:
                return done

    def _embed_batch(self, batch: _SentBatch) -> _EmbeddedTexts:
        with self._slots:
            if batch.is_abandoned:
                raise EmbedderError("the batch was abandoned")
            batch.is_sent = True
            embedded = list(embed_isolating_failures(batch.texts, self._post, BatchFailedError))
        now = time.monotonic()
        self._recent_batches.append((now, len(batch.texts)))
        while now - self._recent_batches[0][0] > _RATE_WINDOW_S:
            self._recent_batches.popleft()
        return embedded

    def _count_text(self, vector: Vector | None) -> Vector:
        self.embedded += 1
        self.refused += vector is None
        return bytes(4 * self.dimension) if vector is None else vector

    # Requests

    def _post(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        """Send a request, with retries.

        Raises:
            BatchFailedError: the server refuses these texts.
            EmbedderError: the server cannot be used now.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(RetryLaterError),
            stop=tenacity.stop_after_attempt(_QUERY_TRIES if query else _TRIES),
            wait=self._pause_s,
            sleep=self._sleep,
            reraise=True,
        )
        self._active_requests += 1
        try:
            vectors = retrying(self._request, texts, query=query)
        except RetryLaterError as error:
            raise EmbedderError(
                f"the embedding server does not answer: {error}", RETRY_HINT
            ) from None
        finally:
            self._active_requests -= 1
        self._check_dimension(vectors)
        return vectors

    def _request(self, texts: Sequence[str], *, query: bool) -> list[Vector]:
        prefix = self._server.query_prefix if query else self._server.text_prefix
        limits = _QUERY_LIMITS if query else _LIMITS
        return self._client.embed(self._name, [prefix + text for text in texts], limits)

    def _check_dimension(self, vectors: Sequence[Vector]) -> None:
        for vector in vectors:
            returned = len(vector) // 4
            if returned != self.dimension:
                raise EmbedderError(
                    f"the embedding server returned vectors of dimension {returned}, "
                    f"the index has {self.dimension}",
                    "the server runs another model under this name: "
                    "change `model` or `dimension` under [embedding]",
                )

    def _pause_s(self, state: tenacity.RetryCallState) -> float:
        """Return the seconds before the next try: exponential, at least the server's."""
        error = state.outcome.exception() if state.outcome else None
        requested = error.pause_s if isinstance(error, RetryLaterError) else 0.0
        backoff = tenacity.wait_exponential_jitter(
            multiplier=self._first_retry_pause_s,
            max=_LONGEST_BACKOFF_S,
            jitter=self._first_retry_pause_s,
        )
        return max(requested, backoff(state))

    def _sleep(self, seconds: float) -> None:
        if self._closing.wait(seconds):
            raise EmbedderError("anchord is stopping")

    # The dimension

    def _read_dimensions(self) -> dict[str, int]:
        """Return the remembered dimensions by model; none where the file cannot be read."""
        try:
            return msgspec.json.decode(self._dimensions_file.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.MsgspecError):
            return {}

    def _request_dimension(self) -> int:
        """Embed one word to learn the dimension, and remember it."""
        try:
            (vector,) = self._request(["size"], query=False)
        except RetryLaterError as error:
            raise EmbedderError(
                f"the embedding server does not answer ({error}), "
                "and the dimension of its model is not known yet",
                "start the server, or set `dimension` under [embedding]",
            ) from None
        dimension = len(vector) // 4
        with suppress(OSError):  # Without the file, the next start requests it again.
            self._dimensions_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            remembered = {**self._read_dimensions(), self._name: dimension}
            self._dimensions_file.write_bytes(msgspec.json.encode(remembered))
        return dimension
