"""The cost of embedding: each runtime on the same texts, and a first index against embedding alone.

    python tests/tools/benchmarks/bench_embedding.py [--only runtimes,index] [--mb 2.5] [--texts 600] [--folder DIR]

The texts are those that anchord embeds of a corpus: DIR, or some megabytes of Python's standard library. Each runtime
has its own process and one thread; start and work are measured separately.

file by file    what most programs do: SentenceTransformer.encode for each file, with its defaults
pooled          the same on all texts at once
the others      anchord's runtimes, as in `[embedding]`; `torch` is for models that cannot be exported

tokens/CPU s    of the texts, without special tokens and padding
padding         share of padding tokens
memory          the peak of the process with the model
cosine          the lowest against sentence-transformers with one text per batch
first index     the CPU of `anchord index` with all its processes, of the whole corpus
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from array import array
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from figures import megabytes, run, table

from anchord.api.chunks import chunk_text
from anchord.embedding import local as embedding
from anchord.embedding.batching import batch_by_token_count
from anchord.embedding.local import LocalEmbedder
from anchord.embedding.model_files import find_model
from anchord.embedding.tokenizer import TokenCounter
from anchord.embedding.worker_options import WorkerOptions
from anchord.embedding.workers import export_cache as prepared
from anchord.embedding.workers.export_cache import ExportInfo

_MODEL = "all-MiniLM-L6-v2"
_RUNTIMES = ("file by file", "pooled", "torch", "onnx fp32", "onnx int8")
_HEADINGS = (
    "runtime", "start, CPU s", "CPU s", "wall s", "tokens/CPU s", "of file by file", "padding", "memory MB", "cosine",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a runtime."""

    start_cpu_s: float
    cpu_s: float
    wall_s: float
    rss_bytes: int
    padding: float


def main() -> None:
    """Print the tables."""
    if sys.argv[1:2] == ["--as"]:
        _run_as(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="runtimes,index")
    parser.add_argument("--mb", type=float, default=2.5)
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anchord-bench-") as temporary:
        base = Path(os.path.realpath(temporary))
        corpus = given.folder or _standard_library(base / "corpus", int(given.mb * 1e6))
        files = _texts_of(corpus)
        _say(f"{sum(map(len, files))} texts of {len(files)} files")
        with closing(
            LocalEmbedder(find_model(_MODEL), WorkerOptions(exports_folder=base / "models"))
        ) as local:
            local.embed(["ready"])  # This exports the model.
        if "runtimes" in given.only:
            some = _share(files, given.texts)
            print(_runtimes(base, some) + "\n")
        if "index" in given.only:
            print(_first_index(base, corpus, files))


def _standard_library(folder: Path, size: int) -> Path:
    """Copy as much of Python's own modules, in the order of their names."""
    folder.mkdir()
    library, taken = Path(sysconfig.get_path("stdlib")), 0
    for file in sorted(library.glob("*.py")):
        if taken < size:
            shutil.copy(file, folder / file.name)
            taken += file.stat().st_size
    return folder


