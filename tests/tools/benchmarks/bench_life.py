"""The daemon with its real model: memory and CPU from start to a save after idle time; saves during a backlog.

    python tests/tools/benchmarks/bench_life.py [--only life,saves,kills] [--mb 1] [--chunks 20000]
        [--saves 50] [--picture FILE.svg]

life     start, first index of some megabytes, idle until the model's process has ended, a text query, a vector query, a
         save. Minimum and maximum memory of the daemon and its embedding processes in each part, and their CPU. The first
         start on a machine also exports the model; the picture shows the memory over time
saves    a file is saved repeatedly while a backlog of --chunks chunks is embedded: time until search finds it
kills    the embedding process is killed ten times during a backlog: texts embedded twice, and `verify`
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
from daemons import Daemon, until
from figures import megabytes, quantile, table
from invented import article

_IDLE_UNLOAD_S = 15.0
_SAMPLE_S = 0.25
_SETTINGS = f"[embedding]\nidle_unload_s = {_IDLE_UNLOAD_S}\n[store]\nmax_memory_mb = 0\n"
_SECTIONS = 10
_KILLS = 10
_REST_S = 60.0

Row = tuple[str, ...]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="life,saves,kills")
    parser.add_argument("--mb", type=float, default=1.0)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--saves", type=int, default=50)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    parts: dict[str, Callable[[Daemon], str]] = {
        "life": lambda daemon: _life(daemon, int(given.mb * 1e6), given.picture),
        "saves": lambda daemon: _saves(daemon, given.chunks, given.saves),
        "kills": lambda daemon: _kills(daemon, given.chunks // 10),
    }
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory(prefix="anchord-b-") as base:
            print(parts[name](Daemon(Path(os.path.realpath(base)), _SETTINGS)) + "\n", flush=True)


# Life


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of the processes."""

    at: float
    daemon: int
    embedding: int
    """Bytes."""
    daemon_cpu: float
    embedding_cpu: float
    """Seconds since the start."""


