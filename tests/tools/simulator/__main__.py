"""Random sequences against the whole program, judged by an oracle that shares no code with it.

    python tests/tools/simulator --seed 1 --sequences 1000
    python tests/tools/simulator --seed 1 --minutes 10 --daemon
    python tests/tools/simulator --replay "write_file@7.0 say_something@7.3 lose_config@7.9 index@7.10"

Exit code 1 if anything differed. Of each kind of difference the first is shortened and printed with the command that repeats
it. The same seed gives the same sequences; the times at which processes act can differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.simulator.program import Workers
from tools.simulator.sequences import Result, parse, plan, replay, shrink

_SHRINK_S = 30.0


@dataclass(slots=True)
class Tally:
    """Counts over all sequences."""

    sequences: int = 0
    commands: int = 0
    failed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of a difference -> in how many sequences it was found."""
    examples: dict[str, str] = field(default_factory=dict)

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
        return "\n".join([*lines, f"| duration | {seconds:.0f} s |", ""])


def main() -> int:
    """Run what is asked for; return the exit code."""
    given = _arguments()
    workers = Workers()
    try:
        if given.replay:
            return _replay(given, workers)
        return _run(given, workers)
    finally:
        workers.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=0.0, help="begin nothing after so long")
    parser.add_argument("--daemon", action="store_true", help="a real daemon; slower")
    parser.add_argument("--known", default="", help="kinds to count only, separated by commas")
    parser.add_argument("--only", default="", help="steps to draw from, separated by commas")
    parser.add_argument("--replay", default="", help="steps to repeat, as they were printed")
    return parser.parse_args()


def _replay(given: argparse.Namespace, workers: Workers) -> int:
    result = replay(parse(given.replay), workers, is_daemon=given.daemon)
    sys.stdout.write("\n".join(result.lines) + "\n")
    sys.stdout.writelines(f"{kind}: {what}\n" for kind, what in result.findings)
    return 1 if result.findings else 0


def _run(given: argparse.Namespace, workers: Workers) -> int:
    tally, began = Tally(), time.monotonic()
    first = given.seed * 1_000_000
    only = set(filter(None, given.only.split(",")))
    known = set(filter(None, given.known.split(",")))
    for seed in range(first, first + given.sequences):
        if given.minutes and time.monotonic() - began > 60 * given.minutes:
            break
        result = replay(
            plan(seed, is_daemon=given.daemon, only=only), workers, is_daemon=given.daemon
        )
        tally.sequences += 1
        tally.commands += result.commands
        tally.failed += bool(result.findings)
        tally.kinds.update(result.kinds)
        for kind in sorted(result.kinds - tally.examples.keys() - known):
            tally.examples[kind] = _example(seed, kind, result, workers, is_daemon=given.daemon)
            sys.stdout.write(tally.examples[kind])
            sys.stdout.flush()
    sys.stdout.write(tally.table(time.monotonic() - began))
    return 1 if tally.failed else 0


def _example(seed: int, kind: str, found: Result, workers: Workers, *, is_daemon: bool) -> str:
    """Shorten a sequence, and say how to repeat it."""
    short = shrink(found.steps, kind, workers, is_daemon=is_daemon, seconds=_SHRINK_S)
    shown = short or found
    what = next(what for each, what in shown.findings if each == kind)
    steps = " ".join(map(str, shown.steps))
    again = "" if short else " (it did not fail again)"
    flag = " --daemon" if is_daemon else ""
    return f"{kind}: {what}\n  seed {seed}{again}\n  python tests/tools/simulator{flag} --replay '{steps}'\n\n"


if __name__ == "__main__":
    sys.exit(main())
