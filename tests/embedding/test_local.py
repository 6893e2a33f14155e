"""The local model: exported once, run in worker processes; no text is lost, cut or embedded twice.

Most tests use a fake program for the export and for both workers: it records its input,
and fails when a text says so. One test runs the real model.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from fakes import cosine
from hypothesis import given
from hypothesis import strategies as st
from threads import in_thread, spin
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from anchord.core.ports import Embedder
from anchord.core.types import Vector
from anchord.embedding import precision
from anchord.embedding.local import (
    ONNX_WORKER_MODULE,
    TORCH_WORKER_MODULE,
    LocalEmbedder,
)
from anchord.embedding.model_files import ModelFiles, find_model
from anchord.embedding.pace import Pace
from anchord.embedding.poison_text import PROBE_TEXT
from anchord.embedding.text_pieces import split_texts
from anchord.embedding.tokenizer import shared_token_counter
from anchord.embedding.worker_options import WorkerOptions
from anchord.embedding.workers import export_cache as prepared
from anchord.embedding.workers.export_cache import EXPORT_INFO_FILE, ExportInfo
from anchord.embedding.workers.worker_main import WorkerSettings
from anchord.errors import BatchFailedError, EmbedderError
from anchord.ipc.worker_process import WorkerProcess

PROGRAM = """#!{python} -IS
# The export: copies what it is told to find. A worker: answers [length of the text, number of this process, torch].
import json, os, shutil, struct, sys
sys.path[:] = {path}
import msgspec

here = {here!r}
assert sys.argv.pop(1) == "-P"  # Else a module in the current folder would be loaded.
program = sys.argv[2].rpartition(".")[2]
settings = json.loads(sys.argv[3])

def beside(name):
    return os.path.join(here, name)

def count(name):
    with open(beside(name), "a") as file:
        file.write("x")
    return os.path.getsize(beside(name))

def told(name):
    return open(beside(name)).read() if os.path.exists(beside(name)) else ""

if program == "export_model":
    count("exports")
    if told("export") == "wait":
        open(beside("gate")).read()
    if told("export") == "die":
        sys.exit(3)
    if told("export") == "crash":
        os.abort()
    name = "model.int8.onnx" if sys.argv[5] == "int8" else "model.onnx"
    open(os.path.join(sys.argv[4], name), "w").write("an export")
    shutil.copy(beside("facts"), os.path.join(sys.argv[4], "facts.json"))
    sys.exit(0)

number = count("processes")
if told("start") == program:
    sys.exit(1)

def send(value):
    body = msgspec.msgpack.encode(value)
    sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
    sys.stdout.buffer.flush()

send({{"ready": settings["dimension"]}})
while len(head := sys.stdin.buffer.read(4)) == 4:
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
    with open(beside("requests"), "a") as file:
        print(json.dumps({{"program": program, "process": number, "settings": settings, **request}}), file=file)
    words = set(" ".join(request["texts"]).split())
    if "wait" in words:
        open(beside("gate")).read()
    if "poison" in words or told("start") == "broken":
        os._exit(1)
    if "once" in words and count("once") == 1:
        os._exit(1)
    if "nan" in words:
        send({{"vectors": struct.pack("<fff", 0, float("nan"), 0) * len(request["texts"])}})
        continue
    send({{"vectors": b"".join(struct.pack("<fff", len(t), number, program == "torch_worker") for t in request["texts"])}})
"""

ZEROS = bytes(12)
ON_A_GRAPHICS_CARD = ExportInfo(runtime="onnx", device="cuda", rates={"cpu": 10.0, "cuda": 900.0})
UNLIKE = ExportInfo(runtime="torch", why="its vectors differ from the original's: cosine 0.50000")


class Request(msgspec.Struct):
    """What a worker recorded."""

    program: str
    process: int
    settings: WorkerSettings
    texts: list[str]
    query: bool


@dataclass
class Bench:
    """An embedder with the fake programs; a word is a token. `now` is its clock in seconds."""

    folder: Path
    now: float = 1_000.0
    embedder: LocalEmbedder = field(init=False)

    def __post_init__(self) -> None:
        """Start nothing yet."""
        self.embedder = self.another()

    @property
    def models(self) -> Path:
        """Where exports are kept."""
        return self.folder / "models"

    @property
    def files(self) -> ModelFiles:
        """Name a model with a window of 20 tokens."""
        model = self.folder / "model"
        return ModelFiles(
            name="fake", folder=model, window=20, dimension=3, tokenizer=model / "tokenizer.json",
            query_prefix="a question: ", text_prefix="a text: ",
        )  # fmt: skip

    def another(
        self, precision: str = "fp32", growth: int = 0, indexed_model: str = ""
    ) -> LocalEmbedder:
        """Return an embedder of the same model."""
        options = WorkerOptions(
            exports_folder=self.models,
            precision=precision,
            indexed_model=indexed_model,
            is_default_model=True,
            threads=1,
            idle_s=60.0,
            max_growth_bytes=growth,
        )
        return LocalEmbedder(self.files, options, lambda: self.now)

    def renew(self, precision: str = "fp32", growth: int = 0) -> None:
        """Continue with another embedder of the same model."""
        self.embedder.close()
        self.embedder = self.another(precision, growth)

    def find(self, facts: ExportInfo) -> None:
        """Set what the export finds, with the installed versions of the libraries."""
        (self.folder / "facts").write_bytes(msgspec.json.encode(made_today(facts)))

    def instruct(self, name: str, what: str) -> None:
        """Set how the export, or the next worker, behaves."""
        (self.folder / name).write_text(what)

    def counted(self, name: str) -> int:
        """Return how many `exports` or `processes` there were."""
        file = self.folder / name
        return file.stat().st_size if file.exists() else 0

    def requests(self) -> list[Request]:
        """Return the requests to the workers."""
        file = self.folder / "requests"
        lines = file.read_text().splitlines() if file.exists() else []
        return [msgspec.json.decode(line, type=Request) for line in lines]

    def seen(self) -> list[str]:
        """Return every text that a worker was given."""
        return [text for request in self.requests() for text in request.texts]

    def embed(self, *texts: str, query: bool = False) -> list[list[float]]:
        """Return the numbers of each vector: length of the text, process number, and whether it is torch."""
        return numbers(self.embedder.embed(texts, is_query=query))

    def gate(self) -> Path:
        """Return the pipe that a waiting program reads; opening it to write waits for the program."""
        return self.folder / "gate"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Return an embedder whose interpreter runs the fake program."""
    monkeypatch.setattr(precision, "has_gpu", lambda: False)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(python=sys.executable, path=sys.path, here=str(tmp_path)))
    program.chmod(0o700)
    os.mkfifo(tmp_path / "gate")
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights")
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))  # noqa: S106 - a token
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(model / "tokenizer.json"))
    monkeypatch.setattr(sys, "executable", str(program))
    made = Bench(tmp_path)
    made.find(ExportInfo(runtime="onnx", cosine=0.99999, rates={"cpu": 10.0}))
    yield made
    made.embedder.close()


