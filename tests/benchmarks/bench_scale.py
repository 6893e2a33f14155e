"""What many files cost: the first index, and a start with nothing changed beside what a bare walk and git take.

    python tests/benchmarks/bench_scale.py [--files N] [--profile] [--folder FOLDER]

Makes FILES notes of one chunk each in nested folders of 100, in a git repository with one commit and a short `.gitignore`, in
a new folder inside FOLDER (default: where temporary files go). All figures are of CPU, of this run, with warm caches; what is
compared with the bare walk is measured right after it:

bare walk          `os.walk` and a stat of every file but git's own, in Python; the half of three
git status         a second one, after the first has refreshed git's index; the half of three
first index        `anchord index FOLDER` with the embedder that needs no model
nothing changed    the same command again, with its imports
start              in this process, imports apart: opening everything as a writer, then comparing each root with the catalogue;
                   the first time it is done. Below it, each done once more alone, what of it is the walk and what the catalogue

`--profile` adds the 25 functions in which the comparison spends most of its time.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
from figures import git, megabytes, run, table
from invented import write_notes

from anchord.config import parse_config
from anchord.places import find_places
from anchord.workspace import Writer, open_writer

_SETTINGS = '[embedding]\nprovider = "hash"\n'
_IGNORED = "build/\ndist/\n*.log\n*.tmp\n/private/\n"
_TIMES = 3
_RACY_S = 2.1
_PROFILED = 25


@dataclass(frozen=True, slots=True)
class Step:
    """What one took."""

    name: str
    cpu_s: float
    rss_bytes: int | None = None


def main() -> int:
    """Print the table; 1 when a start with nothing changed finds something to do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anchord-bench-", dir=given.folder) as temporary:
        base = Path(os.path.realpath(temporary))
        tree = base / "tree"
        _make(tree, range(given.files))
        indexed = [_index("first index", base, tree), _index("nothing changed", base, tree)]
        _walk(tree)
        bare = statistics.median(_cpu_of(lambda: _walk(tree)) for _ in range(_TIMES))
        git(tree, "status", "--porcelain")
        status = statistics.median(git(tree, "status", "--porcelain").cpu_s for _ in range(_TIMES))
        due, started, profile = _start(base, profiled=given.profile)
        steps = [Step("bare walk", bare), Step("git status", status), *indexed, *started]
        rows = [
            (step.name, f"{step.cpu_s:.2f}", f"{1e6 * step.cpu_s / given.files:,.1f}", f"{step.cpu_s / bare:.2f}",
             megabytes(step.rss_bytes) if step.rss_bytes is not None else "")
            for step in steps
        ]  # fmt: skip
    print(table((f"{given.files:,} files", "CPU s", "µs a file", "of the bare walk", "RSS MB"), rows))
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
    ran = run([sys.executable, "-m", "anchord", "index", str(tree)], os.environ | {"ANCHORD_HOME": str(home)})
    if ran.code:
        raise RuntimeError(f"`anchord index`: exit code {ran.code}")
    return Step(name, ran.cpu_s, ran.rss_bytes)


def _start(base: Path, *, profiled: bool) -> tuple[int, list[Step], pstats.Stats | None]:
    """Start as the daemon does, and find nothing to do."""
    process, due, places = psutil.Process(), 0, find_places({"ANCHORD_HOME": str(base / "home")})
    before = Step("(this process before)", 0.0, process.memory_info().rss)
    began = time.process_time()
    with closing(open_writer(places, parse_config(_SETTINGS, "bench"), [])) as writer:
        opened = Step("start: opening", time.process_time() - began, process.memory_info().rss)
        began = time.process_time()
        due = _reconcile(writer)
        compared = Step("start: comparing", time.process_time() - began, process.memory_info().rss)
        both = Step("start", opened.cpu_s + compared.cpu_s, compared.rss_bytes)
        roots = [root.name for root in writer.roots]
        walking = Step("of comparing: the walk", _cpu_of(lambda: [writer.files.walk(root, "") for root in roots]))
        reading = Step("of comparing: the catalogue", _cpu_of(lambda: [writer.catalogue.overview(r, "") for r in roots]))
        profile = _profile(writer) if profiled else None
    return due, [before, opened, compared, both, walking, reading], profile


def _reconcile(writer: Writer) -> int:
    return sum(len(writer.indexer.reconcile(root.name).due) for root in writer.roots)


def _profile(writer: Writer) -> pstats.Stats:
    with cProfile.Profile() as profile:
        _reconcile(writer)
    return pstats.Stats(profile, stream=sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
