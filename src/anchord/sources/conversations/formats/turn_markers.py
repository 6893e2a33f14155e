"""How people mark in a transcript who speaks: the lines that begin a turn, in five styles.

A text has the style whose turns are enough first, counted from the top. So nothing that is written
below these turns changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.formats.json_records import normalize_timestamp

QUOTE, CALLOUT = "quote", "callout"

_USER = r"(?P<user>users?|human|me|you(?: said)?)"
_NAMED = (
    r"assistant|ai|bot|chatbot|claude|chatgpt|gpt(?:-[\w.-]+)?|gemini|copilot|deepseek|grok|mistral"
)
_MODEL = rf"(?:{_NAMED}|agent|model|llm)(?: said| response)?"
_DETAILS = r"(?: *(?P<details>\([^()\n]*\)|\[[^\[\]\n]*\]))?"
_EMOJI = r"(?:[^\x00-\x7f]{1,3} *)?"
_STYLES = {
    "heading": lazy_re(
        rf"#{{1,6}} +{_EMOJI}(?i:{_USER}\b|{_MODEL}\b){_DETAILS} *(?::(?P<rest>.*))?$"
    ),
    "bold": lazy_re(
        rf"\*\*{_EMOJI}(?i:{_USER}\b|(?:{_NAMED})\b){_DETAILS}"
        r" *(?::\*\*|\*\* *:|\*\*(?= *$))(?P<rest>.*)$"
    ),
    "plain": lazy_re(
        rf"{_EMOJI}(?=[A-Z])(?i:{_USER}\b|(?:{_NAMED})(?: said)?\b){_DETAILS} ?:(?P<rest>.*)$"
    ),
    CALLOUT: lazy_re(
        rf"> ?\[!(?i:{_USER}|(?P<asks>question|prompt)|{_MODEL}|answer|response)\]"
        r"[+-]?(?P<rest>.*)$"
    ),
}
"""Bold and plain names leave out "agent" and "model": `Model: ...` is a line above a transcript."""
_SPEAKER_LABEL = lazy_re(rf" *{_EMOJI}(?i:{_USER}|{_MODEL}){_DETAILS}:? *$")
_STYLE_BY_FIRST_CHAR = {"#": "heading", "*": "bold", ">": CALLOUT}
_RULE = lazy_re(r" {0,3}(?:-{3,}|\*{3,}|_{3,})\s*")
_MIN_QUOTES = 3
_MIN_SPEAKER_CHANGES = 2


@dataclass(frozen=True, slots=True)
class TurnMarker:
    """The line that begins a turn."""

    line_number: int
    is_user: bool
    inline_text: str = ""
    """The turn's text in that line; "" for none."""
    timestamp: str = ""


MarkersByStyle = Mapping[str, Sequence[TurnMarker]]
"""Each style's markers, by line."""


def find_turn_markers(lines: Sequence[str], fenced_lines: frozenset[int]) -> MarkersByStyle:
    """Return the markers of every style.

    Args:
        lines: the lines of a text.
        fenced_lines: the numbers of the lines in code fences; no turn begins there.
    """
    markers: dict[str, list[TurnMarker]] = {}
    for number, line in enumerate(lines):
        if number in fenced_lines or not line:
            continue
        style = _STYLE_BY_FIRST_CHAR.get(line[0], "plain")
        if match := _STYLES[style].match(line):
            markers.setdefault(style, []).append(_make_marker(number, style, match))
    markers[QUOTE] = list(_find_quoted_questions(lines, fenced_lines))
    return markers


def _make_marker(line_number: int, style: str, match: re.Match[str]) -> TurnMarker:
    rest = match["rest"] or ""
    if style == CALLOUT:
        return TurnMarker(
            line_number=line_number,
            is_user=bool(match["user"] or match["asks"]),
            # The title of a callout often repeats the speaker, which is no text of the turn.
            inline_text="" if _SPEAKER_LABEL.match(rest) else rest.strip(),
        )
    brackets = match["details"] or ""
    return TurnMarker(
        line_number=line_number,
        is_user=bool(match["user"]),
        inline_text=rest.removeprefix(" "),
        timestamp=normalize_timestamp(brackets[1:-1]),
    )


def find_quote_end(lines: Sequence[str], start: int, end: int) -> int:
    """Return the number of the first line from `start` on that is not quoted, at most `end`."""
    while start < end and lines[start].startswith(">"):
        start += 1
    return start


def strip_quote_mark(line: str) -> str:
    """Return a quoted line without its ">" and one space after it."""
    return line[1:].removeprefix(" ")


def _find_quoted_questions(
    lines: Sequence[str], fenced_lines: frozenset[int]
) -> Iterator[TurnMarker]:
    """Yield the first line of each quote that is a question."""
    number = 0
    has_question = False
    while number < len(lines):
        if number in fenced_lines or not lines[number].startswith(">"):
            number += 1
            continue
        after = find_quote_end(lines, number, len(lines))
        # Directly below an answer's text, a quote is a quotation. Above the first question there is
        # no answer.
        is_separate = not has_question or _is_separated(lines, number)
        if is_separate and _can_be_question(lines[number:after]):
            has_question = True
            yield TurnMarker(number, is_user=True)
        number = after


def _is_separated(lines: Sequence[str], number: int) -> bool:
    """Return whether the line above one is blank, a rule or missing."""
    above = lines[number - 1] if number else ""
    return not above.strip() or bool(_RULE.fullmatch(above))


def _can_be_question(quote: Sequence[str]) -> bool:
    """Return whether a quote has text, starts with "> " and is no callout such as "> [!NOTE]"."""
    has_text = any(line[1:].strip() for line in quote)
    is_callout = quote[0][1:].lstrip().startswith("[!")
    return has_text and not is_callout and quote[0][1:2] in ("", " ")


def detect_style(markers: MarkersByStyle) -> str:
    """Return the style whose turns are enough first, "" if no style has enough.

    Three quoted questions are enough, or two changes of the speaker in another style.
    """
    deciding_lines: dict[str, int] = {}
    for style, each in markers.items():
        line = _deciding_line(style, each)
        if line is not None:
            deciding_lines[style] = line
    return min(
        deciding_lines,
        key=lambda style: deciding_lines[style],
        default="",
    )


def guess_style(markers: MarkersByStyle) -> str:
    """Return the detected style, or else that of the first user's turn, or else `QUOTE`."""
    if style := detect_style(markers):
        return style
    first_lines: dict[str, int] = {}
    for style, each in markers.items():
        user_lines = (marker.line_number for marker in each if marker.is_user)
        line = next(user_lines, None)
        if line is not None:
            first_lines[style] = line
    return min(
        first_lines,
        key=lambda style: first_lines[style],
        default=QUOTE,
    )


def _deciding_line(style: str, markers: Sequence[TurnMarker]) -> int | None:
    """Return the line at which a style has enough turns, None if it never has."""
    if style == QUOTE:
        return markers[_MIN_QUOTES - 1].line_number if len(markers) >= _MIN_QUOTES else None
    changes = 0
    for before, marker in pairwise(markers):
        changes += before.is_user != marker.is_user
        if changes == _MIN_SPEAKER_CHANGES:
            return marker.line_number
    return None