def made_today(facts: ExportInfo) -> ExportInfo:
    return msgspec.structs.replace(
        facts, made_by=prepared.library_versions(), machine=prepared.machine_signature()
    )


def numbers(vectors: Sequence[Vector]) -> list[list[float]]:
    return [list(array("f", vector)) for vector in vectors]


def words(count: int, word: str = "word") -> str:
    return " ".join([word] * count)


def unit(*vector: float) -> list[float]:
    length = math.hypot(*vector)
    return [number / length for number in vector]


# Texts and batches


def test_nothing_is_prepared_or_started_before_the_first_text(bench: Bench) -> None:
    assert list(bench.embedder.embed([])) == []
    assert list(bench.embedder.embed_batches([])) == []
    assert (
        bench.embedder.state,
        bench.embedder.fallback_reason,
        bench.embedder.texts_per_second,
    ) == ("off", "", 0.0)
    assert (bench.counted("exports"), bench.counted("processes"), bench.models.exists()) == (
        0,
        0,
        False,
    )


def test_each_text_gets_its_vector_in_its_place(bench: Bench) -> None:
    texts = ["four", "a", "six six", "", "four", words(19), "ä", words(7)]
    assert bench.embed(*texts) == [[len(text), 1, 0] for text in texts]
    assert (bench.embedder.state, bench.embedder.embedded) == ("ready", len(texts))


def test_a_text_that_comes_twice_has_two_vectors(bench: Bench) -> None:
    assert sorted(
        number
        for batch in bench.embedder.embed_batches(["same", "other", "same"])
        for number in batch
    ) == [0, 1, 2]


def test_batches_are_small_and_of_like_numbers_of_tokens(bench: Bench) -> None:
    texts = [
        words(1 + 7 * n % 20, "x" * (40 - n % 40)) for n in range(300)
    ]  # Characters do not matter here.
    assert [vector[0] for vector in bench.embed(*texts)] == [len(text) for text in texts]
    batches = [[len(text.split()) for text in request.texts] for request in bench.requests()]
    assert sum(map(len, batches)) == len(texts)
    assert all(len(batch) <= 32 and len(batch) * max(batch) <= 512 for batch in batches)
    assert all(max(batch) - min(batch) <= 8 for batch in batches)
    assert all(max(one) <= min(other) for one, other in pairwise(batches))


def test_vectors_are_given_as_batches_are_made_and_nothing_is_made_once_one_stops(
    bench: Bench,
) -> None:
    going = bench.embedder.embed_batches([words(19), "a", words(10), "b"])
    assert sorted(next(going)) == [1, 3]
    assert [request.texts for request in bench.requests()] == [["a", "b"]]
    next(going)
    assert [len(request.texts) for request in bench.requests()] == [2, 1]
    del going
    assert bench.embed("c") == [[1, 1, 0]]
    assert bench.seen() == ["a", "b", words(10), "c"]


def test_queries_are_marked_and_the_worker_adds_their_prefix(
    bench: Bench,
) -> None:
    bench.embed("what is it", query=True)
    bench.embed("it is")
    asked = [
        (request.texts, request.query, request.settings.query_prefix)
        for request in bench.requests()
    ]
    assert asked == [(["what is it"], True, "a question: "), (["it is"], False, "a question: ")]
    assert bench.requests()[0].settings.text_prefix == "a text: "


