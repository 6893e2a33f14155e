"""The cost of a change, as counts and as a share of the first index.

    python tests/tools/benchmarks/bench_index.py [FOLDER] [--files N] [--provider hash|sentence-transformers] [--json]

Works on a copy of FOLDER, or on invented documents. Each step changes files as a person or a tool would and brings the
index up to date; the figures are the texts embedded, the rows written and deleted, and the time as a share of the first
index. At the end `verify` compares the whole with a clean rebuild, and searches are timed.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog
from index.running import index_all

from anchord.config.paths import find_paths
from anchord.config.schema import Config, parse_config
from anchord.core.types import SearchFilters
from anchord.index.integrity.repair import verify_index
from anchord.index.opening import open_writer
from anchord.index.session import IndexWriter
from anchord.store.table.table import LanceStore

_WORDS = (
    (Path(__file__).parent.parent / "recording" / "notes" / "ops" / "backups.md")
    .read_text("utf-8")
    .split()
)
_SEARCHES = 50


@dataclass(frozen=True, slots=True)
class Step:
    """The cost of one change."""

    step: str
    files: int
    embedded: int
    reused: int
    upserted: int
    deleted: int
    seconds: float
    of_first: float


def main() -> int:
    """Run; return 1 if the index differs from a clean rebuild."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--provider", default="hash", choices=["hash", "sentence-transformers"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory(prefix="anchord-bench-") as base:
        tree = Path(base) / "tree"
        if given.folder:
            shutil.copytree(
                given.folder, tree, symlinks=True, ignore=shutil.ignore_patterns(".git")
            )
        else:
            _invent(tree, given.files)
        places = find_paths({"ANCHORD_HOME": str(Path(base) / "home")})
        places.create_folders()
        config: Config = parse_config(f'[embedding]\nprovider = "{given.provider}"\n', "bench")
        writer = open_writer(places, config, [str(tree)])
        try:
            steps = list(_measure(writer, tree))
            found = verify_index(writer, 16)
            searches = _searches(writer)
        finally:
            writer.close()
    if given.json:
        print(
            json.dumps(
                {
                    "steps": [asdict(step) for step in steps],
                    "verify": not found.differences,
                    "search": searches,
                }
            )
        )
    else:
        _print(steps)
        print(
            f"verify: {'as a clean rebuild' if not found.differences else f'{len(found.differences)} differences'}"
        )
        print(
            f"search: half within {searches['p50_ms']:.1f} ms, 95 % within {searches['p95_ms']:.1f} ms, {found.chunk_count} chunks"
        )
    return 1 if found.differences else 0


def _measure(writer: IndexWriter, tree: Path) -> Iterator[Step]:
    first = 0.0

    def run(name: str) -> Step:
        nonlocal first
        began = time.perf_counter()
        summary = index_all(writer)
        took = time.perf_counter() - began
        first = first or took
        files = sum(summary.actions.values())
        return Step(
            name,
            files,
            summary.embedded,
            summary.reused,
            summary.upserted,
            summary.deleted,
            round(took, 3),
            took / first,
        )

    yield run("first index")
    time.sleep(
        2.1
    )  # Fingerprints younger than two seconds are not trusted, and their files are read again.
    index_all(writer)
    yield run("nothing changed")
    for name, change in _changes(tree):
        change()
        yield run(name)


def _changes(tree: Path) -> list[tuple[str, Callable[[], object]]]:
    large = max(tree.rglob("*.md"), key=lambda path: path.stat().st_size)
    text = large.read_text("utf-8")
    lines = text.split("\n")
    longest = max(range(len(lines)), key=lambda n: len(lines[n]))
    edited = [*lines[:longest], lines[longest] + " Changed.", *lines[longest + 1 :]]
    renamed = large.with_name("renamed-" + large.name)
    folder, moved = large.parent, large.parent.with_name("moved-" + large.parent.name)
    steps: list[tuple[str, Callable[[], object]]] = [
        (
            f"one line changed in {len(text) // 1000} KB",
            lambda: large.write_text("\n".join(edited), "utf-8"),
        ),
        ("changed back", lambda: large.write_text(text, "utf-8")),
        ("a line at the top", lambda: large.write_text("A new first line.\n\n" + text, "utf-8")),
        ("touched", lambda: os.utime(large)),
        ("renamed", lambda: large.rename(renamed)),
    ]
    if folder != tree:
        steps.append(("its folder moved", lambda: folder.rename(moved)))
    return [
        *steps,
        ("deleted", lambda: (moved if folder != tree else folder).joinpath(renamed.name).unlink()),
    ]


def _searches(writer: IndexWriter) -> dict[str, float]:
    """Time searches for words of the index itself, without the embedding of the query."""
    store: LanceStore = writer.store
    rows = list(store.all_rows())
    chosen = random.Random(1).sample(rows, min(_SEARCHES, len(rows)))  # noqa: S311 - the same ones each time
    vectors = store.vectors_by_id([row.id for row in chosen])
    took = []
    for row in chosen:
        began = time.perf_counter()
        store.search_by_vector(vectors[row.id], 50, SearchFilters())
        store.search_by_words(" ".join(row.text.split()[:6]), 50, SearchFilters())
        took.append(1000 * (time.perf_counter() - began))
    took.sort()
    return {"p50_ms": statistics.median(took), "p95_ms": took[int(0.95 * (len(took) - 1))]}


def _invent(tree: Path, files: int) -> None:
    """Write documents of sections of invented prose; one is of 40 KB."""
    words = random.Random(7)  # noqa: S311 - the same documents each time
    for number in range(files):
        path = tree / f"part-{number % 10}" / f"document-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        sections = 60 if number == 0 else words.randint(2, 8)
        text = [f"# Document {number}\n"]
        for section in range(sections):
            prose = " ".join(words.choices(_WORDS, k=words.randint(40, 180)))
            text.append(f"## Section {section}\n\n{prose}\n")
        path.write_text("\n".join(text), "utf-8")


def _print(steps: list[Step]) -> None:
    print(
        f"{'step':<30} {'files':>6} {'embedded':>9} {'reused':>7} {'written':>8} {'deleted':>8} {'s':>8} {'of first':>9}"
    )
    for s in steps:
        print(
            f"{s.step:<30} {s.files:>6} {s.embedded:>9} {s.reused:>7} {s.upserted:>8} {s.deleted:>8} {s.seconds:>8.3f} "
            f"{s.of_first:>9.2%}"
        )


if __name__ == "__main__":
    sys.exit(main())
