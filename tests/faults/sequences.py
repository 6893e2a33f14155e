"""Seeded sequences of operations, syncs, kills, failures, dropped hints and overflows, and their shrinking.

A printed divergence can be pasted into a test: `replay([Step(...), ...])` repeats it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from faults.runs import DivergenceError, Figures, Run, Step

PLAN = {
    "do": 11,
    "sync": 3,
    "partial": 3,
    "overflow": 1,
    "kill": 3,
    "fail": 2,
    "lose": 1,
    "restart": 1,
    "maintain": 0.3,
}
"""The weight of each kind of step."""
_PLANTED = 5
_KIND = 12
"""The first characters of a failure that identify its kind."""


def plan(seed: int, steps: int) -> list[Step]:
    """Draw a sequence: some files and a sync, the steps, and a last sync."""
    rng = Random(f"plan {seed}")  # noqa: S311 - a test's dice
    kinds = rng.choices(list(PLAN), list(PLAN.values()), k=steps)
    planted = [Step("do", f"{seed}/{n}", "create") for n in range(_PLANTED)]
    drawn = [Step(kind, f"{seed}.{n}") for n, kind in enumerate(kinds)]
    return [*planted, Step("sync", f"{seed}/"), *drawn, Step("overflow", f"{seed}.")]


def run_sequence(seed: int, steps: int) -> Figures:
    """Run a drawn sequence; the figures include a divergence with the steps that repeat it."""
    drawn = plan(seed, steps)
    try:
        return replay(drawn)
    except DivergenceError as error:
        short = shrink(drawn)
        listed = ",\n    ".join(map(str, short))
        report = f"seed {seed}, {steps} steps\n{error}\nshortest: replay([\n    {listed}\n])\n{_failure(short)}"
        return Figures(sequences=1, divergences=[report])


def replay(steps: Sequence[Step]) -> Figures:
    """Run these steps in a new folder.

    Raises:
        DivergenceError: CONV or MIN was violated, or something else was raised.
    """
    base = Path(tempfile.mkdtemp(prefix="anchord-"))
    run = Run(base)
    try:
        for step in steps:
            run.step(step)
    except DivergenceError:
        raise
    except Exception as error:
        raise DivergenceError(
            "\n".join([f"raised {error!r}", "after", *(f"  {done}" for done in run.done)])
        ) from error
    else:
        return run.figures
    finally:
        run.close()
        shutil.rmtree(base)


def shrink(steps: Sequence[Step]) -> list[Step]:
    """Shrink a sequence: drop steps, many at first, then single ones, while it fails in the same way."""
    short, size = list(steps), len(steps) // 2
    kind = _failure(steps)[:_KIND]
    while size and kind:
        at = 0
        while at < len(short):
            fewer = short[:at] + short[at + size :]
            if _failure(fewer)[:_KIND] == kind:
                short = fewer
            else:
                at += size
        size //= 2
    return short


def _failure(steps: Sequence[Step]) -> str:
    try:
        replay(steps)
    except DivergenceError as error:
        return str(error)
    return ""
