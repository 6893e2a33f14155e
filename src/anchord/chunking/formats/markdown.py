"""Lay out markdown: the strength of a cut before each line, from the document's outline.

`docs/design/chunking.md` explains the order of the strengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anchord.chunking.engine.layout import (
    BLOCK,
    BLOCK_AFTER_COLON,
    CODE_LINE,
    LAST_RESORT,
    LINE_AFTER_BLANK,
    LIST_ITEM,
    NESTED_LIST_ITEM,
    NO_CUT,
    TABLE_ROW,
    TEXT_LINE,
    BlockWrap,
    Heading,
    Layout,
    Limits,
    Sizing,
    build_layout,
    heading_strength,
    weaken_cut_before_text,
)
from anchord.chunking.formats.markdown_outline import (
    Block,
    Outline,
    closes_all_fences,
    ends_in_open_fence,
    parse_outline,
)

_VERBATIM_BLOCKS = frozenset({"fence", "code_block", "html_block", "front_matter"})
_LINE_TYPES = {
    "fence": "code_block",
    "code_block": "code_block",
    "table_open": "table",
    "heading_open": "heading",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
}
"""Kind of a block -> type of its lines; the lines of other blocks have the type ""."""


def build_markdown_layout(text: str, sizing: Sizing) -> Layout:
    """Lay out a markdown document.

    Args:
        text: The document, with LF line ends.
        sizing: Limits and token counter.

    Returns:
        The layout, with wraps for fences and tables and a type for each line.
    """
    lines = text.split("\n")
    outline = parse_outline(lines)
    strengths = _line_strengths(lines, outline)
    weights, _ = sizing.measure_weights_and_tokens(lines)
    unsplit_lines = _weaken_cuts_in_fitting_blocks(
        outline,
        strengths,
        weights,
        sizing.limits,
    )
    _weaken_cuts_after_headings(
        outline,
        strengths,
        weights,
        sizing.limits.body,
    )
    layout = build_layout(
        lines,
        strengths,
        sizing,
        outline.headings,
        wraps=_block_wraps(lines, outline, weights, sizing),
        unsplit_lines=unsplit_lines,
    )
    return replace(
        layout,
        cut_strengths=_forbid_cuts_in_fitting_fences(layout, outline, weights, sizing.limits),
        line_types=_line_types(len(lines), outline),
    )


def find_fences(text: str) -> list[tuple[int, int]]:
    """Return the 0-based lines [first, end) of a document's fences, nested ones too."""
    fences = parse_outline(text.split("\n")).fences
    return [(fence.first_line, fence.end_line) for fence in fences]


def find_headings(text: str) -> list[Heading]:
    """Return the headings of a document, in order."""
    return parse_outline(text.split("\n")).headings


def has_unclosed_fence(text: str) -> bool:
    """Return whether the last fence of a document is at the top level and never closed."""
    return ends_in_open_fence(text.split("\n"))


def has_only_closed_fences(text: str) -> bool:
    """Return whether a line closes each fence of a document, nested ones too."""
    return closes_all_fences(text.split("\n"))


def _line_strengths(lines: Sequence[str], outline: Outline) -> list[int]:
    """Return the strength of a cut before each line; blank lines are left to `build_layout`.

    Later steps override earlier ones: inner blocks are more exact than those around them, and
    headings are the strongest.
    """
    strengths = [BLOCK] * len(lines)
    for block in outline.blocks:
        _set_block_strengths(lines, block, strengths)
    for fence in outline.fences:
        _set_fence_strengths(lines, fence, strengths)
    _set_item_and_row_strengths(outline, strengths)
    for table in outline.tables:
        # The header stays with its delimiter and the first row.
        for number in range(table.first_line + 1, min(table.first_line + 3, table.end_line)):
            strengths[number] = NO_CUT
    for heading in outline.headings:
        strengths[heading.line] = heading_strength(heading.level)
        for number in range(heading.line + 1, outline.heading_ends[heading.line]):
            strengths[number] = NO_CUT
    return strengths


def _set_block_strengths(lines: Sequence[str], block: Block, strengths: list[int]) -> None:
    inner_strength = CODE_LINE if block.kind in _VERBATIM_BLOCKS else TEXT_LINE
    for number in range(block.first_line + 1, block.end_line):
        strengths[number] = inner_strength if lines[number - 1].strip() else LINE_AFTER_BLANK
    follows_colon = _previous_text(lines, block.first_line).endswith(":")
    strengths[block.first_line] = BLOCK_AFTER_COLON if follows_colon else BLOCK


def _previous_text(lines: Sequence[str], number: int) -> str:
    """Return the last line before a line that is not blank, without trailing whitespace."""
    for previous in range(number - 1, -1, -1):
        text = lines[previous].rstrip()
        if text:
            return text
    return ""


def _set_fence_strengths(lines: Sequence[str], fence: Block, strengths: list[int]) -> None:
    first, end = fence.first_line, fence.end_line
    for number in range(first + 1, end):
        strengths[number] = CODE_LINE if lines[number - 1].strip() else LINE_AFTER_BLANK
    if end > first + 1:
        # The opening stays with the first line, the last line with the closing.
        strengths[first + 1] = NO_CUT
        strengths[end - 1] = NO_CUT


