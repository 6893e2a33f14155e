"""Ordered results and the section that was wanted -> how good they are.

recall@k   whether one of the first k chunks holds some of the section
MRR        one over the place of the first that does
nDCG@10    the same for all its chunks: each counts less the later it comes, over the best order there could be
Cov4k      the share of the section's characters within the first 4,000 characters of results: fair across sizes of chunks
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

DEPTH = 10
BUDGET_CHARS = 4_000
KS = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class Result:
    """A chunk's place; lines are 1-based and inclusive."""

    path: str
    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The lines that answer, without blank ones, and how many chunks hold some of them."""

    path: str
    lines: Mapping[int, str]
    chunks: int


@dataclass(frozen=True, slots=True)
class Scores:
    """Of one question, or the means of many; all between 0 and 1."""

    recall: tuple[float, ...]
    mrr: float
    ndcg: float
    cov4k: float


def score(results: Sequence[Result], wanted: Wanted) -> Scores:
    """Judge the results of one question, best first."""
    hits = [_holds(result, wanted) for result in results]
    first = next((rank for rank, hit in enumerate(hits, 1) if hit), 0)
    recall = tuple(float(0 < first <= k) for k in KS)
    gained = sum(hit / math.log2(rank + 1) for rank, hit in enumerate(hits[:DEPTH], 1))
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(DEPTH, max(wanted.chunks, 1)) + 1))
    return Scores(recall, 1 / first if first else 0.0, min(1.0, gained / ideal), _covered(results, wanted))


def mean(scores: Sequence[Scores]) -> Scores:
    """Return the means; of nothing, zeros."""
    if not scores:
        return Scores(tuple(0.0 for _ in KS), 0.0, 0.0, 0.0)
    recall = tuple(fmean(each.recall[n] for each in scores) for n in range(len(KS)))
    return Scores(recall, *(fmean(getattr(each, name) for each in scores) for name in ("mrr", "ndcg", "cov4k")))


def _holds(result: Result, wanted: Wanted) -> bool:
    return result.path == wanted.path and any(line in wanted.lines for line in range(result.first, result.last + 1))


def _covered(results: Sequence[Result], wanted: Wanted) -> float:
    left, covered = BUDGET_CHARS, {line: set[int]() for line in wanted.lines}
    for result in results:
        text = result.text[:left]
        left -= len(result.text) + 1
        if result.path == wanted.path:
            _cover(text, result, wanted, covered)
        if left <= 0:
            break
    total = sum(map(len, wanted.lines.values()))
    return sum(map(len, covered.values())) / total if total else 0.0


def _cover(text: str, result: Result, wanted: Wanted, covered: Mapping[int, set[int]]) -> None:
    """Mark the characters of the wanted lines that a chunk's text shows: what it repeats from above is none of its lines."""
    shown_lines = text.split("\n")
    if result.text.count("\n") == result.last - result.first:  # Nothing is repeated: line by line.
        for line, shown in enumerate(map(str.strip, shown_lines), result.first):
            at = wanted.lines[line].find(shown) if line in wanted.lines else -1
            if at >= 0:
                covered[line].update(range(at, at + len(shown)))
        return
    lines = [line for line in sorted(wanted.lines) if result.first <= line <= result.last]
    for shown in map(str.strip, shown_lines):
        for place, line in enumerate(lines if shown else ()):
            at = wanted.lines[line].find(shown)
            if at >= 0:
                covered[line].update(range(at, at + len(shown)))
                lines = lines[place:] if len(shown) < len(wanted.lines[line]) else lines[place + 1 :]
                break
