"""The cost of many files: the first index, and an unchanged start against a bare walk and git.

    python tests/tools/benchmarks/bench_scale.py [--files N] [--profile] [--folder FOLDER]

Makes FILES notes of one chunk each in nested folders of 100, in a git repository with one commit and a short `.gitignore`, in
a new folder inside FOLDER (default: where temporary files go). All figures are of CPU, of this run, with warm caches. A start
is measured five times, each in a new process, right after a bare walk in it; the medians are:

bare walk          `os.walk` and a stat of every file but git's own, in Python
git status         the second one, after the first has refreshed git's index; the median of five
first index        `anchord index FOLDER` with the embedder that needs no model
nothing changed    the same command again, with its imports
start              imports apart: opening everything as a writer, then comparing each root with the catalogue. Below it, each
                   done once more alone, what of it is the walk and what the catalogue

`--profile` adds the 25 functions in which the comparison spends most of its time.
"""

from __future__ import annotations

import argparse
import cProfile
import logging
import multiprocessing
import os
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
import structlog
from figures import git, megabytes, run, table
from invented import write_notes

from anchord.config.paths import find_paths
from anchord.config.schema import parse_config
from anchord.index.opening import open_writer
from anchord.index.session import IndexWriter

T = TypeVar("T")

_SETTINGS = '[embedding]\nprovider = "hash"\n'
_IGNORED = "build/\ndist/\n*.log\n*.tmp\n/private/\n"
_TIMES = 5
_RACY_S = 2.1
_PROFILED = 25


@dataclass(frozen=True, slots=True)
class Step:
    """The cost of one start."""

    name: str
    cpu_s: float
    rss_bytes: int | None = None


def main() -> int:
    """Print the table; 1 when a start with nothing changed finds something to do."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anchord-bench-", dir=given.folder) as temporary:
        base = Path(os.path.realpath(temporary))
        tree = base / "tree"
        _make(tree, range(given.files))
        indexed = [_index("first index", base, tree), _index("nothing changed", base, tree)]
        git(tree, "status", "--porcelain")
        status = statistics.median(git(tree, "status", "--porcelain").cpu_s for _ in range(_TIMES))
        starts = [_apart(_start, base) for _ in range(_TIMES)]
        bare, *started = (
            _half([steps[number] for _, steps in starts]) for number in range(len(starts[0][1]))
        )
        due = sum(found for found, _ in starts)
        steps = [bare, Step("git status", status), *indexed, *started]
        profile = _profiled(base) if given.profile else None
        rows = [
            (step.name, f"{step.cpu_s:.2f}", f"{1e6 * step.cpu_s / given.files:,.1f}", f"{step.cpu_s / bare.cpu_s:.2f}",
             megabytes(step.rss_bytes) if step.rss_bytes is not None else "")
            for step in steps
        ]  # fmt: skip
    print(
        table((f"{given.files:,} files", "CPU s", "µs a file", "of the bare walk", "RSS MB"), rows)
    )
    if profile:
        profile.sort_stats("tottime").print_stats(_PROFILED)
    return 1 if due else 0


def _make(tree: Path, numbers: range) -> None:
    write_notes(tree, numbers)
    (tree / ".gitignore").write_text(_IGNORED, "utf-8")
    git(tree, "init", "--quiet")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "All notes")
    time.sleep(_RACY_S)  # Times younger than two seconds are trusted neither by git nor by anchord.


def _walk(tree: Path) -> int:
    size = 0
    for folder, folders, names in os.walk(tree):
        if ".git" in folders:
            folders.remove(".git")
        for name in names:
            size += os.stat(os.path.join(folder, name), follow_symlinks=False).st_size
    return size


def _cpu_of(job: Callable[[], object]) -> float:
    began = time.process_time()
    job()
    return time.process_time() - began


def _index(name: str, base: Path, tree: Path) -> Step:
    home = base / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(_SETTINGS, "utf-8")
    ran = run(
        [sys.executable, "-m", "anchord", "index", str(tree)],
        os.environ | {"ANCHORD_HOME": str(home)},
    )
    if ran.code:
        raise RuntimeError(f"`anchord index`: exit code {ran.code}")
    return Step(name, ran.cpu_s, ran.rss_bytes)


def _apart(job: Callable[[Path], T], base: Path) -> T:
    """Run a job in a new process, so that no cache of the process is warm."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _be_quiet) as pool:
        return pool.submit(job, base).result()


def _be_quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


def _half(steps: Sequence[Step]) -> Step:
    sizes = [step.rss_bytes for step in steps if step.rss_bytes is not None]
    size = int(statistics.median(sizes)) if sizes else None
    return Step(steps[0].name, statistics.median(step.cpu_s for step in steps), size)


def _start(base: Path) -> tuple[int, list[Step]]:
    """Walk only, then start as the daemon does with nothing to do."""
    bare = Step("bare walk", _cpu_of(lambda: _walk(base / "tree")))
    process = psutil.Process()
    before = Step("(this process before)", 0.0, process.memory_info().rss)
    began = time.process_time()
    with closing(_writer(base)) as writer:
        opened = Step("start: opening", time.process_time() - began, process.memory_info().rss)
        began = time.process_time()
        due = _reconcile(writer)
        compared = Step("start: comparing", time.process_time() - began, process.memory_info().rss)
        both = Step("start", opened.cpu_s + compared.cpu_s, compared.rss_bytes)
        roots = [root.name for root in writer.roots]
        walking = Step(
            "of comparing: the walk",
            _cpu_of(lambda: [writer.files.walk(root, "") for root in roots]),
        )
        reading = Step(
            "of comparing: the catalogue",
            _cpu_of(lambda: [writer.catalog.list_records(r, "") for r in roots]),
        )
    return due, [bare, before, opened, compared, both, walking, reading]


def _writer(base: Path) -> IndexWriter:
    return open_writer(
        find_paths({"ANCHORD_HOME": str(base / "home")}), parse_config(_SETTINGS, "bench"), []
    )


def _reconcile(writer: IndexWriter) -> int:
    return sum(len(writer.indexer.reconcile(root.name).paths_due) for root in writer.roots)


def _profiled(base: Path) -> pstats.Stats:
    with closing(_writer(base)) as writer, cProfile.Profile() as profile:
        _reconcile(writer)
    return pstats.Stats(profile, stream=sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
