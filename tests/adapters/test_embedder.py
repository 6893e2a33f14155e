"""The embedding process: started when there is work, answered in order, ended when idle, and replaced when it fails.

Most facts are shown on a worker program of our own that speaks the same frames and misbehaves when a text says so; one
test runs the real model.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from fakes import cosine

from anchord.adapters import embedder as embedder_module
from anchord.adapters.embedder import WorkerEmbedder
from anchord.adapters.models import ModelFiles, find_model
from anchord.adapters.worker import read_frame, write_frame
from anchord.errors import EmbedderError
from anchord.model import Vector
from anchord.ports import Embedder

WORKER = """#!{python} -IS
# Answers [length of the text, number of the batch, number of this process], or does what a text asks for.
import os, struct, sys
sys.path[:] = {path}
import msgspec

module, folder, threads = sys.argv[2], sys.argv[3], sys.argv[4]
out = sys.stdout.buffer

def send(value):
    body = msgspec.msgpack.encode(value)
    out.write(struct.pack("<I", len(body)) + body)
    out.flush()

started = os.path.join(folder, "started")
count = os.path.getsize(started) + 1 if os.path.exists(started) else 1
open(started, "a").write("x")
behaviour = os.path.join(folder, "start")
how = open(behaviour).read() if os.path.exists(behaviour) else ""
if how == "die":
    sys.exit(1)
if how == "hang":
    sys.stdin.buffer.read()
    sys.exit(0)
send({{"ready": int(how) if how else 3}})
batch = 0
while len(head := sys.stdin.buffer.read(4)) == 4:
    texts = msgspec.msgpack.decode(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
    batch += 1
    numbers = b"".join(struct.pack("<fff", len(text), batch, count) for text in texts)
    if "wait" in texts:
        open(os.path.join(folder, "gate")).read()
    if "die" in texts:
        os._exit(1)
    elif "hang" in texts:
        sys.stdin.buffer.read()
    elif "half" in texts:
        out.write(struct.pack("<I", 100) + b"only the beginning")
        out.flush()
        sys.stdin.buffer.read()
    elif "noise" in texts:
        out.write(struct.pack("<I", 4) + b"\\xc1\\xc1\\xc1\\xc1")
        out.flush()
    elif "error" in texts:
        send({{"error": "RuntimeError: out of memory"}})
    elif "short" in texts:
        send({{"vectors": numbers[4:]}})
    elif "nan" in texts:
        send({{"vectors": struct.pack("<f", float("nan")) + numbers[4:]}})
    elif "infinite" in texts:
        send({{"vectors": struct.pack("<f", float("inf")) + numbers[4:]}})
    elif "list" in texts:
        send([1, 2, 3])
    else:
        send({{"vectors": numbers}})
"""


@dataclass
class Bench:
    """An embedder over the fake worker; `now` is its clock, in seconds."""

    folder: Path
    now: float = 1_000.0
    embedder: WorkerEmbedder = field(init=False)

    def __post_init__(self) -> None:
        """Start nothing yet."""
        self.embedder = WorkerEmbedder(ModelFiles("fake", self.folder, 10, 3), 1, 60.0, lambda: self.now)

    @property
    def started(self) -> int:
        """How many workers were started."""
        file = self.folder / "started"
        return file.stat().st_size if file.exists() else 0

    def start_with(self, behaviour: str) -> None:
        """Tell the next worker how to start."""
        (self.folder / "start").write_text(behaviour)

    def embed(self, *texts: str, urgent: bool = False) -> list[list[float]]:
        """Return the numbers of each vector: length of the text, number of the batch, number of the process."""
        return [list(array("f", vector)) for vector in self.embedder.embed(texts, urgent=urgent)]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Give an embedder whose interpreter is the fake worker."""
    program = tmp_path / "worker.py"
    program.write_text(WORKER.format(python=sys.executable, path=sys.path))
    program.chmod(0o700)
    os.mkfifo(tmp_path / "gate")
    monkeypatch.setattr(sys, "executable", str(program))
    made = Bench(tmp_path)
    with closing(made.embedder):
        yield made


def in_thread(call: Callable[[], list[list[float]]]) -> Future[list[list[float]]]:
    future: Future[list[list[float]]] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def until(true: Callable[[], object]) -> None:
    """Let other threads run until something holds; the test's own timeout ends a wait in vain."""
    while not true():
        os.sched_yield()


# Answers


def test_nothing_is_started_before_the_first_text(bench: Bench) -> None:
    assert list(bench.embedder.embed([])) == []
    assert (bench.embedder.state, bench.started) == ("off", 0)


def test_each_text_gets_its_vector_in_its_place(bench: Bench) -> None:
    texts = ["four", "a", "sixsix", "", "four", "ä"]
    assert [vector[0] for vector in bench.embed(*texts)] == [4, 1, 6, 0, 4, 1]
    assert (bench.embedder.state, bench.started, bench.embedder.embedded) == ("ready", 1, 6)


def test_one_worker_serves_many_calls(bench: Bench) -> None:
    assert [bench.embed("a")[0][1:] for _ in range(3)] == [[1, 1], [2, 1], [3, 1]]


def test_batches_are_small_and_of_like_lengths(bench: Bench) -> None:
    texts = ["x" * (1 + n % 40) for n in range(100)]
    vectors = bench.embed(*texts)
    assert [vector[0] for vector in vectors] == [len(text) for text in texts]
    batches: dict[float, list[float]] = {}
    for length, batch, _ in vectors:
        batches.setdefault(batch, []).append(length)
    ordered = [batches[number] for number in sorted(batches)]
    assert all(len(batch) <= 32 for batch in ordered)
    assert all(max(one) <= min(other) for one, other in pairwise(ordered))


def test_long_texts_go_in_batches_of_few(bench: Bench) -> None:
    vectors = bench.embed(*["x" * 9_000] * 3, "x" * 50_000)
    assert sorted(vector[1] for vector in vectors) == [1, 2, 3, 4]


def test_the_rate_is_that_of_the_last_batch(bench: Bench) -> None:
    asked = in_thread(lambda: bench.embed("wait", "text"))
    with (bench.folder / "gate").open("w"):
        bench.now += 4
    asked.result()
    assert bench.embedder.rate == pytest.approx(0.5)


# Trouble


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("die", "ended before it answered"),
        ("error", "the model failed: RuntimeError: out of memory"),
        ("short", "an answer of the wrong size"),
        ("list", "ended before it answered"),
        ("nan", "NaN or infinite"),
        ("infinite", "NaN or infinite"),
        ("noise", "ended before it answered"),
    ],
)
def test_an_answer_that_is_none_is_an_embedder_error_and_the_next_call_has_a_new_worker(
    bench: Bench, text: str, complaint: str
) -> None:
    assert bench.embed("before") == [[6, 1, 1]]
    with pytest.raises(EmbedderError, match=complaint):
        bench.embed(text)
    assert bench.embedder.state == "off"
    assert bench.embed("after") == [[5, 1, 2]]
    assert bench.embedder.embedded == 2


