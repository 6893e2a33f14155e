"""Rewrites bracket expressions of ignore patterns so that pathspec reads them as git does.

git (wildmatch.c) supports classes such as `[[:alpha:]]`, takes a backslash as an escape, and reads
a backward range as empty. A pattern with an unclosed expression matches nothing. No expression
matches a slash, so none is written here.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, (*range(32), 127))),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
_SPECIAL_CHARS = "]\\[^!-&~|/"
"""Characters with a meaning between brackets: each is written by itself, in a safe place."""
_TRAILING_BLANK = re.compile(r"[^\S ]$")
CharRanges = list[tuple[int, int]]
"""First and last code point of each range, inclusive. A backward range is empty."""


def rewrite_brackets_for_pathspec(pattern: str) -> str | None:
    """Rewrite a pattern's bracket expressions for pathspec.

    Returns:
        The pattern; None if git would match nothing with it.
    """
    bare = pattern.rstrip(" ")
    if _TRAILING_BLANK.search(bare):
        # git removes only spaces from a pattern's end, pathspec every blank.
        pattern = f"{bare[:-1]}[{bare[-1]}]"
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            parts.append(pattern[at : at + 2])
            at += 2
        elif pattern[at] == "[":
            reader = _BracketReader(pattern, at + 1)
            rewritten = reader.read_and_rewrite()
            if rewritten is None:
                return None
            parts.append(rewritten)
            at = reader.at
        else:
            parts.append(pattern[at])
            at += 1
    return "".join(parts)


class _BracketReader:
    """Reads one bracket expression as wildmatch.c does."""

    def __init__(self, pattern: str, start: int) -> None:
        """Start behind the opening bracket."""
        self._pattern = pattern
        self.at = start
        """Index of the first character that has not been read."""
        self._ranges: CharRanges = []
        self._range_start = ""
        """The character that a dash could start a range from; "" if there is none."""

    def read_and_rewrite(self) -> str | None:
        """Read up to the closing bracket; return what pathspec reads the same way.

        Returns:
            The expression, "?" for one that matches any character, None for one that matches
            nothing or is invalid.
        """
        is_negated = self._peek() in ("!", "^")
        self.at += is_negated
        is_first = True  # A "]" in the first place is an ordinary character.
        while is_first or self._peek() != "]":
            is_first = False
            if not self._read_item():
                return None
        self.at += 1
        return _write_expression(self._ranges, is_negated=is_negated)

    def _peek(self, distance: int = 0) -> str:
        """Return a character that has not been read yet, "" behind the pattern's end."""
        start = self.at + distance
        return self._pattern[start : start + 1]

    def _read_item(self) -> bool:
        """Read a class, the rest of a range, or a character; return False if it is invalid."""
        if self._peek() == "[" and self._peek(1) == ":":
            end = self._pattern.find("]", self.at + 2)
            if end < 0:
                return False
            is_class = self._pattern[end - 1] == ":" and end > self.at + 2
            if is_class:
                return self._read_class(end)
            # Else the bracket is an ordinary character.
        if self._peek() == "-" and self._range_start and self._peek(1) not in ("", "]"):
            return self._read_range_end()
        return self._read_char()

    def _read_class(self, end: int) -> bool:
        """Read `[:name:]`, whose last bracket is at `end`."""
        chars = _CLASSES.get(self._pattern[self.at + 2 : end - 1])
        if chars is None:
            return False
        self._ranges += [(ord(char), ord(char)) for char in chars]
        self._range_start = ""
        self.at = end + 1
        return True

    def _read_range_end(self) -> bool:
        """Read a dash and the last character of a range, which may be escaped."""
        self.at += 2 if self._peek(1) == "\\" else 1
        last = self._peek()
        if not last:
            return False
        self._ranges.append((ord(self._range_start), ord(last)))
        self._range_start = ""
        self.at += 1
        return True

    def _read_char(self) -> bool:
        """Read a character, which may be escaped. A range may start with it."""
        if self._peek() == "\\":
            self.at += 1
        char = self._peek()
        if not char:
            return False
        self._ranges.append((ord(char), ord(char)))
        self._range_start = char
        self.at += 1
        return True


def _write_expression(ranges: CharRanges, *, is_negated: bool) -> str | None:
    """Write an expression; "?" if it matches any character, None if it matches none."""
    specials = {char for char in _SPECIAL_CHARS if _is_in(char, ranges)}
    ordinary = "".join(_write_range(low, high) for low, high in _without_specials(ranges))
    inner = "".join(char for char in "\\[^!&~|" if char in specials)
    # "]" is an ordinary character in the first place, "-" in the last.
    first = "]" if "]" in specials else ""
    last = "-" if "-" in specials else ""
    listed = first + ordinary + inner + last
    if is_negated:
        return f"[!{listed}]" if listed else "?"
    if not listed:
        return None
    if len(listed) == 1 and not listed.isspace():  # pathspec drops an escaped blank at the end.
        return f"\\{listed}"
    return "?" if listed[0] in "!^" else f"[{listed}]"


def _is_in(char: str, ranges: CharRanges) -> bool:
    return any(low <= ord(char) <= high for low, high in ranges)


def _without_specials(ranges: CharRanges) -> Iterator[tuple[int, int]]:
    """Yield the ranges with the special characters taken out."""
    for low, high in ranges:
        start = low
        for special in sorted(map(ord, _SPECIAL_CHARS)):
            if start <= special <= high:
                if start < special:
                    yield start, special - 1
                start = special + 1
        if start <= high:
            yield start, high


def _write_range(low: int, high: int) -> str:
    return chr(low) if low == high else f"{chr(low)}-{chr(high)}"
