"""Exports of tiny models with random weights, by the real export program and the real workers.

The reference is sentence-transformers itself in this process. Tests that export or load one more model are slow: each takes 8 s of
CPU.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pytest
from fakes import cosine
from faults.service import until

from anchord.core.types import Vector
from anchord.embedding.local import LocalEmbedder
from anchord.embedding.model_files import ModelFiles, find_model
from anchord.embedding.tokenizer import shared_token_counter
from anchord.embedding.worker_options import WorkerOptions
from anchord.embedding.workers import export_cache as prepared
from anchord.embedding.workers.export_cache import CPU, EXPORT_INFO_FILE, INT8, ExportInfo
from anchord.embedding.workers.onnx_worker import OnnxModel
from anchord.embedding.workers.worker_main import WorkerSettings
from anchord.errors import EmbedderError

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)  # torch's

LIBRARIES = ("torch", "sentence-transformers", "transformers", "onnxruntime")
WINDOW = 128
NARROW = 32
HIDDEN, DENSE = 32, 16
CLOSE = 1e-5
BRIEFLY_S = 0.02
"""How long an exported model is measured here; one second outside of tests."""
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
MARKS = ".,:;?!()-'\"#`|/<>=+_{}[]*&"
KNOWN = (
    "the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "how", "do", "restore", "backup", "an", "edit", "at", "top",
    "of", "file", "leaves", "identifiers", "everything", "below", "it", "as", "they", "were", "hello", "world", "query", "text",
    "passage", "note", "words", "one", "two", "three",
)  # fmt: skip
TEXTS = [
    "hello world", "", "a", "The quick brown fox jumps over the lazy dog.", "Größe, naïve; 日本語", "\t\n", "the dog", "a" * 60,
    "note: one two three\n" * 9, "fox", "```def add(a, b): return a + b```", "how do I restore a backup?",
]  # fmt: skip


@dataclass(frozen=True)
class Shelf:
    """The models' folders, and the library's own vectors."""

    base: Path
    loaded: dict[str, Any]

    def files(self, name: str) -> ModelFiles:
        """Return what anchord finds of a model."""
        return find_model(str(self.base / name))

    def texts(self, name: str, texts: Sequence[str]) -> list[Vector]:
        """Return the library's vectors of texts."""
        return [
            row.tobytes()
            for row in self.loaded[name].encode_document(list(texts), normalize_embeddings=True)
        ]

    def queries(self, name: str, texts: Sequence[str]) -> list[Vector]:
        """Return the library's vectors of queries."""
        return [
            row.tobytes()
            for row in self.loaded[name].encode_query(list(texts), normalize_embeddings=True)
        ]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Create the models; only this function loads torch in this process."""
    base = tmp_path_factory.mktemp("shelf")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        yield Shelf(base, _made_models(base))


def _made_models(base: Path) -> dict[str, Any]:
    import torch  # noqa: PLC0415 - seconds, which a run of the other tests does not need
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    from sentence_transformers.models import Dense, Pooling, StaticEmbedding, Transformer  # noqa: PLC0415
    from transformers import BertConfig, BertModel, BertTokenizer  # noqa: PLC0415

    torch.manual_seed(7)
    torch.set_num_threads(1)
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *LETTERS,
        *MARKS,
        *(f"##{letter}" for letter in LETTERS),
        *KNOWN,
    ]
    tokenizer = BertTokenizer(
        vocab={word: number for number, word in enumerate(dict.fromkeys(words))}
    )
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=WINDOW, initializer_range=0.3,
    )  # fmt: skip
    BertModel(config).save_pretrained(base / "bert")
    tokenizer.save_pretrained(base / "bert")
    letters = BertTokenizer(
        vocab={word: number for number, word in enumerate(words[: -len(KNOWN)])}
    )
    shutil.copytree(base / "bert", base / "letters bert")
    letters.save_pretrained(base / "letters bert")

    def save(name: str, window: int, *after: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's types
        model = SentenceTransformer(
            modules=[
                Transformer(
                    str(base / ("letters bert" if name == "letters" else "bert")),
                    max_seq_length=window,
                ),
                *after,
            ],
            device="cpu",
            **named,
        )
        model.save(str(base / name), create_model_card=False)
        return SentenceTransformer(str(base / name), device="cpu", local_files_only=True)

    prompts = {"query": "query: ", "document": "text passage: "}
    loaded = {
        "mean": save(
            "mean", WINDOW, Pooling(HIDDEN, "mean"), Dense(HIDDEN, DENSE), prompts=prompts
        ),
        "cls": save("cls", WINDOW, Pooling(HIDDEN, "cls")),
        "letters": save("letters", WINDOW, Pooling(HIDDEN, "mean")),
        "narrow": save("narrow", NARROW, Pooling(HIDDEN, "mean")),
        "cut": save("cut", WINDOW, Pooling(HIDDEN, "mean"), truncate_dim=10),
        "own prompts": save(
            "own prompts", WINDOW, Pooling(HIDDEN, "mean", include_prompt=False), prompts=prompts
        ),
    }
    static = SentenceTransformer(
        modules=[StaticEmbedding(tokenizer.backend_tokenizer, embedding_dim=HIDDEN)], device="cpu"
    )
    static.save(str(base / "static"), create_model_card=False)
    loaded["static"] = SentenceTransformer(
        str(base / "static"), device="cpu", local_files_only=True
    )
    shutil.copytree(base / "cls", base / "corrupt")
    weights = base / "corrupt" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5_000])
    return loaded


@dataclass(frozen=True)
class Ready:
    """What `prepare` found of a model."""

    facts: ExportInfo
    file: Path
    settings: WorkerSettings

    def model_id(self) -> OnnxModel:
        """Return the exported model in this process."""
        return OnnxModel(msgspec.structs.replace(self.settings, onnx=str(self.file)))


def settings_of(files: ModelFiles) -> WorkerSettings:
    return WorkerSettings(
        folder=str(files.folder), threads=1, dimension=files.dimension, window=files.window, tokenizer=str(files.tokenizer),
        query_prefix=files.query_prefix, text_prefix=files.text_prefix, nice=0,
    )  # fmt: skip


def unheeded(_: object) -> None:
    """Take the process, and do nothing with it."""


def run_export_here(
    settings: WorkerSettings, folder: Path, precision: str, _: prepared.OnProcessStarted
) -> int:
    """Run the program that exports in this process, which has loaded the libraries already.

    They take eight seconds of a processor. What concerns a process alone is left out: its priority and its output.
    """
    from anchord.embedding.workers import export_model as export  # noqa: PLC0415 - it loads torch

    arguments = ["export_model", msgspec.json.encode(settings).decode(), str(folder), precision]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        patch.setattr(export, "lower_priority", unheeded)
        patch.setattr(export, "refuse_internet", nothing)  # This process needs it.
        patch.setattr(os, "dup2", nothing)
        patch.setattr(export, "_MEASURE_S", BRIEFLY_S)
        export.main()
    return 0


def nothing(*_: object) -> None:
    """Do nothing."""


class Exports:
    """Exports each model once, in a folder for all tests of the module, and in this process.

    The process that exports outside of tests is in `test_the_program_that_exports_runs_in_a_process_of_its_own`, and
    with the libraries in the slow tests.
    """

    def __init__(self, shelf: Shelf) -> None:
        """Begin with none."""
        self.models = shelf.base / "models"
        self._shelf = shelf
        self._made: dict[tuple[str, str], Ready] = {}

    def of(self, name: str, precision: str = "fp32") -> Ready:
        """Return a model that is ready."""
        if (name, precision) not in self._made:
            files = self._shelf.files(name)
            settings = settings_of(files)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(prepared, "_run_export", run_export_here)
                facts, file = prepared.export_and_cache_model(
                    self.models, files.compute_digest(), precision, settings, unheeded
                )
            self._made[name, precision] = Ready(facts, file, settings)
        return self._made[name, precision]


@pytest.fixture(scope="module")
def exports(shelf: Shelf) -> Exports:
    """Give the exports."""
    return Exports(shelf)


def near(ones: Sequence[Vector], others: Sequence[Vector]) -> bool:
    """Whether the numbers of vectors are those of others."""
    pairs = zip(ones, others, strict=True)
    return all(
        array("f", one).tolist() == pytest.approx(array("f", other).tolist(), abs=CLOSE)
        for one, other in pairs
    )


def split(vectors: bytes, dimension: int) -> list[Vector]:
    return [vectors[at : at + 4 * dimension] for at in range(0, len(vectors), 4 * dimension)]


def length(vector: Vector) -> float:
    return math.hypot(*array("f", vector))


# Settings in the files, as the library reads them


@pytest.mark.parametrize(
    ("name", "dimension", "window"),
    [
        ("mean", DENSE, WINDOW - 5),
        pytest.param("cls", HIDDEN, WINDOW - 2, marks=pytest.mark.slow),
        pytest.param("narrow", HIDDEN, NARROW - 2, marks=pytest.mark.slow),
        ("cut", 10, WINDOW - 2),
    ],
)
def test_files_that_the_library_wrote_are_understood(
    shelf: Shelf, name: str, dimension: int, window: int
) -> None:
    files = shelf.files(name)
    assert (files.dimension, files.window) == (dimension, window)
    model = shelf.loaded[name]
    assert (model.get_embedding_dimension(), model.max_seq_length) == (
        dimension,
        NARROW if name == "narrow" else WINDOW,
    )
    assert len(shelf.texts(name, ["a"])[0]) == 4 * dimension


def test_prompts_that_the_library_wrote_are_the_prefixes(shelf: Shelf) -> None:
    assert (shelf.files("mean").query_prefix, shelf.files("mean").text_prefix) == (
        "query: ",
        "text passage: ",
    )
    assert (shelf.files("cls").query_prefix, shelf.files("cls").text_prefix) == ("", "")


# The export


@pytest.mark.parametrize("name", ["mean", "cls"])
def test_an_export_gives_the_vectors_of_the_model(
    shelf: Shelf, exports: Exports, name: str
) -> None:
    ready = exports.of(name)
    assert (ready.facts.runtime, ready.facts.device, ready.facts.why) == ("onnx", CPU, "")
    assert ready.facts.cosine > 0.9999
    assert ready.facts.rates[CPU] > 0
    model, dimension = ready.model_id(), ready.settings.dimension
    alone = [model.embed([text], query=False) for text in TEXTS]
    together = split(model.embed(TEXTS, query=False), dimension)
    backwards = split(model.embed(TEXTS[::-1], query=False), dimension)[::-1]
    for vectors in (alone, together, backwards):
        assert near(vectors, shelf.texts(name, TEXTS))
        assert list(map(length, vectors)) == pytest.approx([1.0] * len(TEXTS), abs=CLOSE)
    assert near(split(model.embed(TEXTS, query=True), dimension), shelf.queries(name, TEXTS))
    assert list(model.embed([], query=False)) == []


def test_a_query_is_not_a_text_where_prompts_differ(shelf: Shelf, exports: Exports) -> None:
    model = exports.of("mean").model_id()
    assert not near([model.embed(["fox"], query=True)], [model.embed(["fox"], query=False)])
    assert not near(shelf.queries("mean", ["fox"]), shelf.texts("mean", ["fox"]))


def test_texts_that_differ_have_vectors_that_differ(exports: Exports) -> None:
    model = exports.of("cls").model_id()
    vectors = split(model.embed(["fox", "dog", "the dog", "the the dog"], query=False), HIDDEN)
    assert (
        max(cosine(one, other) for one in vectors for other in vectors if one is not other) < 0.999
    )


def test_a_text_of_the_whole_window_is_taken_whole(shelf: Shelf, exports: Exports) -> None:
    ready = exports.of("mean")
    window = ready.settings.window
    texts = ["the " * window, "the " * (window - 1) + "dog", "the " * (window - 1) + "fox"]
    assert (
        shared_token_counter(Path(ready.settings.tokenizer)).count_without_caching(texts)
        == [window] * 3
    )
    vectors = split(ready.model_id().embed(texts, query=False), DENSE)
    assert near(vectors, shelf.texts("mean", texts))
    assert not near(vectors[1:2], vectors[2:])


def test_whole_numbers_give_a_file_that_is_near_or_a_reason(shelf: Shelf, exports: Exports) -> None:
    ready = exports.of("mean", INT8)
    if ready.facts.runtime == "torch":
        assert "differ" in ready.facts.why  # A vector must not depend on its neighbours in a batch.
        return
    assert ready.file.name == "model.int8.onnx"
    assert [file.name for file in ready.file.parent.glob("*.onnx")] == ["model.int8.onnx"]
    model = ready.model_id()
    together = split(model.embed(TEXTS, query=False), DENSE)
    assert min(map(cosine, together, shelf.texts("mean", TEXTS))) > 0.9
    assert near([model.embed([text], query=False) for text in TEXTS], together)
    assert not near(together, shelf.texts("mean", TEXTS))


def test_an_export_leaves_its_file_and_its_facts_and_nothing_else(exports: Exports) -> None:
    ready = exports.of("cls")
    assert sorted(file.name for file in ready.file.parent.iterdir()) == [
        EXPORT_INFO_FILE,
        "model.onnx",
    ]
    assert not list(exports.models.glob(".making-*"))


def test_a_model_with_a_narrow_window_is_exported(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anchord.embedding.workers import export_model as export  # noqa: PLC0415 - it loads torch

    monkeypatch.setattr(export, "_MEASURE_S", BRIEFLY_S)
    assert export._prepare(settings_of(shelf.files("narrow")), tmp_path, "fp32").runtime == "onnx"


def test_a_model_whose_tokens_are_letters_is_exported(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words are longer than those of the texts that the measurements use."""
    from anchord.embedding.workers import export_model as export  # noqa: PLC0415 - likewise

    monkeypatch.setattr(export, "_MEASURE_S", BRIEFLY_S)
    assert export._prepare(settings_of(shelf.files("letters")), tmp_path, "fp32").runtime == "onnx"


