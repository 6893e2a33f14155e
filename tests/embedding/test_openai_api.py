"""`provider = "openai"` against a real, scripted HTTP server on the loopback that can stop."""

from __future__ import annotations

import gzip
import json
import logging
import math
import os
import socket
import ssl
import struct
import threading
import warnings
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
from faults.service import Service, until
from threads import in_thread, spin

from anchord.core.ports import Embedder
from anchord.embedding import openai_api as served_module
from anchord.embedding.model_files import find_model
from anchord.embedding.openai_api import EmbeddingServer, OpenAIEmbedder
from anchord.embedding.poison_text import PROBE_TEXT
from anchord.embedding.tokenizer import shared_token_counter
from anchord.errors import BatchFailedError, ConfigError, EmbedderError

KEY = "sk-hush-1234567890"
WORDS = "of nobody else's business"
"""Part of the user's texts; only the server may receive it."""
SIZE = 6
PATIENCE_S = 20.0
"""Timeout in seconds for immediate events; the limits of server and client are longer."""
SOON_S = 4.0
"""The same for a known defect, which every run waits for."""
SPINS = 2_000
_DEPRECATED = "ignore:The 'initial' parameter is deprecated:DeprecationWarning"
pytestmark = pytest.mark.filterwarnings(_DEPRECATED)  # See `test_a_new_try_warns_of_nothing`.
TOKENIZER = find_model("all-MiniLM-L6-v2").tokenizer

# A server of our own


