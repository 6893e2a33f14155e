"""Reads a text as its reader would.

Zero-width characters are left out, escapes are decoded and parts of strings are joined.
"""

from __future__ import annotations

import bisect
import html
import re
from dataclasses import dataclass

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.words import WordPlaces

_INVISIBLE_RANGES = (
    ("\x00", "\x08"),
    ("\x0b", "\x0c"),
    ("\x0e", "\x1f"),
    ("\x7f", "\x84"),
    ("\x86", "\x9f"),
    ("\u00ad", "\u00ad"),
    ("\u034f", "\u034f"),
    ("\u061c", "\u061c"),
    ("\u115f", "\u1160"),
    ("\u17b4", "\u17b5"),
    ("\u180b", "\u180e"),
    ("\u200b", "\u200f"),
    ("\u2028", "\u202e"),
    ("\u2060", "\u2064"),
    ("\u2066", "\u206f"),
    ("\ufe00", "\ufe0f"),
    ("\ufeff", "\ufeff"),
    ("\U000e0000", "\U000e007f"),
)
INVISIBLE = "".join(
    chr(code) for first, last in _INVISIBLE_RANGES for code in range(ord(first), ord(last) + 1)
)
"""Characters that a reader does not see; none has a meaning in a set of a regular expression."""
_HEX_OF_INVISIBLE = r"(?:200[b-fB-F]|202[89a-eA-E]|206[0-4]|[fF][eE][fF][fF]|0{0,2}[aA][dD])"
_ASCII_ESCAPES = (
    # What is not seen, as it is written in HTML and in code; and what a terminal does not show
    rf"&(?:ZeroWidthSpace|NoBreak|zwnj|zwj|shy|#0{{0,4}}(?:173|820[3-7]|8288|65279)|#[xX]0{{0,4}}{_HEX_OF_INVISIBLE});",
    rf"\\u(?:{_HEX_OF_INVISIBLE}|\{{0{{0,4}}{_HEX_OF_INVISIBLE}\}})",
    r"<wbr ?/?>",
    r"\x1b(?:\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|P[^\x1b\n]{0,400}\x1b\\|[()][0-9A-Za-z])",
    # A terminal's colours, also as they are written in code
    r"(?:\x1b|\\(?:033|x1[bB]|u001[bB]|e)|\^\[)\[[0-9;?]{0,20}[A-Za-z]",
    r"%[0-9A-Fa-f]{2}",
    r"\\(?:u00[0-9A-Fa-f]{2}|x[2-7][0-9A-Fa-f]|/)",
    # A line that goes on
    r"(?<=[\w+/=.-])\\\n[ \t]{0,40}(?=[\w+/=.-])",
    # In octal, as in $'\\141'
    r"\\(?:0[4-7]|1[0-7])[0-7]",
    # Between two strings, as in "a" + "b"
    r"[\"'](?<=[\w+/=!#$%^&*~-].)(?:\s{0,40}(?:\.\.|[+.&\\])\s{0,40}|\s{1,40})[\"'](?=[\w+/=!#$%^&*~-])",
    r"&(?:amp|quot|lt|gt|apos|#\d{2,3}|#x[0-9A-Fa-f]{2});",
)
_ESCAPE = lazy_re(f"{'|'.join(_ASCII_ESCAPES)}|[{INVISIBLE}]")
_SPACES = "".join(char for char in map(chr, range(0x3001)) if char.isspace())
WORDS = (
    *(f"%{digit}" for digit in "0123456789abcdef"),
    *("\\u", "\\x", "\\/", "\\\n", "\\0", "\\1", "\\e[", "^[[", "&a", "&q", "&l", "&g", "&#"),
    *("&z", "&n", "&s", "<wbr"),
    *(f"{quote}{after}" for quote in "\"'" for after in f"{_SPACES}.+&\\"),
    *INVISIBLE,
)
"""Each escape begins with one of these, in lower case."""


@dataclass(frozen=True, slots=True)
class DecodedText:
    """Lines of a text with their escapes decoded, and where each character came from.

    Attributes:
        text: The decoded lines.
    """

    text: str
    _starts: list[int]
    """Where each segment begins in `text`."""
    _origins: list[int]
    """Where each segment begins in the original."""
    _widths: list[int]
    """How many characters of the original a character of the segment stands for."""

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of `text` stands in the original."""
        return self._original(start)[0], self._original(end - 1)[1]

    def _original(self, index: int) -> tuple[int, int]:
        segment = bisect.bisect_right(self._starts, index) - 1
        width = self._widths[segment]
        start = self._origins[segment] + (index - self._starts[segment])
        return start, start + width


def decode_escapes(text: str, places: WordPlaces) -> DecodedText | None:
    """Return the lines of a text that contain escapes, decoded; None if there are none.

    Args:
        text: The text.
        places: Where `WORDS` stand in it.
    """
    builder = _Builder(text)
    end = 0
    for place in places.of_any(WORDS):
        escape = _ESCAPE.match(text, place) if place >= end else None
        if escape:
            builder.add(escape)
            end = escape.end()
    return builder.finish() if end else None


class _Builder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self._length = 0
        self._starts: list[int] = []
        self._origins: list[int] = []
        self._widths: list[int] = []
        self._place = -1
        """Where the next segment begins in the original; -1 between lines."""
        self._line_end = -1

    def add(self, escape: re.Match[str]) -> None:
        start, end = escape.span()
        if start >= self._line_end:
            self._end_line()
            self._place = self._line_start(start)
            line_end = self._text.find("\n", end)
            self._line_end = len(self._text) if line_end < 0 else line_end
        self._append(self._text[self._place : start], self._place, 1)
        self._append(_decode(escape[0]), start, end - start)
        self._place = end
        if end > self._line_end:  # A string that goes on in another line.
            line_end = self._text.find("\n", end)
            self._line_end = len(self._text) if line_end < 0 else line_end

    def _line_start(self, place: int) -> int:
        """Return where a line begins; with the line before it if a value begins after that."""
        start = self._text.rfind("\n", 0, place) + 1
        if self._text[max(0, start - 2) : start] in {"(\n", "=\n"}:
            line_start = self._text.rfind("\n", 0, start - 1) + 1
            start = max(line_start, self._line_end + 1, 0)
        return start

    def finish(self) -> DecodedText:
        self._end_line()
        return DecodedText(
            "".join(self._parts),
            self._starts,
            self._origins,
            self._widths,
        )

    def _end_line(self) -> None:
        if self._place >= 0:
            stop = min(self._line_end + 1, len(self._text))
            self._append(self._text[self._place : stop], self._place, 1)

    def _append(self, part: str, origin: int, width: int) -> None:
        if part:
            self._parts.append(part)
            self._starts.append(self._length)
            self._origins.append(origin)
            self._widths.append(width)
            self._length += len(part)


def _decode(escape: str) -> str:
    decoded = _decode_character(escape)
    return "" if decoded in INVISIBLE else decoded


def _decode_character(escape: str) -> str:
    if escape[0] in "\x1b<" or (escape[-1].isalpha() and "[" in escape):  # Of a terminal, of HTML
        return ""
    if escape[0] == "%":
        code = int(escape[1:], 16)
        return chr(code) if " " <= chr(code) <= "~" else "\ufffd"
    if escape[0] == "\\":
        if escape[1] == "\n":
            return ""
        if escape[1] in "01":
            return chr(int(escape[1:], 8))
        digits = escape[2:].strip("{}")
        return "/" if escape == "\\/" else chr(int(digits, 16))
    return html.unescape(escape) if escape[0] == "&" else ""
