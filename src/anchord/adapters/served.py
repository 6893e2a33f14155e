"""`provider = "openai"`: texts -> vectors by a server with /v1/embeddings (vLLM, TEI, Ollama, ...). The only user of httpx2.

Batches go out a few at a time. What may be better soon (no connection, too many requests, a server that starts) is asked again
with growing pauses; a server that stays away is an `EmbedderError`, and work waits for it. A batch that the server refuses is
tried text by text. What a server finds too long it may also cut without a word, so texts are kept to `max_tokens` of the
bundled tokenizer.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import msgspec
import tenacity

from anchord.adapters.tokenizer import counter_of
from anchord.core.batches import batches
from anchord.core.identity import fields_digest
from anchord.core.isolate import isolate
from anchord.errors import BatchFailedError, ConfigError, EmbedderError
from anchord.model import Vector

T = TypeVar("T")

_BATCH = (8_192, 64)
"""Tokens and texts of a request."""
_IN_FLIGHT = 4
_TRIES = 5
_QUERY_TRIES = 2
_TIMEOUT = httpx2.Timeout(120.0, connect=5.0)
_QUERY_TIMEOUT_S = 20.0
_LONGEST_PAUSE_S = 8.0
_MOST_ASKED_S = 60.0
"""A server that asks for a longer pause is taken to be away."""
_SOON = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
_NEVER = {
    HTTPStatus.UNAUTHORIZED: "see the key in the environment's variable that [embedding] api_key_env names",
    HTTPStatus.FORBIDDEN: "see the key in the environment's variable that [embedding] api_key_env names",
    HTTPStatus.NOT_FOUND: "see url and model under [embedding]",
    HTTPStatus.METHOD_NOT_ALLOWED: "see url under [embedding]",
}
_HINT = "the daemon tries again by itself; search --mode text works meanwhile"
_SIZES = "served.json"
_LOOK_S = 0.1
"""So often whoever waits for the server looks whether anchord is stopping."""
_LONGEST_QUERY_PAUSE_S = 2.0
_RATE_S = 60.0


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """Where the model is. It has no repr, for the key."""

    url: str
    key: str = ""
    dimension: int = 0
    query_prefix: str = ""
    text_prefix: str = ""


class _LaterError(Exception):
    """It may work in a moment."""

    def __init__(self, message: str, pause_s: float = 0.0) -> None:
        super().__init__(message)
        self.pause_s = pause_s


class ServedEmbedder:
    """A model behind /v1/embeddings."""

    why = ""

    def __init__(self, name: str, server: Server, tokenizer: Path, kept: Path, pause_s: float = 0.5) -> None:
        """Prepare; nothing is asked before the first text, unless nobody knows how long a vector is.

        `kept`: the folder where sizes of vectors are remembered. `pause_s`: before the second try; it doubles.

        Raises:
            ConfigError: the key would go over the network in clear.
        """
        self.embedded = 0
        self.refused = 0
        """Texts that the server refuses; they have a vector of zeros, and are found by words alone."""
        self._name = name
        self._server = server
        self._tokenizer = tokenizer
        self._kept = kept
        self._pause_s = pause_s
        self._busy = 0
        self._closing = threading.Event()
        self._slots = threading.BoundedSemaphore(_IN_FLIGHT)
        self._one_asks = threading.Lock()
        self._done: deque[tuple[float, int]] = deque()
        try:
            near = _is_near(httpx2.URL(server.url).host)
        except httpx2.InvalidURL as error:
            raise ConfigError(f"embedding.url is no address: {error}", "use one like http://localhost:11434/v1") from None
        if not server.key.isascii():
            raise ConfigError("the key holds what no key holds", "see the variable that [embedding] api_key_env names")
        if server.key and not near and not server.url.startswith("https://"):
            raise ConfigError("the key would go over the network in clear", "use an https url under [embedding]")
        headers = {"Authorization": f"Bearer {server.key}"} if server.key else {}
        limits = httpx2.Limits(max_connections=_IN_FLIGHT + 2)
        self._client = httpx2.Client(headers=headers, timeout=_TIMEOUT, limits=limits, trust_env=not near)

    @property
    def dimension(self) -> int:
        """Numbers in a vector: as configured, as remembered, or as the server says now.

        Raises:
            EmbedderError: nobody knows, and the server does not answer.
        """
        with self._one_asks:
            return self._dimension

    @cached_property
    def _dimension(self) -> int:
        return self._server.dimension or self._remembered().get(self._name) or self._asked_dimension()

    @property
    def model(self) -> str:
        """Name the model, and what is put before its texts, in one line."""
        own = fields_digest(self._name, self._server.query_prefix, self._server.text_prefix)
        return f"openai/{own}/{self.dimension}"

    @property
    def rate(self) -> float:
        """Texts a second lately."""
        done = list(self._done)
        span = time.monotonic() - done[0][0] if done else 0.0
        return sum(texts for _, texts in done) / max(span, 1.0) if done else 0.0

    @property
    def state(self) -> str:
        """`busy` or `ready`."""
        return "busy" if self._busy else "ready"

    def describe(self) -> dict[str, object]:
        """Return what status tells beside state and rate."""
        url = httpx2.URL(self._server.url)
        return {"runtime": "server", "device": url.host, "refused": self.refused, "in_flight": self._busy}

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Vector]:
        """Return a vector a text.

        Raises:
            EmbedderError: no vectors can be had now.
        """
        if query:
            asked = self._apart(lambda: self._post(texts, query=True))
            self._wait([asked])
            return asked.result()
        vectors = {number: vector for batch in self.stream(texts) for number, vector in batch.items()}
        return [vectors[number] for number in range(len(texts))]

    def stream(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Yield batches as they come, as number of a text -> its vector; a few requests are in flight at once.

        Raises:
            EmbedderError: no more can be had now; what was yielded counts.
        """
        waiting = iter(batches(counter_of(self._tokenizer).once(texts), *_BATCH) if texts else [])
        flying: dict[Future[list[tuple[int, Vector | None]]], list[int]] = {}
        failed: BaseException | None = None
        left = threading.Event()
        try:
            while True:
                while failed is None and len(flying) < _IN_FLIGHT and (batch := next(waiting, None)) is not None:
                    flying[self._apart(partial(self._isolated, [texts[number] for number in batch], left))] = batch
                if not flying:
                    break
                for landed in self._wait(flying):
                    numbers, error = flying.pop(landed), landed.exception()
                    failed = failed or error
                    if error is None:
                        yield {numbers[index]: self._counted(vector) for index, vector in landed.result()}
        finally:
            left.set()  # What was not asked yet need not be.
        if failed:
            raise failed

    def rest(self) -> None:
        """Nothing to end."""

    def close(self) -> None:
        """Give up what is in flight."""
        self._closing.set()
        self._client.close()

    def _apart(self, job: Callable[[], T]) -> Future[T]:
        """Run in a thread that nobody need wait for: neither whoever closes this, nor the end of the process."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - carried to whoever waits, who raises it again
                future.set_exception(error)

        if self._closing.is_set():
            raise EmbedderError("anchord is stopping")
        threading.Thread(target=run, name="served", daemon=True).start()
        return future

    def _wait(self, flying: Iterable[Future[T]]) -> set[Future[T]]:
        """Return what landed.

        Raises:
            EmbedderError: this was closed meanwhile.
        """
        while True:
            landed = wait(flying, _LOOK_S, FIRST_COMPLETED).done
            if self._closing.is_set():
                raise EmbedderError("anchord is stopping")
            if landed:
                return landed

    def _counted(self, vector: Vector | None) -> Vector:
        self.embedded += 1
        self.refused += vector is None
        return bytes(4 * self.dimension) if vector is None else vector

    def _isolated(self, texts: Sequence[str], left: threading.Event) -> list[tuple[int, Vector | None]]:
        with self._slots:
            if left.is_set():
                raise EmbedderError("nobody waits for it any more")
            made = list(isolate(texts, self._post, BatchFailedError))
        now = time.monotonic()
        self._done.append((now, len(texts)))
        while now - self._done[0][0] > _RATE_S:
            self._done.popleft()
        return made

    def _post(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        """Ask, and ask again for a while."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_LaterError),
            stop=tenacity.stop_after_attempt(_QUERY_TRIES if query else _TRIES),
            wait=self._pause,
            sleep=self._sleep,
            reraise=True,
        )
        self._busy += 1
        try:
            vectors = retrying(self._ask, texts, query=query)
        except _LaterError as error:
            raise EmbedderError(f"the embedding server does not answer: {error}", _HINT) from None
        finally:
            self._busy -= 1
        for vector in vectors:
            if len(vector) != 4 * self.dimension:
                was = f"the server gives {len(vector) // 4} numbers a text, the index has {self.dimension}"
                raise EmbedderError(
                    was, "another model answers under this name: change `model` or `dimension` under [embedding]"
                )
        return vectors

    def _pause(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.pause_s if isinstance(error, _LaterError) else 0.0
        growing = tenacity.wait_exponential_jitter(multiplier=self._pause_s, max=_LONGEST_PAUSE_S, jitter=self._pause_s)
        return max(asked, growing(state))

    def _sleep(self, seconds: float) -> None:
        if self._closing.wait(seconds):
            raise EmbedderError("anchord is stopping")

    def _ask(self, texts: Sequence[str], *, query: bool) -> list[Vector]:
        prefix = self._server.query_prefix if query else self._server.text_prefix
        asked = {"model": self._name, "input": [prefix + text for text in texts], "encoding_format": "float"}
        try:
            answer = self._client.post(
                f"{self._server.url.rstrip('/')}/embeddings", json=asked, timeout=_QUERY_TIMEOUT_S if query else _TIMEOUT
            )
        except httpx2.TransportError as error:
            raise _LaterError(type(error).__name__) from None
        except httpx2.HTTPError as error:
            raise BatchFailedError(f"the embedding server's answer cannot be read ({type(error).__name__})", _HINT) from None
        except RuntimeError:  # The client was closed under us.
            raise EmbedderError("anchord is stopping") from None
        status = answer.status_code
        if status in _SOON:
            pause = _seconds(answer.headers.get("Retry-After", ""))
            if pause > (_LONGEST_QUERY_PAUSE_S if query else _MOST_ASKED_S):
                raise EmbedderError(f"the embedding server asks for a pause of {pause:.0f} s", _HINT)
            raise _LaterError(f"status {status}", pause)
        if status in _NEVER:
            raise EmbedderError(f"the embedding server answers with status {status}", _NEVER[HTTPStatus(status)])
        if status != HTTPStatus.OK:
            raise BatchFailedError(f"the embedding server refuses some texts with status {status}", _HINT)
        return _vectors(answer, len(texts))

    def _remembered(self) -> dict[str, int]:
        try:
            return msgspec.json.decode((self._kept / _SIZES).read_bytes(), type=dict[str, int])
        except (OSError, msgspec.MsgspecError):
            return {}

    def _asked_dimension(self) -> int:
        try:
            (vector,) = self._ask(["size"], query=False)
        except _LaterError as error:
            was = f"the embedding server does not answer ({error}), and nothing is known of its model yet"
            raise EmbedderError(was, "start it, or set `dimension` under [embedding]") from None
        size = len(vector) // 4
        with suppress(OSError):  # Then it is asked again at the next start.
            self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._kept / _SIZES).write_bytes(msgspec.json.encode({**self._remembered(), self._name: size}))
        return size


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int


class _Answer(msgspec.Struct):
    data: list[_Embedding]


def _vectors(answer: Any, texts: int) -> list[Vector]:  # noqa: ANN401 - the library's response
    """Return the vectors in the order of their texts, of length one.

    Raises:
        BatchFailedError: it is no answer, or not for these texts, or has no direction for one of them.
    """
    try:
        data = msgspec.json.decode(answer.content, type=_Answer).data
    except msgspec.MsgspecError:
        raise BatchFailedError("the embedding server's answer is none", _HINT) from None
    placed = {each.index: each.embedding for each in data}
    if len(data) != texts or sorted(placed) != list(range(texts)):
        raise BatchFailedError("the embedding server answered for other texts than were asked", _HINT)
    return [_unit(placed[number]) for number in range(texts)]


def _unit(numbers: Sequence[float]) -> Vector:
    length = math.hypot(*numbers)
    if not math.isfinite(length) or not length:
        raise BatchFailedError("the embedding server gave no direction for a text", _HINT)
    return array("f", (number / length for number in numbers)).tobytes()


def _seconds(text: str) -> float:
    """Return a Retry-After in seconds; 0 for none, and for a date."""
    return float(text) if text.strip().isdecimal() else 0.0


def _is_near(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
