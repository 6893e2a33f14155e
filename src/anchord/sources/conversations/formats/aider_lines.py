"""Who wrote which lines of an aider history: the person, the assistant, or aider itself.

Aider marks the person's lines with "#### " and its own with "> ". It ends both with two spaces and
puts a blank line before a question. Headings and quotations in an answer look the same but for
those spaces. Some editors strip trailing spaces. Then every "#### " line outside fences below a
blank line is a question, and every "> " line outside fences is aider's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.formats.fences import fenced_line_numbers
from anchord.sources.conversations.formats.json_records import format_tool_call

_AIDER_SPACING = "  "
_QUESTION_MARK = "#### "
_EMPTY_QUESTION_LINE = "####"
_NOTICE_MARK = "> "
_INSTRUCTIONS = lazy_re(
    r"(?:> Add the output to the chat\? )?[(\[][yY]/n/instructions[)\]]:? (\S.*)"
)
_REPLIES = frozenset({"y", "n", "yes", "no", "a", "all", "s", "skip", "d"})
_ADD_OUTPUT_PROMPT = "> Add the output to the chat?"
_EDITED_PREFIX = "> Applied edit to "
_RAN_PREFIX = "> Running "
_NOTICE_PREFIXES = ("> Tokens: ", _EDITED_PREFIX, "> Commit ", _ADD_OUTPUT_PROMPT)
_MODEL = lazy_re(r"> (?:Main model|Models?): ([\w./:@+~-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class UserBlock:
    """Lines that a person wrote: `lines[start:end]`, and their text without marks."""

    start: int
    end: int
    text: str


def find_user_blocks(lines: Sequence[str]) -> Iterator[UserBlock]:
    """Yield what a person wrote, in order.

    That is questions, commands, and instructions given together with a command's output.

    Args:
        lines: The lines of a session, without line ends.
    """
    fenced = fenced_line_numbers(lines)
    has_spacing = False  # Whether a question so far has aider's spaces.
    end = 0
    for number, line in enumerate(lines):
        if number < end:
            continue
        if line.startswith(_QUESTION_MARK):
            in_fence = number in fenced
            if _is_question(lines, number, in_fence=in_fence, has_spacing=has_spacing):
                end = _question_end(lines, number)
                has_spacing = has_spacing or lines[end - 1].endswith(_AIDER_SPACING)
                yield UserBlock(number, end, _question_text(lines[number:end]))
        elif instructions := _find_instructions(lines, number):
            end = number + 1
            yield UserBlock(number, end, instructions)


def _question_end(lines: Sequence[str], start: int) -> int:
    """Return the number of the line after a question."""
    end = start + 1
    while end < len(lines) and _continues_question(lines[end]):
        end += 1
    return end


def _continues_question(line: str) -> bool:
    return line.startswith(_QUESTION_MARK) or line == _EMPTY_QUESTION_LINE


def _question_text(lines: Sequence[str]) -> str:
    marked = len(_QUESTION_MARK)
    return "\n".join(line[marked:].removesuffix(_AIDER_SPACING) for line in lines)


def _find_instructions(lines: Sequence[str], number: int) -> str:
    """Return what a person typed instead of yes or no when asked to add an output, "" for none."""
    line = lines[number]
    if "/n/instructions" not in line:
        return ""
    found = _INSTRUCTIONS.match(line)
    if found is None:
        return ""
    above = lines[number - 1] if number else ""
    is_prompt = line.startswith(">") or above.startswith(_ADD_OUTPUT_PROMPT)
    if not is_prompt:
        return ""
    typed = found[1].rstrip()
    if typed.lower() in _REPLIES:
        return ""
    return typed


def _is_question(lines: Sequence[str], number: int, *, in_fence: bool, has_spacing: bool) -> bool:
    """Return whether a "#### " line was typed, and is no heading of an answer.

    A line in a fence can be a question too: an answer that was cut off leaves its fence open.
    """
    above = lines[number - 1] if number >= 1 else ""
    higher = lines[number - 2] if number >= 2 else ""
    if above.strip():
        return False
    is_spaced = lines[number].endswith(_AIDER_SPACING)
    has_two_blanks = not higher.strip()
    if in_fence:
        return is_spaced and (has_two_blanks or higher.endswith(_AIDER_SPACING))
    return is_spaced or has_two_blanks or not has_spacing


def has_aider_spacing(lines: Sequence[str], start: int, end: int) -> bool:
    """Return whether aider's two spaces survived around an answer.

    The last line of the question above the answer shows it. Above the first question any line does.

    Args:
        lines: The lines of a session.
        start: The first line of the answer; 0 for what is above the first question.
        end: The line after the answer.
    """
    if start:
        return lines[start - 1].endswith(_AIDER_SPACING)
    return any(line.endswith(_AIDER_SPACING) for line in lines[:end])


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What is between two questions: the assistant's prose, and what aider's notices say."""

    text: str
    model: str
    """The model that aider named last, "" for none."""
    tools: tuple[str, ...]
    """Programs that aider ran."""
    files: tuple[str, ...]
    """Files that aider changed."""


