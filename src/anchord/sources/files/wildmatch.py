"""Translates the patterns of ignore files to regexes that match what git's wildmatch.c matches.

git compares bytes. Here patterns and paths are "byte texts": strings with one character of Latin-1
for each byte, so that "?" matches half of an "ü", as it does in git.

No regex takes long on any path. Between two stars only the first place where the text between them
fits need be tried, and between two `**/` only the first folders that fit; atomic groups say so.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence

_ANY = "[^/]"
_STAR = "*"
_DEEP = "**/"
_ALL = "**"
_NEVER = "(?!)"
_PRINTABLE = range(0x20, 0x7F)
_CLASSES: dict[str, frozenset[int]] = {
    name: frozenset(map(ord, members)) if isinstance(members, str) else frozenset(members)
    for name, members in {
        "alnum": string.ascii_letters + string.digits,
        "alpha": string.ascii_letters,
        "blank": " \t",
        "cntrl": (*range(0x20), 0x7F),
        "digit": string.digits,
        "graph": _PRINTABLE[1:],
        "lower": string.ascii_lowercase,
        "print": _PRINTABLE,
        "punct": string.punctuation,
        "space": " \t\n\r",  # git's own isspace(): no vertical tab, no form feed.
        "upper": string.ascii_uppercase,
        "xdigit": string.hexdigits,
    }.items()
}
_BYTES = range(1, 256)


class _InvalidPatternError(Exception):
    """git matches nothing with the pattern."""


def byte_text(path: str) -> str:
    """Return a path, or a line of an ignore file, as a byte text.

    Args:
        path: As `os.fsdecode` returns it.
    """
    if path.isascii():
        return path
    return path.encode("utf-8", "surrogateescape").decode("latin-1")


def regex_of(pattern: str, *, is_path: bool, ignores_case: bool) -> str | None:
    """Return the regex of a pattern, to be used with `fullmatch` and `re.DOTALL` on byte texts.

    Args:
        pattern: A byte text without "!", and without slashes at its start and its end.
        is_path: Whether it is about a path: "*" stops at slashes, and `**` is special.
        ignores_case: Whether ASCII letters match whatever their case, as with `core.ignoreCase`.

    Returns:
        The regex; None if git matches nothing with the pattern.
    """
    try:
        tokens = list(_Reader(pattern, is_path=is_path, ignores_case=ignores_case).read())
    except _InvalidPatternError:
        return None
    sections = _split(tokens, _DEEP)
    *first, last = (
        _write_section(section, is_last=number == len(sections))
        for number, section in enumerate(sections, 1)
    )
    if not first:
        return last
    between = [f"(?>(?:[^/]*/)*?{section})" for section in first[1:]]
    middle = "".join(between)
    return f"{first[0]}{middle}(?:.*/)?{last}"


def _write_section(tokens: Sequence[str], *, is_last: bool) -> str:
    """Write what stands between two `**/`; all but the last end with a slash."""
    pieces = ["".join(".*" if token == _ALL else token for token in piece)
              for piece in _split(tokens, _STAR)]  # fmt: skip
    parts = [pieces[0]]
    for number, piece in enumerate(pieces[1:], 2):
        is_end = is_last and number == len(pieces)
        parts.append(f"[^/]*{piece}" if is_end else f"(?>[^/]*?{piece})")
    return "".join(parts)


def _split(tokens: Sequence[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class _Reader:
    """Reads a pattern as wildmatch.c does, into regexes of one byte each and the marks of stars."""

    def __init__(self, pattern: str, *, is_path: bool, ignores_case: bool) -> None:
        self._pattern = pattern
        self._is_path = is_path
        self._ignores_case = ignores_case
        self._at = 0

    def read(self) -> Iterator[str]:
        """Yield a regex for each byte that the pattern matches, and `_STAR`, `_DEEP` or `_ALL`.

        Raises:
            _InvalidPatternError: git matches nothing with the pattern.
        """
        while self._at < len(self._pattern):
            char = self._peek()
            if char == "*":
                yield from self._read_stars()
                continue
            self._at += 1
            if char == "?":
                yield _ANY
            elif char == "[":
                yield self._read_bracket()
            elif char == "\\":
                yield self._escaped(self._take())
            else:
                yield self._literal(char)

    def _peek(self, distance: int = 0) -> str:
        """Return a character that has not been read yet, "" behind the pattern's end."""
        start = self._at + distance
        return self._pattern[start : start + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise _InvalidPatternError
        self._at += 1
        return char

    def _literal(self, char: str) -> str:
        if self._ignores_case and char in string.ascii_letters:
            return f"[{char.lower()}{char.upper()}]"
        if char in string.ascii_letters + "/":
            return char
        return f"\\x{ord(char):02x}"

    def _escaped(self, char: str) -> str:
        # git lowers the path's letter and not the escaped one of the pattern.
        if self._ignores_case and char in string.ascii_uppercase:
            return _NEVER
        return self._literal(char)

    def _read_stars(self) -> Iterator[str]:
        start = self._at
        while self._peek() == "*":
            self._at += 1
        is_single = self._at == start + 1
        is_inside_name = start > 0 and self._pattern[start - 1] != "/"
        if is_single or not self._is_path or is_inside_name:
            yield _STAR
        elif not self._peek():
            yield _ALL
        elif self._peek() == "/":
            self._at += 1
            yield _DEEP
        elif self._peek() == "\\" and self._peek(1) == "/":
            # Escaped, the slash must be there: at least one folder.
            self._at += 2
            yield from (_STAR, "/", _DEEP)
        else:
            yield _STAR

    def _read_bracket(self) -> str:
        """Read up to the closing bracket; return a regex for one byte."""
        is_negated = self._peek() in ("!", "^")
        self._at += is_negated
        chosen: set[int] = set()
        range_start = ""  # The character that a dash could start a range from.
        is_first = True  # A "]" in the first place is an ordinary character.
        while is_first or self._peek() != "]":
            is_first = False
            members, range_start = self._read_item(range_start)
            chosen |= members
        self._at += 1
        matched = {byte for byte in _BYTES if (byte in chosen) != is_negated} - {ord("/")}
        return (
            "".join(("[", *(f"\\x{byte:02x}" for byte in sorted(matched)), "]"))
            if matched
            else _NEVER
        )

    def _read_item(self, range_start: str) -> tuple[set[int], str]:
        """Read a class, the rest of a range, or a character.

        Returns:
            The bytes that it matches, and the character that a range could start from.
        """
        char = self._take()
        if char == "[" and self._peek() == ":":
            members = self._read_class()
            if members is not None:
                return members, ""
        elif char == "-" and range_start and self._peek() not in ("", "]"):
            last = self._take()
            last = self._take() if last == "\\" else last
            return self._bytes_where(_is_between(range_start, last)), ""
        elif char == "\\":
            char = self._take()
        code = ord(char)
        return {byte for byte in _BYTES if self._seen(byte) == code}, char

    def _read_class(self) -> set[int] | None:
        """Read `:name:]`; None, and nothing is read, if the bracket is an ordinary character."""
        end = self._pattern.find("]", self._at + 1)
        if end < 0:
            raise _InvalidPatternError
        if end == self._at + 1 or self._pattern[end - 1] != ":":
            return None
        name = self._pattern[self._at + 1 : end - 1]
        if name not in _CLASSES:
            raise _InvalidPatternError
        self._at = end + 1
        members = _CLASSES[name]
        if name == "upper":
            return self._bytes_where(members.__contains__)
        return {byte for byte in _BYTES if self._seen(byte) in members}

    def _bytes_where(self, holds: Callable[[int], bool]) -> set[int]:
        """Return the bytes for which something holds; without case, also for their capital."""
        found = {byte for byte in _BYTES if holds(self._seen(byte))}
        if self._ignores_case:
            capitals = {ord(char) for char in string.ascii_uppercase if holds(ord(char))}
            found |= capitals | {capital + 32 for capital in capitals}
        return found

    def _seen(self, byte: int) -> int:
        """Return a byte of a path as git compares it: without case, a capital is a small letter."""
        is_capital = ord("A") <= byte <= ord("Z")
        return byte + 32 if self._ignores_case and is_capital else byte


def _is_between(first: str, last: str) -> Callable[[int], bool]:
    return lambda byte: ord(first) <= byte <= ord(last)