# What cannot be exported


def test_a_model_that_gives_other_vectors_is_served_as_it_is_and_the_facts_say_why(
    exports: Exports,
) -> None:
    facts = exports.of("own prompts").facts
    assert facts.runtime == "torch"
    assert "its vectors differ from the original's: cosine 0." in facts.why


@pytest.mark.slow
def test_a_static_model_is_served_one_way_or_the_other(shelf: Shelf, exports: Exports) -> None:
    exports.of("static")
    with closing(embedder_of(shelf, "static", exports.models)) as embedder:
        assert near(
            embedder.embed(["hello world", "fox"]), shelf.texts("static", ["hello world", "fox"])
        )


@pytest.mark.slow
def test_a_model_that_is_not_exported_is_served_as_it_is(shelf: Shelf, exports: Exports) -> None:
    facts = exports.of("own prompts").facts
    with closing(embedder_of(shelf, "own prompts", exports.models)) as embedder:
        assert near(embedder.embed(TEXTS), shelf.texts("own prompts", TEXTS))
        assert near(
            embedder.embed(TEXTS[:1], is_query=True), shelf.queries("own prompts", TEXTS[:1])
        )
        status = embedder.status_fields()
        assert (
            status["runtime"],
            status["device"],
            status["starts"],
            embedder.fallback_reason,
        ) == (
            "torch",
            CPU,
            1,
            facts.why,
        )


