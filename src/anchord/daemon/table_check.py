"""What `anchord doctor` says about the files of the table: which are missing or unreadable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from anchord.daemon.findings import Finding, Health
from anchord.store.table.file_check import FileProblem, find_file_problems

_SHOWN = 3


def check_table_files(table: Path) -> Iterator[Finding]:
    """Yield a finding if files of the table are missing, cut or unreadable, none otherwise.

    Args:
        table: The table's folder.

    Raises:
        StoreError: The newest version of the table cannot be opened.
    """
    problems = find_file_problems(table)
    damaged = [problem for problem in problems if problem.unavailable is None]
    if damaged:
        yield Finding(
            "index",
            Health.BAD,
            f"files of the table in {table} are damaged: {_describe(damaged)}",
            "`anchord index` writes their rows again; check the disk for errors",
        )
    blocked = [problem for problem in problems if problem.unavailable]
    if blocked and blocked[0].unavailable:
        yield Finding(
            "index",
            Health.BAD,
            f"files of the table in {table} cannot be read now: {_describe(blocked)}",
            blocked[0].unavailable.hint,
        )


def _describe(problems: Sequence[FileProblem]) -> str:
    reasons = [f"{problem.path} {problem.reason}" for problem in problems]
    shown = ", ".join(reasons[:_SHOWN])
    more = len(reasons) - _SHOWN
    return f"{shown}, and {more} more" if more > 0 else shown