def test_a_query_goes_between_two_batches_of_a_backfill(bench: Bench) -> None:
    backfill = in_thread(lambda: bench.embed("wait", words(19)))
    with bench.gate().open("w"):
        query = in_thread(lambda: bench.embed("query", query=True))
        spin(
            lambda: bench.embedder._default_queue and bench.embedder._default_queue._queries_waiting
        )
    assert (query.result()[0][0], [vector[0] for vector in backfill.result()]) == (
        5,
        [4, len(words(19))],
    )
    assert bench.seen() == ["wait", "query", words(19)]


# Status


def test_the_rate_is_that_of_the_last_minute_and_of_texts_alone(bench: Bench) -> None:
    def embed(seconds: float, *texts: str, query: bool = False) -> float:
        asked = in_thread(lambda: bench.embed(*texts, query=query))
        with bench.gate().open("w"):
            bench.now += seconds
        asked.result()
        return bench.embedder.texts_per_second

    assert embed(4, "wait", "text") == pytest.approx(0.5)
    assert embed(1, "wait", "text", "text") == pytest.approx(5 / 5)
    assert embed(10, "wait", query=True) == pytest.approx(5 / 5)
    bench.now += 55
    assert embed(2, "wait") == pytest.approx(1 / 2)


BACKLOG = tuple(f"text {number}" for number in range(64))


def test_only_a_backlog_for_which_nobody_waits_has_a_low_priority(bench: Bench) -> None:
    def priority_of(*texts: str, query: bool = False) -> tuple[int, int]:
        bench.embed(*texts, query=query)
        last = bench.requests()[-1]
        return last.process, last.settings.nice

    assert priority_of("a save") == (1, 0)
    assert priority_of(*BACKLOG) == (2, 10)
    assert priority_of("a save") == (2, 10), "a process is not replaced for it"
    assert priority_of("a query", query=True) == (2, 10)
    assert priority_of(*BACKLOG) == (3, 0), "whoever asked may ask again"
    bench.now += 29
    assert priority_of(*BACKLOG) == (3, 0)
    bench.now += 1
    assert priority_of(*BACKLOG) == (4, 10)
    bench.embedder.note_waiter()
    assert priority_of(*BACKLOG[1:]) == (4, 10), "too few texts for another process"
    assert priority_of(*BACKLOG) == (5, 0)


@pytest.mark.parametrize(
    ("processors", "configured", "expected"),
    [(8, 0, (4, 7)), (2, 0, (1, 1)), (1, 0, (1, 1)), (None, 0, (1, 1)), (8, 3, (3, 3))],
)
def test_all_processors_but_one_work_while_somebody_waits(
    processors: int | None, configured: int, expected: tuple[int, int]
) -> None:
    pace = Pace(configured, time.monotonic)
    settings = WorkerSettings(folder="", threads=9, dimension=3, window=20, tokenizer="")
    with mock.patch("os.cpu_count", return_value=processors):
        assert (pace.backlog_threads, pace.fast(settings).threads) == expected


def test_a_model_that_is_prepared_while_somebody_waits_has_the_usual_priority(
    bench: Bench,
) -> None:
    with mock.patch.object(
        prepared, "export_and_cache_model", wraps=prepared.export_and_cache_model
    ) as export:
        bench.embedder.note_waiter()
        bench.embed("a")
    assert export.call_args.args[3].nice == 0


def test_the_state_follows_what_is_done(bench: Bench) -> None:
    bench.instruct("export", "wait")
    asked = in_thread(lambda: bench.embed("wait"))
    with bench.gate().open("w"):
        assert bench.embedder.state == "preparing"
    spin(bench.requests)
    assert bench.embedder.state == "busy"
    with bench.gate().open("w"):
        pass
    asked.result()
    assert bench.embedder.state == "ready"
    bench.now += 61
    bench.embedder.stop_idle_workers()
    assert bench.embedder.state == "off"
    assert bench.embed("again") == [[5, 2, 0]]


def test_it_describes_what_serves(bench: Bench) -> None:
    before = bench.embedder.status_fields()
    assert (before["runtime"], before["device"], before["starts"], before["rss_bytes"]) == (
        None,
        None,
        0,
        0,
    )
    bench.embed("a")
    after = bench.embedder.status_fields()
    memory = after.pop("rss_bytes")
    assert isinstance(memory, int)
    assert memory > 1_000_000
    assert after == {
        "runtime": "onnx", "device": "cpu", "precision": "fp32", "measured": {"cpu": 10.0}, "starts": 1, "refused": 0,
        "over_window": 0,
    }  # fmt: skip


def test_the_name_says_the_weights_and_a_coarser_precision(bench: Bench) -> None:
    name = bench.embedder.model_id
    assert name == f"sentence-transformers/{bench.files.compute_digest()}"
    assert bench.another("int8").model_id == f"{name}/int8"
    (bench.folder / "model" / "model.safetensors").write_bytes(b"other weights")
    assert bench.another().model_id not in {name, f"{name}/int8"}


# Texts that end a process