def test_there_is_no_int8_of_a_model_that_is_not_exported(shelf: Shelf, models: Path) -> None:
    files = shelf.files("own prompts")
    put_facts(models, facts_now("torch", "it is special"), INT8, file=False).rename(
        models / f"{files.compute_digest()}-{INT8}"
    )
    with closing(embedder_of(shelf, "own prompts", models, INT8)) as embedder:
        for _ in range(2):
            with pytest.raises(
                EmbedderError, match="this model has no int8 version: it is special"
            ) as raised:
                embedder.embed(["fox"])
            assert "fp32" in raised.value.hint


@pytest.mark.slow
def test_weights_that_are_spoiled_are_reported_and_an_embedder_error(
    shelf: Shelf, exports: Exports
) -> None:
    facts = exports.of("corrupt").facts
    assert facts.runtime == "torch"
    assert facts.why.startswith("it cannot be exported (")
    assert str(shelf.base) not in facts.why
    with closing(embedder_of(shelf, "corrupt", exports.models)) as embedder:
        with pytest.raises(EmbedderError):
            embedder.embed(["fox"])
        assert (embedder.state, embedder.refused, embedder.embedded) == ("off", 0, 0)


def test_a_failed_export_leaves_its_facts_alone(exports: Exports) -> None:
    assert [file.name for file in exports.of("own prompts").file.parent.iterdir()] == [
        EXPORT_INFO_FILE
    ]


