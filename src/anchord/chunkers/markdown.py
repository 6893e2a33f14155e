"""Markdown -> lines with cut strengths (CHUNKER.md, steps 1 to 3). The only user of markdown-it.

The block structure is CommonMark's with tables, from markdown-it's block rules alone: headings inside fences, comments,
lists and quotes are not sections, setext headings are. Two deviations, both on purpose: front matter is set aside first
(its closing line would make a setext heading), and a fence that is never closed is read as text, so that a half-typed
fence does not swallow the rest of the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from anchord.chunkers import layout as at
from anchord.chunkers.layout import Heading, Layout, Limits, Sizing, Wrap, lay_out

_FRONT_MATTER_LINES = 400
_UNCLOSED_FENCES = 3
_PARSER = MarkdownIt("commonmark").enable("table")
_PARSER.core.ruler.enableOnly(["normalize", "block"])


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines [first, last) of a block. `depth` counts the lists around it."""

    first: int
    last: int
    kind: str
    depth: int = 0
    opening: str = ""
    marker: str = ""


@dataclass(slots=True)
class _Outline:
    """The structure of a document: top-level blocks, and inside them items, fences and table rows."""

    headings: list[Heading] = field(default_factory=list)
    heading_ends: dict[int, int] = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)
    items: list[_Block] = field(default_factory=list)
    fences: list[_Block] = field(default_factory=list)
    tables: list[_Block] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


def lay_out_markdown(text: str, sizing: Sizing) -> Layout:
    """Return the atoms of a markdown document."""
    lines = text.split("\n")
    outline = _outline(lines)
    strengths = _strengths(lines, outline)
    weights, _ = sizing.weigh(lines)
    held = _hold_together(outline, strengths, weights, sizing.limits)
    layout = lay_out(lines, strengths, sizing, outline.headings, _wraps(lines, outline, weights, sizing), held)
    return replace(
        layout, strength=_with_whole_fences(layout, outline, weights, sizing.limits), forms=_forms(len(lines), outline)
    )


def fences(text: str) -> list[tuple[int, int]]:
    """Return the lines [first, last) of a document's fences, 0-based; nested ones too."""
    return [(fence.first, fence.last) for fence in _outline(text.split("\n")).fences]


def headings(text: str) -> list[Heading]:
    """Return the headings of a document, in order."""
    return _outline(text.split("\n")).headings


def has_open_fence(text: str) -> bool:
    """Whether the last fence of a document is never closed."""
    lines = text.split("\n")
    front = front_matter_end(lines)
    parsed = [""] * front + lines[front:]
    return _unclosed_fence(parsed, _read_tokens(parsed)) is not None


def _outline(lines: Sequence[str]) -> _Outline:
    front = front_matter_end(lines)
    parsed = [""] * front + list(lines[front:])
    for _ in range(_UNCLOSED_FENCES + 1):
        outline = _read_tokens(parsed)
        unclosed = _unclosed_fence(parsed, outline)
        if unclosed is None:
            break
        parsed[unclosed] = re.sub(r"[`~]", "'", parsed[unclosed])
    if front:
        outline.blocks.insert(0, _Block(0, front, "front_matter"))
    return outline


def front_matter_end(lines: Sequence[str]) -> int:
    """Return how many lines at the top are front matter: YAML between --- and --- (or ...), TOML between +++."""
    opener = lines[0].rstrip()
    closers = {"---": ("---", "..."), "+++": ("+++",)}.get(opener, ())
    for number, line in enumerate(lines[1:_FRONT_MATTER_LINES], 2):
        if line.rstrip() in closers:
            return number
    return 0