def test_a_text_that_ends_the_process_gets_zeros_and_its_neighbours_get_theirs(
    bench: Bench,
) -> None:
    texts = ["a", "poison", "abc", words(19)]
    vectors = bench.embedder.embed(texts)
    assert vectors[1] == ZEROS
    assert [numbers([vector])[0][0] for vector in vectors] == [1, 0, 3, len(words(19))]
    assert (bench.embedder.refused, bench.embedder.status_fields()["refused"]) == (1, 1)
    seen = bench.seen()
    assert [seen.count(text) for text in texts] == [3, 4, 3, 1]
    assert seen.count(PROBE_TEXT) == 1


def test_two_texts_that_end_the_process_are_both_given_up(bench: Bench) -> None:
    vectors = bench.embedder.embed(["poison", "a", "more poison"])
    assert [vector == ZEROS for vector in vectors] == [True, False, True]
    assert bench.embedder.refused == 2


def test_a_text_that_gets_no_good_numbers_is_one_as_well(bench: Bench) -> None:
    vectors = bench.embedder.embed(["a", "nan"])
    assert [vectors[1], vectors[0] == ZEROS, bench.embedder.refused] == [ZEROS, False, 1]


def test_a_process_that_ends_once_loses_nothing_and_only_its_batch_is_made_again(
    bench: Bench,
) -> None:
    texts = ["a", "once", words(10), words(19)]
    assert [vector[0] for vector in bench.embed(*texts)] == [len(text) for text in texts]
    assert [request.texts for request in bench.requests()] == [
        ["a", "once"],
        ["a", "once"],
        [words(10)],
        [words(19)],
    ]
    assert (
        bench.embedder.refused,
        bench.embedder.embedded,
        bench.embedder.status_fields()["starts"],
    ) == (0, 4, 2)


def test_where_every_text_ends_the_process_none_is_given_up(bench: Bench) -> None:
    bench.instruct("start", "broken")
    with pytest.raises(BatchFailedError):
        bench.embed("a", "b")
    assert (bench.embedder.refused, bench.embedder.embedded) == (0, 0)
    bench.instruct("start", "")
    assert [vector[0] for vector in bench.embed("a", "b")] == [1, 1]


def test_what_was_given_before_a_failure_counts(bench: Bench) -> None:
    going = bench.embedder.embed_batches(["a", words(19)])
    assert list(next(going)) == [0]
    bench.instruct("start", "broken")
    with pytest.raises(BatchFailedError):
        next(going)
    assert bench.embedder.embedded == 1


def test_where_no_process_starts_no_text_is_given_up(bench: Bench) -> None:
    bench.instruct("start", "onnx_worker")
    with pytest.raises(EmbedderError, match="ended before it answered") as raised:
        bench.embed("a", "b")
    assert raised.type is EmbedderError
    assert (bench.embedder.refused, bench.counted("processes"), bench.embedder.state) == (
        0,
        1,
        "off",
    )


def test_a_process_that_grew_too_large_is_replaced(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = iter([100, 150, 201, 100, 150])  # Once it is loaded, and after each batch.
    monkeypatch.setattr(WorkerProcess, "memory_bytes", property(lambda _: next(sizes)))
    bench.renew(growth=100)
    assert [vector[1] for vector in bench.embed("a", words(10), words(19))] == [1, 1, 2]


# Texts over the window


def test_a_text_over_the_window_is_embedded_in_pieces_and_none_of_it_is_cut(bench: Bench) -> None:
    long = " ".join(f"word{n}" for n in range(70)) + "\n"
    (vector, short) = bench.embed(long, "short")
    pieces = sorted((piece for piece in bench.seen() if piece != "short"), key=long.index)
    assert short == [5, 1, 0]
    assert "".join(pieces) == long
    assert all(len(piece.split()) <= 20 and piece[-1].isspace() for piece in pieces)
    tokens = [len(piece.split()) for piece in pieces]
    lengths = sum(len(piece) * count for piece, count in zip(pieces, tokens, strict=True))
    assert vector == pytest.approx(unit(lengths, sum(tokens), 0), abs=1e-6), (
        "each piece counts by its tokens"
    )
    assert (bench.embedder.over_window, bench.embedder.status_fields()["over_window"]) == (1, 1)


def test_a_text_of_exactly_the_window_is_sent_whole(bench: Bench) -> None:
    bench.embed(words(20), words(21))
    assert words(20) in bench.seen()
    assert sum(len(text.split()) for text in bench.seen()) == 41
    assert (bench.embedder.over_window, len(bench.seen())) == (1, 3)


def test_a_query_over_the_window_is_whole_as_well_and_is_no_defect_of_the_chunker(
    bench: Bench,
) -> None:
    bench.embed(words(50), query=True)
    assert "".join(bench.seen()) == words(50)
    assert all(request.query for request in bench.requests())
    assert bench.embedder.over_window == 0


def test_a_piece_that_ends_the_process_leaves_the_other_pieces(bench: Bench) -> None:
    (vector,) = bench.embed(words(20) + " poison " + words(20))
    assert vector[0] > 0
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-6)


def test_pieces_go_in_batches_within_the_limits(bench: Bench) -> None:
    bench.embed(words(1_500))
    assert all(len(request.texts) <= 32 for request in bench.requests())
    assert all(
        len(request.texts) * max(len(text.split()) for text in request.texts) <= 512
        for request in bench.requests()
    )


def test_a_text_in_pieces_counts_as_one(bench: Bench) -> None:
    bench.embed(words(50))
    assert bench.embedder.embedded == 1


