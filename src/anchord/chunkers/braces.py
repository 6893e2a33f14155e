"""Half-typed code: closes braces that are missing, and takes out those that close nothing, by indentation.

While somebody writes, a brace is often missing, and a parser then sees the rest of the file inside of it. The indentation still
says what was meant. No line is added or taken away: what is found in the mended text stands where it stands in the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAB = 4
_OPENS = re.compile(r"\{\s*(?://.*|/\*.*\*/\s*)?$")
"""At the end of a line, but for a comment."""


def balance(lines: Sequence[str]) -> list[str]:
    """Return lines whose braces agree with their indentation."""
    mended = list(lines)
    opened: list[int] = []
    filled = 0
    for number, line in enumerate(lines):
        text = line.strip()
        if not text:
            continue
        depth = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())
        closes = text.startswith("}")
        while opened and (depth < opened[-1] or (depth == opened[-1] and not closes and text != "{")):
            opened.pop()
            mended[filled] += " }"
        if closes and opened and opened[-1] == depth:
            opened.pop()
        elif closes:
            mended[number] = line.replace("}", " ", 1)
        if _OPENS.search(text):
            opened.append(depth)
        filled = number
    if opened:
        mended[filled] += " }" * len(opened)
    return mended