# Nothing is measured twice


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Give a folder for exported models."""
    made = tmp_path / "models"
    made.mkdir()
    return made


def put_facts(
    models: Path, facts: ExportInfo, precision: str = "fp32", *, file: bool = True
) -> Path:
    folder = models / f"id-{precision}"
    folder.mkdir()
    (folder / EXPORT_INFO_FILE).write_bytes(msgspec.json.encode(facts))
    if file:
        (folder / ("model.int8.onnx" if precision == INT8 else "model.onnx")).write_bytes(b"model")
    return folder


def facts_now(runtime: str, why: str = "") -> ExportInfo:
    return ExportInfo(
        runtime=runtime,
        why=why,
        made_by=prepared.library_versions(),
        machine=prepared.machine_signature(),
    )


def nothing_runs(*_: object, **__: object) -> None:
    """Replaces the start of a process."""
    raise AssertionError("a process was started")


@pytest.mark.parametrize("name", ["mean", "own prompts"])
def test_facts_are_found_without_running_anything(
    shelf: Shelf, exports: Exports, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = exports.of(name)
    monkeypatch.setattr(subprocess, "Popen", nothing_runs)
    assert prepared.find_export(exports.models, shelf.files(name).compute_digest(), "fp32") == (
        ready.facts,
        ready.file,
    )


def test_facts_are_of_a_model_and_a_precision(shelf: Shelf, exports: Exports) -> None:
    exports.of("cls")
    assert prepared.find_export(exports.models, shelf.files("cls").compute_digest(), INT8) is None
    assert prepared.find_export(exports.models, "another", "fp32") is None
    assert (
        prepared.find_export(
            exports.models / "nowhere", shelf.files("cls").compute_digest(), "fp32"
        )
        is None
    )


def test_what_failed_is_known_until_a_library_changes(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = facts_now("torch", "it cannot be exported (Fail)")
    put_facts(models, facts, file=False)
    found = prepared.find_export(models, "id", "fp32")
    assert found is not None
    assert found[0] == facts
    installed = {library: version(library) for library in LIBRARIES}
    for library in LIBRARIES:
        with monkeypatch.context() as patch:
            patch.setattr(prepared, "version", {**installed, library: "99"}.__getitem__)
            assert prepared.find_export(models, "id", "fp32") is None, library
    assert prepared.find_export(models, "id", "fp32") == found


def test_an_accelerator_that_came_is_measured(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_facts(models, facts_now("onnx"))
    assert prepared.find_export(models, "id", "fp32") is not None
    driver = models / "driver"
    monkeypatch.setattr(prepared, "_DRIVERS", (*prepared._DRIVERS, str(driver)))
    assert prepared.find_export(models, "id", "fp32") is not None
    driver.touch()
    assert prepared.find_export(models, "id", "fp32") is None
    # Machines that share a cache keep an export each.
    put_facts(models, facts_now("onnx"), "fp32-driver")
    assert prepared.find_export(models, "id", "fp32") is not None
    driver.unlink()
    assert prepared.find_export(models, "id", "fp32") is not None


def test_what_was_exported_stays_whatever_libraries_come(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put_facts(models, facts_now("onnx"))
    monkeypatch.setattr(prepared, "version", lambda _: "99")
    assert prepared.find_export(models, "id", "fp32") == (
        msgspec.json.decode((folder / EXPORT_INFO_FILE).read_bytes(), type=ExportInfo), folder / "model.onnx",
    )  # fmt: skip


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"runtime": 5}', "{}", "\xff", '{"runtime": "onnx", "rates": 3}']
)
def test_facts_that_cannot_be_read_are_none(models: Path, content: str) -> None:
    folder = put_facts(models, facts_now("onnx"))
    (folder / EXPORT_INFO_FILE).write_text(content, encoding="latin-1")
    assert prepared.find_export(models, "id", "fp32") is None


@pytest.mark.parametrize("precision", ["fp32", INT8])
def test_facts_whose_file_is_gone_are_none(models: Path, precision: str) -> None:
    put_facts(models, facts_now("onnx"), precision, file=False)
    assert prepared.find_export(models, "id", precision) is None


def test_a_file_without_facts_is_no_export(models: Path) -> None:
    (put_facts(models, facts_now("onnx")) / EXPORT_INFO_FILE).unlink()
    assert prepared.find_export(models, "id", "fp32") is None


# The process


LIBRARY = """
import os, sys
from pathlib import Path
class SentenceTransformer:
    def __init__(self, folder, **named):
        told = [folder, os.environ["HF_HUB_OFFLINE"], str(os.nice(0)), sys.argv[3]]
        Path(__file__).with_name("told").write_text("\\n".join(told))
        Path(sys.argv[2], "half.onnx").write_text("half")
        raise FloatingPointError("of the library")