def _read_tokens(lines: Sequence[str]) -> _Outline:
    outline, depth = _Outline(), 0
    tokens = _PARSER.parse("\n".join(lines))
    for token, follower in pairwise([*tokens, Token("end", "", 0)]):
        if token.type == "list_item_close":
            depth -= 1
        if token.map is None:
            continue
        first, last = token.map
        while last > first + 1 and not lines[last - 1].strip():
            last -= 1
        if token.level == 0 and token.type != "inline":
            outline.blocks.append(_Block(first, last, token.type))
        if token.type == "heading_open" and token.level == 0:
            outline.headings.append(Heading(first, int(token.tag[1]), " ".join(follower.content.split())))
            outline.heading_ends[first] = last
        elif token.type == "list_item_open":
            depth += 1
            outline.items.append(_Block(first, last, token.type, depth))
        elif token.type == "fence":
            outline.fences.append(_fence(lines, token, first, depth))
        elif token.type == "table_open":
            outline.tables.append(_Block(first, last, token.type, depth))
        elif token.type == "tr_open":
            outline.rows.append(first)
    return outline


def _fence(lines: Sequence[str], token: Token, first: int, depth: int) -> _Block:
    """Take a fence with its own end: markdown-it's, for an empty unclosed fence before a blank, may be short."""
    last = token.map[1] if token.map else first + 1
    info = token.info.split()[:1]
    before = lines[first][: max(0, lines[first].find(token.markup))]
    indent = re.sub(r"[^>\s]", " ", before)  # Quote marks belong to every line, the marker of a list item to its first.
    return _Block(first, last, "fence", depth, indent + "".join([token.markup, *info]), indent + token.markup)


def _is_closed(lines: Sequence[str], fence: _Block) -> bool:
    closer = lines[fence.last - 1].strip() if fence.last - 1 > fence.first else ""
    marker = fence.marker.strip()
    return len(closer) >= len(marker) and set(closer) == {marker[0]}


def _unclosed_fence(lines: Sequence[str], outline: _Outline) -> int | None:
    """Return the line of the last top-level fence when nothing closes it."""
    top = {block.first for block in outline.blocks if block.kind == "fence"}
    last = next((fence for fence in reversed(outline.fences) if fence.first in top), None)
    return None if last is None or _is_closed(lines, last) else last.first


_INNER = {
    "fence": at.CODE_LINE, "code_block": at.CODE_LINE, "html_block": at.CODE_LINE, "front_matter": at.CODE_LINE,
}  # fmt: skip


def _strengths(lines: Sequence[str], outline: _Outline) -> list[int]:
    """Return the strength of a cut before each line; blank lines are settled by `lay_out`."""
    strengths = [at.BLOCK] * len(lines)
    for block in outline.blocks:
        inner = _INNER.get(block.kind, at.TEXT_LINE)
        for number in range(block.first + 1, block.last):
            strengths[number] = inner if lines[number - 1].strip() else at.AFTER_BLANK
        strengths[block.first] = at.INTRODUCED_BLOCK if _introduced(lines, block.first) else at.BLOCK
    tops = {block.first for block in outline.blocks}
    for fence in outline.fences:
        _strengthen_fence(lines, fence, strengths)
    for item in outline.items:
        if item.first not in tops:
            strengths[item.first] = at.ITEM if item.depth == 1 else max(at.NESTED_ITEM, _item_so_far(strengths, item))
    for row in outline.rows:
        if row not in tops:
            strengths[row] = at.ROW
    for table in outline.tables:
        for number in range(table.first + 1, min(table.first + 3, table.last)):
            strengths[number] = at.FORBIDDEN
    for heading in outline.headings:
        strengths[heading.line] = at.HEADING - 2 * (heading.level - 1)
        for number in range(heading.line + 1, outline.heading_ends[heading.line]):
            strengths[number] = at.FORBIDDEN
    return strengths


def _item_so_far(strengths: Sequence[int], item: _Block) -> int:
    """A nested item on the line of its parent (`- - x`) keeps the parent's strength."""
    return at.ITEM if strengths[item.first] == at.ITEM else at.NESTED_ITEM


