"""One daemon for any time, under random work, kills and stops: finds growth, leaks and wrong answers.

    python tests/tools/soak.py [--minutes 10] [--files 20000] [--seed 1] [--picture FILE.svg] [--keep FILE.jsonl]

A real `anchord run` with an embedder that needs no model indexes FILES invented notes in nested folders. Then, for so many
minutes, a seeded choice of work: single edits most, saves in editors' ways, renames of files and folders, files that come and
go, writes into an ignored `.git`, bursts (a tenth of the files at most, 2,000 at most, written, copied, rewritten or removed at
once), pauses, and SIGSTOP for some seconds with changes meanwhile. Three clients search, ask for the status, or stay silent.
Work waits while the daemon takes more than half a core. Every two minutes a file with a new word is written: after `sync` the
word must be found, and the one it replaced must not.

A process is killed about every four minutes (SIGKILL, with work under way), and ended and started about every six (SIGTERM);
in a run of less than half an hour more often. From 65 % of the time on nothing ends the process any more: growth is judged in
this last life, which is longer than a third of the whole. Stops and all other work go on in it.

Every five seconds a sample: memory of the daemon and of its children, open files, threads, bytes on disk, rows, fragments,
versions. There is none while the daemon is stopped or dead; those left out are counted. After the work the daemon rests, and 25
single edits have its table folded, so that old versions go: eleven minutes, one in a run of less than half an hour.

Exit code 1, with the reasons, unless all of these are true:

- `anchord verify` finds no difference, each `sync` came and its word was found, no search failed (but one that met a process
  that was being killed or ended), the daemon never ended or restarted by itself, and is not degraded in the end;
- in the last life, halves within and without its warm-up (five minutes, at most half of it): memory of the last quarter <=
  1.25 times that of the second + 50 MB; open files and threads of the last quarter <= those of the first + 10. In a run of less
  than half an hour this life is all warm-up: its growth is reported and not judged;
- after the rest `data/` <= 3 times what a fresh index of the same files takes without its old versions + 20 MB (6 times in a
  run of less than half an hour: it still has all versions of its last ten minutes). vectors.sqlite is excluded: it keeps the
  vectors of deleted rows, for a week and 200,000 at most. It is reported separately.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from signal import SIGCONT, SIGSTOP, SIGTERM, signal
from typing import Any, TextIO

import lance
import psutil

if __name__ == "__main__":
    sys.path[:1] = [
        str(Path(__file__).resolve().parent.parent / name) for name in ("", "tools/benchmarks")
    ]

from figures import megabytes, quantile, table
from invented import article, line, note
from live.conftest import Home

from anchord.errors import AnchordError
from anchord.ipc.client import Client

_SAMPLE_S = 5.0
_REPORT_S = 60.0
_PAUSE_S = 0.25
"""Between two pieces of work, on average."""
_BUSY, _SLOWER = 0.5, 8
_CLIENTS = 3
_ASK_S = 1.5
_KILL_S, _RESTART_S, _SYNC_S = 240.0, 360.0, 120.0
_LAST_LIFE = 0.65
_SYNC_LIMIT_S = 300.0
_LONG_S = 1_800.0
_REST_S, _SHORT_REST_S = 660.0, 60.0
_LAST_EDITS, _EDIT_S, _FOLD_S = 25, 1.5, 45.0
"""More commits than upkeep waits for at a rest, each on its own; and for how long it waits for more."""
_MOST_AT_ONCE = 2_000
_STARTS, _AGAIN_S = 10, 0.5
_MARKER = "marker.md"
_VECTORS = "vectors.sqlite"
_POINTS = 400
_WARM_UP, _WARM_UP_S = 0.5, 300.0
"""A process takes its threads and handles as it comes to need them: for five minutes, but at most for half of its life."""
_MORE_MEMORY, _MORE_BYTES, _MORE_HANDLES, _MORE_DISK, _MORE_DISK_SHORT, _DISK_BYTES = (
    1.25,
    50e6,
    10,
    3.0,
    6.0,
    20e6,
)

_SHOWN = {"rss": 1e6, "children_rss": 1e6, "fds": 1, "threads": 1}
_HEADINGS = ("memory MB", "children MB", "fds", "threads")
_DRAWN = (
    ("memory, MB", 1e6, {"rss": "daemon", "children_rss": "its processes"}),
    ("count", 1, {"fds": "open files", "threads": "threads"}),
    ("disk, MB", 1e6, {"disk": "table and catalogue", "vectors": "vectors of rows that left"}),
)
_COLOURS = {"kill": "red", "restart": "green", "stop": "orange", "rest": "blue"}


@dataclass(frozen=True, slots=True)
class Wish:
    """The options."""

    seconds: float
    files: int
    seed: int
    picture: Path | None
    keep: Path | None

    @property
    def short(self) -> bool:
        """Whether old versions do not outlive their ten minutes in it."""
        return self.seconds < _LONG_S


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the daemon; `at` in seconds since the first start, sizes in bytes. Life 0 is that of the first index."""

    at: float
    life: int
    rss: int
    children: int
    children_rss: int
    fds: int
    threads: int
    cpu_s: float
    disk: int
    vectors: int
    rows: int
    fragments: int
    versions: int
    state: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A signal or restart of the process."""

    at: float
    what: str


# The tree


@dataclass(slots=True)
class Shelf:
    """A folder of notes in a project."""

    project: int
    name: str
    files: list[str] = field(default_factory=list)


class Tree:
    """The notes, and everything that is done to them."""

    def __init__(self, folder: Path, files: int, rng: Random) -> None:
        """Write them."""
        self._folder, self._wanted, self._rng = folder, files, rng
        self._numbers = iter(range(10**9))
        self._each = max(5, files // 400)
        self._projects = [f"project-{next(self._numbers)}" for _ in range(max(2, files // 1_000))]
        for project in self._projects:
            (folder / project / ".git").mkdir(parents=True)
            (folder / project / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
        self._shelves: list[Shelf] = []
        self.count = 0
        while self.count < files:
            self._add_shelf()

    def edit(self) -> None:
        """Write a changed line in place."""
        path = self._any()
        path.write_text(self._edited(path), "utf-8")

    def save_beside(self) -> None:
        """A temporary file takes the name."""
        path = self._any()
        beside = path.with_name(f".{path.name}.{next(self._numbers)}.tmp")
        beside.write_text(self._edited(path), "utf-8")
        beside.replace(path)

    def save_with_backup(self) -> None:
        """As vim does: the old file steps aside, and goes when the new one is there."""
        path = self._any()
        new, backup = self._edited(path), path.with_name(path.name + "~")
        path.rename(backup)
        path.write_text(new, "utf-8")
        backup.unlink()

    def touch(self) -> None:
        """A new time, the same bytes."""
        self._any().touch()

    def rename(self) -> None:
        """Another name, as like as not in another folder."""
        shelf, at = self._place()
        to = shelf if self._rng.random() < 0.5 else self._rng.choice(self._shelves)
        name = f"note-{next(self._numbers):06}.md"
        (self._path(shelf) / shelf.files[at]).rename(self._path(to) / name)
        shelf.files.pop(at)
        to.files.append(name)

    def rename_folder(self) -> None:
        """Another name for a shelf, now and then for a project with all its shelves."""
        shelf = self._rng.choice(self._shelves)
        if self._rng.random() < 0.2:
            old, new = self._projects[shelf.project], f"project-{next(self._numbers)}"
            (self._folder / old).rename(self._folder / new)
            self._projects[shelf.project] = new
        else:
            old_path = self._path(shelf)
            shelf.name = f"shelf-{next(self._numbers)}"
            old_path.rename(self._path(shelf))

    def come_or_go(self) -> None:
        """A file is made or deleted, so that their number stays."""
        if self.count < self._wanted:
            self._add(self._rng.choice(self._shelves))
        else:
            shelf, at = self._place()
            (self._path(shelf) / shelf.files.pop(at)).unlink()
            self.count -= 1

    def write_ignored(self) -> None:
        """As git does while it works."""
        objects = self._folder / self._rng.choice(self._projects) / ".git" / "objects"
        objects.mkdir(exist_ok=True)
        for number in range(20):
            (objects / f"{number:02}").write_text(line(self._rng), "utf-8")

    def burst(self) -> None:
        """Very many at once: rewritten as by a checkout, removed, written, or copied."""
        most = min(_MOST_AT_ONCE, self._wanted // 10)
        size = self._rng.randint(most // 8, most)
        if self._rng.random() < 0.3:
            for _ in range(size):
                self.edit()
            return
        grows = self.count < self._wanted
        copied = self._rng.random() < 0.5
        end = self.count + (size if grows else -size)
        while (self.count < end) if grows else (self.count > end):
            if grows:
                self._add_shelf(self._rng.choice(self._shelves) if copied else None)
            else:
                self._remove_shelf()

    def _add_shelf(self, source: Shelf | None = None) -> None:
        shelf = Shelf(self._rng.randrange(len(self._projects)), f"shelf-{next(self._numbers)}")
        if source:
            shutil.copytree(self._path(source), self._path(shelf))
            shelf.files = list(source.files)
            self.count += len(shelf.files)
        else:
            self._path(shelf).mkdir(parents=True)
            for _ in range(self._each):
                self._add(shelf)
        self._shelves.append(shelf)

    def _remove_shelf(self) -> None:
        shelf = self._shelves.pop(self._rng.randrange(len(self._shelves)))
        shutil.rmtree(self._path(shelf))
        self.count -= len(shelf.files)

    def _add(self, shelf: Shelf) -> None:
        number = next(self._numbers)
        shelf.files.append(f"note-{number:06}.md")
        text = article(number, 3) if self._rng.random() < 0.05 else note(number)
        (self._path(shelf) / shelf.files[-1]).write_text(text, "utf-8")
        self.count += 1

    def _edited(self, path: Path) -> str:
        """A line changes, is added, or goes."""
        lines = path.read_text("utf-8").splitlines()
        at, dice = self._rng.randrange(3, len(lines)), self._rng.random()
        if dice < 0.2 and len(lines) > 5:
            lines.pop(at)
        else:
            lines[at : at + (dice < 0.8)] = [line(self._rng)]
        return "\n".join(lines) + "\n"

    def _any(self) -> Path:
        shelf, at = self._place()
        return self._path(shelf) / shelf.files[at]

    def _place(self) -> tuple[Shelf, int]:
        while not (shelf := self._rng.choice(self._shelves)).files:
            pass
        return shelf, self._rng.randrange(len(shelf.files))

    def _path(self, shelf: Shelf) -> Path:
        return self._folder / self._projects[shelf.project] / "docs" / shelf.name


# The looks at the daemon


class Watch:
    """Samples a daemon and counts during the work; knows when the daemon cannot answer."""

    def __init__(self, home: Home, keep: TextIO | None) -> None:
        """Begin the time."""
        self.samples: list[Sample] = []
        self.marks: list[Mark] = []
        self.tally: Counter[str] = Counter()
        self.degraded: Counter[str] = Counter()
        self.failures: list[str] = []
        """Reasons to end with 1."""
        self.life = 0
        self.busy = 0.0
        """Share of a core that the daemon took between the last two samples."""
        self._turns = 0
        self._home, self._keep = home, keep
        self._away = threading.Lock()
        self._began = time.monotonic()
        self._uptime_s = self._mended = 0.0

    def now(self) -> float:
        """Return the seconds since the begin."""
        return time.monotonic() - self._began

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The daemon lives and cannot answer until the end of the block."""
        with self._away:
            self.mark("stop")
            yield

    @contextmanager
    def dead(self, what: str) -> Iterator[None]:
        """The daemon dies in the block, and another one lives at its end."""
        with self._away:
            self.mark(what)
            self._turns += 1
            yield
            self.life += 1
            self._uptime_s = self._mended = 0.0
            self._turns += 1

    @contextmanager
    def excused(self, what: str) -> Iterator[None]:
        """What fails in the block is a failure unless the daemon was dead at some time of it."""
        turns = self._turns
        try:
            yield
        except (AnchordError, OSError, AssertionError) as error:
            if turns % 2 or self._turns != turns:
                self.tally[f"{what}: cut off by a kill or restart"] += 1
            else:
                self.fail(f"{what} failed after {self.now() / 60:.1f} min: {error!r}")

    def fail(self, why: str) -> None:
        """Remember a reason to end with 1."""
        self.failures.append(why)
        _say(why)

    def look(self, ended: threading.Event) -> None:
        """Sample until the end."""
        reported_at = 0.0
        while not ended.wait(_SAMPLE_S):
            if not self._away.acquire(blocking=False):
                self.tally["samples left out"] += 1
                continue
            try:
                self._sample()
            except (AnchordError, OSError, psutil.Error) as error:
                self.fail(f"no sample after {self.now() / 60:.1f} min: {error!r}")
            finally:
                self._away.release()
            if self.samples and self.now() - reported_at >= _REPORT_S:
                reported_at = self.now()
                _say(self._progress(self.samples[-1]))

    def _sample(self) -> None:
        assert self._home.process is not None
        process = psutil.Process(self._home.process.pid)
        status, children = (
            self._home.status(),
            [_used(child) for child in process.children(recursive=True)],
        )
        self._check(status)
        data, store = self._home.path / "data", status["store"]
        sample = Sample(
            round(self.now(), 2), self.life, process.memory_info().rss, len(children),
            sum(rss for rss, _ in children), process.num_fds(), process.num_threads(),
            round(sum(process.cpu_times()[:4]) + sum(cpu_s for _, cpu_s in children), 2),
            _bytes(data), sum(map(_size, data.glob(f"{_VECTORS}*"))),
            store["rows"], store["fragments"], store["versions"], status["state"],
        )  # fmt: skip
        if self.samples and (before := self.samples[-1]).life == sample.life:
            self.busy = (sample.cpu_s - before.cpu_s) / (sample.at - before.at)
        self.samples.append(sample)
        self._write(sample)

    def _check(self, status: dict[str, Any]) -> None:
        self.degraded.update(status["degraded"])
        if status["uptime_s"] < self._uptime_s:
            self.fail(f"the daemon began anew by itself after {self.now() / 60:.1f} min")
        if (mended := status["upkeep"]["mended"]) > self._mended:
            self.tally["differences that the daemon found and mended itself"] += (
                mended - self._mended
            )
        self._uptime_s, self._mended = status["uptime_s"], mended

    def mark(self, what: str) -> None:
        """Remember when something was done to the process."""
        self.marks.append(Mark(round(self.now(), 2), what))
        self._write(self.marks[-1])

    def _write(self, kept: Sample | Mark) -> None:
        if self._keep:
            self._keep.write(json.dumps(asdict(kept)) + "\n")
            self._keep.flush()

    def _progress(self, sample: Sample) -> str:
        return (
            f"{sample.at / 60:5.1f} min: life {sample.life}, {sample.state}, CPU {self.busy:.0%}, "
            f"RSS {megabytes(sample.rss)} MB, {sample.fds} fds, {sample.threads} threads, disk {megabytes(sample.disk)} MB, "
            f"{sample.rows:,} rows; {self.tally['edit']:,} edits, {self.tally['burst']} bursts, "
            f"{self.tally['kill']} kills, {len(self.failures)} failures"
        )