"""


def test_the_program_that_exports_runs_in_a_process_of_its_own(
    shelf: Shelf, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its facts are taken; stubs stand for the libraries, which take 8 s to load: slow tests have the real ones."""
    libraries = models.parent / "libraries"
    libraries.mkdir()
    (libraries / "torch.py").write_text("def set_num_threads(count): assert count == 1\n")
    (libraries / "sentence_transformers.py").write_text(LIBRARY)
    monkeypatch.setenv("PYTHONPATH", str(libraries))
    files = shelf.files("mean")
    settings = msgspec.structs.replace(settings_of(files), nice=1)
    begun: list[subprocess.Popen[bytes]] = []
    facts, file = prepared.export_and_cache_model(
        models, files.compute_digest(), INT8, settings, begun.append
    )
    assert [process.returncode for process in begun] == [0]
    assert (libraries / "told").read_text().splitlines() == [
        str(files.folder), "1", str(min(19, os.nice(0) + 1)), INT8
    ]  # fmt: skip
    assert (facts.runtime, facts.why) == ("torch", "it cannot be exported (FloatingPointError)")
    assert prepared.find_export(models, files.compute_digest(), INT8) == (facts, file)
    assert [each.name for each in file.parent.iterdir()] == [EXPORT_INFO_FILE]


# Interruptions