def _set_item_and_row_strengths(outline: Outline, strengths: list[int]) -> None:
    """Set the strengths before list items and table rows, but not where a block starts."""
    block_starts = {block.first_line for block in outline.blocks}
    for item in outline.items:
        first = item.first_line
        if first in block_starts:
            continue
        # A nested item on the line of its parent (`- - x`) keeps the parent's strength.
        is_outer = item.list_depth == 1 or strengths[first] == LIST_ITEM
        strengths[first] = LIST_ITEM if is_outer else NESTED_LIST_ITEM
    for row in outline.rows:
        if row not in block_starts:
            strengths[row] = TABLE_ROW


def _weaken_cuts_in_fitting_blocks(
    outline: Outline, strengths: list[int], weights: Sequence[int], limits: Limits
) -> set[int]:
    """Make cuts a last resort inside the blocks, outer list items and fences that fit in a chunk.

    Returns the lines of what fits. Where fences may be cut, they are left out.
    """
    outer_items = [item for item in outline.items if item.list_depth == 1]
    cuttable: set[tuple[int, int]] = set()
    if not limits.whole_fences:
        cuttable = {(fence.first_line, fence.end_line) for fence in outline.fences}
    fitting_lines: set[int] = set()
    for block in [*outline.blocks, *outer_items, *outline.fences]:
        first, end = block.first_line, block.end_line
        if (first, end) in cuttable or sum(weights[first:end]) > limits.body:
            continue
        fitting_lines.update(range(first, end))
        for number in range(first + 1, end):
            strengths[number] = min(strengths[number], LAST_RESORT)
    return fitting_lines


def _weaken_cuts_after_headings(
    outline: Outline, strengths: list[int], weights: Sequence[int], limit: int
) -> None:
    """Make a cut between a heading and its text a last resort."""
    for heading in outline.headings:
        end = outline.heading_ends[heading.line]
        if sum(weights[heading.line : end]) > limit:
            # A long paragraph over dashes is a setext heading too; only the dashes stay with it.
            inner_lines = end - heading.line - 2
            strengths[heading.line + 1 : end - 1] = [TEXT_LINE] * inner_lines
        weaken_cut_before_text(end, strengths, weights)


def _block_wraps(
    lines: Sequence[str], outline: Outline, weights: Sequence[int], sizing: Sizing
) -> list[BlockWrap]:
    """Return what parts of fences and tables repeat, in the order of their lines."""
    max_weight = sizing.limits.repeated
    delimiters = [f"{fence.opening}\n{fence.marker}" for fence in outline.fences]
    delimiter_weights, _ = sizing.measure_weights_and_tokens(delimiters)
    wraps: list[BlockWrap] = []
    for fence, weight in zip(outline.fences, delimiter_weights, strict=True):
        wrap = BlockWrap(
            first_line=fence.first_line,
            last_line=fence.end_line - 1,
            opening=fence.opening if weight <= max_weight else fence.marker,
            closing=fence.marker,
            is_verbatim=True,
        )
        wraps.append(wrap)
    for table in outline.tables:
        header = slice(table.first_line, table.first_line + 2)
        is_light = sum(weights[header]) <= max_weight
        wrap = BlockWrap(
            first_line=table.first_line + 1,
            last_line=table.end_line - 1,
            opening="\n".join(lines[header]) if is_light else "",
            closing="",
            is_verbatim=False,
        )
        wraps.append(wrap)
    return sorted(wraps, key=lambda wrap: wrap.first_line)


def _forbid_cuts_in_fitting_fences(
    layout: Layout, outline: Outline, weights: Sequence[int], limits: Limits
) -> Sequence[int]:
    """Return the cut strengths, with none inside a fence that fits in a chunk.

    A heading that stands alone is better than half a fence.
    """
    if not limits.whole_fences:
        return layout.cut_strengths
    fence_starts: set[int] = set()
    inner_lines: set[int] = set()
    for fence in outline.fences:
        first, end = fence.first_line, fence.end_line
        if sum(weights[first:end]) <= limits.body:
            fence_starts.add(first)
            inner_lines.update(range(first, end))
    strengths = list(layout.cut_strengths)
    for atom, line in enumerate(layout.atom_lines):
        # The only cut that is left is the one before the fence's first atom.
        if line in inner_lines and (layout.atom_starts[atom] or line not in fence_starts):
            strengths[atom] = NO_CUT
    return strengths


def _line_types(line_count: int, outline: Outline) -> list[str]:
    """Return the type of each line; a table or fence inside a list has its own."""
    types = [""] * line_count
    for block in [*outline.blocks, *outline.tables, *outline.fences]:
        line_type = _LINE_TYPES.get(block.kind)
        if line_type:
            block_lines = block.end_line - block.first_line
            types[block.first_line : block.end_line] = [line_type] * block_lines
    return types
