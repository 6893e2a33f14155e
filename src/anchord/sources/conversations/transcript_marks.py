"""How people mark who speaks in a transcript: which of a text's lines begin a turn, in five styles.

A text is in the style that first has enough turns from its top, so that nothing written below them changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from anchord.sources.conversations.records import time_of

QUOTE, CALLOUT = "quote", "callout"

_USER = r"(?P<user>users?|human|me|you(?: said)?)"
_NAMED = r"assistant|ai|bot|chatbot|claude|chatgpt|gpt(?:-[\w.-]+)?|gemini|copilot|deepseek|grok|mistral"
_MODEL = rf"(?:{_NAMED}|agent|model|llm)(?: said| response)?"
_ABOUT = r"(?: *(?P<about>\([^()\n]*\)|\[[^\[\]\n]*\]))?"
_SIGN = r"(?:[^\x00-\x7f]{1,3} *)?"
_STYLES = {
    "heading": re.compile(rf"#{{1,6}} +{_SIGN}(?i:{_USER}\b|{_MODEL}\b){_ABOUT} *(?::(?P<rest>.*))?$"),
    "bold": re.compile(rf"\*\*{_SIGN}(?i:{_USER}\b|(?:{_NAMED})\b){_ABOUT} *(?::\*\*|\*\* *:|\*\*(?= *$))(?P<rest>.*)$"),
    "plain": re.compile(rf"{_SIGN}(?=[A-Z])(?i:{_USER}\b|(?:{_NAMED})(?: said)?\b){_ABOUT} ?:(?P<rest>.*)$"),
}
"""In the last two, agents and models are left out: `Model: ...` is what stands above a transcript."""
_STYLES[CALLOUT] = re.compile(rf"> ?\[!(?i:{_USER}|(?P<asks>question|prompt)|{_MODEL}|answer|response)\][+-]?(?P<rest>.*)$")
_LABEL = re.compile(rf" *{_SIGN}(?i:{_USER}|{_MODEL}){_ABOUT}:? *$")
_FIRST = {"#": "heading", "*": "bold", ">": CALLOUT}
_RULE = re.compile(r" {0,3}(?:-{3,}|\*{3,}|_{3,})\s*")
_LEAST_QUOTES, _LEAST_CHANGES = 3, 2


@dataclass(frozen=True, slots=True)
class Mark:
    """The beginning of a turn."""

    line: int
    user: bool
    rest: str = ""
    """What is said in the same line."""
    at: str = ""


Marks = Mapping[str, Sequence[Mark]]


def marks(lines: Sequence[str], inside: frozenset[int]) -> Marks:
    """Return the marks of each style; what is in a fence is none."""
    found: dict[str, list[Mark]] = {}
    for number, line in enumerate(lines):
        if number in inside or not line:
            continue
        style = _FIRST.get(line[0], "plain")
        if match := _STYLES[style].match(line):
            found.setdefault(style, []).append(_mark(number, style, match))
    found[QUOTE] = list(_questions(lines, inside))
    return found


def _mark(number: int, style: str, match: re.Match[str]) -> Mark:
    rest = match["rest"] or ""
    if style == CALLOUT:
        return Mark(number, bool(match["user"] or match["asks"]), "" if _LABEL.match(rest) else rest.strip())
    return Mark(number, bool(match["user"]), rest.removeprefix(" "), time_of((match["about"] or "")[1:-1]))


def quote_end(lines: Sequence[str], number: int, end: int) -> int:
    """Return the line after the quoted ones, at most the end."""
    while number < end and lines[number].startswith(">"):
        number += 1
    return number


def unquoted(line: str) -> str:
    """Return a quoted line without its mark."""
    return line[1:].removeprefix(" ")


def _questions(lines: Sequence[str], inside: frozenset[int]) -> Iterator[Mark]:
    """Yield where quoted lines begin that are a question: right below an answer's words they are a quotation."""
    number, opened = 0, False
    while number < len(lines):
        after = quote_end(lines, number, len(lines)) if number not in inside else number
        if after > number:
            above = lines[number - 1] if number else ""
            apart = not opened or not above.strip() or _RULE.fullmatch(above)
            said = any(line[1:].strip() for line in lines[number:after])
            if apart and said and lines[number][1:2] in ("", " ") and not _is_callout(lines[number]):
                opened = True
                yield Mark(number, user=True)
        number = max(after, number + 1)


def _is_callout(line: str) -> bool:
    return line[1:].lstrip().startswith("[!")


def decided(found: Marks) -> str:
    """Return the style that first has enough turns, "" where none has."""
    reached = {style: line for style, each in found.items() if (line := _enough(style, each)) is not None}
    return min(reached, key=lambda style: reached[style], default="")


def likeliest(found: Marks) -> str:
    """Return the decided style, or where none is the one that a user's turn comes first in."""
    first = {style: next((mark.line for mark in each if mark.user), None) for style, each in found.items()}
    known = {style: line for style, line in first.items() if line is not None}
    return decided(found) or min(known, key=lambda style: known[style], default=QUOTE)


def _enough(style: str, found: Sequence[Mark]) -> int | None:
    """Return the line by which there are enough turns."""
    if style == QUOTE:
        return found[_LEAST_QUOTES - 1].line if len(found) >= _LEAST_QUOTES else None
    changes = 0
    for before, mark in pairwise(found):
        changes += before.user != mark.user
        if changes == _LEAST_CHANGES:
            return mark.line
    return None