@given(st.text(st.sampled_from("ab \n語🚀"), max_size=1_500), st.integers(1, 4))
def test_the_pieces_of_a_text_are_the_text(text: str, times: int) -> None:
    files = find_model("all-MiniLM-L6-v2")
    count_tokens = shared_token_counter(files.tokenizer).count_without_caching
    pieces = [piece.text for piece in split_texts([text * times], count_tokens, files.window)]
    assert "".join(pieces) == text * times
    assert max(count_tokens(pieces)) <= files.window


# Two worker queues


def test_a_large_backlog_goes_to_the_accelerator_and_everything_else_to_the_light_process(
    bench: Bench,
) -> None:
    bench.find(ON_A_GRAPHICS_CARD)
    assert {vector[2] for vector in bench.embed(*["text"] * 63)} == {0}
    assert {vector[2] for vector in bench.embed(*["text"] * 64, query=True)} == {0}
    assert {vector[2] for vector in bench.embed(*["text"] * 64)} == {1}
    assert {vector[2] for vector in bench.embed("text")} == {0}
    assert (bench.embedder.status_fields()["device"], bench.embedder.status_fields()["starts"]) == (
        "cuda",
        2,
    )


def test_each_queue_gets_its_model_and_device(bench: Bench) -> None:
    bench.find(ON_A_GRAPHICS_CARD)
    bench.embed("text")
    bench.embed(*["text"] * 64)
    light, large = (request.settings for request in bench.requests())
    kept = bench.models / f"{bench.files.compute_digest()}-fp32"
    assert (light.onnx, light.device, large.onnx, large.device) == (
        str(kept / "model.onnx"),
        "cpu",
        "",
        "cuda",
    )
    assert Path(light.onnx).is_file()
    assert {light.folder, large.folder} == {str(bench.files.folder)}
    assert {(each.threads, each.dimension, each.window) for each in (light, large)} == {(1, 3, 20)}


def test_a_backlog_on_the_accelerator_is_in_large_batches(bench: Bench) -> None:
    bench.find(ON_A_GRAPHICS_CARD)
    bench.embed(*[words(15)] * 600)
    assert [len(request.texts) for request in bench.requests()] == [512, 88]


def test_a_query_does_not_wait_for_a_batch_on_the_accelerator(bench: Bench) -> None:
    bench.find(ON_A_GRAPHICS_CARD)
    backlog = in_thread(lambda: bench.embed("wait", *["text"] * 63))
    with bench.gate().open("w"):
        assert bench.embed("query", query=True) == [[5, 2, 0]]
        assert bench.embedder.state == "busy"
    assert {vector[2] for vector in backlog.result()} == {1}


def test_both_lanes_end_when_idle_and_at_the_close(bench: Bench) -> None:
    bench.find(ON_A_GRAPHICS_CARD)
    bench.embed(*["text"] * 64)
    bench.embed("text")
    bench.now += 61
    bench.embedder.stop_idle_workers()
    assert bench.embedder.state == "off"
    bench.embed(*["text"] * 64)
    bench.embed("text")
    bench.embedder.close()
    assert (bench.embedder.state, bench.embedder.status_fields()["rss_bytes"]) == ("off", 0)


def test_a_backlog_goes_to_the_light_process_when_the_accelerator_is_gone(bench: Bench) -> None:
    bench.find(ON_A_GRAPHICS_CARD)
    bench.instruct("start", "torch_worker")
    assert {vector[2] for vector in bench.embed(*["text"] * 64)} == {0}
    assert (
        bench.embedder.fallback_reason
        == "the accelerator cannot be used: the embedding process ended before it answered"
    )
    assert bench.embedder.status_fields()["device"] == "cpu"


@pytest.mark.parametrize(
    ("rates", "device"),
    [
        ({"cpu": 10.0}, "cpu"),
        ({"cpu": 10.0, "cuda": 15.0}, "cpu"),
        ({"cpu": 10.0, "cuda": 15.1}, "cuda"),
        ({"cpu": 10.0, "cuda": 0.0}, "cpu"),
        ({"cpu": 10.0, "mps": 20.0, "cuda": 30.0}, "cuda"),
    ],
)
def test_an_accelerator_is_woken_only_where_it_is_clearly_faster(
    rates: dict[str, float], device: str
) -> None:
    assert prepared.choose_backlog_device(rates) == device


# Exporting a model


def test_a_model_is_made_ready_once(bench: Bench) -> None:
    together = [in_thread(lambda: bench.embed("a")) for _ in range(4)]
    assert [asked.result()[0][0] for asked in together] == [1] * 4
    bench.renew()
    bench.embed("b")
    assert bench.counted("exports") == 1
    (kept,) = bench.models.iterdir()
    assert sorted(file.name for file in kept.iterdir()) == [EXPORT_INFO_FILE, "model.onnx"]


def test_a_model_whose_export_is_gone_is_made_ready_again(bench: Bench) -> None:
    bench.embed("a")
    (bench.models / f"{bench.files.compute_digest()}-fp32" / "model.onnx").unlink()
    bench.renew()
    assert bench.embed("b") == [[1, 2, 0]]
    assert bench.counted("exports") == 2