class Ask(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Host

    def do_POST(self) -> None:
        """Answer as the script says, else as usual."""
        host = self.server
        length = int(self.headers["Content-Length"])
        self.given: dict[str, Any] = json.loads(self.rfile.read(length))
        self.texts: list[str] = self.given["input"]
        with host.lock:
            host.asked.append(Asked(self.path, self.headers.get("Authorization"), self.given))
            way = host.script.popleft() if host.script and self.texts != ["size"] else host.way
            host.within += 1
            host.most = max(host.most, host.within)
        try:
            way(self)
        finally:
            with host.lock:
                host.within -= 1

    def do_GET(self) -> None:
        """Record that a redirect was followed."""
        self.server.asked.append(Asked(self.path, self.headers.get("Authorization"), {}))
        self.send(200, b"{}")

    def send(self, status: int, body: bytes, **headers: str) -> None:
        """Send an answer; `Retry_After` is the header Retry-After."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@dataclass(frozen=True)
class Asked:
    """What came with a request."""

    path: str
    authorization: str | None
    given: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """Return the texts to embed."""
        return cast("list[str]", self.given.get("input", []))


Way = Callable[[Ask], None]


class Host(ThreadingHTTPServer):
    """A server on the loopback: each entry of `script` answers once, then `way` answers."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Begin to listen."""
        super().__init__(("127.0.0.1", port), Ask)
        self.way: Way = answer
        self.script: deque[Way] = deque()
        self.asked: list[Asked] = []
        self.within = 0
        self.most = 0
        """The largest number of parallel requests."""
        self.lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """Return the configuration of this server."""
        return f"http://127.0.0.1:{self.port}/v1"

    def texts(self) -> list[list[str]]:
        """Return the texts of each request, without those that only ask for the size of a vector."""
        return [each.texts for each in list(self.asked) if each.texts != ["size"]]

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver has them
        """Remember the connection."""
        self._open.add(request)
        super().process_request(request, client_address)

    def handle_error(self, *_: object) -> None:
        """Ignore a client that has hung up."""

    def stop(self) -> None:
        """Stop listening and close every connection."""
        self.shutdown()
        self.server_close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()


def numbers_of(text: str) -> list[float]:
    """Return a vector that differs for each text; it is not normalised."""
    found = [1.0] * SIZE
    for at, each in enumerate(text.encode()):
        found[at % SIZE] += each * (1 + at % 11)
    return found


def unit(text: str) -> list[float]:
    """Return the same vector, normalised."""
    numbers = numbers_of(text)
    return [number / math.hypot(*numbers) for number in numbers]


# Ways to answer


def answer(ask: Ask) -> None:
    """Answer correctly, in another order."""
    ask.send(200, made(ask.texts))


def made(texts: Sequence[str], numbers: Callable[[str], list[float]] = numbers_of) -> bytes:
    data = [
        {"object": "embedding", "index": index, "embedding": numbers(text)}
        for index, text in enumerate(texts)
    ]
    received = {
        "object": "list",
        "data": [*data[1::2], *reversed(data[::2])],
        "model": "m",
        "usage": {"total_tokens": 1},
    }
    return json.dumps(received).encode()


def saying(status: int, body: bytes = b'{"error": "no"}', **headers: str) -> Way:
    def way(ask: Ask) -> None:
        ask.send(status, body, **headers)

    return way


def echoing(status: int) -> Way:
    """Answer with an error that repeats the texts and the key, as servers do."""

    def way(ask: Ask) -> None:
        ask.send(
            status,
            json.dumps({"error": f"{ask.texts} {ask.headers.get('Authorization')}"}).encode(),
        )

    return way


def doing(numbers: Callable[[str], list[float]]) -> Way:
    """Answer with other numbers."""

    def way(ask: Ask) -> None:
        ask.send(200, made(ask.texts, numbers))

    return way


def poisoned(bad: Way) -> Way:
    """Refuse requests with a text that contains "poison"."""

    def way(ask: Ask) -> None:
        (bad if any("poison" in text for text in ask.texts) else answer)(ask)

    return way


def hang_up(ask: Ask) -> None:
    """Close the connection without an answer."""
    ask.close_connection = True


def reset(ask: Ask) -> None:
    """Reset the connection."""
    ask.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ask.connection.close()
    ask.close_connection = True


def cut(ask: Ask) -> None:
    """End the connection in the middle of an answer."""
    body = made(ask.texts)
    ask.send_response(200)
    ask.send_header("Content-Length", str(len(body)))
    ask.end_headers()
    ask.wfile.write(body[: len(body) // 2])
    ask.close_connection = True


def cut_head(ask: Ask) -> None:
    """End the connection in the middle of the head."""
    ask.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    ask.close_connection = True


def no_http(ask: Ask) -> None:
    """Answer with something that is not HTTP."""
    ask.wfile.write(b"220 mail.example.org ESMTP\r\n")
    ask.close_connection = True


SOON: dict[str, Way] = {
    "too many requests": saying(429),
    "bad gateway": saying(502, b"<html>bad gateway</html>"),
    "starting": saying(503),
    "gateway timeout": saying(504, b""),
    "reset": reset,
    "hangs up": hang_up,
    "cuts the answer": cut,
    "cuts the head": cut_head,
    "no http": no_http,
}
"""Temporary failures."""

NONE: dict[str, Way] = {
    "empty": saying(200, b""),
    "html": saying(200, b"<html>hello</html>"),
    "cut json": saying(200, b'{"data": [{"index": 0, "embedding": [1.0'),
    "no data": saying(200, b'{"object": "list"}'),
    "an error with status 200": saying(200, b'{"error": {"message": "model is loading"}}'),
    "a list": saying(200, b"[[1.0, 2.0]]"),
    "no utf-8": saying(200, b'{"data": "\xff\xfe"}'),
    "nan": saying(200, b'{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1, 1, 1]}]}'),
    "null": saying(200, b'{"data": [{"index": 0, "embedding": [null, 1, 1, 1, 1, 1]}]}'),
    "words": saying(200, b'{"data": [{"index": 0, "embedding": ["1"]}]}'),
    "base64": saying(200, b'{"data": [{"index": 0, "embedding": "AACAPwAAAAA="}]}'),
    "none": saying(200, b'{"data": []}'),
    "too few": lambda ask: ask.send(200, made(ask.texts[1:])),
    "too many": lambda ask: ask.send(200, made([*ask.texts, "more"])),
    "no index": saying(200, b'{"data": [{"embedding": [1, 1, 1, 1, 1, 1]}]}'),
    "another index": saying(200, b'{"data": [{"index": 7, "embedding": [1, 1, 1, 1, 1, 1]}]}'),
    "huge": saying(200, b'{"data": "' + b"x" * 30_000_000 + b'"}'),
    "deep": saying(200, b"[" * 100_000),
}
"""Invalid answers."""


@pytest.fixture(autouse=True)
def _no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read no certificates: 33 ms for each client, and no server here has TLS."""
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)


@pytest.fixture
def host() -> Iterator[Host]:
    """Return a server that answers correctly."""
    made_host = Host()
    yield made_host
    made_host.stop()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the recorded pauses before retries; nothing really waits."""
    taken: list[float] = []
    monkeypatch.setattr(OpenAIEmbedder, "_sleep", lambda _, seconds: taken.append(seconds))
    return taken


@dataclass
class Bench:
    """Makes embedders, and closes them."""

    host: Host
    kept: Path
    opened: list[OpenAIEmbedder] = field(default_factory=list)

    def open(
        self,
        name: str = "a-model",
        kept: Path | None = None,
        **server: Any,  # noqa: ANN401 - of a Server
    ) -> OpenAIEmbedder:
        """Give an embedder; by default of the server's address, a key and a known size."""
        given = {"url": self.host.url, "key": KEY, "dimension": SIZE, **server}
        made_embedder = OpenAIEmbedder(
            name, EmbeddingServer(**given), TOKENIZER, kept or self.kept, first_retry_pause_s=0.001
        )
        self.opened.append(made_embedder)
        return made_embedder


@pytest.fixture
def bench(host: Host, tmp_path: Path, pauses: list[float]) -> Iterator[Bench]:
    """Give a maker of embedders."""
    assert pauses == []
    made_bench = Bench(host, tmp_path / "kept")
    yield made_bench
    for each in made_bench.opened:
        each.close()


@pytest.fixture
def embedder(bench: Bench) -> OpenAIEmbedder:
    """Give an embedder."""
    return bench.open()


def vectors_of(embedder: Embedder, *texts: str, query: bool = False) -> list[list[float]]:
    return [list(array("f", vector)) for vector in embedder.embed(texts, is_query=query)]


def right(*texts: str) -> list[Any]:
    return [pytest.approx(unit(text), abs=1e-6) for text in texts]


def zeros() -> list[float]:
    return [0.0] * SIZE


def many(count: int, words: str = "") -> list[str]:
    return [f"text {number} {WORDS} {words}" for number in range(count)]


# Answers


def test_it_is_an_embedder(embedder: OpenAIEmbedder) -> None:
    port: Embedder = embedder
    assert (port.dimension, port.texts_per_second) == (SIZE, 0.0)


def test_each_text_gets_its_vector_in_its_place_whatever_the_order_of_the_answer(
    embedder: OpenAIEmbedder,
) -> None:
    texts = [
        "four",
        "a",
        "a longer text of some words",
        "",
        "four",
        "ä",
        "日本",
        "😀",
        " a",
        "a\n",
        "\x00",
    ]
    assert vectors_of(embedder, *texts) == right(*texts)
    assert embedder.embedded == len(set(texts))


def test_vectors_are_of_length_one_whatever_the_server_gives(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    for scale in (1e-300, 1e-3, 1.0, 1e3, 1e300):
        host.way = doing(lambda text, scale=scale: [scale * number for number in numbers_of(text)])  # type: ignore[misc] # float
        assert vectors_of(embedder, "a", "some text") == right("a", "some text"), scale


def test_whole_numbers_are_numbers(host: Host, embedder: OpenAIEmbedder) -> None:
    host.way = doing(lambda _: [0, 0, 3, 0, -4, 0])
    assert vectors_of(embedder, "a") == [pytest.approx([0, 0, 0.6, 0, -0.8, 0])]


def test_nothing_is_asked_for_nothing(host: Host, embedder: OpenAIEmbedder) -> None:
    assert list(embedder.embed([])) == []
    assert list(embedder.embed_batches([])) == []
    assert host.asked == []


def test_what_goes_out_is_what_the_interface_has(host: Host, bench: Bench) -> None:
    for slash in ("", "/", "//"):
        bench.open("org/a-model:v1", url=host.url + slash).embed(["a"])
    sent = {"model": "org/a-model:v1", "input": ["a"], "encoding_format": "float"}
    assert host.asked == [Asked("/v1/embeddings", f"Bearer {KEY}", sent)] * 3


def test_a_batch_is_bounded_in_texts_and_no_text_is_asked_twice(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    texts = many(300)
    assert vectors_of(embedder, *texts) == right(*texts)
    assert all(len(batch) <= 32 for batch in host.texts())
    assert len(host.texts()) <= 12
    assert sorted(text for batch in host.texts() for text in batch) == sorted(texts)


def test_a_batch_is_bounded_in_tokens(host: Host, embedder: OpenAIEmbedder) -> None:
    texts = [f"{number} " + "word " * 450 for number in range(60)] + ["word " * 9_000]
    assert vectors_of(embedder, *texts) == right(*texts)
    count = shared_token_counter(TOKENIZER)
    assert all(
        len(batch) == 1 or sum(count.count_without_caching(batch)) <= 8_192
        for batch in host.texts()
    )
    assert max(map(len, host.texts())) > 1


def test_no_more_than_four_requests_are_in_flight_and_as_many_as_that_are(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    met = threading.Barrier(4, timeout=PATIENCE_S)

    def together(ask: Ask) -> None:
        met.wait()
        for _ in range(SPINS):
            os.sched_yield()
        answer(ask)

    host.way = together
    texts = many(32 * 12)
    assert vectors_of(embedder, *texts) == right(*texts)
    assert host.most == 4


def test_a_query_does_not_wait_for_a_backlog(host: Host, embedder: OpenAIEmbedder) -> None:
    gate = threading.Event()

    def held(ask: Ask) -> None:
        if ask.texts != ["a query"]:
            gate.wait()
        answer(ask)

    host.way = held
    backlog = in_thread(lambda: vectors_of(embedder, *many(32 * 8)))
    spin(lambda: host.within == 4)
    assert (embedder.state, embedder.status_fields()["in_flight"]) == ("busy", 4)
    assert vectors_of(embedder, "a query", query=True) == right("a query")
    gate.set()
    assert backlog.result(PATIENCE_S) == right(*many(32 * 8))
    assert (embedder.state, embedder.status_fields()["in_flight"]) == ("ready", 0)


def test_vectors_are_yielded_as_they_come(host: Host, embedder: OpenAIEmbedder) -> None:
    gate, texts = threading.Event(), [*many(32), *many(32, "long " * 100)]

    def held(ask: Ask) -> None:
        if any("long" in text for text in ask.texts):
            gate.wait()
        answer(ask)

    host.way = held
    stream = embedder.embed_batches(texts)
    received = dict(next(stream))
    assert sorted(received) == list(range(32))
    spin(lambda: host.within == 1)
    gate.set()
    for batch in stream:
        received.update(batch)
    assert [list(array("f", received[number])) for number in range(64)] == right(*texts)


def test_prefixes_stand_before_queries_and_texts(host: Host, bench: Bench) -> None:
    embedder = bench.open(query_prefix="query: ", text_prefix="passage: ")
    assert vectors_of(embedder, "a", "b") == right("passage: a", "passage: b")
    assert vectors_of(embedder, "a", query=True) == right("query: a")
    assert host.texts() == [["passage: a", "passage: b"], ["query: a"]]


def test_its_counters_show_what_it_did(embedder: OpenAIEmbedder) -> None:
    assert (embedder.state, embedder.texts_per_second, embedder.fallback_reason) == (
        "ready",
        0.0,
        "",
    )
    embedder.embed(many(10))
    embedder.stop_idle_workers()
    assert embedder.status_fields() == {
        "runtime": "server",
        "device": "127.0.0.1",
        "refused": 0,
        "in_flight": 0,
    }
    assert embedder.texts_per_second > 0


# The model's name


def test_the_name_depends_on_model_size_and_prefixes(bench: Bench) -> None:
    names = {
        bench.open().model_id,
        bench.open("another").model_id,
        bench.open(dimension=7).model_id,
        bench.open(query_prefix="a").model_id,
        bench.open(query_prefix="b").model_id,
        bench.open(query_prefix="a", text_prefix="b").model_id,
        bench.open(query_prefix="b", text_prefix="a").model_id,
    }
    assert len(names) == 7


def test_the_name_depends_on_which_prefix_is_set(bench: Bench) -> None:
    assert bench.open(query_prefix="a").model_id != bench.open(text_prefix="a").model_id


def test_the_name_depends_on_where_a_prefix_ends(bench: Bench) -> None:
    assert (
        bench.open(query_prefix="a/b", text_prefix="c").model_id
        != bench.open(query_prefix="a", text_prefix="b/c").model_id
    )


def test_the_name_is_one_line(bench: Bench) -> None:
    assert (
        "\n"
        not in bench.open(
            query_prefix="Instruct: retrieve what answers the query\nQuery: "
        ).model_id
    )


# Temporary failures


def test_a_new_try_warns_of_nothing(host: Host, embedder: OpenAIEmbedder) -> None:
    host.script.append(saying(503))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vectors_of(embedder, "a") == right("a")


@pytest.mark.parametrize("way", SOON.values(), ids=SOON)
@pytest.mark.parametrize("query", [False, True])
def test_what_may_be_better_soon_is_asked_again(
    host: Host,
    embedder: OpenAIEmbedder,
    way: Way,
    query: bool,  # noqa: FBT001
) -> None:
    host.script.append(way)
    assert vectors_of(embedder, "a", query=query) == right("a")
    assert host.texts() == [["a"]] * 2
    assert embedder.refused == 0


@pytest.mark.parametrize("way", SOON.values(), ids=SOON)
def test_a_server_that_stays_away_is_an_embedder_error_after_a_few_tries(
    host: Host, embedder: OpenAIEmbedder, pauses: list[float], way: Way
) -> None:
    host.way = way
    with pytest.raises(EmbedderError, match="the embedding server does not answer") as raised:
        embedder.embed([WORDS])
    assert not isinstance(raised.value, BatchFailedError)
    assert host.texts() == [[WORDS]] * 5
    assert (len(pauses), pauses) == (4, sorted(pauses))
    assert pauses[0] >= 0.001
    assert pauses[-1] <= 8.0
    with pytest.raises(EmbedderError):
        embedder.embed([WORDS], is_query=True)
    assert host.texts()[5:] == [[WORDS]] * 2
    assert (embedder.refused, embedder.embedded, embedder.state) == (0, 0, "ready")
    host.way = answer
    assert vectors_of(embedder, "a") == right("a")


def test_pauses_grow_to_a_bound(
    host: Host, bench: Bench, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_module, "_TRIES", 40)
    embedder = bench.open()
    host.way = saying(503)
    with pytest.raises(EmbedderError):
        embedder.embed(["a"])
    assert len(pauses) == 39
    assert (pauses, max(pauses)) == (sorted(pauses), 8.0)


def test_a_server_that_is_not_there_is_an_embedder_error_and_found_when_it_is_back(
    host: Host, bench: Bench
) -> None:
    embedder, port = bench.open(), host.port
    assert vectors_of(embedder, "a") == right("a")
    host.stop()
    for query in (False, True):
        with pytest.raises(EmbedderError, match="the embedding server does not answer"):
            embedder.embed([WORDS], is_query=query)
    again = Host(port)
    try:
        assert vectors_of(embedder, "b") == right("b")
    finally:
        again.stop()


@pytest.mark.parametrize(
    ("asked", "least"),
    [("3", 3.0), ("0", 0.0), ("60", 60.0), ("soon", 0.0), ("", 0.0), ("-5", 0.0)],
)
def test_a_pause_that_the_server_asks_for_is_kept(
    host: Host, embedder: OpenAIEmbedder, pauses: list[float], asked: str, least: float
) -> None:
    host.script += [saying(429, Retry_After=asked), saying(503, Retry_After=asked)]
    assert vectors_of(embedder, "a") == right("a")
    assert len(pauses) == 2
    assert min(pauses) >= least
    if not least:
        assert max(pauses) <= 0.01


@pytest.mark.parametrize("asked", ["61", "86400", "9" * 400])
def test_a_server_that_asks_for_a_long_pause_is_taken_to_be_away(
    host: Host, embedder: OpenAIEmbedder, pauses: list[float], asked: str
) -> None:
    host.way = saying(429, Retry_After=asked)
    with pytest.raises(EmbedderError, match="asks for a pause"):
        embedder.embed([WORDS])
    assert (host.texts(), pauses) == ([[WORDS]], [])


def test_a_query_does_not_wait_for_a_pause_that_is_longer_than_its_own_timeout(
    host: Host, embedder: OpenAIEmbedder, pauses: list[float]
) -> None:
    host.way = saying(429, Retry_After="60")
    with pytest.raises(EmbedderError):
        embedder.embed(["a"], is_query=True)
    assert sum(pauses) <= 20.0


# Permanent failures


@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_a_wrong_configuration_is_reported_at_once(
    host: Host, embedder: OpenAIEmbedder, status: int
) -> None:
    host.way = echoing(status)
    for query in (False, True):
        host.asked.clear()
        with pytest.raises(EmbedderError, match=f"status {status}") as raised:
            embedder.embed(many(3), is_query=query)
        assert not isinstance(raised.value, BatchFailedError)
        assert "[embedding]" in raised.value.hint
        assert len(host.asked) == 1
    assert embedder.refused == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("query", [False, True])
def test_a_redirect_is_not_followed(host: Host, bench: Bench, status: int, query: bool) -> None:  # noqa: FBT001
    elsewhere = Host()
    try:
        host.way = saying(status, b"", Location=f"{elsewhere.url}/embeddings")
        embedder = bench.open()
        with pytest.raises(EmbedderError):
            embedder.embed(many(3), is_query=query)
        host.way = saying(status, b"", Location="/v1/other")
        with pytest.raises(EmbedderError):
            embedder.embed(many(3), is_query=query)
        assert elsewhere.asked == []
        assert {each.path for each in host.asked} == {"/v1/embeddings"}
    finally:
        elsewhere.stop()


@pytest.mark.parametrize("way", NONE.values(), ids=NONE)
def test_an_answer_that_is_none_is_an_embedder_error_and_no_text_is_given_up(
    host: Host, embedder: OpenAIEmbedder, way: Way
) -> None:
    host.way = way
    with pytest.raises(EmbedderError):
        embedder.embed(many(2))
    with pytest.raises(EmbedderError):
        embedder.embed(many(2), is_query=True)
    assert (embedder.refused, embedder.embedded) == (0, 0)
    host.way = answer
    assert vectors_of(embedder, "a") == right("a")


def test_an_answer_that_is_not_compressed_as_it_says_is_an_embedder_error(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    host.way = saying(200, b"no gzip at all", Content_Encoding="gzip")
    with pytest.raises(EmbedderError):
        embedder.embed(["a"])


def test_a_compressed_answer_is_read(host: Host, embedder: OpenAIEmbedder) -> None:
    host.way = lambda ask: ask.send(200, gzip.compress(made(ask.texts)), Content_Encoding="gzip")
    assert vectors_of(embedder, "a", "b") == right("a", "b")


def test_two_answers_for_a_text_are_none(host: Host, embedder: OpenAIEmbedder) -> None:
    data = [{"index": 0, "embedding": numbers_of("x")}, {"index": 0, "embedding": numbers_of("y")}]
    host.way = saying(200, json.dumps({"data": data}).encode())
    with pytest.raises(EmbedderError):
        embedder.embed(["a"])


@pytest.mark.parametrize("numbers", [[], [0.0] * SIZE], ids=["no numbers", "zeros"])
def test_a_server_that_gives_no_direction_for_any_text_is_an_embedder_error(
    host: Host, embedder: OpenAIEmbedder, numbers: list[float]
) -> None:
    host.way = doing(lambda _: numbers)
    with pytest.raises(EmbedderError):
        embedder.embed(many(3))


# Refused texts

REFUSING: dict[str, Way] = {
    "400": echoing(400),
    "413": saying(413, b""),
    "422": echoing(422),
    "500": saying(500, b"<html>internal server error</html>"),
    "nan": NONE["nan"],
    "garbage": NONE["html"],
    "too few": NONE["none"],
    "zeros": doing(lambda _: zeros()),
    "overflow": doing(lambda _: [1e308] * SIZE),
}


@pytest.mark.parametrize("way", REFUSING.values(), ids=REFUSING)
def test_a_text_that_the_server_refuses_has_zeros_and_the_others_have_their_vectors(
    host: Host, embedder: OpenAIEmbedder, way: Way
) -> None:
    texts = [*many(3), "a poison", *many(20)[3:], "poison again"]
    host.way = poisoned(way)
    bad = zeros()
    if way in (
        REFUSING["zeros"],
        REFUSING["overflow"],
    ):  # Threads call the server in any order.
        host.way = lambda ask: ask.send(
            200, made(ask.texts, lambda text: bad if "poison" in text else numbers_of(text))
        )
    vectors = vectors_of(embedder, *texts)
    assert [vector for vector, text in zip(vectors, texts, strict=True) if "poison" in text] == [
        zeros()
    ] * 2
    assert [
        vector for vector, text in zip(vectors, texts, strict=True) if "poison" not in text
    ] == right(*many(20))
    assert (embedder.refused, embedder.embedded) == (2, len(texts))
    assert embedder.status_fields()["refused"] == 2


def test_one_text_that_is_refused_alone_is_given_up_if_a_harmless_one_works(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    host.way = poisoned(saying(400))
    assert vectors_of(embedder, "poison") == [zeros()]
    assert host.texts() == [["poison"], ["poison"], [PROBE_TEXT]]


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_server_that_refuses_everything_is_an_embedder_error(
    host: Host, embedder: OpenAIEmbedder, status: int
) -> None:
    host.way = echoing(status)
    with pytest.raises(EmbedderError, match=f"status {status}"):
        embedder.embed(many(10))
    assert (embedder.refused, embedder.embedded) == (0, 0)


def test_an_error_that_was_of_the_moment_lets_nothing_go(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    host.script += [saying(500), saying(500), saying(500)]
    assert vectors_of(embedder, *many(3)) == right(*many(3))
    assert embedder.refused == 0


def test_a_query_that_the_server_refuses_is_an_embedder_error(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    host.way = poisoned(saying(400))
    with pytest.raises(EmbedderError):
        embedder.embed(["poison"], is_query=True)


# Yielded vectors count


def test_vectors_yielded_before_a_failure_count(host: Host, embedder: OpenAIEmbedder) -> None:
    gate, texts = threading.Event(), [*many(32), *many(32, "long " * 50), *many(32, "long " * 100)]

    def held(ask: Ask) -> None:
        if "long" in ask.texts[0]:
            gate.wait()
        (saying(401) if "long" in ask.texts[0] else answer)(ask)

    host.way = held
    stream = embedder.embed_batches(texts)
    received = next(stream)
    gate.set()
    with pytest.raises(EmbedderError, match="401"):
        next(stream)
    assert [list(array("f", received[number])) for number in range(32)] == right(*texts[:32])
    assert (len(received), embedder.embedded) == (32, 32)


def test_vectors_of_parallel_requests_are_yielded_before_a_failure(
    host: Host, bench: Bench
) -> None:
    texts = [text for length in (0, 50, 100, 150) for text in many(32, "long " * length)]
    for _ in range(10):  # Which of them is looked at first is by chance.
        embedder, gate = bench.open(), threading.Event()

        def held(ask: Ask, gate: threading.Event = gate) -> None:
            words = ask.texts[0].count("long")
            if words:
                gate.wait()
            (saying(401) if words in (50, 150) else answer)(ask)

        host.way = held
        stream = embedder.embed_batches(texts)
        received = set(next(stream))
        gate.set()
        spin(lambda embedder=embedder: embedder.state == "ready")  # type: ignore[misc] # All four are answered now.
        with pytest.raises(EmbedderError, match="401"):
            received.update(number for batch in stream for number in batch)
        assert received == {*range(32), *range(64, 96)}


def test_a_stream_that_is_left_leaves_nothing_behind(host: Host, embedder: OpenAIEmbedder) -> None:
    stream = embedder.embed_batches(many(32 * 12))
    next(stream)
    cast("Any", stream).close()
    spin(lambda: embedder.state == "ready")
    assert len(host.texts()) <= 5
    assert vectors_of(embedder, "a") == right("a")


def test_what_was_sent_when_a_stream_was_left_is_not_sent_again(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    """A saved file interrupts a backlog again and again: each time the server was paid twice."""
    texts = many(32 * 12)
    got: dict[int, bytes] = {}
    for _ in range(5):
        left = [number for number in range(len(texts)) if number not in got]
        stream = embedder.embed_batches([texts[number] for number in left])
        for index, vector in next(stream).items():
            got[left[index]] = vector
        cast("Any", stream).close()
        vectors_of(embedder, f"a saved file {len(got)}")
    left = [number for number in range(len(texts)) if number not in got]
    for batch in embedder.embed_batches([texts[number] for number in left]):
        got.update((left[index], vector) for index, vector in batch.items())
    assert [list(array("f", got[number])) for number in range(len(texts))] == right(*texts)
    asked = [text for batch in host.texts() for text in batch if "saved" not in text]
    assert sorted(asked) == sorted(texts)


def test_equal_texts_are_sent_once(host: Host, embedder: OpenAIEmbedder) -> None:
    assert vectors_of(embedder, "a", "b", "a") == right("a", "b", "a")
    assert [sorted(batch) for batch in host.texts()] == [["a", "b"]]


def test_what_failed_after_a_stream_was_left_is_sent_again(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    gate, texts = threading.Event(), [*many(32), *many(32, "long " * 100)]

    def held(ask: Ask) -> None:
        if "long" in ask.texts[0]:
            gate.wait()
            saying(401)(ask)
        else:
            answer(ask)

    host.way = held
    stream = embedder.embed_batches(texts)
    next(stream)
    cast("Any", stream).close()
    gate.set()
    spin(lambda: embedder.state == "ready")
    host.way = answer
    assert vectors_of(embedder, *texts[32:]) == right(*texts[32:])


def test_streams_that_are_left_do_not_add_up_in_flight(
    host: Host, embedder: OpenAIEmbedder
) -> None:
    gate, texts = (
        threading.Event(),
        [text for length in (0, 50, 100, 150) for text in many(20, "long " * length)],
    )

    def held(ask: Ask) -> None:
        if "long" in ask.texts[0]:
            gate.wait()
        answer(ask)

    host.way = held
    left = embedder.embed_batches(texts)
    assert sorted(next(left)) == list(range(20))
    cast("Any", left).close()
    again = in_thread(lambda: vectors_of(embedder, *texts))
    for _ in range(200 * SPINS):
        if host.most <= 4:
            os.sched_yield()
    gate.set()
    assert again.result(PATIENCE_S) == right(*texts)
    assert host.most <= 4


# Dimension


def test_the_size_is_asked_once_and_remembered(host: Host, bench: Bench) -> None:
    embedder = bench.open(dimension=0)
    assert host.asked == []
    assert embedder.dimension == SIZE
    embedder.embed(many(200))
    embedder.embed(["a"], is_query=True)
    assert sum(each.texts == ["size"] for each in host.asked) == 1
    host.stop()
    assert bench.open(dimension=0).dimension == SIZE
    assert bench.open(dimension=0).model_id == embedder.model_id


def test_the_size_is_asked_once_by_many_threads(host: Host, bench: Bench) -> None:
    embedder = bench.open(dimension=0)
    assert vectors_of(embedder, *many(32 * 8)) == right(*many(32 * 8))
    assert sum(each.texts == ["size"] for each in host.asked) == 1


def test_sizes_of_several_models_are_remembered(host: Host, bench: Bench) -> None:
    assert bench.open("one", dimension=0).dimension == SIZE
    host.way = doing(lambda _: [1.0, 2.0])
    assert bench.open("two", dimension=0).dimension == 2
    host.asked.clear()
    assert [bench.open(name, dimension=0).dimension for name in ("one", "two")] == [SIZE, 2]
    assert host.asked == []


def test_a_size_in_the_configuration_goes_first_and_is_not_asked(host: Host, bench: Bench) -> None:
    assert bench.open(dimension=9).dimension == 9
    assert bench.open(dimension=0).dimension == SIZE
    assert bench.open(dimension=9).dimension == 9
    assert len(host.asked) == 1


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a-model": "6"}', '{"a-model": 0}', "\xff"])
def test_a_spoiled_memory_of_sizes_is_asked_again(bench: Bench, content: str) -> None:
    bench.kept.mkdir()
    (bench.kept / "served.json").write_text(content, encoding="latin-1")
    assert bench.open(dimension=0).dimension == SIZE
    assert json.loads((bench.kept / "served.json").read_text()) == {"a-model": SIZE}


def test_a_size_that_cannot_be_remembered_is_known_all_the_same(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert bench.open(dimension=0, kept=tmp_path / "file" / "kept").dimension == SIZE


@pytest.mark.parametrize("way", [*SOON.values(), *NONE.values(), saying(401), saying(400)])
def test_a_size_that_nobody_knows_is_an_embedder_error_and_asked_again_later(
    host: Host, bench: Bench, way: Way
) -> None:
    embedder = bench.open(dimension=0)
    host.way = way
    if way in (NONE["too few"], NONE["too many"]):
        host.way = saying(200, made(["a", "b"]))
    with pytest.raises(EmbedderError):
        _ = embedder.dimension
    host.way = answer
    assert embedder.dimension == SIZE


@pytest.mark.parametrize("numbers", [[], zeros()])
def test_a_size_of_nothing_is_an_embedder_error(
    host: Host, bench: Bench, numbers: list[float]
) -> None:
    host.way = doing(lambda _: numbers)
    with pytest.raises(EmbedderError, match="vector of zeros or infinite numbers"):
        _ = bench.open(dimension=0).dimension


@pytest.mark.parametrize("numbers", [[1.0], [1.0] * (SIZE + 1), [1.0] * 4_096])
@pytest.mark.parametrize("query", [False, True])
def test_an_answer_of_another_size_is_an_embedder_error(
    host: Host,
    embedder: OpenAIEmbedder,
    numbers: list[float],
    query: bool,  # noqa: FBT001
) -> None:
    host.way = doing(lambda text: numbers if "other" in text else numbers_of(text))
    with pytest.raises(
        EmbedderError, match=f"of dimension {len(numbers)}, the index has {SIZE}"
    ) as raised:
        embedder.embed(["a", "other", "b"], is_query=query)
    assert not isinstance(raised.value, BatchFailedError)
    assert embedder.refused == 0


# The key and texts never appear in errors


def test_without_a_key_none_is_sent(host: Host, bench: Bench) -> None:
    bench.open(key="").embed(["a"])
    assert host.asked[0].authorization is None


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/v1", "http://10.0.0.1:8000/v1", "http://127.0.0.1.example.org/v1", "http://localhost.example.org/v1",
        "http://127.0.0.1@example.org/v1", "http://[2001:db8::1]/v1", "http://0.0.0.0:1/v1", "HTTP://EXAMPLE.ORG/v1",
        "http://user:name@example.org/v1",
    ],
)  # fmt: skip
def test_a_key_never_goes_over_the_network_in_clear(bench: Bench, url: str) -> None:
    with pytest.raises(ConfigError, match="unencrypted") as raised:
        bench.open(url=url)
    assert KEY not in str(raised.value) + raised.value.hint


@pytest.mark.parametrize(
    "url",
    ["https://example.org/v1", "http://localhost:1/v1", "http://LOCALHOST/v1", "http://127.0.0.1/v1", "http://127.9.9.9/v1",
     "http://[::1]:8080/v1"],
)  # fmt: skip
def test_a_key_may_go_to_this_machine_and_by_https(bench: Bench, url: str) -> None:
    assert bench.open(url=url).dimension == SIZE


def test_a_server_elsewhere_needs_no_https_without_a_key(bench: Bench) -> None:
    assert bench.open(url="http://example.org/v1", key="").dimension == SIZE


@pytest.mark.parametrize(
    "url", ["http://[::1/v1", "http://localhost:port/v1", "http://exa\x00mple/v1"]
)
def test_an_address_that_is_none_is_a_config_error(bench: Bench, url: str) -> None:
    with pytest.raises(ConfigError):
        bench.open(url=url)


@pytest.mark.parametrize("key", ["schlüssel", "sk-“quoted”"])
def test_a_key_that_no_header_can_hold_is_a_config_error(bench: Bench, key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        bench.open(key=key)
    assert key not in str(raised.value)


def test_a_key_with_a_line_feed_is_an_embedder_error_without_it(bench: Bench) -> None:
    with pytest.raises(EmbedderError) as raised:
        bench.open(key=KEY + "\n").embed([WORDS])
    assert KEY not in str(raised.value) + raised.value.hint


def test_a_proxy_in_the_environment_is_not_asked_for_this_machine(
    host: Host, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Host()
    try:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert vectors_of(bench.open(), "a") == right("a")
        assert (len(host.asked), proxy.asked) == (1, [])
    finally:
        proxy.stop()


def test_the_key_is_in_no_repr(bench: Bench) -> None:
    embedder = bench.open()
    server = EmbeddingServer(url="https://example.org/v1", key=KEY)
    shown = [
        repr(server),
        str(server),
        repr(embedder),
        str(embedder.status_fields()),
        embedder.model_id,
        repr(embedder._client),
    ]
    assert not [text for text in shown if KEY in text]


@pytest.mark.parametrize(
    "way",
    [*SOON.values(), *NONE.values(), *map(echoing, (400, 401, 403, 404, 405, 413, 422, 429, 500, 501, 503)),
     doing(lambda _: [1.0])],
)  # fmt: skip
def test_an_error_shows_neither_the_key_nor_the_text(
    host: Host, embedder: OpenAIEmbedder, way: Way
) -> None:
    host.way = way
    for query in (False, True):
        with pytest.raises(EmbedderError) as raised:
            embedder.embed([WORDS], is_query=query)
        received = f"{raised.value!r} {raised.value} {raised.value.message} {raised.value.hint}"
        assert KEY not in received
        assert WORDS not in received
        assert raised.value.hint


# The end


def test_closing_twice_and_closing_what_never_asked_is_no_error(bench: Bench) -> None:
    embedder = bench.open()
    embedder.close()
    embedder.close()
    with pytest.raises(EmbedderError):
        embedder.embed(["a"], is_query=True)


def test_texts_that_come_after_closing_are_an_embedder_error(embedder: OpenAIEmbedder) -> None:
    embedder.close()
    with pytest.raises(EmbedderError, match="stopping"):
        embedder.embed(["a"])


@pytest.mark.parametrize("query", [False, True])
def test_closing_ends_what_is_in_flight(host: Host, embedder: OpenAIEmbedder, query: bool) -> None:  # noqa: FBT001
    gate = threading.Event()

    def held(ask: Ask) -> None:
        gate.wait()
        answer(ask)

    host.way = held
    asked = in_thread(lambda: embedder.embed(["a"], is_query=query))
    try:
        spin(lambda: host.within)
        for _ in range(SPINS):
            os.sched_yield()
        assert in_thread(embedder.close).result(PATIENCE_S) is None
        assert isinstance(asked.exception(SOON_S), EmbedderError)
    finally:
        gate.set()
        asked.exception(PATIENCE_S)


def test_closing_ends_a_pause(host: Host, embedder: OpenAIEmbedder) -> None:
    host.way = saying(429, Retry_After="60")
    asked = in_thread(lambda: embedder.embed(["a"]))
    spin(lambda: host.asked and not host.within)
    embedder.close()
    assert isinstance(asked.exception(SOON_S), EmbedderError)


# In a daemon

SERVED = """
[embedding]
provider = "openai"
model = "a-model"
url = "{url}"
{more}
[watch]
settle_ms = 20
max_wait_ms = 200
poll_s = 0.2
"""


@pytest.fixture
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep indexed files out of a failing test's report, and shorten the pauses before retries."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    monkeypatch.setattr("anchord.daemon.writer.backoff._FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr("anchord.daemon.writer.backoff._LONGEST_PAUSE_S", 0.2)
    yield
    structlog.reset_defaults()


@pytest.fixture
def service(tmp_path: Path, host: Host, pauses: list[float], _quiet: None) -> Iterator[Service]:
    """Return a service that is not started yet and embeds with the server."""
    assert pauses == []
    made_service = Service(tmp_path, SERVED.format(url=host.url, more=""))
    yield made_service
    made_service.stop()


def found(service: Service, query: str, mode: str = "hybrid") -> dict[str, Any]:
    return cast("dict[str, Any]", service.ask("search", query=query, mode=mode))


def paths_of(answered: dict[str, Any]) -> list[str]:
    return [group[0]["path"] for group in answered["groups"]]


def test_a_daemon_indexes_and_searches_by_a_server(service: Service, host: Host) -> None:
    service.notes(20)
    service.start()
    assert service.is_right()
    assert "size" in {text for each in host.asked for text in each.texts}
    answered = found(service, "Words of note 007.")
    assert (paths_of(answered)[0], answered["note"]) == ("007.md", "")
    assert answered["groups"][0][0]["cosine"] is not None
    received = service.status()["embedder"]
    assert (received["provider"], received["model"], received["runtime"], received["refused"]) == (
        "openai",
        "a-model",
        "server",
        0,
    )
    assert service.status()["state"] == "idle"


def test_a_server_that_goes_away_loses_nothing_and_words_still_find(
    service: Service, host: Host
) -> None:
    service.notes(5)
    service.start().sync()
    port = host.port
    host.stop()
    service.notes(5, "new/")
    (service.folder / "001.md").unlink()
    until(lambda: "the embedding server does not answer" in service.reasons())
    assert service.status()["state"] == "degraded"
    assert service.ask("sync", words=True)["synced"]
    assert service.status()["without_vector"] > 0
    answered = found(service, "Words of note 003.")
    assert paths_of(answered)[0] == "003.md"
    assert answered["note"].startswith("found by words alone: the embedding server does not answer")
    by_words = found(service, "Words of note 003.", "text")
    assert paths_of(by_words)[0] == "003.md"
    assert paths_of(found(service, "Words of note new/003.", "text"))[0] == "new/003.md"
    assert "indexing is blocked" not in service.reasons()
    with pytest.raises(EmbedderError, match="does not answer"):
        found(service, "Words of note 003.", "vector")
    again = Host(port)
    try:
        until(lambda: not service.reasons())
        assert service.is_right()
        assert service.paths() == {f"{n:03}.md" for n in (0, 2, 3, 4)} | {
            f"new/{n:03}.md" for n in range(5)
        }
        assert service.status()["failed"] == []
        assert found(service, "Words of note new/003.")["note"] == ""
        service.stop()
    finally:
        again.stop()


def test_what_was_embedded_before_the_server_went_is_not_embedded_again(
    service: Service, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_module, "_BATCH", (8_192, 5))
    service.notes(60)
    left = threading.Semaphore(6)

    def some(ask: Ask) -> None:
        """Answer six requests, including the one for the dimension, then stop."""
        (answer if left.acquire(blocking=False) else saying(503))(ask)

    host.way = some
    service.start()
    until(lambda: "the embedding server does not answer" in service.reasons())
    with host.lock:
        host.asked.clear()
    host.way = answer
    until(lambda: not service.reasons())
    service.sync()
    assert len({text for batch in host.texts() for text in batch}) == 60 - 25
    assert service.embedded() == 60
    assert service.is_right()


def test_a_passage_that_the_server_refuses_is_named_and_found_by_words(
    service: Service, host: Host
) -> None:
    host.way = poisoned(echoing(400))
    service.notes(6)
    service.write("bad.md", "# Bad\n\nIt holds poison.\n")
    service.start()
    until(lambda: service.status()["chunks"] == 7)  # A `sync` would interrupt: see the next test.
    assert service.reasons() == ""
    assert "bad.md" in service.paths()
    (listed,) = service.status()["failed"]
    assert listed["path"].endswith("bad.md")
    assert service.status()["embedder"]["refused"] == 1
    assert paths_of(found(service, "poison", "text")) == ["bad.md"]
    assert service.is_right()
    host.way = answer
    service.write("bad.md", "# Bad\n\nIt holds poison, and more.\n")
    until(lambda: service.status()["failed"] == [])
    assert service.is_right()


def test_a_passage_that_was_refused_before_the_work_was_interrupted_is_named(
    service: Service, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_module, "_BATCH", (8_192, 1))
    monkeypatch.setattr(served_module, "_IN_FLIGHT", 1)
    host.way = lambda ask: (
        echoing(400)
        if "poison" in ask.texts[0]
        else saying(503)
        if "long" in ask.texts[0]
        else answer
    )(ask)
    service.write("bad.md", "A poison.\n")
    service.write("good.md", "A long text, whose request comes after it.\n")
    service.start()
    until(lambda: "the embedding server does not answer" in service.reasons())
    host.way = poisoned(echoing(400))
    until(lambda: service.status()["chunks"] == 2)
    (listed,) = service.status()["failed"]
    assert listed["path"].endswith("bad.md")


def test_a_query_that_the_server_refuses_is_answered_by_words(service: Service, host: Host) -> None:
    service.notes(3)
    service.start().sync()
    host.way = poisoned(echoing(400))
    answered = found(service, "note poison 001")
    assert paths_of(answered)[0] == "001.md"
    assert answered["note"].startswith("found by words alone")
    assert WORDS not in answered["note"]
    host.way = doing(lambda _: zeros())
    assert paths_of(found(service, "Words of note 001."))[0] == "001.md"


def test_a_restart_while_the_server_is_away_serves_words_and_goes_on_when_it_is_back(
    service: Service, host: Host
) -> None:
    service.notes(3)
    service.start().sync()
    service.stop()
    port = host.port
    host.stop()
    service.start()
    service.write("new.md", "# New\n\nWords of the new one.\n")
    until(lambda: "the embedding server does not answer" in service.reasons())
    assert paths_of(found(service, "Words of note 002."))[0] == "002.md"
    again = Host(port)
    try:
        until(lambda: "new.md" in service.paths())
        assert service.is_right()
        service.stop()
    finally:
        again.stop()


def test_a_first_start_without_the_server_says_what_is_missing(
    service: Service, host: Host
) -> None:
    host.way = saying(503, Connection="close")
    with pytest.raises(
        EmbedderError, match="the dimension of its model is not known yet"
    ) as raised:
        service.start()
    assert "`dimension`" in raised.value.hint
    host.way = answer
    service.start()
    assert service.is_right()


def test_a_start_that_fails_leaves_no_connection_open(
    service: Service, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[OpenAIEmbedder] = []
    close = OpenAIEmbedder.close

    def noted(embedder: OpenAIEmbedder) -> None:
        closed.append(embedder)
        close(embedder)

    monkeypatch.setattr(OpenAIEmbedder, "close", noted)
    host.way = saying(503, Connection="close")
    with pytest.raises(EmbedderError):
        service.start()
    assert closed


def test_another_size_under_the_same_name_is_reported_and_nothing_is_spoiled(
    service: Service, host: Host
) -> None:
    service.notes(3)
    service.start().sync()
    host.way = doing(lambda text: [*numbers_of(text), 1.0])
    service.write("new.md", "# New\n\nWords.\n")
    until(lambda: f"of dimension {SIZE + 1}, the index has {SIZE}" in service.reasons())
    assert found(service, "Words of note 002.")["note"].startswith("found by words alone")
    host.way = answer
    until(lambda: "new.md" in service.paths())
    assert service.is_right()


def test_another_model_makes_a_new_index(service: Service, host: Host) -> None:
    service.notes(3)
    service.start().sync()
    service.stop()
    service.settings = service.settings.replace("a-model", "b-model")
    host.way = doing(lambda text: [*reversed(numbers_of(text)), 1.0])
    service.start()
    until(lambda: service.status()["generation"] is None)
    assert service.status()["embedder"]["model"] == "b-model"
    assert service.is_right()


@pytest.mark.parametrize(
    "more", ["", 'query_prefix = "Instruct: find\\nQuery: "'], ids=["plain", "two lines"]
)
def test_the_rows_of_another_size_serve_until_the_new_index_is_ready(
    service: Service, host: Host, more: str
) -> None:
    service.settings = SERVED.format(url=host.url, more=more)
    service.notes(3)
    service.start().sync()
    service.stop()
    service.settings = service.settings.replace("a-model", "b-model")
    host.way = doing(lambda text: [*numbers_of(text), 1.0])
    service.start()
    assert service.writer.repairs == []
    until(lambda: service.status()["generation"] is None)
    assert service.is_right()


def test_a_daemon_stops_while_a_request_is_in_flight(service: Service, host: Host) -> None:
    service.notes(3)
    service.start().sync()
    gate = threading.Event()

    def held(ask: Ask) -> None:
        gate.wait()
        answer(ask)

    host.way = held
    service.write("new.md", "# New\n\nWords.\n")
    until(lambda: host.within)
    stopping = in_thread(service.stop)
    try:
        stopping.result(SOON_S)
    finally:
        gate.set()
        stopping.result(PATIENCE_S)
