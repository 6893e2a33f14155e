"""Shared by the benchmarks of the service: percentiles, sizes, resource usage, and the table."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Ran:
    """The resources that a program used."""

    code: int
    cpu_s: float
    rss_bytes: int


def run(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Ran:
    """Run a program to its end without output; children that it waited for are included."""
    process = subprocess.Popen(
        arguments,
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ran(process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * _MAXRSS_UNIT)


def git(folder: Path, *arguments: str) -> Ran:
    """Run git, whatever the user's configuration says.

    Raises:
        RuntimeError: it failed.
    """
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    settings = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    ran = run(["git", *settings, *arguments], environment, folder)
    if ran.code:
        raise RuntimeError(f"git {arguments[0]} in {folder}: exit code {ran.code}")
    return ran


def quantile(values: Iterable[float], share: float) -> float:
    """Return the value at the nearest rank; NaN of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def folder_bytes(folder: Path) -> int:
    """Sum up the sizes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def megabytes(count: float) -> str:
    """Write bytes as megabytes."""
    return f"{count / 1e6:,.1f}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of markdown; the first column is of words, the others of figures."""
    marks = ("---", *("---:" for _ in headings[1:]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, marks, *rows))
