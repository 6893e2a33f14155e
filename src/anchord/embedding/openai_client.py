"""One request to a server with /v1/embeddings. The only user of httpx2.

A failure is sorted by what helps: `RetryLaterError` (it may work in a moment), `BatchFailedError`
(the server refuses these texts), or `EmbedderError` (only a change of the configuration or the
server's return helps).
"""

from __future__ import annotations

import ipaddress
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

import httpx2
import msgspec

from anchord.core.types import Vector
from anchord.errors import BatchFailedError, ConfigError, EmbedderError

RETRY_HINT = "the daemon tries again by itself; search --mode text works meanwhile"

_RETRY_STATUSES = {
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_KEY_HINT = "check the key in the environment variable that [embedding] api_key_env names"
_HINT_BY_STATUS = {
    HTTPStatus.UNAUTHORIZED: _KEY_HINT,
    HTTPStatus.FORBIDDEN: _KEY_HINT,
    HTTPStatus.NOT_FOUND: "check url and model under [embedding]",
    HTTPStatus.METHOD_NOT_ALLOWED: "check url under [embedding]",
}
"""Statuses that no retry changes, and what does."""


class RetryLaterError(Exception):
    """The request may work in a moment: no connection, a busy server or one that starts."""

    def __init__(self, message: str, pause_s: float = 0.0) -> None:
        """Take the reason, and the seconds that the server asks to wait; 0 for none."""
        super().__init__(message)
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """How long a request may take, in seconds."""

    timeout_s: float
    """For each step: sending, and each wait for data."""
    connect_timeout_s: float
    max_pause_s: float
    """A server that asks for a longer pause before the next try counts as unavailable."""


class OpenAIClient:
    """A connection pool to one server. Any thread may use it."""

    def __init__(self, url: str, key: str, max_connections: int) -> None:
        """Check the address; no connection is opened before the first request.

        Args:
            url: the address up to and including `/v1`.
            key: the API key, "" for none.
            max_connections: the most connections at once.

        Raises:
            ConfigError: the address or the key is invalid, or the key would be sent unencrypted to
                another machine.
        """
        self.host = _host_of(url)
        """The server's host name or address."""
        is_local = _is_local(self.host)
        if not key.isascii():
            raise ConfigError("the API key has characters that no API key has", _KEY_HINT)
        if key and not is_local and not url.startswith("https://"):
            raise ConfigError(
                "the API key would be sent unencrypted", "use an https url under [embedding]"
            )
        self._url = f"{url.rstrip('/')}/embeddings"
        self._client = httpx2.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            limits=httpx2.Limits(max_connections=max_connections),
            # A proxy from the environment cannot reach a server on this machine.
            trust_env=not is_local,
        )

    def embed(self, model: str, texts: Sequence[str], limits: RequestLimits) -> list[Vector]:
        """Send one request and wait for the answer.

        Args:
            model: the model's name on the server.
            texts: the texts, prefixes included.
            limits: how long it may take.

        Returns:
            An L2-normalised float32 vector for each text, in order.

        Raises:
            RetryLaterError: the request may work in a moment.
            BatchFailedError: the server refuses these texts, or its answer is unusable.
            EmbedderError: the server cannot be used now, or the client was closed.
        """
        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        timeout = httpx2.Timeout(limits.timeout_s, connect=limits.connect_timeout_s)
        try:
            response = self._client.post(
                self._url,
                json=body,
                timeout=timeout,
            )
        except httpx2.TransportError as error:
            raise RetryLaterError(type(error).__name__) from None
        except httpx2.HTTPError as error:
            raise BatchFailedError(
                f"the embedding server's answer cannot be read ({type(error).__name__})", RETRY_HINT
            ) from None
        except RuntimeError:  # Another thread closed the client.
            raise EmbedderError("anchord is stopping") from None
        retry_after = response.headers.get("Retry-After", "")
        _check_status(response.status_code, retry_after, limits.max_pause_s)
        return _parse_vectors(response.content, len(texts))

    def close(self) -> None:
        """Close all connections; requests in flight fail."""
        self._client.close()


def _check_status(status: int, retry_after: str, max_pause_s: float) -> None:
    """Return for status 200, raise for any other."""
    if status in _RETRY_STATUSES:
        pause_s = _parse_retry_after(retry_after)
        if pause_s > max_pause_s:
            raise EmbedderError(
                f"the embedding server asks for a pause of {pause_s:.0f} s", RETRY_HINT
            )
        raise RetryLaterError(f"status {status}", pause_s)
    if status in _HINT_BY_STATUS:
        hint = _HINT_BY_STATUS[HTTPStatus(status)]
        raise EmbedderError(f"the embedding server answers with status {status}", hint)
    if status != HTTPStatus.OK:
        raise BatchFailedError(
            f"the embedding server refuses some texts with status {status}", RETRY_HINT
        )


def _parse_retry_after(header: str) -> float:
    """Return a Retry-After header in seconds; 0 for none, and for a date."""
    return float(header) if header.strip().isdecimal() else 0.0


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int


class _Answer(msgspec.Struct):
    data: list[_Embedding]


def _parse_vectors(body: bytes, text_count: int) -> list[Vector]:
    """Return the vectors of an answer, in the order of their texts.

    Raises:
        BatchFailedError: the answer has another form, another number of vectors, or a vector that
            cannot be normalised.
    """
    try:
        data = msgspec.json.decode(body, type=_Answer).data
    except msgspec.MsgspecError:
        raise BatchFailedError(
            "the embedding server's answer is not that of /v1/embeddings", RETRY_HINT
        ) from None
    by_index = {each.index: each.embedding for each in data}
    if len(data) != text_count or sorted(by_index) != list(range(text_count)):
        raise BatchFailedError(
            "the embedding server's answer does not match the texts that were sent", RETRY_HINT
        )
    return [_normalize(by_index[number]) for number in range(text_count)]


def _normalize(numbers: Sequence[float]) -> Vector:
    length = math.hypot(*numbers)
    if not math.isfinite(length) or not length:
        raise BatchFailedError(
            "the embedding server returned a vector of zeros or infinite numbers", RETRY_HINT
        )
    return array("f", (number / length for number in numbers)).tobytes()


def _host_of(url: str) -> str:
    try:
        return httpx2.URL(url).host
    except httpx2.InvalidURL as error:
        raise ConfigError(
            f"embedding.url is not a valid address: {error}",
            "use one like http://localhost:11434/v1",
        ) from None


def _is_local(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
