"""The parts of a SpecStory file: turns under their headers, with blocks of tools and thoughts.

The output of a tool can hold anything, fences and headers too. So a header counts only outside of
fences or directly below a rule. A block ends at its closing tag, if that is outside of fences or
the last line of its part.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.formats.fences import fenced_line_numbers, open_fence_after
from anchord.sources.conversations.formats.json_records import format_tool_call, word_set

_HEADER = lazy_re(
    r"(?:_\*\*\W{0,3}(?P<role>User|Agent|Assistant|Recap)\b(?P<details>[^*]*)\*\*_|_\*\*\*\*_"
    r"|#{1,6} (?:<span[^>]*>)?👤 (?P<person>User)\b(?P<person_details>[^<]*)(?:</span>)?)\s*$"
)
_RULE = "---"
_TOOL_TAG = lazy_re(r'<tool-use data-tool-type="([^"]*)" data-tool-name="([^"]*)"')
_BARE_TOOL = lazy_re(r"Tool use: \*\*(.+?)\*\*")
_THOUGHT_TAG = "<think><details>"
_TOOL_SUMMARY = lazy_re(
    r"<summary>(?:Tool use: |Read |Edit |Grep |Search|List|Ran? |Run |Creat|Delet|Todo|Fetch"
    r"|Thought Process)",
    re.ASCII,
)
_FILE_EDIT_TOOLS = word_set(
    "write edit search_replace edit_file edit_file_v2 code_edit Edit MultiEdit Write"
)
_EDITED_FILE = lazy_re(
    r"(?:Edit file: |The file |File created successfully at: )(.+?)(?: has been |</summary>|$)",
    re.MULTILINE,
)
_DETAIL = lazy_re(
    r"<summary>Tool use: \*\*.*?\*\* *•? *(?:[A-Z]\w+ (?:file|command|directory): )?(.+?)</summary>"
)
_ARGUMENT = lazy_re(r"^(?:[^\n`]{0,24}`([^`\n]+)`|```\w*\n(.+)|Read file: (.+))", re.MULTILINE)
_MAX_ARGUMENT_LINES = 60
"""Arguments of a tool are searched in so many lines of its block."""


@dataclass(frozen=True, slots=True)
class HiddenBlock:
    """A block that is not prose: a call of a tool, or a thought."""

    tool: str = ""
    """The call in one line; "" for a thought."""
    file: str = ""
    """The path of the file that the call changed, "" for none."""


class TurnHeader(NamedTuple):
    """The first line of a turn."""

    role: str
    """One of "User", "Agent" and "Recap"."""
    details: str
    """The rest of the line: time, model, whether it is a sub-agent's."""


@dataclass(slots=True)
class TurnSection:
    """The lines below one header; those above the first header have the role ""."""

    role: str
    header_details: str = ""
    lines: list[str | HiddenBlock] = field(default_factory=list)


def parse_header(line: str) -> TurnHeader | None:
    """Return the header of a turn, None for any other line."""
    if not line.startswith(("_**", "#")):
        return None
    match = _HEADER.match(line)
    if match is None:
        return None
    # The oldest files have agent's headers without a role: `_****_`.
    role = match["role"] or match["person"]
    if not role or role == "Assistant":
        role = "Agent"
    details = match["details"] or match["person_details"]
    return TurnHeader(role, details or "")


def split_sections(lines: Sequence[str]) -> Iterator[TurnSection]:
    """Yield the section above the first turn, even if it is empty, and one for each turn."""
    items = list(_replace_blocks(lines))
    plain = [item if isinstance(item, str) else "" for item in items]
    section = TurnSection("")
    for start, end in pairwise(_section_borders(plain)):
        part = plain[start:end]
        fenced = fenced_line_numbers(part)
        for number_in_part, line in enumerate(part):
            header = None
            if number_in_part == 0 or number_in_part not in fenced:
                header = parse_header(line)
            if header:
                yield section
                section = TurnSection(header.role, header.details)
            else:
                number = start + number_in_part
                section.lines.append(items[number])
    yield section


def _section_borders(lines: Sequence[str]) -> list[int]:
    """Return 0, the numbers of the headers below a rule, and the number of lines.

    A header below a rule always counts, so no fence can reach over it: fences are searched between
    two such headers.
    """
    line_count = len(lines)
    numbers = range(1, line_count)
    ruled_headers = (number for number in numbers if _is_header_after_rule(lines, number))
    return [0, *ruled_headers, line_count]


# Blocks


def _replace_blocks(lines: Sequence[str]) -> Iterator[str | HiddenBlock]:
    """Yield the lines, with one value in place of each block in an agent's turn."""
    number = 0
    role = ""
    while number < len(lines):
        header = parse_header(lines[number])
        if header:
            role = header.role
        block = None
        after = number + 1
        if role == "Agent" and not header:
            block, after = _parse_block(lines, number)
        yield block or lines[number]
        number = after


def _parse_block(lines: Sequence[str], start: int) -> tuple[HiddenBlock | None, int]:
    """Return the block that begins in a line, None for none, and the next line's number."""
    line = lines[start]
    if line.startswith(_THOUGHT_TAG):
        after_thought = _find_block_end(lines, start, "</think>")
        return HiddenBlock(), after_thought
    if line.startswith("<tool-use"):
        return _parse_tool_tag(lines, start)
    if tool := _BARE_TOOL.match(line):
        return _parse_bare_tool(lines, start, tool)
    if line.startswith("<details>"):
        return _parse_details(lines, start)
    return None, start + 1


