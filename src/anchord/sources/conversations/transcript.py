"""Transcripts that people keep as Markdown or text: questions quoted with ">", or turns under the speakers' names.

Every line that says something is in one turn, or above the first; nothing is cut, rules and fences stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from anchord.conversation import Carrier, Event, Head, Role, Turn
from anchord.sources.clean import clean
from anchord.sources.conversations.fences import fenced
from anchord.sources.conversations.prose import whole_lines
from anchord.sources.conversations.transcript_marks import CALLOUT, QUOTE, Mark, decided, likeliest, marks, quote_end, unquoted

SOURCE = "transcript"

_ENDINGS = (".md", ".markdown", ".txt")
_OTHERS = ("_**User", "_**Agent", "_**Assistant", "# aider chat started at ")
_DECLARED = re.compile(r"type:\s*[\"']?transcript[\"']?\s*(?:#.*)?$", re.IGNORECASE)
_TITLE = re.compile(r"title:\s*(.*?)\s*$")
_KEY = re.compile(r"[\w.-]+:(?:\s|$)")
_FRONT = re.compile(rf"{_KEY.pattern}|\s+\S|- |#|$")
_MOST_FRONT = 200
"""Lines of front matter."""


def recognises(head: bytes, path: str) -> bool:
    """Whether a text says that it is a transcript, or has three questions or changes its speaker twice.

    Documents quote and have speakers too: outside of conversations only what is `declared` should be taken.
    """
    if not path.lower().endswith(_ENDINGS):
        return False
    lines = clean(head.decode("utf-8", "replace")).split("\n")
    if declared(head):
        return True
    if any(line.startswith(_OTHERS) for line in lines):
        return False
    style = decided(marks(lines, fenced(lines)))
    return style not in ("", QUOTE) or (style == QUOTE and not any(line.startswith("#### ") for line in lines))


def declared(head: bytes) -> bool:
    """Whether a text's front matter has `type: transcript`."""
    lines = clean(head.decode("utf-8", "replace")).split("\n")
    return any(_DECLARED.match(line) for line in lines[: _front(lines)])


def read(carrier: Carrier) -> Iterator[Event]:
    """Tell of the one session of a file. Once it is taken for a transcript, few turns or none are enough."""
    lines = whole_lines(carrier)
    begin = _front(lines)
    body = lines[begin:]
    inside = fenced(body)
    found = marks(body, inside)
    style = likeliest(found)
    turns = found.get(style, ())
    above = body[: turns[0].line] if turns else body
    yield Head(carrier.path, _title(lines[:begin], above))
    yield from _answer("0", above)
    yield from _turns(body, style, turns)


def _front(lines: Sequence[str]) -> int:
    """Return how many lines are front matter: keys and their values between rules, and nothing that somebody says."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    ends = (number for number, line in enumerate(lines[1:_MOST_FRONT], 1) if line.rstrip() in ("---", "..."))
    end = next(ends, 0)
    between = lines[1:end]
    keyed = any(map(_KEY.match, between)) and all(map(_FRONT.match, between))
    return end + 1 if end and keyed and not any(marks(between, frozenset()).values()) else 0


def _title(front: Sequence[str], above: Sequence[str]) -> str:
    given = next((found[1].strip("\"'") for line in front if (found := _TITLE.match(line))), "")
    return given or next((line[2:].strip() for line in above if line.startswith("# ")), "")


def _turns(body: Sequence[str], style: str, found: Sequence[Mark]) -> Iterator[Turn]:
    number = place = 0
    ends = [*(mark.line for mark in found[1:]), len(body)]
    for mark, end in zip(found, ends, strict=False):
        quoted = quote_end(body, mark.line, end) if style in (QUOTE, CALLOUT) else end
        first = mark.line if style == QUOTE else mark.line + 1
        own = [unquoted(line) for line in body[first:quoted]] if style in (QUOTE, CALLOUT) else body[first:quoted]
        said = [*([mark.rest] if mark.rest.strip() else []), *own]
        place += 1
        if mark.user:
            number, place = number + 1, 0
            yield Turn(str(number), Role.QUESTION, "\n".join(said).strip("\n"), mark.at)
        else:
            yield from _answer(f"{number}.{place}", said, mark.at)
        yield from _answer(f"{number}.{place}+", body[quoted:end])


def _answer(name: str, lines: Sequence[str], at: str = "") -> Iterator[Turn]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        yield Turn(name, Role.ANSWER, text, at)
