"""Extract what people read of markdown: paragraphs, items and table rows as words, and their links.

Code, front matter and headings are left out. Of a link, a picture or an entity, the words that are
shown are kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt, rules_inline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from anchord.chunking.formats.markdown_outline import count_front_matter_lines

_WIKI_LINK = re.compile(r"\[\[(?P<to>[^\]|\n]*)(?:\|(?P<text>[^\]\n]*))?\]\]")
_SPACE = Token("text", "", 0, content=" ")
_END = "end"
"""Key in the `meta` of an inline token: the offset in the source at which it ends."""

_InlineRule = Callable[[StateInline, bool], bool]


def _build_parser() -> MarkdownIt:
    """Return a parser that records where the inline tokens end that can hold line feeds."""
    parser = MarkdownIt("commonmark").enable("table")
    rules: dict[str, _InlineRule] = {
        "newline": rules_inline.newline,
        "escape": rules_inline.escape,
        "backticks": rules_inline.backtick,
        "link": rules_inline.link,
        "image": rules_inline.image,
        "html_inline": rules_inline.html_inline,
    }
    for name, rule in rules.items():
        parser.inline.ruler.at(name, _recording_end(rule))
    return parser


def _recording_end(rule: _InlineRule) -> _InlineRule:
    """Return a rule of markdown-it that also records the end of the token that it adds."""

    def run(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's signature
        matched = rule(state, silent)
        if matched and not silent and state.tokens:
            state.tokens[-1].meta[_END] = state.pos
        return matched

    return run


_PARSER = _build_parser()


@dataclass(frozen=True, slots=True)
class Link:
    """A link in characters [start, end) of a text."""

    start: int
    end: int
    target: str
    """As it is written, with percent signs."""
    is_wiki: bool = False
    """Whether it is of the form `[[Page#Section|words]]`."""


@dataclass(frozen=True, slots=True)
class ProseBlock:
    """The words of a paragraph, item or table row, with the line breaks that are shown."""

    first_line: int
    """1-based."""
    text: str
    links: tuple[Link, ...]
    """In order; offsets count in `text`."""
    line_starts: tuple[int, ...]
    """Offset in `text` of each later line of the source, in order; none for a table row.

    A line that starts within code, a tag or a link's target has the end of that as its offset.
    """

    def line_at(self, offset: int) -> int:
        """Return the 1-based line of a document that a character of `text` is on."""
        return self.first_line + bisect_right(self.line_starts, offset)


def iter_prose_blocks(text: str) -> Iterator[ProseBlock]:
    """Yield the paragraphs, items and table rows of a markdown document, in order."""
    lines = text.split("\n")
    front_matter_lines = count_front_matter_lines(lines)
    body = [""] * front_matter_lines + lines[front_matter_lines:]
    row: _TableRow | None = None
    in_heading = False
    for token in _PARSER.parse("\n".join(body)):
        if token.type == "tr_open":
            row = _TableRow(_first_line(token))
        elif token.type == "tr_close" and row is not None:
            yield _render(row.tokens, row.first_line)
            row = None
        elif token.type in {"heading_open", "heading_close"}:
            in_heading = token.type == "heading_open"
        elif token.type != "inline":
            continue
        elif row is not None:
            row.add_cell(token)
        elif not in_heading:
            yield _render(token.children or (), _first_line(token), token.content)


def strip_markdown(markdown: str) -> str:
    """Return the words of a line of markdown as they are shown, with single spaces between."""
    parsed = _PARSER.parseInline(" ".join(markdown.split()))
    tokens = [child for token in parsed for child in token.children or ()]
    return " ".join(_render(tokens, 0).text.split())


@dataclass(slots=True)
class _TableRow:
    first_line: int
    """0-based."""
    tokens: list[Token] = field(default_factory=list)

    def add_cell(self, token: Token) -> None:
        """Add the tokens inside a cell, and a space to part it from the next one."""
        self.tokens.extend(token.children or ())
        self.tokens.append(_SPACE)


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _render(tokens: Sequence[Token], first_line: int, source: str = "") -> ProseBlock:
    """Return the words and links of inline tokens.

    Args:
        tokens: The tokens.
        first_line: The 0-based line of the first.
        source: The markdown that was parsed into the tokens; "" if it has no line feeds.
    """
    text = ""
    links: list[Link] = []
    line_starts: list[int] = []
    source_position = 0
    link_start, link_target = 0, ""
    for token in tokens:
        if token.type == "link_open":
            link_start, link_target = len(text), str(token.attrs.get("href", ""))
        elif token.type == "link_close":
            links.append(Link(link_start, len(text), link_target))
        elif token.type == "text":
            shown, wiki_links = _render_wiki_links(token.content, len(text))
            text += shown
            links += wiki_links
        else:
            text += _shown_text(token)
        source_end = token.meta.get(_END, source_position)
        line_starts += [len(text)] * source.count("\n", source_position, source_end)
        source_position = source_end
    return ProseBlock(first_line + 1, text, tuple(links), tuple(line_starts))


def _shown_text(token: Token) -> str:
    """Return what is shown of an inline token that is neither text nor a link."""
    if token.type in {"softbreak", "hardbreak"}:
        return "\n"
    if token.type != "html_inline":
        return token.content
    is_line_break = token.content.lower().startswith("<br")
    return " " if is_line_break else ""


def _render_wiki_links(text: str, offset: int) -> tuple[str, list[Link]]:
    """Return a text with wiki links as they are shown, and the links.

    Offsets of the links are `offset` more than positions in the returned text.
    """
    shown = ""
    links: list[Link] = []
    position = 0
    for match in _WIKI_LINK.finditer(text):
        target = match["to"]
        words = match["text"] or target.rpartition("#")[2] or target
        shown += text[position : match.start()]
        start = offset + len(shown)
        links.append(Link(start, start + len(words), target, is_wiki=True))
        shown += words
        position = match.end()
    return shown + text[position:], links