def test_a_worker_that_was_killed_between_two_calls_is_replaced_at_once(bench: Bench) -> None:
    bench.embed("a")
    process = bench.embedder._worker.process if bench.embedder._worker else None
    assert process is not None
    process.kill()
    process.wait()
    assert bench.embedder.state == "off"
    assert bench.embed("b") == [[1, 1, 2]]


def test_a_worker_that_gives_no_answer_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.embed("before")
    monkeypatch.setattr(embedder_module, "_BATCH_TIMEOUT_S", 0.05)
    with pytest.raises(EmbedderError, match="no answer in"):
        bench.embed("hang")
    monkeypatch.setattr(embedder_module, "_BATCH_TIMEOUT_S", 60.0)
    assert bench.embed("after") == [[5, 1, 2]]


def test_a_worker_that_stops_in_the_middle_of_an_answer_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.embed("before")
    worker = bench.embedder._worker
    assert worker is not None
    monkeypatch.setattr(embedder_module, "_BATCH_TIMEOUT_S", 0.05)
    asked = in_thread(lambda: bench.embed("half"))
    try:
        error = asked.exception(timeout=3)
    except TimeoutError:
        worker.process.kill()
        pytest.fail("the timeout holds for the first byte alone: the writer would wait for ever")
    assert isinstance(error, EmbedderError)


@pytest.mark.parametrize(
    ("how", "complaint"),
    [("die", "ended before it answered"), ("5", "gives 5 numbers where its files say 3"), ("hang", "no answer")],
)
def test_a_worker_that_does_not_start_well_is_an_embedder_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str, complaint: str
) -> None:
    monkeypatch.setattr(embedder_module, "_START_TIMEOUT_S", 0.3 if how == "hang" else 60.0)
    bench.start_with(how)
    with pytest.raises(EmbedderError, match=complaint):
        bench.embed("a")
    monkeypatch.setattr(embedder_module, "_START_TIMEOUT_S", 60.0)
    bench.start_with("")
    assert bench.embed("a")[0][:2] == [1, 1]


def test_a_worker_that_cannot_be_started_is_an_embedder_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(bench.folder / "no-such-python"))
    with pytest.raises(EmbedderError):
        bench.embed("a")


