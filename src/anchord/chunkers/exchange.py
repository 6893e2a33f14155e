"""Plain transcripts: an exchange is a question (lines that begin with ">") and its answer, whole, as it is written.

The question is the heading of its answer: it stands in the header path, and before later parts of a long answer when they are
embedded. Within an answer the anchored engine cuts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from anchord.chunkers.cut import Piece, cut
from anchord.chunkers.layout import Heading, Layout, Limits, Sizing
from anchord.chunkers.markdown import lay_out_markdown
from anchord.chunkers.plan import Plan
from anchord.model import Document

_TURN = re.compile(r"\s{0,3}>")
_RULE = re.compile(r"\s{0,3}-{3,}\s*$")
_LEAST_TURNS = 3
_LINES_FOR_GROUPS = 20
_GROUP = 25
_TITLE_CHARS = 300
"""So much of a question stands in the header path, and before later parts of its answer (SEARCH.md)."""


def lay_out_exchange(document: Document, sizing: Sizing) -> Layout:
    """Lay out an exchange of a conversation: markdown, whose one section is the exchange and whose heading is the question."""
    layout = lay_out_markdown(document.text, sizing)
    said = " ".join(line.strip() for line in layout.lines[: document.question_lines])
    title = " ".join(said[: 4 * _TITLE_CHARS].split())[:_TITLE_CHARS].rstrip()
    return replace(layout, headings=[Heading(0, 1, title)] if title else [])


def is_transcript(layout: Layout) -> bool:
    """Whether a text has enough lines of questions to be one."""
    return len(_question_lines(layout)) >= _LEAST_TURNS


def cut_exchanges(layout: Layout, plan: Plan) -> tuple[Layout, list[Piece]]:
    """Cut a transcript at its questions, and at rules where they end an exchange."""
    questions = _question_lines(layout)
    opened = sorted(line for line in questions if line - 1 not in questions)
    rules = [line for line in _outside(layout, _RULE) if plan.rule_ends_exchange and opened and line > opened[0]]
    borders = sorted({*opened, *rules})
    headings = []
    for line in opened:
        last = line
        while last + 1 in questions:
            last += 1
        said = " ".join(layout.lines[n].lstrip().lstrip(">").strip() for n in range(line, last + 1))
        after = bisect_right(rules, line)
        headings.append(Heading(line, 1, " ".join(said.split()), rules[after] if after < len(rules) else len(layout.lines)))
    titled = replace(layout, headings=headings)
    return titled, _cut_at(titled, plan.limits, borders)


def cut_groups(layout: Layout, limits: Limits) -> list[Piece] | None:
    """Cut one long paragraph every 25 lines; None for a text of several paragraphs, of few lines, or with fences."""
    paragraphs = sum(
        not before.strip() and bool(line.strip()) for before, line in zip(["", *layout.lines], layout.lines, strict=False)
    )
    if paragraphs > 1 or len(layout.lines) <= _LINES_FOR_GROUPS or layout.wraps:
        return None
    return _cut_at(layout, limits, range(_GROUP, len(layout.lines), _GROUP))


def _cut_at(layout: Layout, limits: Limits, lines: Sequence[int]) -> list[Piece]:
    """Cut before these lines, and between them as the engine does; what is repeated is their heading, however far above."""
    borders = sorted({bisect_left(layout.line, line) for line in lines} - {0})
    starts = [0, *(layout.line[atom] for atom in borders)]
    pieces = cut(layout, limits, borders)
    return [replace(piece, section_line=starts[bisect_left(borders, piece.first + 1)]) for piece in pieces]


def _question_lines(layout: Layout) -> set[int]:
    return set(_outside(layout, _TURN))


def _outside(layout: Layout, pattern: re.Pattern[str]) -> list[int]:
    """Return the lines that match and are in no fence."""
    inside = {n for wrap in layout.wraps if wrap.verbatim for n in range(wrap.first, wrap.last + 1)}
    return [number for number, line in enumerate(layout.lines) if number not in inside and pattern.match(line)]
