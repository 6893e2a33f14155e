"""Compiled lines of an ignore file, or of `include` and `exclude`, matched as git matches them."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from anchord.sources.files.wildmatch import byte_text, regex_of

_SPECIAL = re.compile(r"[*?\[\\]")
_NOTHING = re.compile("(?!)")


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """The pattern that decides on a path."""

    is_match: bool
    """False for a pattern that begins with "!": it includes the path again."""
    pattern: str
    """`file:line pattern` for an ignore file, else the pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One line."""

    number: int
    """The line's number, from 1."""
    line: str
    """The line as it was written."""
    regex: str
    """Matches the name, or the path below the pattern's folder, as a byte text."""
    is_negated: bool
    is_path: bool
    """Whether it is about paths: it has a slash before its end. Else it is about names."""
    only_folders: bool

    def matches(self, name: str, path: str, *, is_folder: bool) -> bool:
        """Return whether it matches an entry itself; folders above it are not looked at.

        Args:
            name: The entry's name, as a byte text.
            path: Its path below the pattern's folder, as a byte text without a slash at its end.
            is_folder: Whether it is a folder.
        """
        if self.only_folders and not is_folder:
            return False
        return bool(_compiled(self.regex).fullmatch(path if self.is_path else name))


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnorePatterns:
    """The patterns of one file, or of `include` or `exclude`."""

    base: str
    """The folder of the root below which they hold: "" or "a/b/"."""
    file_path: str
    """The ignore file's path, as the reason of a match names it; "" for the configuration."""
    lines: tuple[Pattern, ...]
    """The patterns, the last line first: the last match decides."""
    any_name: re.Pattern[str]
    """Matches every name that a pattern about names could match.

    With 60 patterns a path costs 1 us with these two, and 50 us pattern by pattern.
    """
    any_path: re.Pattern[str]
    """Matches every path below `base` that a pattern about paths could match."""
    prefix: str = ""
    """The root's path below the folder of an ignore file above the root: "" or "a/b/"."""

    def last_match(self, path: str) -> PatternMatch | None:
        """Return the last pattern that matches an entry itself; None if none does.

        Args:
            path: Path relative to the root, below `base`; a folder's ends with "/". Folders above
                it are not looked at.
        """
        if not self.lines:
            return None
        is_folder = path.endswith("/")
        below = byte_text(self._below(path))
        name = below[below.rfind("/") + 1 :]
        if not self.any_name.fullmatch(name) and not self.any_path.fullmatch(below):
            return None
        for pattern in self.lines:
            if pattern.matches(name, below, is_folder=is_folder):
                described = f"{self.file_path}:{pattern.number} {pattern.line}"
                return PatternMatch(
                    not pattern.is_negated, described if self.file_path else pattern.line
                )
        return None

    def may_match(self, name: str, path: str) -> bool:
        """Return False if `last_match` is certain to be None. Most entries end here.

        Args:
            name: The entry's name.
            path: Its path, as for `last_match`.
        """
        if self.any_name.fullmatch(byte_text(name)):
            return True
        if self.any_path is _NOTHING:
            return False
        return bool(self.any_path.fullmatch(byte_text(self._below(path))))

    def nearest_match(self, path: str) -> PatternMatch | None:
        """Return the pattern that decides on an entry: one that matches it, or a folder above it.

        Args:
            path: Path relative to the root, below `base`; a folder's ends with "/".

        Returns:
            The match of the entry itself; else that of the nearest folder; None if none matches.
        """
        while path and self.lines:
            match = self.last_match(path)
            if match:
                return match
            path = path[: path.rstrip("/").rfind("/") + 1]
        return None

    def _below(self, path: str) -> str:
        return self.prefix + path[len(self.base) :].removesuffix("/")


def compile_patterns(
    base: str,
    file_path: str,
    lines: tuple[str, ...],
    *,
    prefix: str = "",
    ignores_case: bool = False,
) -> IgnorePatterns:
    """Compile the lines of an ignore file. Lines that match nothing are left out, as git does.

    Args:
        base: The folder below which they hold: "" or "a/b/".
        file_path: The ignore file's path for reasons; "" for the configuration.
        lines: The lines without line ends, in file order.
        prefix: The root's path below the file's folder, for a file above the root.
        ignores_case: Whether ASCII letters match whatever their case.
    """
    numbered = enumerate(lines, 1)
    compiled = [
        pattern
        for number, line in numbered
        if (pattern := _compile_line(number, line, ignores_case=ignores_case))
    ]
    return IgnorePatterns(
        base=base,
        file_path=file_path,
        lines=tuple(reversed(compiled)),
        any_name=_any_of([pattern.regex for pattern in compiled if not pattern.is_path]),
        any_path=_any_of([pattern.regex for pattern in compiled if pattern.is_path]),
        prefix=prefix,
    )


def _compile_line(number: int, line: str, *, ignores_case: bool) -> Pattern | None:
    """Compile a line as git's dir.c does; None for a comment, or a line that matches nothing."""
    if line.startswith("#"):
        return None
    text = _without_trailing_spaces(byte_text(line))
    is_negated = text.startswith("!")
    text = text.removeprefix("!")
    only_folders = text.endswith("/")
    text = text.removesuffix("/")
    is_path = "/" in text
    if not text:
        return None
    text = text.removeprefix("/")
    # git compares what stands before the first special character of a path by itself, and then
    # the rest as a pattern of its own: in `a**/b` the stars begin it, and match folders.
    literal = _SPECIAL.split(text, maxsplit=1)[0] if is_path else ""
    regex = regex_of(
        text.removeprefix(literal),
        is_path=is_path,
        ignores_case=ignores_case,
    )
    if regex is None:
        return None
    regex = f"{regex_of(literal, is_path=is_path, ignores_case=ignores_case)}{regex}"
    return Pattern(
        number=number,
        line=line,
        regex=regex,
        is_negated=is_negated,
        is_path=is_path,
        only_folders=only_folders,
    )


def _without_trailing_spaces(line: str) -> str:
    """Remove spaces from a line's end. One behind a backslash stays, and what is before it."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    is_escaped = backslashes % 2 == 1 and len(bare) < len(line)
    return bare + " " if is_escaped else bare


def _any_of(sources: Sequence[str]) -> re.Pattern[str]:
    """Return one regex that matches whatever one of some regexes matches."""
    if not sources:
        return _NOTHING
    groups = [f"(?:{source})" for source in dict.fromkeys(sources)]
    return re.compile("|".join(groups), re.DOTALL)


@functools.lru_cache(maxsize=10_000)
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.DOTALL)
