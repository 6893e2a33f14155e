"""The embedding process: starts when there is work, answers in order, ends when idle, is replaced when it fails.

Tests of the parent use a fake worker program that speaks the same frames and fails when a text says so;
tests of the process use a program that calls `serve` with a model of three lines.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import msgspec
import psutil
import pytest
from threads import in_thread, spin

from anchord.embedding.workers import worker_queue as lane_module
from anchord.embedding.workers.export_cache import offline_environment
from anchord.embedding.workers.worker_main import WorkerSettings
from anchord.embedding.workers.worker_queue import WorkerQueue
from anchord.errors import BatchFailedError, EmbedderError
from anchord.ipc import worker_process as child_module
from anchord.ipc.framing import read_frame, write_frame
from anchord.ipc.worker_process import WorkerProcess, WorkerProcessError

WORKER = """#!{python} -IS
# Answers [length of the text, number of the batch, number of this process, query], or does what a text asks for.
import json, os, struct, sys
sys.path[:] = {path}
import msgspec

assert sys.argv.pop(1) == "-P"  # Else a module in the current folder would be loaded.
given = json.loads(sys.argv[3])
folder = given["folder"]
out = sys.stdout.buffer
held = []

def send(value):
    body = msgspec.msgpack.encode(value)
    out.write(struct.pack("<I", len(body)) + body)
    out.flush()

with open(os.path.join(folder, "told"), "w") as told:
    json.dump([sys.argv[1], sys.argv[2], sys.argv[3], os.environ.get("HF_HUB_OFFLINE")], told)
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
if how == "wait":
    open(os.path.join(folder, "gate")).read()
send({{"ready": int(how) if how.isdigit() else given["dimension"]}})
batch = 0
while len(head := sys.stdin.buffer.read(4)) == 4:
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
    texts, query = request["texts"], request["query"]
    batch += 1
    numbers = b"".join(struct.pack("<ffff", len(text), batch, count, query) for text in texts)
    if "wait" in texts:
        open(os.path.join(folder, "gate")).read()
    if "grow" in texts:
        held.append(b"x" * 200_000_000)
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
        send({{"error": "RuntimeError"}})
    elif "nothing" in texts:
        send({{}})
    elif "short" in texts:
        send({{"vectors": numbers[4:]}})
    elif "long" in texts:
        send({{"vectors": numbers + numbers}})
    elif "nan" in texts:
        send({{"vectors": struct.pack("<f", float("nan")) + numbers[4:]}})
    elif "infinite" in texts:
        send({{"vectors": struct.pack("<f", float("inf")) + numbers[4:]}})
    elif "both infinite" in texts:
        send({{"vectors": struct.pack("<ff", float("inf"), float("-inf")) + numbers[8:]}})
    elif "list" in texts:
        send([1, 2, 3])
    else:
        send({{"vectors": numbers}})
if how == "deaf":
    open(os.path.join(folder, "gate")).read()
"""

SERVING = """
# A model whose vectors are [length of the text, query]; it prints, and raises when a text says so.
import os
from array import array
from anchord.embedding.workers.worker_main import run_worker_loop

def load(settings):
    print("loading", settings.folder)

    def encode(texts, query):
        os.write(1, b"computing\\n")
        if "raise" in texts:
            raise ValueError("the words of a text")
        if "nice" in texts:
            return array("f", [os.nice(0), 0]).tobytes()
        return b"".join(array("f", [len(text), query]).tobytes() for text in texts)

    if settings.window == 0:
        raise RuntimeError("no weights")
    return encode