@dataclass
class Watch:
    """Samples a daemon and its children several times a second."""

    process: psutil.Process
    samples: list[Sample] = field(default_factory=list)
    marks: list[tuple[str, float, str]] = field(default_factory=list)
    """(part, begin, what was measured in it)."""

    def part(self, name: str, summary: str = "") -> None:
        """Begin a part; `summary` is that of the part before."""
        if self.marks:
            before, began, _ = self.marks[-1]
            self.marks[-1] = (before, began, summary)
        self.marks.append((name, time.monotonic(), ""))

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look until the end of the block."""
        ended = threading.Event()

        def look() -> None:
            gone: dict[int, float] = {}
            while not ended.wait(_SAMPLE_S):
                self.samples.append(self._sample(gone))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _sample(self, cpu: dict[int, float]) -> Sample:
        """`cpu`: of each embedding process that there ever was, by its number."""
        memory = 0
        for child in self.process.children(recursive=True):
            with suppress(psutil.Error):
                times = child.cpu_times()
                cpu[child.pid] = times.user + times.system
                memory += child.memory_info().rss
        times = self.process.cpu_times()
        own = times.user + times.system
        return Sample(
            time.monotonic(), self.process.memory_info().rss, memory, own, sum(cpu.values())
        )


def _life(daemon: Daemon, size: int, picture: Path | None) -> str:
    written = 0
    for number in itertools.count():
        written += (daemon.folder / f"article-{number}.md").write_text(
            article(number, _SECTIONS), "utf-8"
        )
        if written >= size:
            break
    with daemon.running() as process, daemon.client() as client:
        watch = Watch(process)
        with watch.looking():
            watch.part("start, and the model made ready")
            until(lambda: client.status().embedder.state in {"ready", "busy"} or _embedded(client))
            watch.part("first index")
            client.sync()
            chunks = client.status().chunks
            watch.part("model still there", f"{chunks} chunks")
            until(lambda: not process.children())
            watch.part("rest, model gone")
            time.sleep(_REST_S)
            watch.part("query by words")
            took = _timed(lambda: client.call("search", query="letter sentence", mode="text"))
            watch.part("query by meaning, cold", f"{took * 1000:.0f} ms")
            took = _timed(lambda: client.call("search", query="how is a letter written"))
            watch.part("twenty more queries", f"{took * 1000:.0f} ms")
            asked = [f"how is word {number} written" for number in range(20)]
            times = [_timed(partial(client.call, "search", query=query)) for query in asked]
            watch.part("a save", f"{quantile(times, 0.5) * 1000:.0f} ms each (half within)")
            took = _save(daemon, "0")
            watch.part("end", f"searchable after {took:.2f} s")
            time.sleep(2 * _SAMPLE_S)
        if picture:
            _draw(watch, picture)
        return table(
            ("part", "s", "daemon MB", "its CPU", "its processes MB", "their CPU s", "measured"),
            list(_life_rows(watch)),
        )


def _embedded(client: object) -> bool:
    return bool(getattr(client, "call")("status")["embedded_total"])  # noqa: B009 - of any client


def _life_rows(watch: Watch) -> Iterator[Row]:
    ends = [at for _, at, _ in watch.marks[1:]]
    before = Sample(watch.marks[0][1], 0, 0, 0.0, 0.0)
    for (name, began, summary), ended in zip(watch.marks, ends, strict=False):
        during = [sample for sample in watch.samples if began <= sample.at <= ended] or [before]
        last, took = during[-1], ended - began
        daemon = _span([sample.daemon for sample in during])
        embedding = _span([sample.embedding for sample in during])
        share = (last.daemon_cpu - before.daemon_cpu) / max(last.at - before.at, 1e-9)
        yield (
            name,
            f"{took:.1f}",
            daemon,
            f"{share:.2%}",
            embedding,
            f"{last.embedding_cpu - before.embedding_cpu:.1f}",
            summary,
        )
        before = last


def _span(values: list[int]) -> str:
    least, most = megabytes(min(values)), megabytes(max(values))
    return least if least == most else f"{least} to {most}"


def _draw(watch: Watch, file: Path) -> None:
    """Draw the memory over time."""
    import matplotlib as mpl  # noqa: PLC0415 - only for the picture

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "anchord"
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after its backend

    figure, axes = plt.subplots(figsize=(9, 3.2))
    begin = watch.samples[0].at
    times = [sample.at - begin for sample in watch.samples]
    axes.stackplot(
        times, [sample.daemon / 1e6 for sample in watch.samples], [sample.embedding / 1e6 for sample in watch.samples],
        labels=("daemon", "embedding process"), colors=("#3b6ea5", "#e0a458"),
    )  # fmt: skip
    top = axes.get_ylim()[1]
    for number, (name, at, _) in enumerate(watch.marks[:-1]):
        axes.axvline(at - begin, color="#888888", linewidth=0.6)
        axes.text(
            at - begin + 0.3,
            top * (0.97 - 0.08 * (number % 4)),
            name,
            fontsize=7,
            verticalalignment="top",
        )
    axes.set_xlabel("seconds")
    axes.set_ylabel("memory, MB")
    axes.legend(loc="center right", fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def _timed(job: Callable[[], object]) -> float:
    began = time.monotonic()
    job()
    return time.monotonic() - began


# Saves during a backlog


def _saves(daemon: Daemon, chunks: int, saves: int) -> str:
    _write_articles(daemon, chunks // (_SECTIONS + 1))
    with daemon.running(), daemon.client() as client:
        until(lambda: _embedded(client))
        began, before = time.monotonic(), client.status().embedded_total
        times = []
        for number in range(saves):
            times.append(_save(daemon, str(number)))
            if not (pending := client.status().pending):
                raise RuntimeError(f"the backlog ended before save {number}: give more --chunks")
            _say(f"save {number}: {times[-1]:.2f} s, {pending} files wait")
        after = client.status()
        rate = (after.embedded_total - before) / (time.monotonic() - began)
        rows = [
            (f"saves while {after.pending:,} files waited", str(saves)),
            ("save to found, half within", f"{quantile(times, 0.5):.2f} s"),
            ("save to found, 95 % within", f"{quantile(times, 0.95):.2f} s"),
            ("the longest", f"{max(times):.2f} s"),
            ("texts of the backlog embedded meanwhile, a second", f"{rate:.1f}"),
        ]
        return table(("saves beside a backlog", "figure"), rows)


def _write_articles(daemon: Daemon, files: int) -> None:
    for number in range(files):
        folder = daemon.folder / f"part-{number // 500}"
        folder.mkdir(exist_ok=True)
        (folder / f"article-{number}.md").write_text(article(number, _SECTIONS), "utf-8")


def _save(daemon: Daemon, word: str) -> float:
    """Write a file and wait until a text search finds it and its vector is in the table."""
    wanted = f"zebra{word}quagga"
    with daemon.client() as client:
        (daemon.folder / f"saved-{word}.md").write_text(
            f"# Saved {word}\n\nA note about the {wanted} of today.\n", "utf-8"
        )
        began = time.monotonic()
        until(lambda: client.search(wanted, mode="text").groups)
        return time.monotonic() - began


# Kills


def _kills(daemon: Daemon, chunks: int) -> str:
    _write_articles(daemon, chunks // (_SECTIONS + 1))
    with daemon.running() as process, daemon.client() as client:
        for number in range(_KILLS):
            until(lambda: _embedded(client) and process.children())
            time.sleep(1.0)
            for child in process.children():
                child.kill()
            _say(f"kill {number + 1}: {client.status().embedded_total} texts so far")
        client.sync()
        report = client.status()
        verified = client.verify(vectors=64)
    texts = report.embedded_total
    rows = [
        ("kills of the embedding process", str(_KILLS)),
        ("processes that were started", str(report.embedder.starts)),
        ("rows; texts embedded for them", f"{report.chunks:,}; {texts:,}"),
        ("texts that no process survives", str(report.embedder.refused)),
        ("differences from a clean rebuild", str(verified.differences_total)),
    ]
    return table(("ten kills in a backlog", "figure"), rows)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
