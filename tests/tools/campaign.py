"""Many sequences, killed daemons and watched services, in parallel, within a time limit; one table at the end.

    python tests/tools/campaign.py --seed 1 --minutes 60 --sequences 10000 --kills 100 --services 50 --jobs 2

Exit code 1 if anything diverged; each divergence is printed with its seed, what was done, and the shortest sequence that still
shows it. The same seed gives the same sequences. A daemon that is killed does not die at the same instant twice.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from faults.kills import run_kills
from faults.runs import Figures
from faults.sequences import run_sequence
from faults.watched import run_watched

_BATCH = 10
_KILLS_A_HOME = 5
_FEWEST, _MOST = 5, 20
_STEPS_WATCHED = 12
_PROGRESS_S = 10.0


@dataclass(frozen=True, slots=True)
class Wish:
    """The options of a campaign."""

    seed: int
    minutes: float
    sequences: int
    kills: int
    services: int
    jobs: int


Task = tuple[Callable[[int, int], Figures], tuple[int, int]]


def main() -> int:
    """Run a campaign; return the exit code."""
    wish = _wish()
    began = time.monotonic()
    figures, cut_short = _run(wish, began)
    if cut_short:
        sys.stdout.write(
            f"The time of {wish.minutes:g} minutes was over before everything was run.\n"
        )
    sys.stdout.write(table(figures, time.monotonic() - began))
    return 1 if figures.divergences else 0


def table(figures: Figures, seconds: float) -> str:
    """Return the figures as a table of Markdown."""
    rate = f"{figures.embedded / figures.needed:.2f}" if figures.needed else "-"
    rows = {
        "sequences": figures.sequences,
        "operations": figures.operations,
        "services under changes": figures.services,
        "syncs checked": figures.syncs,
        "kills in process": figures.kills,
        "killed daemons": figures.daemon_kills,
        "dropped hints": figures.dropped,
        "overflows": figures.overflows,
        "divergences": len(figures.divergences),
        "texts embedded": figures.embedded,
        "texts that had to be embedded": figures.needed,
        "embeddings per changed chunk": rate,
        "duration": f"{seconds / 60:.1f} min",
    }
    lines = [
        f"| {name} | {value:,} |" if isinstance(value, int) else f"| {name} | {value} |"
        for name, value in rows.items()
    ]
    return "\n".join(["| | |", "|---|---:|", *lines, ""])


def _batch(first: int, end: int) -> Figures:
    """Run the sequences of some seeds."""
    figures = Figures()
    for seed in range(first, end):
        figures.add(run_sequence(seed, Random(seed).randint(_FEWEST, _MOST)))  # noqa: S311 - a test's dice
    return figures


def _wish() -> Wish:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="other seeds give other sequences")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin nothing after so long")
    parser.add_argument("--sequences", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=20, help="daemons to kill")
    parser.add_argument(
        "--services", type=int, default=10, help="services to run with a real watcher"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    given = parser.parse_args()
    return Wish(given.seed, given.minutes, given.sequences, given.kills, given.services, given.jobs)


def _run(wish: Wish, began: float) -> tuple[Figures, bool]:
    """Run the calls within the time limit; return the figures, and whether the time ran out."""
    figures, last_report = Figures(), began
    running: set[Future[Figures]] = set()
    tasks = _tasks(wish)
    left = next(tasks, None)
    with ProcessPoolExecutor(wish.jobs, mp_context=get_context("spawn")) as pool:
        while running or left:
            timely = time.monotonic() - began < 60 * wish.minutes
            while left and timely and len(running) < wish.jobs:
                running.add(pool.submit(left[0], *left[1]))
                left = next(tasks, None)
            if not running:
                break
            done, running = wait(running, _PROGRESS_S, FIRST_COMPLETED)
            for future in done:
                figures.add(found := future.result())
                sys.stdout.writelines(f"{divergence}\n\n" for divergence in found.divergences)
                sys.stdout.flush()
            if time.monotonic() - last_report >= _PROGRESS_S:
                last_report = time.monotonic()
                sys.stderr.write(_progress(figures, wish, last_report - began))
    return figures, left is not None


def _tasks(wish: Wish) -> Iterator[Task]:
    """Yield all calls, those of each kind spread over the whole."""
    first = wish.seed * 1_000_000
    kinds: list[list[Task]] = [
        [
            (_batch, (at, min(at + _BATCH, first + wish.sequences)))
            for at in range(first, first + wish.sequences, _BATCH)
        ],
        [
            (run_kills, (first + at, min(_KILLS_A_HOME, wish.kills - at)))
            for at in range(0, wish.kills, _KILLS_A_HOME)
        ],
        [(run_watched, (first + at, _STEPS_WATCHED)) for at in range(wish.services)],
    ]
    placed = [
        ((at + 0.5) / len(tasks), number, task)
        for number, tasks in enumerate(kinds)
        for at, task in enumerate(tasks)
    ]
    yield from (task for _, _, task in sorted(placed, key=lambda each: each[:2]))


def _progress(figures: Figures, wish: Wish, seconds: float) -> str:
    return (
        f"{seconds / 60:5.1f} min: {figures.sequences:,} of {wish.sequences:,} sequences, {figures.operations:,} operations, "
        f"{figures.kills:,} kills, {figures.daemon_kills:,} of {wish.kills:,} daemons, {figures.services} services, "
        f"{len(figures.divergences)} divergences\n"
    )


if __name__ == "__main__":
    sys.exit(main())