# Rest and end


def test_a_worker_that_had_nothing_to_do_for_a_while_is_ended_and_started_again(bench: Bench) -> None:
    bench.embed("a")
    bench.now += 60
    bench.embedder.rest()
    assert bench.embedder.state == "ready"
    bench.now += 1
    bench.embedder.rest()
    bench.embedder.rest()
    assert bench.embedder.state == "off"
    assert bench.embed("b") == [[1, 1, 2]]


def test_each_use_starts_the_while_anew(bench: Bench) -> None:
    bench.embed("a")
    bench.now += 50
    bench.embed("b")
    bench.now += 50
    bench.embedder.rest()
    assert bench.embed("c") == [[1, 3, 1]]


def test_a_worker_that_works_is_not_ended(bench: Bench) -> None:
    asked = in_thread(lambda: bench.embed("wait"))
    with (bench.folder / "gate").open("w"):
        bench.now += 1_000
        bench.embedder.rest()
        assert bench.embedder.state == "busy"
    assert asked.result() == [[4, 1, 1]]


def test_closing_ends_the_worker_and_later_calls_fail(bench: Bench) -> None:
    bench.embed("a")
    worker = bench.embedder._worker
    assert worker is not None
    bench.embedder.close()
    assert worker.process.returncode is not None
    with pytest.raises(EmbedderError, match="stopping"):
        bench.embed("b")
    assert bench.started == 1


def test_closing_ends_a_batch_that_is_being_made(bench: Bench) -> None:
    asked = in_thread(lambda: bench.embed("wait"))
    with (bench.folder / "gate").open("w"):
        bench.embedder.close()
        assert isinstance(asked.exception(), EmbedderError)
    assert bench.embedder.state == "off"


def test_closing_twice_and_closing_what_never_started_is_no_error(bench: Bench) -> None:
    bench.embedder.close()
    bench.embedder.close()
    assert bench.embedder.state == "off"


# Turns


def test_an_urgent_text_goes_between_two_batches_of_a_backfill(bench: Bench) -> None:
    backfill = in_thread(lambda: bench.embed("wait", *["longer text"] * 60))
    with (bench.folder / "gate").open("w"):
        query = in_thread(lambda: bench.embed("query", urgent=True))
        until(lambda: bench.embedder._urgent_waiting)
    assert query.result() == [[5, 2, 1]]
    assert {vector[1] for vector in backfill.result()} == {1, 3}


def test_an_urgent_text_that_fails_does_not_block_the_others(bench: Bench) -> None:
    with pytest.raises(EmbedderError):
        bench.embed("error", urgent=True)
    assert bench.embed("a") == [[1, 1, 2]]


# Frames


@pytest.mark.parametrize("value", [[], ["a", "ü" * 70_000], {"vectors": b"\0\xff"}, {"ready": 384}])
def test_a_frame_comes_back_as_it_was_sent(value: object) -> None:
    stream = BytesIO()
    write_frame(stream, value)
    write_frame(stream, "next")
    stream.seek(0)
    assert (read_frame(stream), read_frame(stream), read_frame(stream)) == (value, "next", None)


def test_a_frame_that_is_cut_off_is_the_end() -> None:
    body = msgspec.msgpack.encode(["text"])
    for kept in range(4 + len(body)):
        assert read_frame(BytesIO((struct.pack("<I", len(body)) + body)[:kept])) is None


# The real model


def test_the_real_model_gives_unit_vectors_that_mean_something() -> None:
    with closing(WorkerEmbedder(find_model("all-MiniLM-L6-v2"), threads=2, idle_s=0.0)) as real:
        embedder: Embedder = real
        assert embedder.model.startswith("sentence-transformers/")
        texts = ["a cat sits on the mat", "a kitten rests on a rug", "quarterly tax returns", "a cat sits on the mat"]
        vectors = embedder.embed(texts)
        assert [len(vector) for vector in vectors] == [4 * embedder.dimension] * 4 == [4 * 384] * 4
        assert lengths(vectors) == pytest.approx([1.0] * 4, abs=1e-4)
        assert cosine(vectors[0], vectors[3]) == pytest.approx(1.0, abs=1e-5)
        assert cosine(vectors[0], vectors[2]) < cosine(vectors[0], vectors[1]) < 0.99
        assert cosine(embedder.embed(texts[:1], urgent=True)[0], vectors[0]) == pytest.approx(1.0, abs=1e-5)
        real.rest()
        assert real.state == "off"


def lengths(vectors: Sequence[Vector]) -> list[float]:
    return [sum(number * number for number in array("f", vector)) ** 0.5 for vector in vectors]
