"""Lay out source code: definitions are its headings; blank lines and indentation rank the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anchord.chunking.engine.layout import (
    CODE_LINE,
    CODE_PARAGRAPH,
    LAST_RESORT,
    TEXT_LINE,
    Heading,
    Layout,
    MinSideWeights,
    Sizing,
    build_layout,
    heading_strength,
)
from anchord.chunking.formats.code_symbols import Definition

_TAB = 4
_MAX_DEPTH = 5
_MIN_PARAGRAPH_STRENGTH = 51
_MIN_SIDE_WEIGHTS = MinSideWeights(section=40, code_paragraph=24, oversized=16)
"""Measured on real edits.

Chunks of one small definition each embed fewer characters an edit than packed ones; still smaller
chunks give more new ids.
"""


def build_code_layout(text: str, definitions: Sequence[Definition], sizing: Sizing) -> Layout:
    """Lay out source code.

    Args:
        text: The code, with LF line ends.
        definitions: Its definitions in order; none where no parser is installed.
        sizing: Limits and token counter.

    Returns:
        The layout; the type of every line is "code_block".
    """
    lines = text.split("\n")
    strengths = _indentation_strengths(lines)
    weights, _ = sizing.measure_weights_and_tokens(lines)
    unsplit_lines = _set_definition_strengths(
        definitions,
        strengths,
        weights,
        sizing.limits.body,
    )
    headings = [_heading_of(definition) for definition in definitions]
    layout = build_layout(
        lines,
        strengths,
        sizing,
        headings,
        unsplit_lines=unsplit_lines,
    )
    line_types = ["code_block"] * len(lines)
    return replace(
        layout,
        min_side_weights=_MIN_SIDE_WEIGHTS,
        line_types=line_types,
    )


def _heading_of(definition: Definition) -> Heading:
    level = definition.depth + 1
    return Heading(
        definition.first,
        level,
        definition.name,
        section_end_line=definition.last,
    )


def _indentation_strengths(lines: Sequence[str]) -> list[int]:
    """Return strengths: a line after a blank one is better, and the less indented the better."""
    strengths = [CODE_LINE] * len(lines)
    for number in range(1, len(lines)):
        line = lines[number]
        if line.lstrip()[:1] in ")]}":
            # A closing bracket stays with what it closes. Blank lines come here too: no cut there.
            strengths[number] = TEXT_LINE
        elif not lines[number - 1].strip():
            indent_levels = _indent_width(line) // _TAB
            strength = CODE_PARAGRAPH - 2 * indent_levels
            strengths[number] = max(strength, _MIN_PARAGRAPH_STRENGTH)
    return strengths


def _set_definition_strengths(
    definitions: Sequence[Definition], strengths: list[int], weights: Sequence[int], limit: int
) -> set[int]:
    """Make definitions the strongest cuts, and cuts inside one that fits in a chunk a last resort.

    Returns the lines of the definitions that fit.
    """
    fitting_lines: set[int] = set()
    for definition in definitions:
        first, end = definition.first, definition.last
        if sum(weights[first:end]) <= limit:
            fitting_lines.update(range(first, end))
    for number in fitting_lines:
        strengths[number] = min(strengths[number], LAST_RESORT)
    for definition in definitions:
        level = min(definition.depth, _MAX_DEPTH) + 1
        strengths[definition.first] = heading_strength(level)
        # The line of the name and the line after it stay with the comments on top.
        body_start = min(definition.head + 2, definition.last)
        for number in range(definition.first + 1, body_start):
            strengths[number] = min(strengths[number], LAST_RESORT)
    return fitting_lines


def _indent_width(line: str) -> int:
    expanded = line.expandtabs(_TAB)
    return len(expanded) - len(expanded.lstrip())
