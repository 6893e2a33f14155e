"""How a SpecStory file is divided: headers of turns, and in an agent's turns the blocks of tools and thoughts.

What a tool read may hold anything, fences and headers too: a header counts where it is in no fence or has a rule above it, and
a block ends at its closing tag where that is in no fence or where a part of the file ends.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from anchord.sources.conversations.fences import closes, fence_mark, fenced, opens
from anchord.sources.conversations.records import tool_line, words

_HEADER = re.compile(
    r"(?:_\*\*\W{0,3}(?P<role>User|Agent|Assistant|Recap)\b(?P<about>[^*]*)\*\*_|_\*\*\*\*_"
    r"|#{1,6} (?:<span[^>]*>)?👤 (?P<person>User)\b(?P<said>[^<]*)(?:</span>)?)\s*$"
)
_RULE = "---"
_TOOL = re.compile(r'<tool-use data-tool-type="([^"]*)" data-tool-name="([^"]*)"')
_BARE = re.compile(r"Tool use: \*\*(.+?)\*\*")
_THOUGHT = "<think><details>"
_OF_A_TOOL = re.compile(
    r"<summary>(?:Tool use: |Read |Edit |Grep |Search|List|Ran? |Run |Creat|Delet|Todo|Fetch|Thought Process)", re.ASCII
)
_WRITING = words("write edit search_replace edit_file edit_file_v2 code_edit Edit MultiEdit Write")
_FILE = re.compile(r"(?:Edit file: |The file |File created successfully at: )(.+?)(?: has been |</summary>|$)", re.MULTILINE)
_DETAIL = re.compile(r"<summary>Tool use: \*\*.*?\*\* *•? *(?:[A-Z]\w+ (?:file|command|directory): )?(.+?)</summary>")
_GIVEN = re.compile(r"^(?:[^\n`]{0,24}`([^`\n]+)`|```\w*\n(.+)|Read file: (.+))", re.MULTILINE)
_MOST_LOOKED_AT = 60
"""Lines of a tool's block that can hold its arguments."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A block that is not prose: a tool's call, with the file that it changed, or a thought without either."""

    tool: str = ""
    file: str = ""


@dataclass(slots=True)
class Part:
    """What stands under one header; above the first one it has no role."""

    role: str
    about: str = ""
    """The rest of the header: time, model, whether it is a sub-agent's."""
    lines: list[str | Hidden] = field(default_factory=list)


def header(line: str) -> tuple[str, str] | None:
    """Return the role and the rest of a turn's header, None for any other line. The oldest ones have headers without a role."""
    found = _HEADER.match(line) if line.startswith(("_**", "#")) else None
    if not found:
        return None
    role = found["role"] or found["person"] or "Agent"
    return "Agent" if role == "Assistant" else role, found["about"] or found["said"] or ""


def parts(lines: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of a file; the first one is what stands above the first turn."""
    shown = list(_shown(lines))
    plain = [line if isinstance(line, str) else "" for line in shown]
    borders = [0, *(number for number in range(1, len(plain)) if _is_divided(plain, number)), len(plain)]
    part = Part("")
    for begin, end in pairwise(borders):
        inside = fenced(plain[begin:end])
        for number in range(begin, end):
            begun = header(plain[number]) if number == begin or number - begin not in inside else None
            if begun:
                yield part
                part = Part(*begun)
            else:
                part.lines.append(shown[number])
    yield part


def _shown(lines: Sequence[str]) -> Iterator[str | Hidden]:
    """Yield the lines with a value in place of each block of an agent's turn."""
    number, role = 0, ""
    while number < len(lines):
        begun = header(lines[number])
        role = begun[0] if begun else role
        hidden, after = _block(lines, number) if role == "Agent" and not begun else (None, 0)
        yield hidden or lines[number]
        number = after or number + 1


def _block(lines: Sequence[str], at: int) -> tuple[Hidden | None, int]:
    """Return the block that begins in a line and the line after it."""
    line = lines[at]
    if line.startswith(_THOUGHT):
        return Hidden(), _closed(lines, at, "</think>")
    if line.startswith("<tool-use"):
        after = _closed(lines, at, "</tool-use>")
        kind, name = found.groups() if (found := _TOOL.match(line)) else ("", "")
        return _call(kind, html.unescape(name), lines[at:after]), after
    if found := _BARE.match(line):
        after = _ruled_off(lines, at)
        return _call("", found[1], [line[found.end() :], *lines[at + 1 : after]]), after
    if line.startswith("<details>") and _OF_A_TOOL.search("\n".join(lines[at : at + 2])) and _begins_part(lines, at):
        after = _closed(lines, at, "</details>")
        called = _BARE.search("\n".join(lines[at : at + 2]))
        return (_call("", called[1], lines[at:after]) if called else Hidden()), after
    return None, 0


def _call(kind: str, name: str, lines: Sequence[str]) -> Hidden:
    text = html.unescape("\n".join(lines[:_MOST_LOOKED_AT]))
    changed = _FILE.search(text) if kind in _WRITING or name in _WRITING else None
    detail, given = _DETAIL.search(text), _GIVEN.search(text)
    told = changed or detail
    argument = told[1] if told else next(filter(None, given.groups())) if given else ""
    file = changed[1].strip() if changed else argument if given and name == "MultiEdit" else ""
    return Hidden(tool_line(name or "tool", argument), file)


def _closed(lines: Sequence[str], at: int, closing: str) -> int:
    """Return the line after a tag's end; what was broken off ends at the next turn."""
    fence = ""
    for number in range(at, len(lines)):
        if lines[number].rstrip().endswith(closing) and (not fence or _ends_part(lines, number + 1)):
            return number + 1
        if not fence and _is_divided(lines, number):
            return number
        fence = _fence_after(lines[number], fence)
    return len(lines)


def _ruled_off(lines: Sequence[str], at: int) -> int:
    fence = ""
    for number in range(at + 1, len(lines)):
        if _is_divided(lines, number) or (not fence and (lines[number].rstrip() == _RULE or header(lines[number]))):
            return number
        fence = _fence_after(lines[number], fence)
    return len(lines)


def _fence_after(line: str, fence: str) -> str:
    """Return the mark of the fence that is open after a line, "" for none."""
    mark = fence_mark(line)
    if mark and fence:
        return "" if closes(mark, fence) else fence
    return mark[0] if mark and opens(mark) else fence


def _is_divided(lines: Sequence[str], number: int) -> bool:
    """Whether a line is a header with a rule above it."""
    return bool(header(lines[number])) and _above(lines, number) == _RULE


def _begins_part(lines: Sequence[str], number: int) -> bool:
    above = _above(lines, number)
    return above == _RULE or bool(header(above))


def _above(lines: Sequence[str], number: int) -> str:
    return next((lines[place].rstrip() for place in range(number - 1, -1, -1) if lines[place].strip()), "")


def _ends_part(lines: Sequence[str], number: int) -> bool:
    follows = next((lines[place] for place in range(number, len(lines)) if lines[place].strip()), _RULE)
    return follows.rstrip() == _RULE or bool(header(follows)) or follows.startswith(("<tool-use", _THOUGHT))