class Asker:
    """A client that searches, asks for the status, or only stays on the line."""

    def __init__(self, watch: Watch, home: Home, seed: str) -> None:
        """Draw from a seed of its own, so that how fast it is answered changes nothing of the work."""
        self._watch, self._socket = watch, home.path / "run" / "anchord.sock"
        self._rng = _dice(seed)

    def ask(self, ended: threading.Event) -> None:
        """Ask until the end."""
        rng = self._rng
        while not ended.wait(rng.expovariate(1 / _ASK_S)):
            kind = rng.choices(("search", "status", "silent client"), (7, 2, 1))[0]
            self._watch.tally[kind] += 1
            with self._watch.excused(kind), Client(self._socket) as client:
                if kind == "search":
                    client.call(
                        "search", query=line(rng), mode=rng.choice(("hybrid", "vector", "text"))
                    )
                elif kind == "status":
                    client.call("status")
                else:
                    ended.wait(rng.uniform(0, 3 * _ASK_S))


# The work


class Soak:
    """A daemon, its files, and what is done to both."""

    def __init__(self, base: Path, wish: Wish, keep: TextIO | None) -> None:
        """Write the files."""
        self.home = Home(base, "hash")
        self.watch = Watch(self.home, keep)
        self.syncs_s: list[float] = []
        self.worked_s = 0.0
        """When the rest began."""
        self._wish = wish
        self._rng = _dice(wish.seed)
        self._word = ""
        self._tree = tree = Tree(self.home.folder, wish.files, self._rng)
        self._work: dict[str, tuple[int, Callable[[], None]]] = {
            "edit": (7_000, tree.edit),
            "save by rename": (900, tree.save_beside),
            "save with backup": (600, tree.save_with_backup),
            "touch": (200, tree.touch),
            "rename": (400, tree.rename),
            "come or go": (600, tree.come_or_go),
            "write ignored": (100, tree.write_ignored),
            "rename folder": (60, tree.rename_folder),
            "burst": (30, tree.burst),
            "pause": (25, self._pause),
            "stop": (25, self._stop),
        }

    def run(self) -> None:
        """Index, work, rest; the daemon lives at the end."""
        self._start()
        with _beside(self.watch.look):
            self._sync()
            self.syncs_s.clear()  # That was the first index.
            self.watch.life = 1
            with ExitStack() as asking:
                for number in range(_CLIENTS):
                    asking.enter_context(
                        _beside(Asker(self.watch, self.home, f"{self._wish.seed} {number}").ask)
                    )
                self._toil()
            self.worked_s = self.watch.now()
            self._rest()
            self._sync()

    def _toil(self) -> None:
        began, plan = self.watch.now(), self._plan()
        names, weights = list(self._work), [weight for weight, _ in self._work.values()]
        while (now := self.watch.now() - began) < self._wish.seconds:
            while plan and plan[0][0] <= now:
                _, name, job = plan.pop(0)
                self._do(name, job)
            name = self._rng.choices(names, weights)[0]
            self._do(name, self._work[name][1])
            time.sleep(
                self._rng.expovariate(1 / _PAUSE_S) * (1 if self.watch.busy < _BUSY else _SLOWER)
            )

    def _plan(self) -> list[tuple[float, str, Callable[[], None]]]:
        """Return the jobs that are due."""
        seconds, last = self._wish.seconds, _LAST_LIFE * self._wish.seconds
        kills = [(at, "kill", self._kill) for at in self._times(min(_KILL_S, seconds / 8), last)]
        restarts = [
            (at, "restart", self._restart)
            for at in [*self._times(min(_RESTART_S, seconds / 5), last), last]
        ]
        syncs = [(at, "sync", self._sync) for at in self._times(min(_SYNC_S, seconds / 6), seconds)]
        return sorted([*kills, *restarts, *syncs], key=lambda each: each[0])

    def _times(self, every_s: float, until_s: float) -> Iterator[float]:
        at = every_s
        while at < until_s:
            yield at
            at += every_s * self._rng.uniform(0.75, 1.25)

    def _do(self, name: str, job: Callable[[], None]) -> None:
        assert self.home.process is not None
        if (code := self.home.process.poll()) is not None:
            raise RuntimeError(f"the daemon ended by itself with {code}: {self._log()}")
        self.watch.tally[name] += 1
        job()

    def _start(self) -> None:
        """Start a daemon; retry while the lock of a killed one still exists."""
        for _ in range(_STARTS):
            with suppress(AssertionError):
                self.home.run()
                return
            self.watch.tally["starts that failed at first"] += 1
            time.sleep(_AGAIN_S)
        raise RuntimeError(f"the daemon does not start: {self._log()}")

    def _log(self) -> str:
        return (self.home.path / "run.log").read_text("utf-8", "replace")[-3_000:]

    def _edits(self, most: int) -> None:
        for _ in range(self._rng.randrange(most)):
            self._tree.edit()

    def _kill(self) -> None:
        self._edits(40)
        time.sleep(self._rng.random())
        with self.watch.dead("kill"):
            self.home.kill()
            self._edits(40)
            self._start()

    def _restart(self) -> None:
        with self.watch.dead("restart"):
            if code := self.home.terminate():
                self.watch.fail(f"ended by SIGTERM, the daemon gave {code}")
            self._edits(40)
            self._start()

    def _stop(self) -> None:
        assert self.home.process is not None
        with self.watch.stopped():
            self.home.process.send_signal(SIGSTOP)
            try:
                if self._rng.random() < 0.3:
                    self._tree.burst()
                for _ in range(self._rng.randint(20, 100)):
                    self._tree.edit()
                    time.sleep(0.1)
            finally:
                self.home.process.send_signal(SIGCONT)

    def _pause(self) -> None:
        with self.watch.excused("pause"):
            self.home.call("pause")
            self._edits(200)
            time.sleep(self._rng.uniform(1, 10))
            self.home.call("resume")

    def _sync(self) -> None:
        """After `sync`, a new word is found, and the word that it replaced is not."""
        old, self._word = self._word, f"zebra{self._rng.randrange(10**9)}quagga"
        self.home.write(_MARKER, f"# Marker\n\nThe {self._word} of today.\n")
        began = time.monotonic()
        with self.watch.excused("sync"):
            report = self.home.call("sync", timeout=_SYNC_LIMIT_S)
            self.syncs_s.append(time.monotonic() - began)
            if self.home.found(self._word) != [_MARKER] or (
                old and _MARKER in self.home.found(old)
            ):
                self.watch.fail(
                    f"sync {len(self.syncs_s)} came and the file that was written before it is not found as it is"
                )
            if report["held"] or report["away"]:
                self.watch.fail(f"sync {len(self.syncs_s)}: {report}")

    def _rest(self) -> None:
        """Let the last versions grow old, then make upkeep drop them."""
        self.watch.mark("rest")
        time.sleep(_SHORT_REST_S if self._wish.short else _REST_S)
        for _ in range(_LAST_EDITS):
            self._tree.edit()
            time.sleep(_EDIT_S)
        time.sleep(_FOLD_S)