@pytest.mark.parametrize("facts", [b"", b"{", b'{"runtime": 1}', b"\xff"])
def test_facts_that_cannot_be_read_are_found_out_again(bench: Bench, facts: bytes) -> None:
    bench.embed("a")
    (bench.models / f"{bench.files.compute_digest()}-fp32" / EXPORT_INFO_FILE).write_bytes(facts)
    bench.renew()
    assert bench.embed("b") == [[1, 2, 0]]
    assert bench.counted("exports") == 2


def test_a_failed_export_leaves_the_model_as_it_is_and_says_why(bench: Bench) -> None:
    bench.instruct("export", "die")
    assert bench.embed("a", "bc") == [[1, 1, 1], [2, 1, 1]]
    assert bench.embedder.fallback_reason == "the program that exports the model ended with 3"
    assert bench.embedder.status_fields()["runtime"] == "torch"
    assert list(bench.models.glob(".making-*")) == []


def test_an_export_that_does_not_end_is_killed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "_EXPORT_TIMEOUT_S", 0.05)
    bench.instruct("export", "wait")
    assert bench.embed("a") == [[1, 1, 1]]
    assert "did not end" in bench.embedder.fallback_reason
    assert list(bench.models.glob(".making-*")) == []


def test_a_program_that_cannot_be_started_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(bench.folder / "no-such-python"))
    with pytest.raises(EmbedderError, match="the embedding process cannot be started"):
        bench.embed("a")
    assert (
        bench.embedder.fallback_reason == "the model cannot be exported: No such file or directory"
    )


def test_an_export_that_is_not_the_model_is_not_used_and_not_tried_again(bench: Bench) -> None:
    bench.find(UNLIKE)
    for process in (1, 2):
        assert bench.embed("a") == [[1, process, 1]]
        assert bench.embedder.fallback_reason == UNLIKE.why
        bench.renew()
    assert bench.counted("exports") == 1


def test_an_export_that_failed_is_tried_again_once_its_libraries_changed(bench: Bench) -> None:
    folder = bench.models / f"{bench.files.compute_digest()}-fp32"
    folder.mkdir(parents=True)
    (folder / EXPORT_INFO_FILE).write_bytes(
        msgspec.json.encode(msgspec.structs.replace(made_today(UNLIKE), made_by="torch=0"))
    )
    assert bench.embed("a") == [[1, 1, 0]]
    assert (bench.counted("exports"), bench.embedder.fallback_reason) == (1, "")


@pytest.mark.parametrize(("how", "times"), [("crash", 1), ("die", 2)])
def test_an_export_that_crashed_is_not_tried_at_every_start_one_that_lacked_room_is(
    bench: Bench, how: str, times: int
) -> None:
    bench.instruct("export", how)
    bench.embed("a")
    bench.renew()
    bench.embed("a")
    assert bench.counted("exports") == times


def test_an_export_that_failed_is_not_tried_at_every_text(bench: Bench) -> None:
    bench.renew("int8")
    bench.instruct("export", "die")
    for _ in range(3):
        with pytest.raises(EmbedderError, match="no int8 version"):
            bench.embed("a")
    assert bench.counted("exports") == 1
    bench.instruct("export", "")
    bench.now += 601
    assert bench.embed("a") == [[1, 1, 0]]


def test_another_machine_is_measured_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.embed("a")
    monkeypatch.setattr(prepared, "_DRIVERS", (str(bench.folder),))
    bench.find(ExportInfo(runtime="onnx"))
    bench.renew()
    bench.embed("a")
    assert bench.counted("exports") == 2


def test_other_weights_are_another_model(bench: Bench) -> None:
    bench.embed("a")
    (bench.folder / "model" / "model.safetensors").write_bytes(b"other weights")
    bench.renew()
    bench.embed("a")
    assert (bench.counted("exports"), len(list(bench.models.iterdir()))) == (2, 2)


def test_what_interrupted_exports_left_is_swept_and_one_at_work_is_not(bench: Bench) -> None:
    old, new = bench.models / ".making-old", bench.models / ".making-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_text("half of it")
    os.utime(old, (time.time() - 1_000, time.time() - 1_000))
    bench.embed("a")
    assert (old.exists(), new.exists()) == (False, True)


def test_int8_runs_its_own_export(bench: Bench) -> None:
    bench.renew("int8")
    assert bench.embed("a") == [[1, 1, 0]]
    assert bench.requests()[0].settings.onnx == str(
        bench.models / f"{bench.files.compute_digest()}-int8" / "model.int8.onnx"
    )
    assert bench.embedder.status_fields()["precision"] == "int8"


def test_an_open_precision_is_int8_until_an_index_says_fp32(bench: Bench) -> None:
    assert bench.another("auto").model_id.endswith("/int8")
    fp32_id = bench.embedder.model_id
    assert bench.another("auto", indexed_model=fp32_id).model_id == fp32_id


@pytest.mark.parametrize("how", ["die", ""])
def test_a_new_index_is_made_with_fp32_at_the_next_start_if_int8_fails(
    bench: Bench, how: str
) -> None:
    bench.instruct("export", how)
    bench.find(UNLIKE)
    bench.renew("auto")
    with pytest.raises(EmbedderError, match="this model has no int8 version") as raised:
        bench.embed("a")
    assert raised.value.hint == "`anchord restart`: from then on the model runs in fp32"
    int8_id = bench.embedder.model_id
    assert int8_id.endswith("/int8")
    assert bench.another("auto", indexed_model=int8_id).precision == "fp32"


