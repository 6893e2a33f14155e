"""The cost of single edits over time, with the table's maintenance and without it.

    python tests/tools/benchmarks/bench_upkeep.py [--edits N] [--rows 10000,100000] [--files N] [--without-limit N]

Each edit changes one line of one file and is one commit: the real indexer, catalogue and table, in this process, with the
embedder that needs no model; then maintenance compacts the table if it is due. The base of a table is FILES
documents of about ten chunks, indexed as they are; rows beyond those are invented and written to the table directly, of files
that the catalogue does not know and no edit touches. Each run has a process of its own and begins on a copy of the same base.
Runs without maintenance end after --without-limit edits, because they get slower; both are shown after that many.

CPU ms        per commit, all threads of the process: p50, p99, p50 of the last 100, and the mean
              including its share of maintenance
KB written    by write calls, per commit (table, catalog, vectors), and the share of maintenance
disk          the table's bytes as a multiple of a fully compacted copy without old versions: as it is, and
              without the versions that are kept only because they are younger than ten minutes
SQLite MB     the catalog and the vector cache
upkeep CPU s  per maintenance: the mean and the longest
"""

from __future__ import annotations

import argparse
import itertools
import logging
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import lance
import psutil
import structlog
from figures import folder_bytes, megabytes, quantile, table
from index.running import index_all
from invented import article, line