run_worker_loop(load)
"""


def _child(program: str, settings: WorkerSettings) -> WorkerProcess:
    return WorkerProcess(program, (msgspec.json.encode(settings).decode(),), offline_environment())


Numbers = list[list[float]]
PROGRAM = "some.program"


@dataclass
class Bench:
    """A worker queue with the fake worker; `now` is its clock in seconds."""

    folder: Path
    growth: int = 0
    now: float = 1_000.0
    lane: WorkerQueue = field(init=False)

    def __post_init__(self) -> None:
        """Start nothing yet."""
        self.lane = WorkerQueue(PROGRAM, self.settings, 60.0, self.growth, lambda: self.now)

    @property
    def settings(self) -> WorkerSettings:
        """What the worker is started with."""
        return WorkerSettings(
            folder=str(self.folder),
            threads=1,
            dimension=4,
            window=10,
            tokenizer="none",
            query_prefix='a "quöte" ',
        )

    @property
    def started(self) -> int:
        """How many workers were started."""
        file = self.folder / "started"
        return file.stat().st_size if file.exists() else 0

    def start_with(self, behaviour: str) -> None:
        """Set how the next worker starts."""
        (self.folder / "start").write_text(behaviour)

    def worker_arguments(self) -> list[str]:
        """Return the arguments of the last worker, and whether it may ask a hub."""
        return msgspec.json.decode((self.folder / "told").read_bytes(), type=list[str])

    def embed(self, *texts: str, query: bool = False) -> Numbers:
        """Return the numbers of each vector: length of the text, number of the batch, number of the process."""
        return [
            list(array("f", vector))[:3]
            for vector in self.lane.embed(texts, 0, query=query).vectors
        ]

    def process(self) -> WorkerProcess:
        """Return the running process."""
        assert self.lane._process is not None
        return self.lane._process


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Return a worker queue whose interpreter runs the fake worker."""
    program = tmp_path / "worker.py"
    program.write_text(WORKER.format(python=sys.executable, path=sys.path))
    program.chmod(0o700)
    os.mkfifo(tmp_path / "gate")
    monkeypatch.setattr(sys, "executable", str(program))
    made = Bench(tmp_path)
    with closing(made.lane):
        yield made


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], WorkerProcess]:
    """Give a way to start a process that uses `serve`, with a window."""
    (tmp_path / "a_model.py").write_text(SERVING)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))

    def start(window: int) -> WorkerProcess:
        return _child(
            "a_model",
            WorkerSettings(folder="its files", threads=1, dimension=2, window=window, tokenizer=""),
        )

    return start


# Answers


def test_nothing_is_started_before_the_first_text(bench: Bench) -> None:
    assert (bench.lane.state, bench.lane.memory_bytes, bench.lane.start_count, bench.started) == (
        "off",
        0,
        0,
        0,
    )


def test_each_text_gets_its_vector_in_its_place(bench: Bench) -> None:
    assert [vector[0] for vector in bench.embed("four", "a", "sixsix", "", "four", "ä")] == [
        4,
        1,
        6,
        0,
        4,
        1,
    ]
    assert (bench.lane.state, bench.lane.start_count, bench.started) == ("ready", 1, 1)


def test_one_worker_serves_many_calls(bench: Bench) -> None:
    assert [bench.embed("a")[0][1:] for _ in range(3)] == [[1, 1], [2, 1], [3, 1]]


def test_the_worker_gets_its_settings_and_asks_no_hub(bench: Bench) -> None:
    bench.embed("a")
    option, program, settings, offline = bench.worker_arguments()
    assert (option, program, offline) == ("-m", PROGRAM, "1")
    assert msgspec.json.decode(settings, type=WorkerSettings) == bench.settings


@pytest.mark.parametrize("query", [False, True])
def test_the_worker_knows_which_text_is_a_query(bench: Bench, query: bool) -> None:  # noqa: FBT001 - a case
    (vector,) = bench.lane.embed(["a"], 0, query=query).vectors
    assert array("f", vector)[3] == query


def test_a_request_and_an_answer_may_be_larger_than_a_pipe(bench: Bench) -> None:
    texts = ["x" * 200_000] * 20 + ["a"] * 20_000
    assert [vector[0] for vector in bench.embed(*texts)] == [len(text) for text in texts]


def test_the_queue_reports_the_memory_of_its_process(bench: Bench) -> None:
    bench.embed("a")
    small = bench.lane.memory_bytes
    bench.embed("grow")
    assert small > 1_000_000
    assert bench.lane.memory_bytes > small + 150_000_000


# Trouble


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("die", "ended before it answered"),
        ("error", "the model failed: RuntimeError"),
        ("nothing", "an answer of the wrong size"),
        ("short", "an answer of the wrong size"),
        ("long", "an answer of the wrong size"),
        ("list", "ended before it answered"),
        ("nan", "NaN or infinite"),
        ("infinite", "NaN or infinite"),
        ("both infinite", "NaN or infinite"),
        ("noise", "ended before it answered"),
    ],
)
def test_an_answer_that_is_none_is_a_failed_batch_and_the_next_call_has_a_new_worker(
    bench: Bench, text: str, complaint: str
) -> None:
    assert bench.embed("before") == [[6, 1, 1]]
    with pytest.raises(BatchFailedError, match=complaint):
        bench.embed(text)
    assert bench.lane.state == "off"
    assert bench.embed("after") == [[5, 1, 2]]


