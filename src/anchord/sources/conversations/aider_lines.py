"""What lines of an aider history are: what a person wrote, what the assistant answered, what aider itself said.

Aider ends what it writes itself, a person's lines ("#### ") and its own ("> "), with two spaces, and puts a blank line before a
question. An answer has neither, so headings and quotations in answers are told apart by it; where an editor took such spaces
away, every "#### " line after a blank one outside fences is a question, and every "> " line is aider's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anchord.sources.conversations.fences import fenced
from anchord.sources.conversations.records import tool_line

_END = "  "
_INSTRUCTED = re.compile(r"(?:> Add the output to the chat\? )?[(\[][yY]/n/instructions[)\]]:? (\S.*)")
_REPLIES = frozenset({"y", "n", "yes", "no", "a", "all", "s", "skip", "d"})
_OFFER = "> Add the output to the chat?"
_SAID_BY_AIDER = ("> Tokens: ", "> Applied edit to ", "> Commit ", _OFFER)
_MODEL = re.compile(r"> (?:Main model|Models?): ([\w./:@+~-]+)", re.ASCII)
_EDITED, _RAN = "> Applied edit to ", "> Running "


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that a person wrote, the line after them, and what they say."""

    first: int
    after: int
    text: str


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield what a person wrote: questions, commands, and instructions that went along with a command's output."""
    inside, marked, after = fenced(lines), False, 0
    for number, line in enumerate(lines):
        if number < after:
            continue
        if line.startswith("#### ") and _asks(lines, number, fence=number in inside, marked=marked):
            after = number + 1
            while after < len(lines) and (lines[after].startswith("#### ") or lines[after] == "####"):
                after += 1
            marked = marked or lines[after - 1].endswith(_END)
            yield Block(number, after, "\n".join(_unmarked(each) for each in lines[number:after]))
        elif "/n/instructions" in line and (reply := _INSTRUCTED.match(line)):
            above = lines[number - 1] if number else ""
            typed = reply[1].rstrip()
            if typed.lower() not in _REPLIES and (line.startswith(">") or above.startswith(_OFFER)):
                after = number + 1
                yield Block(number, after, typed)


def _unmarked(line: str) -> str:
    return line[5:].removesuffix(_END)


def _asks(lines: Sequence[str], number: int, *, fence: bool, marked: bool) -> bool:
    """Whether a "#### " line was typed: what stands above it tells, for broken answers leave their fences open."""
    above, higher = (lines[number - back] if number >= back else "" for back in (1, 2))
    if above.strip():
        return False
    ended, apart = lines[number].endswith(_END), not higher.strip()
    if fence:
        return ended and (apart or higher.endswith(_END))
    return ended or apart or not marked


def is_marked(lines: Sequence[str], begin: int, end: int) -> bool:
    """Whether aider's spaces are there: behind the question, or above the first one behind any line."""
    return lines[begin - 1].endswith(_END) if begin else any(line.endswith(_END) for line in lines[:end])


@dataclass(frozen=True, slots=True)
class Answer:
    """What stands between two questions: the assistant's prose, and what aider said of models, programs and files."""

    text: str
    model: str
    tools: tuple[str, ...]
    files: tuple[str, ...]


def answered(lines: Sequence[str], *, marked: bool) -> Answer:
    """Return what stands between two questions. `marked`: aider's spaces are there."""
    inside, stops = fenced(lines), _stops(lines)
    runs, heard, number, close = [list[str]()], list[str](), 0, True
    while number < len(lines):
        line, after = lines[number], 0
        if line.startswith("> ") and number not in inside:
            if line.endswith(_END) or not marked:
                after = number + 1
            elif close or line.startswith(_SAID_BY_AIDER):  # Any other one is a quotation.
                place = bisect_right(stops, number)
                told = place < len(stops) and not lines[stops[place]].startswith("> ")
                after = stops[place] + 1 if told else number + 1
        if after:
            heard += lines[number:after]
            runs.append([])
        else:
            runs[-1].append(line)
        close, number = bool(after), after or number + 1
    prose = ("\n".join(run).strip("\n") for run in runs)
    return Answer(
        "\n\n".join(run for run in prose if run.strip()),
        next((found[1] for line in reversed(heard) if (found := _MODEL.match(line))), ""),
        tuple(tool_line("Run", line.removeprefix(_RAN).strip()) for line in heard if line.startswith(_RAN)),
        tuple(line.removeprefix(_EDITED).strip() for line in heard if line.startswith(_EDITED)),
    )


def _stops(lines: Sequence[str]) -> list[int]:
    """Return the lines at which what aider says in one go can end.

    Only the first of its lines has its mark, right below a question or something else that it said, where no answer can begin;
    only the last has its spaces. A line with both is something else that it says: what came before it had no end.
    """
    ends = []
    for number, line in enumerate(lines):
        if line.endswith(_END) and line.strip():
            follows = lines[number + 1] if number + 1 < len(lines) else ""
            if line.startswith("> ") or (line == line.rstrip() + _END and (not follows.strip() or follows[0] == ">")):
                ends.append(number)
    return ends
