"""Source code -> lines with cut strengths: definitions are its headings, blank lines and indentation say the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anchord.chunkers import layout as at
from anchord.chunkers.layout import Heading, Layout, Sides, Sizing, lay_out
from anchord.chunkers.symbols import Definition

_TAB = 4
_DEEPEST = 5
_LEAST_PARAGRAPH = 51
_SIDES = Sides(section=40, paragraph=24, broken=16)
"""Measured on real edits: small definitions apart embed fewer characters than packed ones, still smaller ones make more ids."""


def lay_out_code(text: str, found: Sequence[Definition], sizing: Sizing) -> Layout:
    """Return the atoms of source code with the definitions that were found in it."""
    lines = text.split("\n")
    strengths = _by_indentation(lines)
    weights, _ = sizing.weigh(lines)
    held = _by_definitions(found, strengths, weights, sizing.limits.body)
    headings = [Heading(one.first, one.depth + 1, one.name, one.last) for one in found]
    layout = lay_out(lines, strengths, sizing, headings, held=held)
    return replace(layout, sides=_SIDES, forms=["code_block"] * len(lines))


def _by_indentation(lines: Sequence[str]) -> list[int]:
    """A line after a blank is a better cut, and the less it is indented the better."""
    strengths = [at.CODE_LINE] * len(lines)
    for number in range(1, len(lines)):
        if lines[number].lstrip()[:1] in ")]}":
            strengths[number] = at.TEXT_LINE
        elif not lines[number - 1].strip():
            strengths[number] = max(at.PARAGRAPH - 2 * (_indent(lines[number]) // _TAB), _LEAST_PARAGRAPH)
    return strengths


def _by_definitions(found: Sequence[Definition], strengths: list[int], weights: Sequence[int], limit: int) -> set[int]:
    """Make definitions the strongest cuts, and cuts inside one that fits a last resort; return the lines of what fits."""
    held: set[int] = set()
    for one in found:
        if sum(weights[one.first : one.last]) <= limit:
            held.update(range(one.first, one.last))
    for number in held:
        strengths[number] = min(strengths[number], at.LAST_RESORT)
    for one in found:
        strengths[one.first] = at.HEADING - 2 * min(one.depth, _DEEPEST)
        for number in range(one.first + 1, min(one.head + 2, one.last)):
            strengths[number] = min(strengths[number], at.LAST_RESORT)
    return held


def _indent(line: str) -> int:
    expanded = line.expandtabs(_TAB)
    return len(expanded) - len(expanded.lstrip())
