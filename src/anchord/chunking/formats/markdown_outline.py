"""Parse markdown into an outline: its blocks, headings, list items, fences and tables, by line.

The block structure is CommonMark's with tables, from markdown-it's block rules alone. Headings
inside fences, comments, lists and quotes are not sections; setext headings are. There are two
deliberate deviations. Front matter is set aside first: its closing line would make a setext
heading. A fence that is never closed is read as text, so that a half-typed fence does not swallow
the rest of the file.

This module and `rendered_text` are the only users of markdown-it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from anchord.chunking.engine.layout import Heading

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_FRONT_MATTER_LINES = 400
_MAX_UNCLOSED_FENCES = 3
_FRONT_MATTER_CLOSERS = {"---": ("---", "..."), "+++": ("+++",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines [first_line, end_line) of a block, 0-based, without the blank lines after it."""

    first_line: int
    end_line: int
    kind: str
    """The type of its token in markdown-it, or "front_matter"."""
    list_depth: int = 0
    """Of a list item or fence: number of list items around it; an item counts itself."""
    opening: str = ""
    """Of a fence: the line to repeat before a later part, with the language."""
    marker: str = ""
    """Of a fence: the line to put after an earlier part."""


@dataclass(slots=True, kw_only=True)
class Outline:
    """The structure of a document, in the order of its lines."""

    headings: list[Heading] = field(default_factory=list)
    heading_ends: dict[int, int] = field(default_factory=dict)
    """First line of a heading -> the line after it; setext headings have two lines or more."""
    blocks: list[Block] = field(default_factory=list)
    """Blocks of the top level."""
    items: list[Block] = field(default_factory=list)
    fences: list[Block] = field(default_factory=list)
    tables: list[Block] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    """First line of each table row, the header included."""

    def add_heading(self, token: Token, title: str, first_line: int, end_line: int) -> None:
        """Add a heading of the top level; `token` is its opening."""
        level = int(token.tag[1])
        self.headings.append(Heading(first_line, level, " ".join(title.split())))
        self.heading_ends[first_line] = end_line


def parse_outline(lines: Sequence[str]) -> Outline:
    """Parse the lines of a document."""
    front_matter_lines = count_front_matter_lines(lines)
    parsed = _blank_front_matter(lines, front_matter_lines)
    outline = _parse_blocks(parsed)
    for _ in range(_MAX_UNCLOSED_FENCES):
        unclosed = _unclosed_fence_line(parsed, outline)
        if unclosed is None:
            break
        # Quotation marks in place of its marks make the opening line ordinary text.
        parsed[unclosed] = re.sub(r"[`~]", "'", parsed[unclosed])
        outline = _parse_blocks(parsed)
    if front_matter_lines:
        front_matter = Block(
            first_line=0,
            end_line=front_matter_lines,
            kind="front_matter",
        )
        outline.blocks.insert(0, front_matter)
    return outline


def ends_in_open_fence(lines: Sequence[str]) -> bool:
    """Whether the last fence of a document, if it is at the top level, is never closed."""
    parsed = _blank_front_matter(lines, count_front_matter_lines(lines))
    return _unclosed_fence_line(parsed, _parse_blocks(parsed)) is not None


def closes_all_fences(lines: Sequence[str]) -> bool:
    """Whether a line closes each fence of a document; the end of a list item or quote does not."""
    parsed = _blank_front_matter(lines, count_front_matter_lines(lines))
    return all(_is_closed(parsed, fence) for fence in _parse_blocks(parsed).fences)


def count_front_matter_lines(lines: Sequence[str]) -> int:
    """Return how many lines at the top are front matter, with their delimiters.

    Front matter is YAML between `---` and `---` (or `...`), or TOML between `+++`, of at most 400
    lines. `lines` has at least one line.
    """
    closers = _FRONT_MATTER_CLOSERS.get(lines[0].rstrip(), ())
    for number, line in enumerate(lines[1:_MAX_FRONT_MATTER_LINES], 2):
        if line.rstrip() in closers:
            return number
    return 0


def _blank_front_matter(lines: Sequence[str], front_matter_lines: int) -> list[str]:
    """Return the lines with blanks for the front matter, so that numbers stay the same."""
    return [""] * front_matter_lines + list(lines[front_matter_lines:])


@cache
def _parser() -> MarkdownIt:
    """Return the parser; it is loaded for the first document: many a start reads none."""
    from markdown_it import MarkdownIt  # noqa: PLC0415

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _parse_blocks(lines: Sequence[str]) -> Outline:
    outline, list_depth = Outline(), 0
    tokens = _parser().parse("\n".join(lines))
    for number, token in enumerate(tokens):
        kind = token.type
        if kind == "list_item_close":
            list_depth -= 1
        if token.map is None:
            continue
        is_top_level = token.level == 0
        first, end = token.map[0], _end_without_blanks(lines, token.map)
        if is_top_level and kind != "inline":
            outline.blocks.append(
                Block(
                    first_line=first,
                    end_line=end,
                    kind=kind,
                )
            )
        if kind == "heading_open" and is_top_level:
            # The token after it holds the title.
            outline.add_heading(
                token,
                tokens[number + 1].content,
                first,
                end,
            )
        elif kind == "list_item_open":
            list_depth += 1
            item = Block(
                first_line=first,
                end_line=end,
                kind=kind,
                list_depth=list_depth,
            )
            outline.items.append(item)
        elif kind == "fence":
            outline.fences.append(_fence_block(lines, token, token.map, list_depth))
        elif kind == "table_open":
            outline.tables.append(
                Block(
                    first_line=first,
                    end_line=end,
                    kind=kind,
                )
            )
        elif kind == "tr_open":
            outline.rows.append(first)
    return outline


def _end_without_blanks(lines: Sequence[str], line_range: Sequence[int]) -> int:
    """Return the line after the last of a range that is not blank; a range keeps its first line."""
    first, end = line_range
    while end > first + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _fence_block(
    lines: Sequence[str], token: Token, line_range: Sequence[int], list_depth: int
) -> Block:
    """Return a fence with the parser's own end.

    For an empty unclosed fence before a blank line, the end without blank lines would be too short.
    """
    first, end = line_range
    language = token.info.split()[:1]
    line = lines[first]
    before = line[: max(0, line.find(token.markup))]
    # Every line of a quote has its mark, but the mark of a list item is on its first line only.
    indentation = re.sub(r"[^>\s]", " ", before)
    return Block(
        first_line=first,
        end_line=end,
        kind="fence",
        list_depth=list_depth,
        opening=indentation + "".join([token.markup, *language]),
        marker=indentation + token.markup,
    )


def _is_closed(lines: Sequence[str], fence: Block) -> bool:
    last_line = fence.end_line - 1
    closer = lines[last_line].strip() if last_line > fence.first_line else ""
    marker = fence.marker.strip()
    while marker.startswith(">"):
        # Inside a quote, both have its marks.
        closer = closer.removeprefix(">").lstrip()
        marker = marker.removeprefix(">").lstrip()
    return len(closer) >= len(marker) and set(closer) == {marker[0]}


def _unclosed_fence_line(lines: Sequence[str], outline: Outline) -> int | None:
    """Return the first line of the last top-level fence, if nothing closes it."""
    top_level = {block.first_line for block in outline.blocks if block.kind == "fence"}
    for fence in reversed(outline.fences):
        if fence.first_line in top_level:
            return None if _is_closed(lines, fence) else fence.first_line
    return None
