"""Plain text and code -> lines with cut strengths, from blank lines and indentation alone."""

from __future__ import annotations

from anchord.chunkers import layout as at
from anchord.chunkers.layout import Layout, Sizing, lay_out

_TAB = 4


def lay_out_text(text: str, sizing: Sizing) -> Layout:
    """Return the atoms of plain text: paragraphs, then lines."""
    lines = text.split("\n")
    strengths = [at.TEXT_LINE] * len(lines)
    for number in range(1, len(lines)):
        if not lines[number - 1].strip():
            strengths[number] = at.BLOCK
    return lay_out(lines, strengths, sizing)


def lay_out_code(text: str, sizing: Sizing) -> Layout:
    """Return the atoms of source code: a line after a blank is a better cut, and the less it is indented the better."""
    lines = text.split("\n")
    strengths = [at.CODE_LINE] * len(lines)
    for number in range(1, len(lines)):
        if lines[number].lstrip()[:1] in ")]}":
            strengths[number] = at.TEXT_LINE
        elif not lines[number - 1].strip():
            strengths[number] = (at.BLOCK, at.NESTED_ITEM)[bool(_indent(lines[number]))]
            if _indent(lines[number]) > _TAB:
                strengths[number] = at.AFTER_BLANK
    return lay_out(lines, strengths, sizing)


def _indent(line: str) -> int:
    expanded = line.expandtabs(_TAB)
    return len(expanded) - len(expanded.lstrip())