@contextmanager
def _beside(job: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a job in a thread until the end of the block."""
    ended = threading.Event()
    thread = threading.Thread(target=job, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_SYNC_LIMIT_S)


# What came of it


@dataclass(frozen=True, slots=True)
class Size:
    """What `data/` takes after the rest, and what a fresh index of the same files does; its rows."""

    after: int
    fresh: int
    rows: int


def lives(samples: Sequence[Sample]) -> dict[int, list[Sample]]:
    """Return the samples of each process."""
    parts: dict[int, list[Sample]] = {}
    for sample in samples:
        parts.setdefault(sample.life, []).append(sample)
    return parts


def quarters(samples: Sequence[Sample]) -> tuple[list[Sample], ...]:
    """Return the quarters, by time, of some samples without their warm-up."""
    began, ended = (samples[0].at, samples[-1].at) if samples else (0.0, 0.0)
    warm = began + min(_WARM_UP_S, _WARM_UP * (ended - began))
    parts: tuple[list[Sample], ...] = ([], [], [], [])
    for sample in samples:
        if sample.at >= warm:
            parts[min(3, int(4 * (sample.at - warm) / max(ended - warm, 1e-9)))].append(sample)
    return parts


def growth(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield in which ways a process grew that should not have."""
    first, second, _, last = quarters(samples)
    if not (first and second and last):
        yield "too few samples of the last life to tell whether it grew"
        return
    for name in ("fds", "threads"):
        if (now := _half(last, name)) > (then := _half(first, name)) + _MORE_HANDLES:
            yield f"{name} of the last life: {now:.0f} in the last quarter, {then:.0f} in the first"
    if (now := _half(last, "rss")) > _MORE_MEMORY * (then := _half(second, "rss")) + _MORE_BYTES:
        yield f"memory of the last life: {megabytes(now)} MB in the last quarter, {megabytes(then)} MB in the second"


def lives_table(samples: Sequence[Sample], size: Size) -> str:
    """Return the halves of the first and of the last quarter of each life."""
    rows = []
    for life, of in lives(samples).items():
        first, _, _, last = quarters(of)
        ratio = [
            _half(part, "disk") / (_half(part, "rows") * size.fresh / size.rows or math.nan)
            for part in (first, last)
        ]
        spans = [
            f"{_half(first, name) / unit:,.0f}, {_half(last, name) / unit:,.0f}"
            for name, unit in _SHOWN.items()
        ]
        if first and last:
            rows.append(
                (
                    str(life),
                    f"{(of[-1].at - of[0].at) / 60:.1f}",
                    *spans,
                    f"{ratio[0]:.2f}, {ratio[1]:.2f}",
                )
            )
    return table(("life: first quarter, last quarter", "minutes", *_HEADINGS, "disk / fresh"), rows)


def _half(samples: Sequence[Sample], name: str) -> float:
    return quantile([getattr(sample, name) for sample in samples], 0.5)


def _figures(soak: Soak, last_life: Sequence[Sample], size: Size) -> str:
    watch, warm = soak.watch, [sample for part in quarters(last_life) for sample in part]
    hours, memory = [sample.at / 3_600 for sample in warm], [sample.rss for sample in warm]
    slope = statistics.linear_regression(hours, memory).slope if len(warm) > 1 else math.nan
    rows = {
        "minutes until the rest, first index included": f"{soak.worked_s / 60:.1f}",
        **{name: f"{count:,}" for name, count in watch.tally.most_common()},
        **{f"samples degraded: {why}": str(count) for why, count in watch.degraded.items()},
        "sync: half within, longest": f"{quantile(soak.syncs_s, 0.5):.2f} s, {max(soak.syncs_s, default=math.nan):.2f} s",
        "memory of the last life after its warm-up, slope": f"{slope / 1e6:+,.1f} MB an hour",
        "disk after the rest, of a fresh index": f"{megabytes(size.after)} MB, {megabytes(size.fresh)} MB",
        "vectors of rows that left": " ".join(
            f"{megabytes(sample.vectors)} MB" for sample in watch.samples[-1:]
        ),
        "samples": f"{len(watch.samples):,}",
        "failures": str(len(watch.failures)),
    }
    return table(("soak", "figure"), rows.items())


def draw(watch: Watch, file: Path) -> None:
    """Draw memory, handles and disk over time, with what was done to the process."""
    mpl = importlib.import_module(
        "matplotlib"
    )  # Here, for it is only there where pictures are drawn.
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "anchord"
    plt = importlib.import_module("matplotlib.pyplot")  # After its backend.
    figure, axes = plt.subplots(3, sharex=True, figsize=(9, 6))
    for axis, (label, unit, names) in zip(axes, _DRAWN, strict=True):
        for number, (name, legend) in enumerate(names.items()):
            for of in lives(watch.samples).values():
                thin = of[:: max(1, len(watch.samples) // _POINTS)]
                values = [getattr(sample, name) / unit for sample in thin]
                axis.plot(
                    [sample.at / 60 for sample in thin], values, color=f"C{number}", linewidth=1
                )
            axis.plot([], [], color=f"C{number}", label=legend)
        for what, colour in _COLOURS.items():
            for at in (mark.at / 60 for mark in watch.marks if mark.what == what):
                axis.axvline(at, color=colour, linewidth=0.5, alpha=0.6)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.legend(loc="lower right", fontsize=7)
    axes[0].set_title(
        ", ".join(f"{what}: {colour}" for what, colour in _COLOURS.items()), fontsize=8
    )
    axes[-1].set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


# All of it


def main() -> int:
    """Soak; return the exit code."""
    wish = _wish()
    signal(SIGTERM, lambda *_: sys.exit(1))  # So that the daemon ends with this.
    with ExitStack() as kept:
        base = Path(
            os.path.realpath(kept.enter_context(tempfile.TemporaryDirectory(prefix="anchord-s-")))
        )
        soak = Soak(
            base,
            wish,
            kept.enter_context(wish.keep.open("w", encoding="utf-8")) if wish.keep else None,
        )
        size = Size(0, 0, 1)
        try:
            soak.run()
            size = _conclude(soak, base)
        except (RuntimeError, AnchordError, OSError, subprocess.SubprocessError) as error:
            soak.watch.fail(f"broken off after {soak.watch.now() / 60:.1f} min: {error}")
        finally:
            if soak.home.process and soak.home.process.poll() is None:
                soak.home.kill()
            if wish.picture and soak.watch.samples:
                draw(soak.watch, wish.picture)
    _judge(soak, size, wish)
    return 1 if soak.watch.failures else 0


def _judge(soak: Soak, size: Size, wish: Wish) -> None:
    """Compare the samples with the limits, and print them."""
    watch, until = soak.watch, soak.worked_s or soak.watch.now()
    worked = [sample for sample in watch.samples if sample.life and sample.at <= until]
    last_life = [sample for sample in worked if sample.life == watch.life]
    for why in () if wish.short else growth(last_life):
        watch.fail(why)
    if (
        size.after
        > (limit := _MORE_DISK_SHORT if wish.short else _MORE_DISK) * size.fresh + _DISK_BYTES
    ):
        watch.fail(
            f"data/ is more than {limit:g} times a fresh index: {megabytes(size.after)}, {megabytes(size.fresh)} MB"
        )
    sys.stdout.write(f"{_figures(soak, last_life, size)}\n\n{lives_table(worked, size)}\n")
    sys.stdout.writelines(f"\nFAILED: {why}\n" for why in watch.failures)


def _conclude(soak: Soak, base: Path) -> Size:
    """Compare the index with a clean rebuild, end the daemon, and see what a fresh index takes."""
    home, status = soak.home, soak.home.status()
    if status["degraded"]:
        soak.watch.fail(f"degraded in the end: {status['degraded']}")
    after = _bytes(home.path / "data")
    verified = _anchord(home.environment, "verify", "--json")
    if verified.returncode:
        soak.watch.fail(
            f"verify: exit code {verified.returncode}: {verified.stdout[:2_000]}{verified.stderr[-500:]}"
        )
    if code := home.terminate():
        soak.watch.fail(f"ended by SIGTERM, the daemon gave {code}")
    fresh = base / "fresh"
    fresh.mkdir(mode=0o700)
    (fresh / "config.toml").write_text(home.settings, "utf-8")
    if (
        made := _anchord(home.environment | {"ANCHORD_HOME": str(fresh)}, "index", str(home.folder))
    ).returncode:
        soak.watch.fail(f"a fresh index: {made.stderr[-500:]}")
    lance.dataset(fresh / "data" / "lance" / "chunks.lance").cleanup_old_versions(
        timedelta(0), delete_unverified=True
    )
    return Size(after, _bytes(fresh / "data"), status["store"]["rows"])


def _anchord(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anchord", *arguments]
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONG_S,
        stdin=subprocess.DEVNULL,
    )


def _bytes(data: Path) -> int:
    """Sum up the files of a folder in which files come and go, without the vectors of rows that left."""
    files = (Path(folder, name) for folder, _, names in os.walk(data) for name in names)
    return sum(_size(file) for file in files if not file.name.startswith(_VECTORS))


def _size(file: Path) -> int:
    with suppress(OSError):
        return file.lstat().st_size
    return 0


def _used(process: psutil.Process) -> tuple[int, float]:
    """Return the memory and the CPU seconds of a process that may just have ended."""
    with suppress(psutil.Error):
        return int(process.memory_info().rss), sum(process.cpu_times()[:2])
    return 0, 0.0


def _wish() -> Wish:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="of work; index, rest and check come on top"
    )
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", type=Path, help="draw what was sampled")
    parser.add_argument("--keep", type=Path, help="write each sample as it comes")
    given = parser.parse_args()
    return Wish(60 * given.minutes, given.files, given.seed, given.picture, given.keep)


def _dice(seed: int | str) -> Random:
    return Random(seed)  # noqa: S311 - a test's dice


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
