"""Reads transcripts in Markdown or plain text, which people keep by hand.

Questions are quoted with ">", or turns stand under the speakers' names. Every line that is not
blank belongs to one turn, or to the preamble above the first. Nothing is cut; rules and fences
stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from anchord.core.lazy_re import lazy_re
from anchord.sources.conversations.events import Event, Role, SessionInfo, TranscriptFile, Turn
from anchord.sources.conversations.formats.fences import fenced_line_numbers
from anchord.sources.conversations.formats.text_lines import read_all_lines
from anchord.sources.conversations.formats.turn_markers import (
    CALLOUT,
    QUOTE,
    TurnMarker,
    detect_style,
    find_quote_end,
    find_turn_markers,
    guess_style,
    strip_quote_mark,
)
from anchord.sources.documents.normalize import normalize_text

SOURCE = "transcript"

_SUFFIXES = (".md", ".markdown", ".txt")
_OTHER_FORMATS = ("_**User", "_**Agent", "_**Assistant", "# aider chat started at ")
_TRANSCRIPT_TYPE = lazy_re(r"type:\s*[\"']?transcript[\"']?\s*(?:#.*)?$", re.IGNORECASE)
_TITLE = lazy_re(r"title:\s*(.*?)\s*$")
_KEY = lazy_re(r"[\w.-]+:(?:\s|$)")
_FRONT_MATTER_LINE = lazy_re(rf"{_KEY.pattern}|\s+\S|- |#|$")
_MAX_FRONT_MATTER_LINES = 200


def matches(head: bytes, path: str) -> bool:
    """Return whether a text declares itself a transcript, or reads like one.

    It reads like one with three quoted questions or two changes of speaker. Documents have
    quotations and speakers too: outside of conversation folders, only `declares_transcript` should
    decide.

    Args:
        head: the file's first bytes.
        path: the file's path, with "/".
    """
    lower_path = path.lower()
    if not lower_path.endswith(_SUFFIXES):
        return False
    lines = _head_lines(head)
    if _has_transcript_type(lines):
        return True
    if any(line.startswith(_OTHER_FORMATS) for line in lines):
        return False
    fenced = fenced_line_numbers(lines)
    style = detect_style(find_turn_markers(lines, fenced))
    if style == QUOTE:
        # Lines that start with "#### " are aider's questions, and aider quotes its own output.
        return not any(line.startswith("#### ") for line in lines)
    return style != ""


def declares_transcript(head: bytes) -> bool:
    """Return whether the front matter in a file's first bytes has `type: transcript`."""
    lines = _head_lines(head)
    return _has_transcript_type(lines)


def _head_lines(head: bytes) -> list[str]:
    text = head.decode("utf-8", "replace")
    normalized = normalize_text(text)
    return normalized.split("\n")


def _has_transcript_type(lines: Sequence[str]) -> bool:
    length = _front_matter_length(lines)
    front_matter = lines[:length]
    return any(map(_TRANSCRIPT_TYPE.match, front_matter))


def read_events(transcript_file: TranscriptFile) -> Iterator[Event]:
    """Yield the one session of a file, however few turns it has. Its id is the file's path.

    Raises:
        TooLongError: the file is larger than 64 MiB.
    """
    lines = read_all_lines(transcript_file)
    body_start = _front_matter_length(lines)
    front_matter = lines[:body_start]
    body = lines[body_start:]
    fenced = fenced_line_numbers(body)
    markers_by_style = find_turn_markers(body, fenced)
    style = guess_style(markers_by_style)
    markers = markers_by_style.get(style, ())
    preamble = body
    if markers:
        first_marker = markers[0]
        preamble = body[: first_marker.line_number]
    title = _find_title(front_matter, preamble)
    yield SessionInfo(session=transcript_file.path, title=title)
    yield from _answer_turns("0", preamble)
    yield from _make_turns(body, style, markers)


def _front_matter_length(lines: Sequence[str]) -> int:
    """Return the number of lines of front matter, its rules included; 0 for none.

    Front matter is keys and values between two rules. A text that has a turn there has none.
    """
    if not lines or lines[0].rstrip() != "---":
        return 0
    end = _find_closing_rule(lines)
    between = lines[1:end]
    if not any(map(_KEY.match, between)):
        return 0
    if not all(map(_FRONT_MATTER_LINE.match, between)):
        return 0
    markers_by_style = find_turn_markers(between, frozenset())
    if any(markers_by_style.values()):
        return 0
    return end + 1


def _find_closing_rule(lines: Sequence[str]) -> int:
    """Return the number of the line that ends front matter, 0 for none."""
    candidates = lines[1:_MAX_FRONT_MATTER_LINES]
    for number, line in enumerate(candidates, 1):
        if line.rstrip() in ("---", "..."):
            return number
    return 0


def _find_title(front_matter: Sequence[str], preamble: Sequence[str]) -> str:
    """Return the title in the front matter, or else the first heading above the first turn."""
    title = _front_matter_title(front_matter)
    if title:
        return title
    for line in preamble:
        if line.startswith("# "):
            heading = line[2:]
            return heading.strip()
    return ""


def _front_matter_title(front_matter: Sequence[str]) -> str:
    for line in front_matter:
        match = _TITLE.match(line)
        if match:
            title = match[1]
            return title.strip("\"'")
    return ""


def _make_turns(body: Sequence[str], style: str, markers: Sequence[TurnMarker]) -> Iterator[Turn]:
    """Yield a turn for each marker, and one more for prose that follows a quoted turn."""
    question = 0
    answer = 0
    ends = [marker.line_number for marker in markers[1:]]
    ends.append(len(body))
    for marker, end in zip(markers, ends, strict=False):
        lines, after = _marked_lines(body, style, marker, end)
        if marker.is_user:
            question += 1
            answer = 0
            joined = "\n".join(lines)
            text = joined.strip("\n")
            yield Turn(
                id=str(question),
                role=Role.QUESTION,
                text=text,
                at=marker.timestamp,
            )
        else:
            answer += 1
            answer_id = f"{question}.{answer}"
            yield from _answer_turns(answer_id, lines, marker.timestamp)
        prose_id = f"{question}.{answer}+"
        prose = body[after:end]
        yield from _answer_turns(prose_id, prose)


def _marked_lines(
    body: Sequence[str], style: str, marker: TurnMarker, end: int
) -> tuple[Sequence[str], int]:
    """Return a marked turn's lines without quote marks, and the number of the line after them."""
    first = marker.line_number
    # A quoted question has no line of its own for the marker: it starts with the marker's line.
    if style != QUOTE:
        first += 1
    after = end
    lines = body[first:end]
    if style in (QUOTE, CALLOUT):
        after = find_quote_end(body, marker.line_number, end)
        quoted = body[first:after]
        lines = list(map(strip_quote_mark, quoted))
    inline_text = marker.inline_text
    if inline_text.strip():
        lines = [inline_text, *lines]
    return lines, after


def _answer_turns(turn_id: str, lines: Sequence[str], timestamp: str = "") -> Iterator[Turn]:
    """Yield lines as an answer; nothing where they are blank."""
    joined = "\n".join(lines)
    text = joined.strip("\n")
    if not text.strip():
        return
    yield Turn(
        id=turn_id,
        role=Role.ANSWER,
        text=text,
        at=timestamp,
    )
