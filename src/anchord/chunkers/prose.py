"""Markdown -> what people read of it: paragraphs, items and rows of tables as words, with the links in them.

Code, front matter and headings are left out; what is shown of a link, a picture or an entity is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from anchord.chunkers.markdown import front_matter_end

_PARSER = MarkdownIt("commonmark").enable("table")
_WIKI = re.compile(r"\[\[(?P<to>[^\]|\n]*)(?:\|(?P<text>[^\]\n]*))?\]\]")


@dataclass(frozen=True, slots=True)
class Link:
    """Characters [start, end) of a text that lead somewhere; `to` as it is written, percent signs and all."""

    start: int
    end: int
    to: str
    is_wiki: bool = False


@dataclass(frozen=True, slots=True)
class Prose:
    """Words, with their line breaks, from a line (1-based) on."""

    first: int
    text: str
    links: tuple[Link, ...]


def prose(text: str) -> Iterator[Prose]:
    """Yield the paragraphs, items and rows of a document."""
    lines = text.split("\n")
    front = front_matter_end(lines)
    row: list[Token] | None = None
    line, in_heading = 0, False
    for token in _PARSER.parse("\n".join([*[""] * front, *lines[front:]])):
        if token.type == "tr_open":
            row, line = [], (token.map or [0])[0]
        elif token.type == "tr_close" and row is not None:
            yield _read([child for cell in row for child in (*(cell.children or ()), _BLANK)], line)
            row = None
        elif token.type in ("heading_open", "heading_close"):
            in_heading = token.type == "heading_open"
        elif token.type == "inline" and row is not None:
            row.append(token)
        elif token.type == "inline" and not in_heading:
            yield _read(token.children or (), (token.map or [0])[0])


def plain(markdown: str) -> str:
    """Return the words of a line, as they are shown."""
    parsed = _PARSER.parseInline(" ".join(markdown.split()))
    return " ".join(_read([child for token in parsed for child in token.children or ()], 0).text.split())


_BLANK = Token("text", "", 0, content=" ")


def _read(tokens: Sequence[Token], line: int) -> Prose:
    text, links = "", list[Link]()
    start, to = 0, ""
    for token in tokens:
        if token.type == "link_open":
            start, to = len(text), str(token.attrs.get("href", ""))
        elif token.type == "link_close":
            links.append(Link(start, len(text), to))
        elif token.type in ("softbreak", "hardbreak"):
            text += "\n"
        elif token.type == "text":
            shown, found = _without_wiki(token.content, len(text))
            text += shown
            links += found
        elif token.type != "html_inline":
            text += token.content
        elif token.content.lower().startswith("<br"):
            text += " "
    return Prose(line + 1, text, tuple(links))


def _without_wiki(text: str, offset: int) -> tuple[str, list[Link]]:
    """Return a text as it is shown, and its links of the kind `[[Page#Section|words]]`."""
    shown, links, at = "", list[Link](), 0
    for match in _WIKI.finditer(text):
        shown += text[at : match.start()]
        words = match["text"] or match["to"].rpartition("#")[2] or match["to"]
        links.append(Link(offset + len(shown), offset + len(shown) + len(words), match["to"], is_wiki=True))
        shown, at = shown + words, match.end()
    return shown + text[at:], links