def test_an_export_that_is_killed_leaves_nothing_that_is_taken_for_finished(
    shelf: Shelf, models: Path
) -> None:
    files = shelf.files("cls")
    begun: list[subprocess.Popen[bytes]] = []

    def kill(process: subprocess.Popen[bytes]) -> None:
        begun.append(process)
        process.kill()

    facts, _ = prepared.export_and_cache_model(
        models, files.compute_digest(), "fp32", settings_of(files), kill
    )
    assert (facts.runtime, len(begun)) == ("torch", 1)
    assert facts.why
    assert prepared.find_export(models, files.compute_digest(), "fp32") is None
    assert list(models.iterdir()) == []


def put_program(models: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the export program."""
    program = models.parent / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))


def test_an_export_that_fails_for_now_leaves_what_was_there(
    shelf: Shelf, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put_facts(models, facts_now("onnx"))
    put_program(models, "exit 3", monkeypatch)
    facts, _ = prepared.export_and_cache_model(
        models, "id", "fp32", settings_of(shelf.files("cls")), unheeded
    )
    assert facts.runtime == "torch"
    assert "ended with 3" in facts.why
    assert (folder / "model.onnx").read_bytes() == b"model"
    assert [file.name for file in models.iterdir()] == ["id-fp32"]


def test_an_export_that_crashes_is_not_tried_at_every_start(
    shelf: Shelf, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_program(models, "kill -SEGV $$", monkeypatch)
    facts, file = prepared.export_and_cache_model(
        models, "id", "fp32", settings_of(shelf.files("cls")), unheeded
    )
    assert facts.runtime == "torch"
    assert "ended with -11" in facts.why
    assert prepared.find_export(models, "id", "fp32") == (facts, file)
    monkeypatch.setattr(prepared, "version", lambda _: "99")
    assert prepared.find_export(models, "id", "fp32") is None


def test_a_program_that_cannot_be_started_is_reported(
    shelf: Shelf, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(models / "no-such-python"))
    facts, _ = prepared.export_and_cache_model(
        models, "id", "fp32", settings_of(shelf.files("cls")), unheeded
    )
    assert facts.runtime == "torch"
    assert facts.why
    assert list(models.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_reported(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    facts, _ = prepared.export_and_cache_model(
        tmp_path / "file" / "models", "id", "fp32", settings_of(shelf.files("cls")), unheeded
    )
    assert facts.runtime == "torch"
    assert "Not a directory" in facts.why


def test_what_interrupted_exports_left_is_swept_once_it_is_old(models: Path) -> None:
    old, young = models / ".making-old", models / ".making-young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "model.onnx").write_bytes(b"half")
    put_facts(models, facts_now("onnx"))
    now = time.time()
    os.utime(old, (now - 1_000, now - 1_000))
    prepared.delete_interrupted_exports(models, now)
    assert sorted(file.name for file in models.iterdir()) == [".making-young", "id-fp32"]
    prepared.delete_interrupted_exports(models / "nowhere", now)


def test_what_an_interrupted_export_left_is_not_found(models: Path) -> None:
    made = models / ".making-id-fp32"
    made.mkdir()
    (made / "model.onnx").write_bytes(b"model")
    (made / EXPORT_INFO_FILE).write_bytes(msgspec.json.encode(facts_now("onnx")))
    assert prepared.find_export(models, "id", "fp32") is None


# A cache for all homes


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Return the folder in which a home kept its exports."""
    folder = tmp_path / "older"
    folder.mkdir()
    return folder


def test_an_export_of_a_home_is_shared_and_takes_no_room(models: Path, older: Path) -> None:
    folder = put_facts(older, facts_now("onnx"))
    assert prepared.find_or_share_export(models, older, "id", "fp32") == (
        facts_now("onnx"), models / "id-fp32" / "model.onnx"
    )  # fmt: skip
    assert (models / "id-fp32" / "model.onnx").samefile(folder / "model.onnx")
    assert [file.name for file in models.iterdir()] == ["id-fp32"]
    shutil.rmtree(older)
    assert prepared.find_or_share_export(models, older, "id", "fp32")
    assert prepared.find_or_share_export(models, models, "other", "fp32") is None


def test_an_export_is_copied_where_it_cannot_be_linked(
    models: Path, older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "another file system")

    put_facts(older, facts_now("onnx"))
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    found = prepared.find_or_share_export(models, older, "id", "fp32")
    assert found
    assert found[1].is_relative_to(models)
    assert found[1].read_bytes() == b"model"


def test_an_export_that_cannot_be_shared_is_used_where_it_is(
    models: Path, older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "no space")

    folder = put_facts(older, facts_now("onnx"))
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    monkeypatch.setattr(shutil, "copyfile", refuse)
    found = prepared.find_or_share_export(models, older, "id", "fp32")
    assert found == (facts_now("onnx"), folder / "model.onnx")
    assert list(models.iterdir()) == []


def test_an_unusable_export_of_a_home_is_not_shared(models: Path, older: Path) -> None:
    folder = put_facts(older, facts_now("onnx"))
    (folder / "model.onnx").unlink()
    assert prepared.find_or_share_export(models, older, "id", "fp32") is None
    assert list(models.iterdir()) == []


def test_the_export_of_another_process_is_kept(
    shelf: Shelf, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two daemons export at the same time: the second finds the export of the first, which that may be reading."""
    opened: list[BinaryIO] = []

    def export(_: object, build_folder: Path, *__: object) -> int:
        opened.append((put_facts(models, facts_now("onnx")) / "model.onnx").open("rb"))
        (build_folder / "model.onnx").write_bytes(b"the same model")
        info_json = msgspec.json.encode(facts_now("onnx"))
        (build_folder / EXPORT_INFO_FILE).write_bytes(info_json)
        return 0

    monkeypatch.setattr(prepared, "_run_export", export)
    _, file = prepared.export_and_cache_model(
        models, "id", "fp32", settings_of(shelf.files("cls")), unheeded
    )
    (handle,) = opened
    with handle:
        assert os.fstat(handle.fileno()).st_nlink == 1
        assert file.read_bytes() == handle.read() == b"model"
    assert [each.name for each in models.iterdir()] == ["id-fp32"]


def test_an_unusable_export_is_replaced(
    shelf: Shelf, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = put_facts(models, facts_now("onnx"))
    (stale / EXPORT_INFO_FILE).write_bytes(b"damaged")

    def export(_: object, build_folder: Path, *__: object) -> int:
        (build_folder / "model.onnx").write_bytes(b"a new one")
        info_json = msgspec.json.encode(facts_now("onnx"))
        (build_folder / EXPORT_INFO_FILE).write_bytes(info_json)
        return 0

    monkeypatch.setattr(prepared, "_run_export", export)
    _, file = prepared.export_and_cache_model(
        models, "id", "fp32", settings_of(shelf.files("cls")), unheeded
    )
    assert file.read_bytes() == b"a new one"


# Which device


@pytest.mark.parametrize(
    ("rates", "device"),
    [
        ({CPU: 10.0}, CPU),
        ({CPU: 10.0, "cuda": 14.9}, CPU),
        ({CPU: 10.0, "cuda": 15.0}, CPU),
        ({CPU: 10.0, "cuda": 15.1}, "cuda"),
        ({"cuda": 15.1, CPU: 10.0}, "cuda"),
        ({CPU: 10.0, "cuda": 1.0}, CPU),
        ({CPU: 10.0, "cuda": 20.0, "mps": 30.0}, "mps"),
        ({CPU: 10.0, "cuda": 0.0}, CPU),
    ],
)
def test_an_accelerator_is_chosen_only_where_it_is_clearly_faster(
    rates: dict[str, float], device: str
) -> None:
    assert prepared.choose_backlog_device(rates) == device


# All of it together


def embedder_of(shelf: Shelf, name: str, models: Path, precision: str = "fp32") -> LocalEmbedder:
    return LocalEmbedder(
        shelf.files(name), WorkerOptions(exports_folder=models, precision=precision, threads=1)
    )


@pytest.fixture
def embedder(shelf: Shelf, exports: Exports) -> Iterator[LocalEmbedder]:
    """Give an embedder over the exported model with prompts."""
    assert exports.of("mean").facts.runtime == "onnx"
    with closing(embedder_of(shelf, "mean", exports.models)) as made:
        yield made


@pytest.fixture(scope="module")
def running(shelf: Shelf, exports: Exports) -> Iterator[LocalEmbedder]:
    """Give an embedder of the same model whose process runs already: its start takes half a second of a processor."""
    assert exports.of("mean").facts.runtime == "onnx"
    with closing(embedder_of(shelf, "mean", exports.models)) as made:
        yield made


def test_an_embedder_gives_the_librarys_vectors_of_texts_and_of_queries(
    shelf: Shelf, embedder: LocalEmbedder
) -> None:
    assert embedder.state == "off"
    assert near(embedder.embed(TEXTS), shelf.texts("mean", TEXTS))
    assert near(embedder.embed(TEXTS, is_query=True), shelf.queries("mean", TEXTS))
    assert (embedder.state, embedder.fallback_reason, embedder.refused, embedder.over_window) == (
        "ready",
        "",
        0,
        0,
    )
    status = embedder.status_fields()
    assert (status["runtime"], status["device"], status["precision"], status["starts"]) == (
        "onnx",
        CPU,
        "fp32",
        1,
    )


def test_vectors_of_many_texts_are_in_their_places(shelf: Shelf, running: LocalEmbedder) -> None:
    pairs = zip(KNOWN * 4, KNOWN[::-1] * 4, strict=True)
    texts = [f"{word} {other} " * (number % 40 + 1) for number, (word, other) in enumerate(pairs)]
    texts = [
        text
        for text in texts
        if shared_token_counter(shelf.files("mean").tokenizer).count_without_caching([text])[0]
        <= WINDOW - 5
    ]
    assert len(texts) > 100
    assert near(running.embed(texts), shelf.texts("mean", texts))


def test_a_text_over_the_window_is_embedded_in_pieces_and_counted(
    shelf: Shelf, embedder: LocalEmbedder
) -> None:
    window = shelf.files("mean").window
    long, fitting = "the quick fox " * window, "the dog " * (window // 2)
    vectors = embedder.embed(["fox", long, fitting])
    assert near([vectors[0], vectors[2]], shelf.texts("mean", ["fox", fitting]))
    assert length(vectors[1]) == pytest.approx(1.0, abs=CLOSE)
    assert embedder.over_window == 1
    assert cosine(vectors[1], shelf.texts("mean", ["the quick fox " * (window // 3)])[0]) > 0.9
    assert not near(vectors[1:2], shelf.texts("mean", [long]))  # The library cuts it.
    other = embedder.embed([long + "a dog below everything " * window])[0]
    assert not near([other], vectors[1:2])
    assert embedder.over_window == 2


def test_a_query_over_the_window_is_embedded_too_and_not_counted(embedder: LocalEmbedder) -> None:
    assert length(embedder.embed(["word " * 1_000], is_query=True)[0]) == pytest.approx(
        1.0, abs=CLOSE
    )
    assert embedder.over_window == 0


@pytest.mark.parametrize(
    "text", ["a" * 5_000, "the\n" * 500, "日" * 1_000, " " * 3_000 + "fox " * 300]
)
def test_a_text_over_the_window_without_a_good_place_to_cut_is_embedded(
    running: LocalEmbedder, text: str
) -> None:
    (vector,) = running.embed([text])
    assert length(vector) == pytest.approx(1.0, abs=CLOSE)


def test_the_pieces_of_a_text_go_out_in_batches_too(
    running: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.embed(["fox"])
    lane = running._default_queue
    assert lane is not None
    sizes: list[int] = []
    embed = lane.embed

    def noted(texts: Sequence[str], *more: Any, **named: Any) -> Any:  # noqa: ANN401 - as the worker queue has it
        sizes.append(len(texts))
        return embed(texts, *more, **named)

    monkeypatch.setattr(lane, "embed", noted)
    running.embed(["the quick fox " * 5_000])
    assert max(sizes) <= 32
    assert sum(sizes) > 100


def test_a_text_in_pieces_counts_as_one(embedder: LocalEmbedder) -> None:
    embedder.embed(["the quick fox " * 500, "fox"])
    assert (embedder.embedded, embedder.over_window) == (2, 1)


@pytest.mark.slow
def test_an_embedder_makes_the_model_ready_by_itself_and_only_once(
    shelf: Shelf, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with truncated vectors."""
    with closing(embedder_of(shelf, "cut", models)) as embedder:
        assert near(embedder.embed(TEXTS), shelf.texts("cut", TEXTS))
        assert embedder.status_fields()["runtime"] == "onnx"
    monkeypatch.setattr(prepared, "export_and_cache_model", nothing_runs)
    with closing(embedder_of(shelf, "cut", models)) as embedder:
        assert near(
            [vector for text in TEXTS for vector in embedder.embed([text])],
            shelf.texts("cut", TEXTS),
        )


def test_the_name_of_a_model_contains_its_precision(shelf: Shelf, models: Path) -> None:
    names = {
        embedder_of(shelf, name, models, precision).model_id
        for name in ("mean", "cls")
        for precision in ("fp32", INT8)
    }
    assert len(names) == 4


def test_closing_ends_an_export(
    shelf: Shelf, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = embedder_of(shelf, "cls", models)
    begun: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen.__init__

    def noted(process: subprocess.Popen[bytes], *given: Any, **named: Any) -> None:  # noqa: ANN401 - as Popen has them
        begin(process, *given, **named)
        begun.append(process)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(embedder.embed, ["fox"])
        until(lambda: begun)
        embedder.close()
        assert isinstance(asked.exception(), EmbedderError)
    assert begun[0].returncode
    assert list(models.iterdir()) == []
