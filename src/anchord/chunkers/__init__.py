"""Documents -> chunks. A format gives atoms and strengths, one engine cuts them; adding a format is one line here.

`anchored` and `exchange` cut by that engine; the other strategies give spans of characters, which `place` makes into pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from anchord.chunkers.code import lay_out_code
from anchord.chunkers.cut import Piece, cut
from anchord.chunkers.emit import emit
from anchord.chunkers.exchange import cut_exchanges, cut_groups, is_transcript, lay_out_exchange
from anchord.chunkers.layout import LAST_RESORT, PART, Count, Layout, Sizing
from anchord.chunkers.lines import lay_out_text
from anchord.chunkers.markdown import lay_out_markdown
from anchord.chunkers.placed import place
from anchord.chunkers.plan import Plan
from anchord.chunkers.strategies import spans_of
from anchord.chunkers.symbols import Definition, definitions
from anchord.model import Chunk, Document

VERSION = "7"
"""Part of the recipe: raise it with any change that gives other chunks for the same text."""

_LAYOUTS: dict[str, Callable[[Document, Sizing], Layout]] = {
    "markdown": lambda document, sizing: lay_out_markdown(document.text, sizing),
    "text": lambda document, sizing: lay_out_text(document.text, document.language, sizing),
    "exchange": lay_out_exchange,
    "attachment": lay_out_exchange,
    "summary": lay_out_exchange,
}

SAID = ("exchange", "attachment", "summary")
"""The kinds of what was said in a conversation."""

_SHRINK = 0.8
_SMALLEST_BODY = 16
_BLIND = ("window", "recursive", "whole")
"""These cut by size: no heading is put before what they make, as it would be repeated into the middle of a text."""


def chunk(
    document: Document, plan: Plan, count: Count, key: str = "", found: Sequence[Definition] | None = None
) -> list[Chunk]:
    """Cut a document into chunks, in order; none of their embedded texts is over the model's window.

    `key` names the file in the chunk ids; `found` are the definitions of code, where the caller had them found elsewhere.
    The same arguments always give the same chunks.
    """
    if document.kind == "code" and found is None:
        found = definitions(document.text, document.language)
    chunks = _chunk(document, plan, count, key, found or ())
    while plan.limits.body > _SMALLEST_BODY and any(piece.tokens > plan.limits.window for piece in chunks):
        # Weights add up over white space; where a tokeniser does not keep to that, smaller pieces do.
        plan = replace(plan, limits=replace(plan.limits, body=int(plan.limits.body * _SHRINK)))
        chunks = _chunk(document, plan, count, key, found or ())
    return chunks


def _chunk(document: Document, plan: Plan, count: Count, key: str, found: Sequence[Definition]) -> list[Chunk]:
    sizing = Sizing(plan.limits, count)
    lay_out = _LAYOUTS.get(document.kind)
    layout = lay_out(document, sizing) if lay_out else lay_out_code(document.text, found, sizing)
    layout = _with_parts(layout, document.parts)
    layout, pieces = _cut(document, layout, plan, sizing)
    chunks = emit(layout, pieces, sizing, key, document.kind)
    if document.title:
        chunks = [replace(piece, header_path=(document.title, *piece.header_path)) for piece in chunks]
    return [_in_file(piece, document.source_lines) for piece in chunks] if document.source_lines else chunks


def _with_parts(layout: Layout, parts: Sequence[int]) -> Layout:
    """Make the parts of a document better cuts than what is in them, and worse than its headings."""
    begins = set(parts)
    strengths = [
        max(how, PART) if how > LAST_RESORT and not start and line in begins else how
        for line, start, how in zip(layout.line, layout.start, layout.strength, strict=True)
    ]
    return replace(layout, strength=strengths) if parts else layout


def _in_file(piece: Chunk, lines: Sequence[int]) -> Chunk:
    """Give a chunk the lines of the file that its text was made from."""
    first, last, anchor = (lines[number - 1] for number in (piece.start_line, piece.end_line, piece.anchor_line))
    return replace(piece, start_line=first, end_line=last, anchor_line=anchor)


def _cut(document: Document, layout: Layout, plan: Plan, sizing: Sizing) -> tuple[Layout, list[Piece]]:
    if plan.strategy == "anchored":
        return layout, cut(layout, plan.limits)
    if plan.strategy == "exchange" and document.kind in SAID:
        return layout, cut(layout, plan.limits)
    if plan.strategy == "exchange":
        if is_transcript(layout):
            return cut_exchanges(layout, plan)
        groups = cut_groups(layout, plan.limits)
        if groups is not None:
            return layout, groups
        plan = replace(plan, strategy="paragraph")
    spans = spans_of(document.text, document.kind, layout, plan, sizing)
    return place(document.text, layout, spans, sizing, titled=plan.strategy not in _BLIND)