def parse_answer(lines: Sequence[str], *, has_spacing: bool) -> ParsedAnswer:
    """Separate the assistant's prose from aider's notices.

    Args:
        lines: The lines between two questions.
        has_spacing: Aider's two spaces are there (see `has_aider_spacing`).
    """
    runs, notices = _split_notices(lines, has_spacing=has_spacing)
    prose = ("\n".join(run).strip("\n") for run in runs)
    model = ""
    for notice in notices:
        named = _MODEL.match(notice)
        if named:
            model = named[1]
    programs = _rests_behind(_RAN_PREFIX, notices)
    edited_files = _rests_behind(_EDITED_PREFIX, notices)
    return ParsedAnswer(
        text="\n\n".join(run for run in prose if run.strip()),
        model=model,
        tools=tuple(format_tool_call("Run", program) for program in programs),
        files=tuple(edited_files),
    )


def _rests_behind(prefix: str, notices: Sequence[str]) -> Iterator[str]:
    for line in notices:
        if line.startswith(prefix):
            yield line.removeprefix(prefix).strip()


def _split_notices(
    lines: Sequence[str], *, has_spacing: bool
) -> tuple[list[list[str]], Sequence[str]]:
    """Return the runs of prose lines, and all lines of aider's notices."""
    fenced = fenced_line_numbers(lines)
    possible_ends = _notice_ends(lines)
    runs: list[list[str]] = [[]]
    notices: list[str] = []
    number = 0
    after_notice = True  # A notice can also begin right below the question.
    while number < len(lines):
        line = lines[number]
        end = number
        if line.startswith(_NOTICE_MARK) and number not in fenced:
            if line.endswith(_AIDER_SPACING) or not has_spacing:
                end = number + 1
            elif after_notice or line.startswith(_NOTICE_PREFIXES):
                end = _notice_end(lines, number, possible_ends)
            # Any other such line is a quotation in the answer.
        after_notice = end > number
        if after_notice:
            notices += lines[number:end]
            runs.append([])
            number = end
        else:
            runs[-1].append(line)
            number += 1
    return runs, notices


def _notice_end(lines: Sequence[str], start: int, possible_ends: Sequence[int]) -> int:
    """Return the number of the line after a notice that begins without aider's spaces.

    A notice of many lines ends at the next possible end, unless another notice is there.
    """
    place = bisect_right(possible_ends, start)
    if place < len(possible_ends):
        last = possible_ends[place]
        if not lines[last].startswith(_NOTICE_MARK):
            return last + 1
    return start + 1


def _notice_ends(lines: Sequence[str]) -> list[int]:
    """Return the lines at which a notice of aider can end.

    Of a notice's lines, only the first has the mark, right below a question or another notice,
    where no answer can begin. Only the last has the spaces. A line with both is a notice of its
    own: the one before it has no end.
    """
    ends: list[int] = []
    for number, line in enumerate(lines):
        if not line.endswith(_AIDER_SPACING) or not line.strip():
            continue
        if line.startswith(_NOTICE_MARK):
            ends.append(number)
            continue
        below = lines[number + 1] if number + 1 < len(lines) else ""
        has_only_two_spaces = line == line.rstrip() + _AIDER_SPACING
        ends_paragraph = not below.strip() or below.startswith(">")
        if has_only_two_spaces and ends_paragraph:
            ends.append(number)
    return ends