def test_an_index_with_int8_vectors_keeps_them_where_the_export_fails(bench: Bench) -> None:
    int8_id = bench.another("auto").model_id
    bench.find(UNLIKE)
    bench.embedder = bench.another("auto", indexed_model=int8_id)
    with pytest.raises(EmbedderError, match="this model has no int8 version"):
        bench.embed("a")
    assert bench.another("auto", indexed_model=int8_id).precision == "int8"


@pytest.mark.parametrize("how", ["die", ""])
def test_int8_without_an_export_is_an_error_that_says_what_to_do(bench: Bench, how: str) -> None:
    bench.renew("int8")
    bench.instruct("export", how)
    bench.find(UNLIKE)
    for _ in range(2):
        with pytest.raises(EmbedderError, match="this model has no int8 version") as raised:
            bench.embed("a")
        assert raised.value.hint == 'set precision = "fp32" under [embedding]'
        assert ("ended with 3" if how else UNLIKE.why) in raised.value.message
    assert bench.counted("processes") == 0


def test_a_query_while_the_model_is_made_ready_is_refused_at_once_and_texts_wait(
    bench: Bench,
) -> None:
    bench.instruct("export", "wait")
    first = in_thread(lambda: bench.embed("a"))
    with bench.gate().open("w"):
        with pytest.raises(EmbedderError, match="being prepared") as raised:
            bench.embed("query", query=True)
        second = in_thread(lambda: bench.embed("bc"))
    assert raised.value.hint
    assert [first.result()[0][0], second.result()[0][0]] == [1, 2]
    assert bench.embed("query", query=True)[0][0] == 5
    assert (bench.counted("exports"), bench.embedder.fallback_reason) == (1, "")


def test_a_model_is_prepared_once_in_the_background(bench: Bench) -> None:
    bench.instruct("export", "wait")
    assert not bench.embedder.is_prepared
    bench.embedder.prepare_in_background()
    with bench.gate().open("w"):
        assert bench.embedder.state == "preparing"
        assert not bench.embedder.is_prepared
        bench.embedder.prepare_in_background()
    spin(lambda: bench.embedder.is_prepared and bench.embedder.state == "off")
    bench.embedder.prepare_in_background()
    assert bench.embed("a") == [[1, 1, 0]]
    assert bench.counted("exports") == 1
    assert LocalEmbedder(bench.files, WorkerOptions(exports_folder=bench.models)).is_prepared


def test_a_model_that_the_home_prepared_before_homes_shared_models_is_not_prepared_again(
    bench: Bench,
) -> None:
    assert bench.embed("a") == [[1, 1, 0]]
    shared = bench.folder / "shared"
    shared.mkdir()
    options = WorkerOptions(exports_folder=shared, older_exports_folder=bench.models)
    for _ in range(2):
        with closing(LocalEmbedder(bench.files, options)) as embedder:
            assert embedder.is_prepared
            assert numbers(embedder.embed(["a"]))[0][0] == 1
        shutil.rmtree(bench.models, ignore_errors=True)
    assert bench.counted("exports") == 1


def test_a_preparation_that_fails_is_told_by_the_next_text(bench: Bench) -> None:
    bench.renew("int8")
    bench.instruct("export", "die")
    bench.embedder.prepare_in_background()
    spin(lambda: bench.counted("exports") and bench.embedder.state == "off")
    with pytest.raises(EmbedderError, match="this model has no int8 version"):
        bench.embed("a")
    assert not bench.embedder.is_prepared


class Interrupted(LocalEmbedder):
    """Calls a function while a caller checks whether the model is ready."""

    meanwhile: Callable[[], object] | None = None

    @property
    def _closed(self) -> bool:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        return self._is_closed

    @_closed.setter
    def _closed(self, closed: bool) -> None:
        self._is_closed = closed


def test_a_query_is_not_refused_because_another_caller_begins(bench: Bench) -> None:
    embedder = Interrupted(bench.files, WorkerOptions(exports_folder=bench.models))
    with closing(embedder):
        embedder.embed(["a"])
        queries: list[Future[list[list[float]]]] = []

        def ask() -> None:
            queries.append(in_thread(lambda: numbers(embedder.embed(["query"], is_query=True))))
            spin(lambda: queries[0].done() or embedder.state != "preparing")

        embedder.meanwhile = ask
        embedder.embed(["b"])
        assert queries[0].result()[0][0] == 5


def test_a_place_for_models_that_cannot_be_made_is_an_embedder_error_or_leaves_the_model_as_it_is(
    bench: Bench,
) -> None:
    bench.models.write_text("no folder")
    try:
        assert bench.embed("a") == [[1, 1, 1]]
    except EmbedderError as error:
        assert error.message  # noqa: PT017 - either will do


# The end


def test_closing_while_the_export_runs_ends_it(bench: Bench) -> None:
    bench.instruct("export", "wait")
    asked = in_thread(lambda: bench.embed("a"))
    with bench.gate().open("w"):
        exporting = bench.embedder._export_process
        bench.embedder.close()
        error = asked.exception()
    assert exporting is not None
    assert exporting.returncode is not None
    assert isinstance(error, EmbedderError)
    assert error.message == "anchord is stopping"
    assert list(bench.models.iterdir()) == []
    assert (bench.counted("processes"), bench.embedder.state) == (0, "off")


