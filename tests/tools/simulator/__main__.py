"""Random sequences against the whole program, judged by an oracle that shares no code with it.

    python tests/tools/simulator --seed 1 --sequences 1000 --jobs 2
    python tests/tools/simulator --seed 1 --minutes 10 --daemon
    python tests/tools/simulator --replay "write_file@7.0 say_something@7.3 lose_config@7.9 index@7.10"

Exit code 1 if anything differed. Of each kind of difference the first is shortened and printed with the command that repeats
it. The same seed gives the same sequences; the times at which processes act can differ.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.simulator.program import Workers
from tools.simulator.sequences import Result, parse, plan, replay, shrink

_SHRINK_S = 30.0
_PROGRESS_EVERY = 100


@dataclass(slots=True)
class Tally:
    """Counts over all sequences."""

    sequences: int = 0
    commands: int = 0
    failed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of a difference -> in how many sequences it was found."""
    examples: set[str] = field(default_factory=set)
    """Kinds of which an example was printed."""
    steps: Counter[str] = field(default_factory=Counter)
    """Name of a step -> how often it was done."""

    def count(self, result: Result) -> None:
        """Add what came of a sequence."""
        self.sequences += 1
        self.commands += result.commands
        self.failed += bool(result.findings)
        self.kinds.update(result.kinds)
        self.steps.update(step.name for step in result.steps)

    def table(self, seconds: float) -> str:
        """Return the counts as a table of Markdown."""
        rows = {
            "sequences": self.sequences,
            "commands": self.commands,
            "sequences that differed": self.failed,
        }
        lines = [
            "| | |",
            "|---|---:|",
            *(f"| {name} | {count:,} |" for name, count in rows.items()),
        ]
        lines += [f"| {kind} | {count:,} |" for kind, count in self.kinds.most_common()]
        lines += [f"| step {name} | {count:,} |" for name, count in self.steps.most_common()]
        return "\n".join([*lines, f"| duration | {seconds:.0f} s |", ""])


def main() -> int:
    """Run what is asked for; return the exit code."""
    given = _arguments()
    return _replay(given) if given.replay else _run(given)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=0.0, help="begin nothing after so long")
    parser.add_argument("--jobs", type=int, default=1, help="sequences side by side")
    parser.add_argument(
        "--patience", type=float, default=60.0, help="seconds until a command counts as hung"
    )
    parser.add_argument("--daemon", action="store_true", help="a real daemon; slower")
    parser.add_argument("--known", default="", help="kinds to count only, separated by commas")
    parser.add_argument("--only", default="", help="steps to draw from, separated by commas")
    parser.add_argument("--replay", default="", help="steps to repeat, as they were printed")
    return parser.parse_args()


def _replay(given: argparse.Namespace) -> int:
    workers = Workers()
    try:
        result = replay(parse(given.replay), workers, is_daemon=given.daemon)
    finally:
        workers.close()
    sys.stdout.write("\n".join(result.lines) + "\n")
    sys.stdout.writelines(f"{kind}: {what}\n" for kind, what in result.findings)
    return 1 if result.findings else 0


def _run(given: argparse.Namespace) -> int:
    tally, began = Tally(), time.monotonic()
    campaign = Campaign(given, tally, began)
    with ThreadPoolExecutor(given.jobs) as pool:
        for job in [pool.submit(campaign.work) for _ in range(given.jobs)]:
            job.result()
    sys.stdout.write(tally.table(time.monotonic() - began))
    return 1 if tally.failed else 0


class Campaign:
    """Sequences for several threads, each with its own worker process."""

    def __init__(self, given: argparse.Namespace, tally: Tally, began: float) -> None:
        """Prepare the seeds."""
        self._given = given
        self._tally = tally
        self._began = began
        self._lock = threading.Lock()
        first = given.seed * 1_000_000
        self._seeds = iter(range(first, first + given.sequences))
        self._only = set(filter(None, given.only.split(",")))
        self._known = set(filter(None, given.known.split(",")))

    def work(self) -> None:
        """Run sequences until there are no more or the time is over."""
        workers = Workers(self._given.patience)
        try:
            while (seed := self._next_seed()) is not None:
                self._run_one(seed, workers)
        finally:
            workers.close()

    def _next_seed(self) -> int | None:
        minutes = self._given.minutes
        if minutes and time.monotonic() - self._began > 60 * minutes:
            return None
        with self._lock:
            return next(self._seeds, None)

    def _run_one(self, seed: int, workers: Workers) -> None:
        is_daemon = self._given.daemon
        steps = plan(seed, is_daemon=is_daemon, only=self._only)
        result = replay(steps, workers, is_daemon=is_daemon)
        tally = self._tally
        with self._lock:
            new = sorted(result.kinds - tally.examples - self._known)
            tally.count(result)
            if tally.sequences % _PROGRESS_EVERY == 0:
                sys.stderr.write(f"{tally.sequences:,} sequences, {tally.failed:,} differed\n")
            if result.kinds:
                sys.stderr.write(f"seed {seed} differed: {', '.join(sorted(result.kinds))}\n")
            tally.examples.update(new)
        for kind in new:
            sys.stdout.write(_example(seed, kind, result, workers, is_daemon=is_daemon))
            sys.stdout.flush()


def _example(seed: int, kind: str, found: Result, workers: Workers, *, is_daemon: bool) -> str:
    """Shorten a sequence, and say how to repeat it."""
    short = shrink(found.steps, kind, workers, is_daemon=is_daemon, seconds=_SHRINK_S)
    shown = short or found
    what = next(what for each, what in shown.findings if each == kind)
    steps = " ".join(map(str, shown.steps))
    flag = " --daemon" if is_daemon else ""
    repeat = f"  python tests/tools/simulator{flag} --replay '{steps}'\n\n"
    if short:
        return f"{kind}: {what}\n  seed {seed}\n{repeat}"
    # Nothing but what was seen can explain it.
    trace = "".join(f"  | {line}\n" for line in found.lines)
    return f"{kind}: {what}\n  seed {seed} (it did not fail again)\n{trace}{repeat}"


if __name__ == "__main__":
    sys.exit(main())