def test_a_worker_that_was_killed_between_two_calls_is_replaced_at_once(bench: Bench) -> None:
    bench.embed("a")
    running = bench.process().popen
    running.kill()
    running.wait()
    assert (bench.lane.state, bench.lane.memory_bytes) == ("off", 0)
    assert bench.embed("b") == [[1, 1, 2]]
    assert bench.lane.start_count == 2


@pytest.mark.parametrize("text", ["hang", "half"])
def test_a_worker_that_gives_no_whole_answer_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    bench.embed("before")
    monkeypatch.setattr(lane_module, "BATCH_TIMEOUT_S", 0.05)
    with pytest.raises(BatchFailedError, match="no answer in"):
        bench.embed(text)
    monkeypatch.setattr(lane_module, "BATCH_TIMEOUT_S", 60.0)
    assert bench.embed("after") == [[5, 1, 2]]


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ("die", "ended before it answered"),
        ("5", "vectors have 5 dimensions, its files say 4"),
        ("hang", "no answer"),
    ],
)
def test_a_worker_that_does_not_start_well_is_no_failed_batch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str, complaint: str
) -> None:
    monkeypatch.setattr(lane_module, "START_TIMEOUT_S", 0.3 if how == "hang" else 60.0)
    bench.start_with(how)
    with pytest.raises(EmbedderError, match=complaint) as raised:
        bench.embed("a")
    assert raised.type is EmbedderError
    assert bench.lane.state == "off"
    monkeypatch.setattr(lane_module, "START_TIMEOUT_S", 60.0)
    bench.start_with("")
    assert bench.embed("a")[0][:2] == [1, 1]


def test_a_worker_that_cannot_be_started_is_no_failed_batch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(bench.folder / "no-such-python"))
    with pytest.raises(EmbedderError, match="cannot be started") as raised:
        bench.embed("a")
    assert raised.type is EmbedderError


@pytest.mark.parametrize(("how", "end"), [("", 0), ("deaf", -signal.SIGKILL)])
def test_a_worker_ends_with_its_pipe_or_is_killed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str, end: int
) -> None:
    monkeypatch.setattr(child_module, "_SHUT_DOWN_TIMEOUT_S", 0.05 if how else 60.0)
    bench.start_with(how)
    bench.embed("a")
    process = bench.process()
    process.shut_down()
    assert (process.popen.returncode, process.is_alive, process.memory_bytes) == (end, False, 0)


# Idle and end


def test_a_worker_that_had_nothing_to_do_for_a_while_is_ended_and_started_again(
    bench: Bench,
) -> None:
    bench.embed("a")
    bench.now += 60
    bench.lane.stop_worker_if_idle()
    assert bench.lane.state == "ready"
    bench.now += 1
    bench.lane.stop_worker_if_idle()
    bench.lane.stop_worker_if_idle()
    assert bench.lane.state == "off"
    assert bench.embed("b") == [[1, 1, 2]]


def test_each_use_restarts_the_idle_time(bench: Bench) -> None:
    bench.embed("a")
    bench.now += 50
    bench.embed("b")
    bench.now += 50
    bench.lane.stop_worker_if_idle()
    assert bench.embed("c") == [[1, 3, 1]]


def test_a_worker_that_works_is_not_ended(bench: Bench) -> None:
    asked = in_thread(lambda: bench.embed("wait"))
    with (bench.folder / "gate").open("w"):
        bench.now += 1_000
        bench.lane.stop_worker_if_idle()
        assert bench.lane.state == "busy"
    assert asked.result() == [[4, 1, 1]]


def test_a_worker_that_loads_its_model_is_starting(bench: Bench) -> None:
    bench.start_with("wait")
    asked = in_thread(lambda: bench.embed("a"))
    with (bench.folder / "gate").open("w"):
        seen = bench.lane.state
    assert asked.result() == [[1, 1, 1]]
    assert seen == "starting"


@pytest.mark.parametrize(("growth", "workers"), [(0, [1, 1, 1]), (100_000_000, [1, 1, 2])])
def test_a_worker_that_grew_too_large_is_replaced_after_the_batch(
    bench: Bench, growth: int, workers: list[int]
) -> None:
    with closing(Bench(bench.folder, growth).lane) as lane:
        vectors = [lane.embed([text], 0, query=False).vectors[0] for text in ("a", "grow", "b")]
        assert [array("f", vector)[2] for vector in vectors] == workers