def _texts_of(folder: Path) -> list[list[str]]:
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".py", ".md", ".txt"})
    found = (
        [chunk["embed_text"] for chunk in chunk_text(_read(path), path=path.name)] for path in files
    )
    return [texts for texts in found if texts]


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _share(files: Sequence[list[str]], texts: int) -> list[list[str]]:
    """Take files at a fixed interval until there are enough texts."""
    step, taken = max(1, sum(map(len, files)) // texts), list[list[str]]()
    for file in files[::step] or files:
        if sum(map(len, taken)) >= texts:
            break
        taken.append(file)
    return taken


# Runtimes


def _runtimes(base: Path, files: list[list[str]]) -> str:
    texts = [text for file in files for text in file]
    tokens = sum(_count(texts))
    _say(f"runtimes: {len(texts)} texts, {tokens} tokens")
    rows: list[tuple[str, ...]] = []
    reference: list[bytes] = []
    first = 0.0
    for name in _RUNTIMES:
        cost, vectors = _measured(base, name, files)
        reference = reference or _measured(base, "alone", files)[1]
        speed = tokens / cost.cpu_s
        first = first or speed
        cosine = min(map(_cosine, vectors, reference))
        took = (
            f"{cost.start_cpu_s:.1f}",
            f"{cost.cpu_s:.1f}",
            f"{cost.wall_s:.1f}",
            f"{speed:,.0f}",
            f"{speed / first:.2f}",
        )
        rows.append(
            (name, *took, f"{cost.padding:.1%}", megabytes(cost.rss_bytes), f"{cosine:.5f}")
        )
        _say(" ".join(rows[-1]))
    return table(_HEADINGS, rows)


def _measured(base: Path, name: str, files: list[list[str]]) -> tuple[Cost, list[bytes]]:
    given, answer, numbers = base / "texts.json", base / "cost.json", base / "vectors"
    given.write_text(json.dumps(files), "utf-8")
    command = [
        sys.executable,
        __file__,
        "--as",
        name,
        str(given),
        str(answer),
        str(numbers),
        str(base / "models"),
    ]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    data = numbers.read_bytes()
    size = 4 * find_model(_MODEL).dimension
    return Cost(**json.loads(answer.read_text("utf-8"))), [
        data[at : at + size] for at in range(0, len(data), size)
    ]


def _run_as(name: str, given: str, answer: str, numbers: str, models: str) -> None:
    """Embed in this process, or in one of anchord's below it."""
    files: list[list[str]] = json.loads(Path(given).read_text("utf-8"))
    cost, vectors = (
        _by_hand(name, files)
        if name in {"file by file", "pooled", "alone"}
        else _by_anchord(name, files, models)
    )
    Path(numbers).write_bytes(vectors)
    Path(answer).write_text(json.dumps(asdict(cost)), "utf-8")


def _by_hand(name: str, files: list[list[str]]) -> tuple[Cost, bytes]:
    import torch  # noqa: PLC0415 - anchord's own ways must not have it
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415

    torch.set_num_threads(1)
    model = SentenceTransformer(str(find_model(_MODEL).folder), device="cpu", local_files_only=True)
    groups = {
        "file by file": files,
        "pooled": [[t for file in files for t in file]],
        "alone": [[t] for f in files for t in f],
    }
    model.encode(["ready"])
    start, began = time.process_time(), time.perf_counter()
    found = [
        model.encode(group, normalize_embeddings=True, show_progress_bar=False)
        for group in groups[name]
    ]
    cpu, wall = time.process_time() - start, time.perf_counter() - began
    padding = _padding([_in_batches(_count(group)) for group in groups[name]])
    return Cost(start, cpu, wall, _peak(psutil.Process()), padding), b"".join(
        each.astype("<f4").tobytes() for each in found
    )


def _in_batches(tokens: Sequence[int], size: int = 32) -> list[list[int]]:
    """Return a call's batches as `encode` makes them: of 32, longest first."""
    ordered = sorted(tokens, reverse=True)
    return [ordered[at : at + size] for at in range(0, len(ordered), size)]


def _by_anchord(name: str, files: list[list[str]], models: str) -> tuple[Cost, bytes]:
    texts = [text for file in files for text in file]
    precision = "int8" if name.endswith("int8") else "fp32"
    embedder = LocalEmbedder(
        find_model(_MODEL),
        WorkerOptions(exports_folder=Path(models), precision=precision, threads=1),
    )
    if name == "torch":
        vars(prepared)["find"] = lambda *_: (ExportInfo(runtime="torch", why="measured"), Path())
    embedder.embed(["ready"])
    (process,) = psutil.Process().children()
    start, began, own = _cpu(process), time.perf_counter(), time.process_time()
    vectors = b"".join(embedder.embed(texts))
    cpu, wall = _cpu(process) - start + time.process_time() - own, time.perf_counter() - began
    peak = _peak(process)
    embedder.close()
    tokens = _count(texts)
    made = [
        [tokens[number] for number in batch]
        for batch in batch_by_token_count(tokens, *embedding._CPU_BATCH)
    ]
    return Cost(start, cpu, wall, peak, 0.0 if precision == "int8" else _padding([made])), vectors


def _padding(calls: Sequence[Sequence[Sequence[int]]]) -> float:
    made = [batch for call in calls for batch in call]
    computed = sum(len(batch) * max(batch) for batch in made)
    return 1 - sum(map(sum, made)) / computed


def _count(texts: Sequence[str]) -> list[int]:
    return TokenCounter(find_model(_MODEL).tokenizer).count_without_caching(texts)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _peak(process: psutil.Process) -> int:
    """Return the peak memory of a process in bytes (Linux), else its present memory."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return int(process.memory_info().rss)
    return next(
        int(line.split()[1]) * 1024
        for line in status.read_text().splitlines()
        if line.startswith("VmHWM")
    )


def _cosine(one: bytes, other: bytes) -> float:
    return math.fsum(a * b for a, b in zip(array("f", one), array("f", other), strict=True))


# First index


def _first_index(base: Path, corpus: Path, files: list[list[str]]) -> str:
    """Compare with embedding each different text once, alone."""
    texts = list(dict.fromkeys(text for file in files for text in file))
    began = time.perf_counter()
    bare = _measured(base, "onnx fp32", [texts])[0]
    naive = _measured(base, "file by file", files)[0]
    rows = [
        _index_row(
            "file by file `encode`",
            naive.start_cpu_s + naive.cpu_s,
            naive.wall_s,
            sum(map(len, files)),
            naive.cpu_s,
        ),
        _index_row(
            "the texts alone (onnx fp32)",
            bare.start_cpu_s + bare.cpu_s,
            bare.wall_s,
            len(texts),
            naive.cpu_s,
        ),
    ]
    home = base / "home"
    (home / "data").mkdir(mode=0o700, parents=True)
    (home / "config.toml").write_text("[embedding]\nthreads = 1\n", "utf-8")
    shutil.copytree(base / "models", home / "data" / "models")
    began = time.perf_counter()
    ran = run(
        [sys.executable, "-m", "anchord", "index", str(corpus)],
        os.environ | {"ANCHORD_HOME": str(home)},
    )
    if ran.code:
        raise RuntimeError(f"index: exit code {ran.code}")
    wall = time.perf_counter() - began
    rows.append(_index_row("first index", ran.cpu_s, wall, len(texts), naive.cpu_s))
    alone = bare.start_cpu_s + bare.cpu_s
    size = sum(file.stat().st_size for file in corpus.rglob("*") if file.is_file())
    headings = (
        f"{size / 1e6:.1f} MB",
        "CPU s",
        "wall s",
        "texts",
        "texts/CPU s",
        "throughput, file by file = 1",
    )
    return f"{table(headings, rows)}\n\nCPU of the first index, of embedding the same texts alone: {ran.cpu_s / alone:.3f}"


def _index_row(name: str, cpu: float, wall: float, texts: int, naive: float) -> tuple[str, ...]:
    return (
        name,
        f"{cpu:.1f}",
        f"{wall:.1f}",
        f"{texts:,}",
        f"{texts / cpu:.1f}",
        f"{naive / cpu:.2f}",
    )


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
