"""Bracket expressions of ignore patterns as git reads them (wildmatch.c), written so that pathspec reads them the same.

git knows classes like `[[:alpha:]]`, takes a backslash for the letter behind it, lets a range that runs backwards be empty; an
expression that does not end makes its pattern match nothing. No expression matches a slash, so none is written here.
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
_SPECIAL = "]\\[^!-&~|/"
"""What may not stand just anywhere between brackets: each is written by itself."""
_END_BLANK = re.compile(r"[^\S ]$")
Ranges = list[tuple[int, int]]


def plain(pattern: str) -> str | None:
    """Return a pattern with brackets that pathspec reads as git does; None for one that matches nothing."""
    bare = pattern.rstrip(" ")
    if _END_BLANK.search(bare):  # Only spaces at the end are no part of a pattern to git.
        pattern = f"{bare[:-1]}[{bare[-1]}]"
    written, at = "", 0
    while at < len(pattern):
        if pattern[at] == "\\":
            written += pattern[at : at + 2]
            at += 2
        elif pattern[at] == "[":
            read = _read(pattern, at + 1)
            if read is None:
                return None
            (ranges, is_negated), at = read
            made = _written(ranges, is_negated=is_negated)
            if made is None:
                return None
            written += made
        else:
            written += pattern[at]
            at += 1
    return written


def _read(pattern: str, at: int) -> tuple[tuple[Ranges, bool], int] | None:
    """Read an expression from behind its bracket; return its ranges, whether they are those left out, and where it ends."""
    is_negated = pattern[at : at + 1] in ("!", "^")
    at += is_negated
    ranges: Ranges = []
    before, first = "", True  # `before`: a letter that a dash could begin a range with.
    while first or pattern[at : at + 1] != "]":
        first = False
        letter, behind = pattern[at : at + 1], pattern[at + 1 : at + 2]
        if not letter:
            return None
        if letter == "[" and behind == ":":
            end = pattern.find("]", at + 2)
            if end < 0:
                return None
            if pattern[end - 1] == ":" and end > at + 2:
                if pattern[at + 2 : end - 1] not in _CLASSES:
                    return None
                ranges += [(ord(each), ord(each)) for each in _CLASSES[pattern[at + 2 : end - 1]]]
                before, at = "", end + 1
                continue
        if letter == "-" and before and behind and behind != "]":
            at += 2 if behind == "\\" else 1
            last = pattern[at : at + 1]
            if not last:
                return None
            ranges.append((ord(before), ord(last)))
            before, at = "", at + 1
            continue
        if letter == "\\":
            at, letter = at + 1, behind
            if not letter:
                return None
        ranges.append((ord(letter), ord(letter)))
        before, at = letter, at + 1
    return (ranges, is_negated), at + 1


def _written(ranges: Ranges, *, is_negated: bool) -> str | None:
    """Return an expression, "?" for any letter, None for none."""
    singles = {letter for letter in _SPECIAL if any(low <= ord(letter) <= high for low, high in ranges)}
    body = "".join(_span(low, high) for low, high in _without_specials(ranges))
    inner = "".join(letter for letter in "\\[^!&~|" if letter in singles)
    listed = ("]" if "]" in singles else "") + body + inner + ("-" if "-" in singles else "")
    if is_negated:
        return f"[!{listed}]" if listed else "?"
    if not listed:
        return None
    if len(listed) == 1:
        return f"\\{listed}"
    return f"[{listed}]" if listed[0] not in "!^" else "?"


def _without_specials(ranges: Ranges) -> Iterator[tuple[int, int]]:
    for low, high in ranges:
        start = low
        for special in sorted(map(ord, _SPECIAL)):
            if start <= special <= high:
                if start < special:
                    yield start, special - 1
                start = special + 1
        if start <= high:
            yield start, high


def _span(low: int, high: int) -> str:
    return chr(low) if low == high else f"{chr(low)}-{chr(high)}"
