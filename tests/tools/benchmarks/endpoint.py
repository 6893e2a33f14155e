"""A server of embeddings on this machine that counts: as slow as it is told, the same vector for the same text."""

from __future__ import annotations

import json
import math
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIMENSION = 384
_MARK_WEIGHT = 30.0
"""Of a word with a digit: a text is nearest to a query for the rare word that it has."""


@dataclass
class Endpoint:
    """Where it answers, and what it was asked for."""

    url: str
    texts: list[str] = field(default_factory=list)


@contextmanager
def counting(rate: float) -> Iterator[Endpoint]:
    """Serve vectors at `rate` texts a second, one request at a time, as one model would."""
    model = threading.Lock()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            with model:
                time.sleep(len(texts) / rate)
                endpoint.texts.extend(texts)
            data = [
                {"object": "embedding", "index": index, "embedding": vector(text)}
                for index, text in enumerate(texts)
            ]
            usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
            answer = {"object": "list", "data": data, "model": "slow", "usage": usage}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # of a client that was killed
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield endpoint
    finally:
        server.shutdown()


def vector(text: str) -> list[float]:
    """Return a vector of length 1: a number for each word, by its hash. An empty text points along the first axis."""
    numbers = [0.0] * DIMENSION
    for word, count in Counter(re.findall(r"\w+", text.lower())).items():
        weight = _MARK_WEIGHT if re.search(r"[a-z]\d", word) else math.sqrt(count)
        numbers[zlib.crc32(word.encode()) % DIMENSION] += weight
    length = math.hypot(*numbers)
    return [number / length for number in numbers] if length else [1.0, *numbers[1:]]
