"""Search latency of a warm daemon over the socket, embedding included; and of eight clients while it indexes.

    python tests/tools/benchmarks/bench_search.py [--sizes N,...] [--queries N] [--clients N] [--provider P] [--folder FOLDER]

For each size a real daemon indexes as many notes of one chunk each, in a home and on a folder of its own. Times are of the
clock in milliseconds: p50 and p95 of QUERIES different queries of three to six words, one after the other.

clients   CLIENTS connections search in parallel, while files are saved and deleted and the table is compacted.
          failed: searches that raised; stale: hits of files that were deleted, and synced, before the search began
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from daemons import Daemon
from figures import quantile, table
from invented import line

from anchord.errors import AnchordError

_MODES = ("hybrid", "vector", "text")
_WARM = 20
_PER_FOLDER = 500
_SETTINGS = '[embedding]\nprovider = "{}"\nprecision = "int8"\nidle_unload_s = 3600\n'


def main() -> int:
    """Print the tables; return 1 if a search failed or had stale hits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--provider", default="sentence-transformers")
    parser.add_argument("--folder")
    given = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    wrong = 0
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="anchord-bench-", dir=given.folder) as folder:
            daemon = Daemon(Path(folder), _SETTINGS.format(given.provider))
            _write(daemon.folder, size)
            with daemon.running() as process:
                daemon.sync()
                chunks = daemon.status()["chunks"]
                for mode in _MODES:
                    times = list(_asked(daemon, mode, given.queries))
                    rows.append((f"{chunks:,}", mode, *_quantiles(times), ""))
                crowd = Crowd(daemon, given.clients, given.queries)
                times = crowd.run()
                wrong += crowd.failed + crowd.stale
                said = f"{len(times)} searches, {crowd.failed} failed, {crowd.stale} stale, {crowd.edits} edits"
                rows.append(
                    (
                        f"{chunks:,}",
                        f"hybrid, {given.clients} clients, indexing",
                        *_quantiles(times),
                        said,
                    )
                )
                rows.append(
                    (
                        f"{chunks:,}",
                        "memory of the daemon",
                        "",
                        "",
                        f"{process.memory_info().rss / 1e6:.0f} MB",
                    )
                )
    print(table(("chunks", "search", "half ms", "95 % ms", ""), rows))
    return 1 if wrong else 0


@dataclass
class Crowd:
    """Clients that search while files are saved and deleted."""

    daemon: Daemon
    clients: int
    queries: int
    failed: int = 0
    stale: int = 0
    edits: int = 0
    _times: list[float] = field(default_factory=list)
    _gone: set[str] = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> list[float]:
        """Return the times of all searches."""
        writer = threading.Thread(target=self._write)
        askers = [
            threading.Thread(target=self._ask, args=(number,)) for number in range(self.clients)
        ]
        for thread in (writer, *askers):
            thread.start()
        for thread in askers:
            thread.join()
        self._over.set()
        writer.join()
        return self._times

    def _ask(self, number: int) -> None:
        for query in _queries(self.queries // self.clients, seed=number + 1):
            gone, began = frozenset(self._gone), time.perf_counter()
            try:
                with self.daemon.client() as client:
                    found = client.search(query)
            except AnchordError:
                self.failed += 1
                continue
            self._times.append(time.perf_counter() - began)
            self.stale += sum(hit.path in gone for group in found.groups for hit in group)

    def _write(self) -> None:
        choose = random.Random(0)  # noqa: S311 - the same edits each time
        files = sorted(self.daemon.folder.rglob("*.md"))
        choose.shuffle(files)
        while not self._over.is_set() and len(files) > _PER_FOLDER:
            file = files.pop()
            file.unlink()
            for other in files[:5]:
                other.write_text(f"# Edited {self.edits}\n\n{line(choose)}\n", "utf-8")
            self.edits += 6
            files.append(files.pop(0))
            self.daemon.sync()
            self._gone.add(str(file.relative_to(self.daemon.folder)))


def _write(folder: Path, count: int) -> None:
    for number in range(count):
        path = folder / f"part-{number // _PER_FOLDER:04}" / f"note-{number:06}.md"
        if not number % _PER_FOLDER:
            path.parent.mkdir()
        path.write_text(f"# Note {number}\n\n{line(random.Random(number))}\n", "utf-8")  # noqa: S311 - the same words each time


def _queries(count: int, seed: int = 0) -> Iterator[str]:
    choose = random.Random(seed)  # noqa: S311 - likewise
    for _ in range(count):
        yield " ".join(line(choose).split()[: choose.randint(3, 6)])


def _asked(daemon: Daemon, mode: str, count: int) -> Iterator[float]:
    with daemon.client() as client:
        for number, query in enumerate(_queries(count + _WARM)):
            began = time.perf_counter()
            client.call("search", query=query, mode=mode)
            if number >= _WARM:
                yield time.perf_counter() - began


def _quantiles(times: list[float]) -> tuple[str, str]:
    return f"{1000 * quantile(times, 0.5):.0f}", f"{1000 * quantile(times, 0.95):.0f}"


if __name__ == "__main__":
    sys.exit(main())
