"""Repair the braces of half-typed code by its indentation.

While code is being written, a brace is often missing, and a parser then takes the rest of the file
for the inside of a block. The indentation still shows what was meant. Lines are never added or
removed, so a line number in the repaired text is the line number in the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAB = 4
_OPENS_BLOCK = re.compile(r"\{\s*(?://.*|/\*.*\*/\s*)?$")
"""An opening brace at the end of a line; a comment may follow."""


def repair_braces(lines: Sequence[str]) -> list[str]:
    """Return the lines with braces that agree with their indentation.

    A missing closing brace is added at the end of a line. A closing brace without an opening one is
    replaced by a space.
    """
    repaired = list(lines)
    open_indents: list[int] = []
    last_filled = 0
    for number, line in enumerate(lines):
        text = line.strip()
        if not text:
            continue
        expanded = line.expandtabs(_TAB)
        indent = len(expanded) - len(expanded.lstrip())
        # Invariant: the indents of open blocks grow, except where a line is a lone brace.
        while open_indents and _ends_block(text, indent, open_indents[-1]):
            open_indents.pop()
            repaired[last_filled] += " }"
        if text.startswith("}"):
            if open_indents and open_indents[-1] == indent:
                open_indents.pop()
            else:
                repaired[number] = line.replace("}", " ", 1)
        if _OPENS_BLOCK.search(text):
            open_indents.append(indent)
        last_filled = number
    if open_indents:
        repaired[last_filled] += " }" * len(open_indents)
    return repaired


def _ends_block(text: str, indent: int, open_indent: int) -> bool:
    """Whether a line shows that a block before it should have been closed."""
    if indent != open_indent:
        return indent < open_indent
    # At the block's own indent only its closing brace, or the brace that opens its body, belong.
    return not text.startswith("}") and text != "{"
