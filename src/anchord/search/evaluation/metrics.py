"""Search metrics: how well ordered results answer a question whose section is known.

recall@k   1 if one of the first k chunks holds a line of the section, else 0
MRR        1 / rank of the first chunk that does, 0 for none
nDCG@10    1 / log2(rank + 1) of the first chunk that does, 0 if it is not among the first ten:
           how many chunks a section has does not matter
Cov4k      share of the section's characters within the first 4,000 characters of results, which is
           fair to chunks of all sizes
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

NDCG_DEPTH = 10
COVERAGE_CHARS = 4_000
RECALL_DEPTHS = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A chunk among the results; its lines are 1-based and inclusive."""

    path: str
    first_line: int
    last_line: int
    text: str


@dataclass(frozen=True, slots=True)
class ExpectedSection:
    """The section that answers a question."""

    path: str
    text_by_line: Mapping[int, str]
    """Its lines by their numbers from 1, stripped; blank lines are left out."""
    chunk_count: int
    """How many chunks of the index hold some of its lines."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The metrics of one question, or the means of many; all between 0 and 1."""

    recall: tuple[float, ...]
    """At each of `RECALL_DEPTHS`."""
    mrr: float
    ndcg: float
    cov4k: float


def score_results(
    results: Sequence[RetrievedChunk], expected: ExpectedSection, *others: ExpectedSection
) -> Scores:
    """Return the metrics of one question's results.

    Args:
        results: The chunks found, best first.
        expected: The section that answers the question.
        *others: Sections that answer it as well: the first that is found counts.
    """
    answers = (expected, *others)
    hits = [any(_holds_section(result, answer) for answer in answers) for result in results]
    first_rank = hits.index(True) + 1 if True in hits else 0
    return Scores(
        recall=tuple(float(0 < first_rank <= depth) for depth in RECALL_DEPTHS),
        mrr=1 / first_rank if first_rank else 0.0,
        ndcg=1 / math.log2(first_rank + 1) if 0 < first_rank <= NDCG_DEPTH else 0.0,
        cov4k=max(_coverage(results, answer) for answer in answers),
    )


def mean_scores(scores: Sequence[Scores]) -> Scores:
    """Return the mean of each metric; zeros where there are no scores."""
    if not scores:
        return Scores(
            recall=tuple(0.0 for _ in RECALL_DEPTHS),
            mrr=0.0,
            ndcg=0.0,
            cov4k=0.0,
        )
    recalls = zip(*(each.recall for each in scores), strict=True)
    return Scores(
        recall=tuple(fmean(values) for values in recalls),
        mrr=fmean(each.mrr for each in scores),
        ndcg=fmean(each.ndcg for each in scores),
        cov4k=fmean(each.cov4k for each in scores),
    )


def _holds_section(result: RetrievedChunk, expected: ExpectedSection) -> bool:
    if result.path != expected.path:
        return False
    lines = range(result.first_line, result.last_line + 1)
    return any(line in expected.text_by_line for line in lines)


def _coverage(results: Sequence[RetrievedChunk], expected: ExpectedSection) -> float:
    """Return the share of the section's characters in the first `COVERAGE_CHARS` of results."""
    total = sum(map(len, expected.text_by_line.values()))
    if not total:
        return 0.0
    covered = {line: set[int]() for line in expected.text_by_line}
    chars_left = COVERAGE_CHARS
    for result in results:
        text = result.text[:chars_left]
        chars_left -= len(result.text) + 1
        if result.path == expected.path:
            _cover_lines(text, result, expected, covered)
        if chars_left <= 0:
            break
    return sum(map(len, covered.values())) / total


def _cover_lines(
    text: str,
    result: RetrievedChunk,
    expected: ExpectedSection,
    covered: Mapping[int, set[int]],
) -> None:
    """Add the characters of the section's lines that a chunk's text shows.

    Args:
        text: The chunk's text, cut where the counted characters end.
        result: The chunk. It can repeat lines from above itself, such as a table's head.
        expected: The section.
        covered: Line -> positions of covered characters; this function adds to it.
    """
    shown_lines = [line.strip() for line in text.split("\n")]
    repeats_nothing = result.text.count("\n") == result.last_line - result.first_line
    if repeats_nothing:
        for line, shown in enumerate(shown_lines, result.first_line):
            if line in expected.text_by_line:
                _cover_line(line, shown, expected, covered)
        return
    # A shown line can be repeated from above, so look for each in the lines not passed yet.
    lines_left = [
        line
        for line in sorted(expected.text_by_line)
        if result.first_line <= line <= result.last_line
    ]
    for shown in filter(None, shown_lines):
        for place, line in enumerate(lines_left):
            if _cover_line(line, shown, expected, covered):
                # The rest of a long line can follow in the next shown one.
                is_whole = len(shown) >= len(expected.text_by_line[line])
                lines_left = lines_left[place + 1 if is_whole else place :]
                break


def _cover_line(
    line: int, shown: str, expected: ExpectedSection, covered: Mapping[int, set[int]]
) -> bool:
    """Add a shown text to the covered characters of a line; return whether the line holds it.

    Pieces of a line can have the same text, so its first occurrence that is not covered counts.
    """
    text = expected.text_by_line[line]
    first = position = text.find(shown)
    while position in covered[line]:
        position = text.find(shown, position + 1)
    start = first if position < 0 else position
    if start < 0:
        return False
    covered[line].update(range(start, start + len(shown)))
    return True
