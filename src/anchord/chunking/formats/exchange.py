"""Lay out conversations: an exchange is a question and its answer.

In a plain transcript the question is the lines that begin with ">". A question is the heading of
its answer: it is the header path, and it is embedded with later parts of a long answer. Inside an
answer the anchored engine cuts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import replace

from anchord.chunking.engine.anchored_cut import AtomRange, split_layout
from anchord.chunking.engine.layout import Heading, Layout, Limits, Sizing
from anchord.chunking.formats.markdown import build_markdown_layout
from anchord.chunking.plan import Plan
from anchord.core.types import Document

_QUESTION_LINE = re.compile(r"\s{0,3}>")
_RULE = re.compile(r"\s{0,3}-{3,}\s*$")
_MIN_QUESTION_LINES = 3
_MAX_UNGROUPED_LINES = 20
_GROUP_LINES = 25
_MAX_TITLE_CHARS = 300
"""Characters of a question in the header path and before later parts of its answer.

`docs/design/search.md` has the measurements.
"""


def build_exchange_layout(document: Document, sizing: Sizing) -> Layout:
    """Lay out an exchange of a conversation as markdown with one section.

    The heading of the section is the document's question, in one line of at most 300 characters.
    """
    layout = build_markdown_layout(document.text, sizing)
    question_lines = layout.lines[: document.question_line_count]
    question = " ".join(line.strip() for line in question_lines)
    # Only the start is normalised: a question can be a file of many megabytes.
    words = question[: 4 * _MAX_TITLE_CHARS].split()
    title = " ".join(words)[:_MAX_TITLE_CHARS].rstrip()
    return replace(layout, headings=[Heading(0, 1, title)] if title else [])


def is_transcript(layout: Layout) -> bool:
    """Return whether a text has three or more question lines."""
    return len(_question_lines(layout)) >= _MIN_QUESTION_LINES


def split_at_questions(layout: Layout, plan: Plan) -> tuple[Layout, list[AtomRange]]:
    """Cut a transcript at its questions, and at rules (`---`) where the plan says so.

    Returns:
        The layout with the questions as its headings, and the ranges of its chunks in order.
    """
    question_lines = _question_lines(layout)
    questions = sorted(line for line in question_lines if line - 1 not in question_lines)
    rules: list[int] = []
    if plan.rule_ends_exchange and questions:
        rules = [line for line in _lines_outside_fences(layout, _RULE) if line > questions[0]]
    headings: list[Heading] = []
    for first_line in questions:
        title = _question_text(layout, first_line, question_lines)
        next_rule = bisect_right(rules, first_line)
        end_line = rules[next_rule] if next_rule < len(rules) else len(layout.lines)
        headings.append(Heading(first_line, 1, title, end_line))
    layout_of_exchanges = replace(layout, headings=headings)
    cut_lines = sorted({*questions, *rules})
    ranges = _cut_before_lines(layout_of_exchanges, plan.limits, cut_lines)
    return layout_of_exchanges, ranges


def split_single_long_paragraph(layout: Layout, limits: Limits) -> list[AtomRange] | None:
    """Cut a text that is one long paragraph every 25 lines.

    Returns:
        The ranges of the chunks; None for a text of several paragraphs, of at most 20 lines, or
        with fences or tables.
    """
    paragraph_count = 0
    previous = ""
    for line in layout.lines:
        if line.strip() and not previous.strip():
            paragraph_count += 1
        previous = line
    line_count = len(layout.lines)
    if paragraph_count > 1 or line_count <= _MAX_UNGROUPED_LINES or layout.wraps:
        return None
    return _cut_before_lines(layout, limits, range(_GROUP_LINES, line_count, _GROUP_LINES))


def _question_text(layout: Layout, first_line: int, question_lines: Collection[int]) -> str:
    """Return the words of the consecutive question lines from one on, without their marks."""
    texts: list[str] = []
    line = first_line
    while line in question_lines:
        texts.append(layout.lines[line].lstrip().lstrip(">").strip())
        line += 1
    return " ".join(" ".join(texts).split())


def _cut_before_lines(layout: Layout, limits: Limits, lines: Sequence[int]) -> list[AtomRange]:
    """Cut before the given lines, and between them as the engine does.

    The section of a chunk starts at the last of these lines, however far above, so that every part
    of an answer is embedded with its question.
    """
    atoms = {bisect_left(layout.atom_lines, line) for line in lines}
    cuts = sorted(atoms - {0})
    section_lines = [0, *(layout.atom_lines[atom] for atom in cuts)]
    ranges: list[AtomRange] = []
    for atom_range in split_layout(layout, limits, cuts):
        section = bisect_right(cuts, atom_range.first_atom)
        ranges.append(replace(atom_range, section_line=section_lines[section]))
    return ranges


def _question_lines(layout: Layout) -> set[int]:
    return set(_lines_outside_fences(layout, _QUESTION_LINE))


def _lines_outside_fences(layout: Layout, pattern: re.Pattern[str]) -> list[int]:
    """Return the lines that match a pattern and are in no fence."""
    fenced: set[int] = set()
    for wrap in layout.wraps:
        if wrap.is_verbatim:
            fenced.update(range(wrap.first_line, wrap.last_line + 1))
    return [
        number
        for number, line in enumerate(layout.lines)
        if number not in fenced and pattern.match(line)
    ]