def test_closing_in_the_middle_of_a_batch_gives_up_no_text(bench: Bench) -> None:
    asked = in_thread(lambda: bench.embed("wait", "a"))
    with bench.gate().open("w"):
        bench.embedder.close()
        error = asked.exception()
    assert isinstance(error, EmbedderError)
    assert error.message == "anchord is stopping"
    assert (bench.embedder.refused, bench.embedder.embedded, bench.counted("processes")) == (
        0,
        0,
        1,
    )


@pytest.mark.parametrize("used", [True, False])
def test_closing_ends_it_for_good_and_closing_twice_is_no_error(bench: Bench, used: bool) -> None:  # noqa: FBT001 - a case
    if used:
        bench.embed("a")
    bench.embedder.close()
    bench.embedder.close()
    bench.embedder.stop_idle_workers()
    for query in (True, False):
        with pytest.raises(EmbedderError, match="stopping"):
            bench.embed("b", query=query)
    assert (bench.embedder.state, bench.counted("processes")) == ("off", int(used))


# The real model

NAME = "all-MiniLM-L6-v2"
HEAVY = ["torch", "transformers", "sentence_transformers", "onnxruntime"]

DRIVER = """
import json, sys
from array import array
from contextlib import closing
from pathlib import Path
import anchord.daemon
from anchord.embedding.local import LocalEmbedder
from anchord.embedding.model_files import find_model

asked = json.load(sys.stdin)
with closing(LocalEmbedder(find_model(asked["name"]), WorkerOptions(exports_folder=Path(asked["models"]), threads=2))) as embedder:
    vectors = [array("f", vector).tolist() for vector in embedder.embed(asked["texts"])]
    query = array("f", embedder.embed(asked["texts"][:1], is_query=True)[0]).tolist()
    told = {"why": embedder.fallback_reason, "runtime": embedder.status_fields()["runtime"], "over_window": embedder.over_window}
    loaded = [name for name in asked["heavy"] if name in sys.modules]
    json.dump(told | {"vectors": vectors, "query": query, "loaded": loaded, "ended": embedder.state}, sys.stdout)
"""

ORIGINAL = """
import json, sys
from sentence_transformers import SentenceTransformer

asked = json.load(sys.stdin)
model = SentenceTransformer(asked["folder"], device="cpu", local_files_only=True)
vectors = [model.encode(text, normalize_embeddings=True).tolist() for text in asked["texts"]]
json.dump({"vectors": vectors}, sys.stdout)
"""


class ModelAnswer(msgspec.Struct):
    """The output of a program with the real model."""

    vectors: list[list[float]]
    query: list[float] = []
    loaded: list[str] = []
    why: str = ""
    runtime: str = ""
    over_window: int = 0


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for exports, which take some seconds each."""
    return tmp_path_factory.mktemp("models")


def answer(program: str, asked: dict[str, object]) -> ModelAnswer:
    environment = prepared.offline_environment() | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=True,
    )
    return msgspec.json.decode(ran.stdout, type=ModelAnswer)


@pytest.mark.slow
def test_the_real_model_gives_the_originals_vectors_in_a_process_without_torch(
    models: Path,
) -> None:
    files = find_model(NAME)
    cat, kitten, taxes = "a cat sits on the mat", "a kitten rests on a rug", "quarterly tax returns"
    code = "def add(a: int, b: int) -> int:\n    return a + b\n"
    long = [words(count, "mat") for count in (9, 60, 130, files.window)]
    texts = [cat, kitten, taxes, cat, "", "?", "日本語の文章", "🚀", code, *long]
    outcome = answer(DRIVER, {"name": NAME, "models": str(models), "texts": texts, "heavy": HEAVY})
    original = answer(ORIGINAL, {"folder": str(files.folder), "texts": texts})

    assert (outcome.runtime, outcome.why, outcome.loaded, outcome.over_window) == (
        "onnx",
        "",
        [],
        0,
    )
    flat = list(chain.from_iterable(outcome.vectors))
    assert flat == pytest.approx(list(chain.from_iterable(original.vectors)), abs=1e-4)
    assert len(flat) == files.dimension * len(texts)

    vectors = [array("f", vector).tobytes() for vector in outcome.vectors]
    assert [math.hypot(*vector) for vector in outcome.vectors] == pytest.approx(
        [1.0] * len(texts), abs=1e-4
    )
    assert cosine(vectors[0], vectors[3]) == pytest.approx(1.0, abs=1e-5)
    assert cosine(vectors[0], vectors[2]) < cosine(vectors[0], vectors[1]) < 0.99
    assert outcome.query == pytest.approx(outcome.vectors[0], abs=1e-4)


def test_it_is_an_embedder(bench: Bench) -> None:
    embedder: Embedder = bench.embedder
    assert embedder.dimension == 3
    assert {ONNX_WORKER_MODULE, TORCH_WORKER_MODULE} == {
        "anchord.embedding.workers.onnx_worker",
        "anchord.embedding.workers.torch_worker",
    }
