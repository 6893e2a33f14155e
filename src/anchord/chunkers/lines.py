"""Plain text -> lines with cut strengths, from blank lines alone."""

from __future__ import annotations

from anchord.chunkers import layout as at
from anchord.chunkers.layout import Layout, Sizing, lay_out


def lay_out_text(text: str, sizing: Sizing) -> Layout:
    """Return the atoms of plain text: paragraphs, then lines."""
    lines = text.split("\n")
    strengths = [at.TEXT_LINE] * len(lines)
    for number in range(1, len(lines)):
        if not lines[number - 1].strip():
            strengths[number] = at.BLOCK
    return lay_out(lines, strengths, sizing)