def _parse_bare_tool(
    lines: Sequence[str], start: int, tool: re.Match[str]
) -> tuple[HiddenBlock, int]:
    line = lines[start]
    after = _find_rule_or_header(lines, start)
    rest_of_line = line[tool.end() :]
    lines_below = lines[start + 1 : after]
    block_lines = [rest_of_line, *lines_below]
    block = _parse_tool_call("", tool[1], block_lines)
    return block, after


def _parse_tool_tag(lines: Sequence[str], start: int) -> tuple[HiddenBlock, int]:
    after = _find_block_end(lines, start, "</tool-use>")
    kind = ""
    name = ""
    tag = _TOOL_TAG.match(lines[start])
    if tag:
        kind = tag[1]
        name = html.unescape(tag[2])
    block_lines = lines[start:after]
    block = _parse_tool_call(kind, name, block_lines)
    return block, after


def _parse_details(lines: Sequence[str], start: int) -> tuple[HiddenBlock | None, int]:
    """Parse `<details>` if it begins a part and its summary is that of a tool or a thought."""
    below = start + 1
    summary_end = start + 2
    summary = "\n".join(lines[start:summary_end])
    if not _TOOL_SUMMARY.search(summary):
        return None, below
    if not _begins_part(lines, start):
        return None, below
    after = _find_block_end(lines, start, "</details>")
    tool = _BARE_TOOL.search(summary)
    if tool is None:
        return HiddenBlock(), after
    tool_name = tool[1]
    block_lines = lines[start:after]
    block = _parse_tool_call("", tool_name, block_lines)
    return block, after


def _parse_tool_call(kind: str, name: str, lines: Sequence[str]) -> HiddenBlock:
    """Return the block of a call of a tool.

    Args:
        kind: the tool's type as SpecStory gives it, "" for none.
        name: the tool's name, "" for none.
        lines: the lines of the block.
    """
    searched_lines = lines[:_MAX_ARGUMENT_LINES]
    text = html.unescape("\n".join(searched_lines))
    edited = None
    if kind in _FILE_EDIT_TOOLS or name in _FILE_EDIT_TOOLS:
        edited = _EDITED_FILE.search(text)
    file = ""
    if edited:
        argument = edited[1]
        file = argument.strip()
    else:
        argument = _find_argument(text)
        if name == "MultiEdit" and _ARGUMENT.search(text):
            file = argument
    call = format_tool_call(name or "tool", argument)
    return HiddenBlock(call, file)


def _find_argument(text: str) -> str:
    """Return a call's main argument: in its summary, or its first code or path; "" for none."""
    detail = _DETAIL.search(text)
    if detail:
        return detail[1]
    argument = _ARGUMENT.search(text)
    if argument is None:
        return ""
    code, code_line, path = argument.groups("")
    return code or code_line or path


def _find_block_end(lines: Sequence[str], start: int, end_tag: str) -> int:
    """Return the number of the line after a block; without an end, it goes up to the next turn."""
    open_marker = ""
    line_count = len(lines)
    for number in range(start, line_count):
        line = lines[number]
        after = number + 1
        # A tag in a fence is quoted, unless the part ends with it: then the fence is broken.
        has_end_tag = line.rstrip().endswith(end_tag)
        if has_end_tag and (not open_marker or _ends_part(lines, after)):
            return after
        if not open_marker and _is_header_after_rule(lines, number):
            return number
        open_marker = open_fence_after(line, open_marker)
    return line_count


def _find_rule_or_header(lines: Sequence[str], start: int) -> int:
    """Return the number of the first line below `start` that ends a part, or of the file's end."""
    open_marker = ""
    for number in range(start + 1, len(lines)):
        if _is_header_after_rule(lines, number):
            return number
        if not open_marker and _is_border(lines[number]):
            return number
        open_marker = open_fence_after(lines[number], open_marker)
    return len(lines)


# Borders of parts


def _is_border(line: str) -> bool:
    if line.rstrip() == _RULE:
        return True
    return parse_header(line) is not None


def _is_header_after_rule(lines: Sequence[str], number: int) -> bool:
    """Return whether a line is a header, and the last line above it that is not blank a rule."""
    line = lines[number]
    if parse_header(line) is None:
        return False
    return _line_above(lines, number) == _RULE


def _begins_part(lines: Sequence[str], number: int) -> bool:
    return _is_border(_line_above(lines, number))


def _line_above(lines: Sequence[str], number: int) -> str:
    """Return the last line above one that is not blank, without white space at its end."""
    for above in range(number - 1, -1, -1):
        line = lines[above].rstrip()
        if line:
            return line
    return ""


def _ends_part(lines: Sequence[str], number: int) -> bool:
    """Return whether a part ends before a line: at a rule, a header, a block or the file's end."""
    for below in range(number, len(lines)):
        line = lines[below]
        if line.strip():
            return _is_border(line) or line.startswith(("<tool-use", _THOUGHT_TAG))
    return True