from anchord.config.paths import find_paths
from anchord.config.schema import parse_config
from anchord.core.ids import hash_fields
from anchord.core.types import Action, FileOutcome, RootedPath, Row
from anchord.daemon.writer.index_check import IndexCheck
from anchord.daemon.writer.maintenance import Maintenance
from anchord.index.opening import open_writer
from anchord.index.session import IndexWriter

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_SECTIONS = 10
_BULK = 8_192
_LAST = 100
_IO = Path("/proc/self/io")
_HEADINGS = (
    "rows", "upkeep", "edits", "CPU ms p50", "p99", "last 100", "mean with upkeep", "KB written", "of upkeep",
    "fragments", "versions", "index segments", "live MB", "disk / live", "without the 10 min", "SQLite MB",
    "upkeeps", "upkeep CPU s", "longest", "RSS MB",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """A run of edits on a copy of a base."""

    base: Path
    rows: int
    upkeep: bool
    marks: tuple[int, ...]
    """Numbers of edits after which to report."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The cost of one edit. `upkeep` is that of the maintenance after it."""

    cpu_s: float
    written: int
    upkeep_s: float = 0.0
    upkeep_written: int = 0


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes of a table: as it is, without old versions, fully compacted."""

    now: int
    newest: int
    live: int


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--rows", default="10000,100000", help="sizes of the table, with commas")
    parser.add_argument("--files", type=int, default=1_000, help="documents that are edited")
    parser.add_argument("--without-limit", type=int, default=1_000)
    given = parser.parse_args()
    few = min(given.without_limit, given.edits)
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory(prefix="anchord-bench-") as temporary:
        for size in map(int, given.rows.split(",")):
            base = Path(temporary) / str(size)
            _apart(_fill, base, given.files, size)
            rows += _apart(_edit, Run(base, size, upkeep=False, marks=(few,)))
            rows += _apart(
                _edit, Run(base, size, upkeep=True, marks=tuple(sorted({few, given.edits})))
            )
            shutil.rmtree(base)
    print(table(_HEADINGS, rows))


def _apart(job: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Run a job in a new process, so that nothing of the one before remains."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _be_quiet) as pool:
        return pool.submit(job, *arguments).result()


def _be_quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


def _open(base: Path) -> IndexWriter:
    places = find_paths({"ANCHORD_HOME": str(base / "home")})
    places.create_folders()
    return open_writer(
        places, parse_config('[embedding]\nprovider = "hash"\n', "bench"), [str(base / "tree")]
    )


def _table(base: Path) -> Path:
    return base / "home" / "data" / "lance"


# The base


def _fill(base: Path, files: int, rows: int) -> None:
    for number in range(min(files, rows // _SECTIONS)):
        path = base / "tree" / f"part-{number % 20}" / f"article-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(article(number, _SECTIONS), "utf-8")
    with closing(_open(base)) as writer:
        index_all(writer)
        _say(
            f"{rows} rows: {writer.store.count_rows()} of {len(list((base / 'tree').rglob('*.md')))} files, the others invented"
        )
        for some in _invented_rows(rows - writer.store.count_rows()):
            vectors = writer.profile.embedder.embed([row.text for row in some])
            writer.store.upsert(
                some, dict(zip((row.vector_key for row in some), vectors, strict=True))
            )
        Maintenance(writer, 0, IndexCheck(writer)).compact()
    lance.dataset(str(_table(base) / "chunks.lance")).cleanup_old_versions(
        older_than=timedelta(0), delete_unverified=True
    )
    shutil.copytree(base / "home", base / "home-at-first")
    shutil.copytree(base / "tree", base / "tree-at-first")


def _invented_rows(count: int) -> Iterator[list[Row]]:
    choose = random.Random(0)  # noqa: S311 - the same rows each time
    for begin in range(0, count, _BULK):
        yield [_invented_row(number, choose) for number in range(begin, min(count, begin + _BULK))]


def _invented_row(number: int, choose: random.Random) -> Row:
    path, section = (
        f"elsewhere/article-{number // _SECTIONS}.md",
        f"Article > Section {number % _SECTIONS}",
    )
    text = f"## Row {number}\n\n" + "\n".join(line(choose) for _ in range(choose.randint(6, 11)))
    key = hash_fields("invented", str(number))
    return Row(
        id=key, doc_id=hash_fields(path), root="tree", path=path, kind="markdown", header_path=section, content_hash=key,
        vector_key=key, text=text, search_text=f"{path}\n{section}\n{section}\n{text}",
    )  # fmt: skip


# The edits


def _edit(run: Run) -> list[tuple[str, ...]]:
    shutil.rmtree(run.base / "home")
    shutil.copytree(run.base / "home-at-first", run.base / "home")
    # The folder itself stays: another one in its place would not be read.
    shutil.copytree(run.base / "tree-at-first", run.base / "tree", dirs_exist_ok=True)
    reports = []
    with closing(_open(run.base)) as writer:
        foreign = writer.store.count_rows() - sum(1 for _ in writer.catalog.iter_expected_rows())
        commits: list[Commit] = []
        for commit in _commits(run, writer):
            commits.append(commit)
            if len(commits) in run.marks:
                reports.append(_report(run, writer, commits))
                _say(" ".join(reports[-1]))
            if len(commits) == run.marks[-1]:
                break
        present = writer.store.all_ids()
        wanted = {chunk_id for chunk_id, _, _ in writer.catalog.iter_expected_rows()}
        if not wanted <= set(present) or len(present) != foreign + len(wanted):
            raise RuntimeError("the table is not what the catalogue wants")
    return reports


def _commits(run: Run, writer: IndexWriter) -> Iterator[Commit]:
    """Edit without end, one line of one file each time."""
    choose = random.Random(1)  # noqa: S311 - the same edits each time
    root = writer.roots[0]
    paths = sorted(str(path.relative_to(root.path)) for path in Path(root.path).rglob("*.md"))
    upkeep = Maintenance(writer, 0, IndexCheck(writer))
    upkeep.compact()  # Start the compaction process first, which takes a second.
    for number in itertools.count(1):
        path = choose.choice(paths)
        _change_a_line(Path(root.path) / path, f"Edit {number}: {line(choose)}", choose)
        edited = RootedPath(root.name, path)
        (outcome,), cpu_s, written = _measured(partial(_indexed, writer, edited))
        if outcome.action is not Action.INDEXED:
            raise RuntimeError(f"an edit was not indexed: {outcome.reason}")
        passes = upkeep.compaction_count
        _, upkeep_s, upkeep_written = (
            _measured(upkeep.compact_if_due) if run.upkeep else (None, 0.0, 0)
        )
        if upkeep.errors:
            raise RuntimeError(f"upkeep failed: {upkeep.errors}")
        yield (
            Commit(cpu_s, written, upkeep_s, upkeep_written)
            if upkeep.compaction_count > passes
            else Commit(cpu_s, written)
        )


def _indexed(writer: IndexWriter, edited: RootedPath) -> list[FileOutcome]:
    return list(writer.indexer.index([edited]))


def _change_a_line(file: Path, new: str, choose: random.Random) -> None:
    lines = file.read_text("utf-8").split("\n")
    prose = [at for at, text in enumerate(lines) if text and not text.startswith("#")]
    lines[choose.choice(prose)] = new
    file.write_text("\n".join(lines), "utf-8")


def _measured(work: Callable[[], T]) -> tuple[T, float, int]:
    """Return the result of some work, its CPU seconds (this and the compaction process), and the bytes written.

    This process's own clock is read last before and first after: to look for the other one takes two milliseconds itself.
    """
    written, below, own = _written(), _children_s(), time.process_time()
    result = work()
    own = time.process_time() - own
    return result, own + _children_s() - below, _written() - written


def _children_s() -> float:
    times = [child.cpu_times() for child in psutil.Process().children()]
    return float(sum(each.user + each.system for each in times))


def _written() -> int:
    """Return the bytes of these processes' write calls; 0 where the system has no count."""
    if not _IO.exists():
        return 0
    files = [_IO, *(Path(f"/proc/{child.pid}/io") for child in psutil.Process().children())]
    return sum(
        int(dict(line.split(": ") for line in file.read_text().splitlines())["wchar"])
        for file in files
    )


# The report


def _report(run: Run, writer: IndexWriter, commits: list[Commit]) -> tuple[str, ...]:
    milliseconds = [1000 * commit.cpu_s for commit in commits]
    upkeeps = [commit.upkeep_s for commit in commits if commit.upkeep_s]
    stats, disk, data = writer.store.stats(), _disk(_table(run.base)), run.base / "home" / "data"
    return (
        f"{run.rows:,}",
        "yes" if run.upkeep else "no",
        f"{len(commits):,}",
        f"{quantile(milliseconds, 0.5):.1f}",
        f"{quantile(milliseconds, 0.99):.1f}",
        f"{quantile(milliseconds[-_LAST:], 0.5):.1f}",
        f"{(sum(milliseconds) + 1000 * sum(upkeeps)) / len(commits):.1f}",
        f"{sum(commit.written for commit in commits) / len(commits) / 1000:.1f}",
        f"{sum(commit.upkeep_written for commit in commits) / len(commits) / 1000:.1f}",
        f"{stats.fragments:,}",
        f"{stats.versions:,}",
        f"{len(lance.dataset(str(_table(run.base) / 'chunks.lance')).list_indices()):,}",
        megabytes(disk.live),
        f"{disk.now / disk.live:.2f}",
        f"{disk.newest / disk.live:.2f}",
        megabytes(sum(file.stat().st_size for file in data.glob("*.sqlite*"))),
        str(len(upkeeps)),
        f"{sum(upkeeps) / len(upkeeps):.2f}" if upkeeps else "",
        f"{max(upkeeps):.2f}" if upkeeps else "",
        megabytes(psutil.Process().memory_info().rss),
    )


def _disk(folder: Path) -> Disk:
    """Compact a copy of a table fully and compare."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    now = folder_bytes(copy)
    dataset = lance.dataset(str(copy / "chunks.lance"))
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    newest = folder_bytes(copy)
    dataset.optimize.compact_files(
        target_rows_per_fragment=1 << 20, materialize_deletions_threshold=0.0
    )
    dataset.optimize.optimize_indices(retrain=True)
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    live = folder_bytes(copy)
    shutil.rmtree(copy)
    return Disk(now, newest, live)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