def test_closing_ends_the_worker_and_later_calls_fail(bench: Bench) -> None:
    bench.embed("a")
    running = bench.process().popen
    bench.lane.close()
    assert running.returncode is not None
    with pytest.raises(EmbedderError, match="stopping") as raised:
        bench.embed("b")
    assert raised.type is EmbedderError
    assert bench.started == 1


@pytest.mark.parametrize("how", ["", "wait"])
def test_closing_ends_a_batch_that_is_being_made_and_a_worker_that_starts(
    bench: Bench, how: str
) -> None:
    bench.start_with(how)
    asked = in_thread(lambda: bench.embed("wait"))
    with (bench.folder / "gate").open("w"):
        running = bench.process().popen
        bench.lane.close()
        assert isinstance(asked.exception(), EmbedderError)
    assert running.returncode is not None
    assert bench.lane.state == "off"


def test_closing_while_a_worker_is_created_ends_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[WorkerProcess] = []

    def create(
        program: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> WorkerProcess:
        bench.lane.close()
        made.append(WorkerProcess(program, arguments, environment))
        return made[0]

    monkeypatch.setattr(lane_module, "WorkerProcess", create)
    with pytest.raises(EmbedderError, match="stopping"):
        bench.embed("a")
    assert not made[0].is_alive


def test_closing_twice_and_closing_what_never_started_is_no_error(bench: Bench) -> None:
    bench.lane.close()
    bench.lane.close()
    assert bench.lane.state == "off"


# Turns


def test_a_query_goes_between_two_batches_of_a_backfill(bench: Bench) -> None:
    backfill = in_thread(lambda: bench.embed("wait") + bench.embed("longer text"))
    with (bench.folder / "gate").open("w"):
        query = in_thread(lambda: bench.embed("query", query=True))
        spin(lambda: bench.lane._queries_waiting)
    assert query.result() == [[5, 2, 1]]
    assert backfill.result() == [[4, 1, 1], [11, 3, 1]]


def test_a_query_that_fails_does_not_block_the_others(bench: Bench) -> None:
    with pytest.raises(EmbedderError):
        bench.embed("error", query=True)
    assert bench.embed("a") == [[1, 1, 2]]


def test_many_callers_get_what_is_theirs(bench: Bench) -> None:
    def ask(length: int) -> Sequence[float]:
        return [bench.embed("x" * length, query=bool(length % 2))[0][0] for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [[length] * 10 for length in range(8)]
    assert bench.started == 1


# The process itself


def test_what_a_model_prints_stays_out_of_the_answers(
    serving: Callable[[int], WorkerProcess],
) -> None:
    process = serving(10)
    assert process.call_or_kill(60.0) == {"ready": 2}
    for texts in (["a", "bcd"], ["nothing"]):
        answer = process.call_or_kill(60.0, {"texts": texts, "query": True})
        assert answer == {
            "vectors": array("f", [each for text in texts for each in (len(text), 1)]).tobytes()
        }
    process.shut_down()
    assert process.popen.returncode == 0


def test_what_a_model_raises_is_reported_without_its_words_and_the_process_goes_on(
    serving: Callable[[int], WorkerProcess],
) -> None:
    with_errors = serving(10)
    with_errors.call_or_kill(60.0)
    assert with_errors.call_or_kill(60.0, {"texts": ["raise"], "query": False}) == {
        "error": "ValueError"
    }
    assert with_errors.call_or_kill(60.0, {"no": "request"}) == {"error": "ValidationError"}
    assert with_errors.call_or_kill(60.0, {"texts": ["a"], "query": False}) == {
        "vectors": array("f", [1, 0]).tobytes()
    }
    with_errors.shut_down()


def test_a_model_that_cannot_be_loaded_ends_its_process(
    serving: Callable[[int], WorkerProcess],
) -> None:
    process = serving(0)
    with pytest.raises(WorkerProcessError, match="ended before it answered"):
        process.call_or_kill(60.0)
    process.shut_down()
    assert (process.popen.returncode, process.is_alive, process.memory_bytes) == (1, False, 0)


def test_a_process_steps_back_behind_other_work(serving: Callable[[int], WorkerProcess]) -> None:
    process = serving(10)
    process.call_or_kill(60.0)
    vectors = process.call_or_kill(60.0, {"texts": ["nice"], "query": False})["vectors"]
    process.shut_down()
    assert isinstance(vectors, bytes)
    assert array("f", vectors)[0] == min(psutil.Process().nice() + 10, 19)


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


def test_bytes_that_are_no_frame_are_the_end() -> None:
    assert read_frame(BytesIO(struct.pack("<I", 4) + b"\xc1\xc1\xc1\xc1")) is None