def _introduced(lines: Sequence[str], first: int) -> bool:
    before = next((lines[n] for n in range(first - 1, -1, -1) if lines[n].strip()), "")
    return before.rstrip().endswith(":")


def _strengthen_fence(lines: Sequence[str], fence: _Block, strengths: list[int]) -> None:
    for number in range(fence.first + 1, fence.last):
        strengths[number] = at.CODE_LINE if lines[number - 1].strip() else at.AFTER_BLANK
    if fence.last > fence.first + 1:
        strengths[fence.first + 1] = at.FORBIDDEN
        strengths[fence.last - 1] = at.FORBIDDEN


def _with_whole_fences(layout: Layout, outline: _Outline, weights: Sequence[int], limits: Limits) -> Sequence[int]:
    """Forbid every cut inside a fence that fits: better a heading by itself than half a fence."""
    if not limits.whole_fences:
        return layout.strength
    fitting = [fence for fence in outline.fences if sum(weights[fence.first : fence.last]) <= limits.body]
    inside = {number for fence in fitting for number in range(fence.first, fence.last)}
    begins = {fence.first for fence in fitting}
    atoms = zip(layout.line, layout.start, layout.strength, strict=True)
    return [at.FORBIDDEN if line in inside and (start or line not in begins) else how for line, start, how in atoms]


def _forms(number: int, outline: _Outline) -> list[str]:
    """Say what each line is."""
    forms = [""] * number
    for block in [*outline.blocks, *outline.tables, *outline.fences]:
        form = _FORMS.get(block.kind)
        if form:
            forms[block.first : block.last] = [form] * (block.last - block.first)
    return forms


_FORMS = {
    "fence": "code_block", "code_block": "code_block", "table_open": "table", "heading_open": "heading",
    "bullet_list_open": "list", "ordered_list_open": "list",
}  # fmt: skip


def _hold_together(outline: _Outline, strengths: list[int], weights: Sequence[int], limits: Limits) -> set[int]:
    """Make inner boundaries a last resort where the whole fits: blocks, items, fences in them; and after headings.

    Returns the lines of what fits.
    """
    held: set[int] = set()
    limit = limits.body
    outer = [item for item in outline.items if item.depth == 1]
    fences = {(fence.first, fence.last) for fence in outline.fences} if not limits.whole_fences else set()
    for block in [*outline.blocks, *outer, *outline.fences]:
        if (block.first, block.last) in fences:
            continue
        if sum(weights[block.first : block.last]) <= limit:
            held.update(range(block.first, block.last))
            for number in range(block.first + 1, block.last):
                strengths[number] = min(strengths[number], at.LAST_RESORT)
    for heading in outline.headings:
        after = outline.heading_ends[heading.line]
        if sum(weights[heading.line : after]) > limit:  # A long paragraph over dashes is a heading too.
            strengths[heading.line + 1 : after - 1] = [at.TEXT_LINE] * (after - heading.line - 2)
        while after < len(strengths) and not weights[after]:
            after += 1
        if after < len(strengths):
            strengths[after] = min(strengths[after], at.LAST_RESORT)
    return held


def _wraps(lines: Sequence[str], outline: _Outline, weights: Sequence[int], sizing: Sizing) -> list[Wrap]:
    most = sizing.limits.repeated
    openings, _ = sizing.weigh([f"{fence.opening}\n{fence.marker}" for fence in outline.fences])
    wraps = [
        Wrap(f.first, f.last - 1, f.opening if weight <= most else f.marker, f.marker, verbatim=True)
        for f, weight in zip(outline.fences, openings, strict=True)
    ]
    for table in outline.tables:
        head = table.first + 2
        opening = "\n".join(lines[table.first : head]) if sum(weights[table.first : head]) <= most else ""
        wraps.append(Wrap(table.first + 1, table.last - 1, opening, "", verbatim=False))
    return sorted(wraps, key=lambda wrap: wrap.first)
