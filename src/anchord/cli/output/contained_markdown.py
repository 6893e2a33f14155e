"""Markdown of strangers inside a Markdown document: it stays inside, and nothing of it is loaded.

A text can leave a fence or a comment open, contain tags, or images of other servers. It is parsed
as CommonMark, what is live is escaped, and the result is parsed again. Where that does not succeed,
the text is put in a fence as a whole.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST_PARSED_CHARS = 100_000
"""A longer text is put in a fence: to parse megabytes takes a minute."""
_MAY_LEAK = re.compile(r"[<#]|!\[|```|~~~|^[ \t>]*(?:=+|-+)[ \t]*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<!`)(`++)[^`]++\1(?!`)")
_LIVE = re.compile(r"(\\*)(<|!\[)")
_ROUNDS = 4
_SENTINEL = "\n\n# -"
IsForbidden = Callable[[str], bool]
"""Whether a heading must not stay one, given its text."""


def contain(text: str, is_forbidden: IsForbidden) -> str:
    """Return a text as Markdown that ends with the text, without live tags and images.

    Args:
        text: Markdown, or any other text.
        is_forbidden: Says which headings are escaped.
    """
    if not _MAY_LEAK.search(text):
        return text
    if len(text) > MOST_PARSED_CHARS:
        return fenced(text)
    text = _escape_live(text, is_forbidden, spares_code=True)
    for _ in range(_ROUNDS):
        escaped = _escape_live(text, is_forbidden, spares_code=False)
        if escaped == text:
            candidates = (text, _with_last_fence_closed(text))
            return next(filter(_is_contained, candidates), None) or fenced(text)
        text = escaped
    return fenced(text)


def fenced(text: str) -> str:
    """Return a text in a fence that nothing in it closes."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def code_span(text: str) -> str:
    """Return a line as code, in which nothing is live."""
    line = " ".join(text.split())
    marks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{pad}{line}{pad}{marks}"


def escape_inline(line: str) -> str:
    """Return a line without live tags and images."""
    return _LIVE.sub(_escape, line)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall(r"`+", text)), default=0)


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _escape_live(text: str, is_forbidden: IsForbidden, *, spares_code: bool) -> str:
    """Escape tags, images and forbidden headings that the parser finds.

    Args:
        text: The text.
        is_forbidden: As for `contain`.
        spares_code: Whether to leave out what looks like code in the lines of a tag.
    """
    lines = text.split("\n")
    tokens = _parser().parse(text)
    for number, token in enumerate(tokens):
        start, end = token.map or (0, 0)
        if token.type == "heading_open" and is_forbidden(_text_of(tokens[number + 1])):
            _escape_heading(lines, token, start, end)
        elif token.type == "html_block" or _has_live_part(token):
            for place in range(start, end):
                lines[place] = _escape_line(lines[place], spares_code=spares_code)
    return "\n".join(lines)


def _escape_heading(lines: list[str], token: Token, start: int, end: int) -> None:
    if token.markup.startswith("#"):
        lines[start] = lines[start].replace("#", r"\#", 1)
    else:
        lines[end - 1] = re.sub(r"([=-])", r"\\\1", lines[end - 1], count=1)


def _has_live_part(token: Token) -> bool:
    return any(child.type in {"html_inline", "image"} for child in token.children or ())


def _text_of(inline: Token) -> str:
    words = "".join(child.content for child in inline.children or ())
    return unicodedata.normalize("NFKC", words).strip().casefold()


def _escape_line(line: str, *, spares_code: bool) -> str:
    if not spares_code:
        return escape_inline(line)
    end = 0
    parts: list[str] = []
    for code in _CODE_SPAN.finditer(line):
        parts += [escape_inline(line[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, escape_inline(line[end:])])


def _escape(found: re.Match[str]) -> str:
    """Escape a mark unless it is: an odd number of backslashes is before it."""
    return found[0] if len(found[1]) % 2 else f"{found[1]}\\{found[2]}"


def _is_contained(text: str) -> bool:
    """Return whether a heading after a text is one of the document, and in nothing else."""
    tokens: Sequence[Token] = _parser().parse(text + _SENTINEL)
    openings = [token for token in tokens if token.type == "heading_open"]
    last = openings[-1] if openings else None
    lines = (text + _SENTINEL).count("\n") + 1
    return last is not None and last.level == 0 and last.map == [lines - 1, lines]


def _with_last_fence_closed(text: str) -> str:
    fences = [token for token in _parser().parse(text) if token.type == "fence"]
    if not fences:
        return text
    line = text.split("\n")[(fences[-1].map or [0])[0]]
    indent = line[: len(line) - len(line.lstrip(" "))]
    return f"{text}\n{indent}{fences[-1].markup}"
