"""Cut documents into chunks: a format lays a document out, and a strategy cuts the layout.

A new format is one line in `_LAYOUT_BUILDERS`. `anchored` and `exchange` cut by the engine; the
other strategies return spans of characters, which `span_placement` turns into ranges of atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from anchord.chunking.engine.anchored_cut import AtomRange, split_layout
from anchord.chunking.engine.chunk_builder import build_chunks
from anchord.chunking.engine.layout import (
    LAST_RESORT,
    NOTEBOOK_CELL,
    CountTokens,
    Heading,
    Layout,
    Limits,
    Sizing,
)
from anchord.chunking.engine.span_placement import spans_to_atom_ranges
from anchord.chunking.formats.code import build_code_layout
from anchord.chunking.formats.code_symbols import Definition, find_definitions
from anchord.chunking.formats.exchange import (
    build_exchange_layout,
    is_transcript,
    split_at_questions,
    split_single_long_paragraph,
)
from anchord.chunking.formats.markdown import build_markdown_layout
from anchord.chunking.formats.plain_text import build_text_layout
from anchord.chunking.plan import Plan
from anchord.chunking.strategies.classic import split_by_strategy
from anchord.core.types import Chunk, Document

CHUNKER_VERSION = "7"
"""Part of the recipe: raise it with any change that gives other chunks for the same text."""

_LAYOUT_BUILDERS: dict[str, Callable[[Document, Sizing], Layout]] = {
    "markdown": lambda document, sizing: build_markdown_layout(document.text, sizing),
    "text": lambda document, sizing: build_text_layout(document.text, document.language, sizing),
    "exchange": build_exchange_layout,
    "attachment": build_exchange_layout,
    "summary": build_exchange_layout,
}
"""Kind of a document -> its layout; every other kind is laid out as code."""

CONVERSATION_KINDS = ("exchange", "attachment", "summary")
"""The kinds of documents that come from conversations."""

_SHRINK = 0.8
_MIN_BODY = 16
_STRATEGIES_WITHOUT_HEADING = ("window", "recursive", "whole")
"""These cut by size: their chunks start in the middle of a section, so no heading is repeated."""


def split_into_chunks(
    document: Document,
    plan: Plan,
    count_tokens: CountTokens,
    file_key: str = "",
    code_definitions: Sequence[Definition] | None = None,
) -> list[Chunk]:
    """Cut a document into chunks. The same arguments always give the same chunks.

    Args:
        document: The document.
        plan: Strategy and sizes.
        count_tokens: Counts the tokens of the model that `plan.limits` are made for.
        file_key: Names the file in the chunk ids.
        code_definitions: The definitions of code, if the caller has found them already. None means
            that code is parsed here, in this process.

    Returns:
        The chunks in order; no `embed_text` is longer than the model's window. None for a document
        of nothing but whitespace.
    """
    if document.kind == "code" and code_definitions is None:
        code_definitions = find_definitions(document.text, document.language)
    chunks, _ = _split_within_window(
        document,
        plan,
        count_tokens,
        file_key,
        code_definitions or (),
    )
    return chunks


def limits_used(document: Document, plan: Plan, count_tokens: CountTokens) -> Limits:
    """Return the limits that a document is cut by, which is not code.

    They are the plan's, or smaller ones where the plan's give a chunk that exceeds the window.
    """
    _, limits = _split_within_window(document, plan, count_tokens, "", ())
    return limits


def headings_used(document: Document, plan: Plan, count_tokens: CountTokens) -> Sequence[Heading]:
    """Return the headings that a document's header paths are made of, in the order of its lines."""
    definitions: Sequence[Definition] = ()
    if document.kind == "code":
        definitions = find_definitions(document.text, document.language)
    layout, _ = _lay_out_and_cut(
        document,
        plan,
        Sizing(plan.limits, count_tokens),
        definitions,
    )
    return layout.headings


def _split_within_window(
    document: Document,
    plan: Plan,
    count_tokens: CountTokens,
    file_key: str,
    definitions: Sequence[Definition],
) -> tuple[list[Chunk], Limits]:
    """Split a document by smaller and smaller limits until no chunk exceeds the window."""
    chunks = _split_once(document, plan, count_tokens, file_key, definitions)
    while plan.limits.body > _MIN_BODY and _exceeds_window(chunks, plan.limits.window):
        # A part of a word can have more tokens than its share of the word's, or a tokenizer can
        # have tokens over whitespace. Smaller chunks fit.
        smaller = replace(plan.limits, body=int(plan.limits.body * _SHRINK))
        plan = replace(plan, limits=smaller)
        chunks = _split_once(
            document,
            plan,
            count_tokens,
            file_key,
            definitions,
        )
    return chunks, plan.limits


def _exceeds_window(chunks: Sequence[Chunk], window_tokens: int) -> bool:
    return any(chunk.token_count > window_tokens for chunk in chunks)


def _split_once(
    document: Document,
    plan: Plan,
    count_tokens: CountTokens,
    file_key: str,
    definitions: Sequence[Definition],
) -> list[Chunk]:
    sizing = Sizing(plan.limits, count_tokens)
    layout, ranges = _lay_out_and_cut(document, plan, sizing, definitions)
    chunks = build_chunks(layout, ranges, sizing, file_key, document.kind)
    if document.title:
        # The title comes after the ids are made, so renaming a conversation changes none.
        chunks = [
            replace(chunk, header_path=(document.title, *chunk.header_path)) for chunk in chunks
        ]
    if document.source_lines:
        chunks = [_with_source_lines(chunk, document.source_lines) for chunk in chunks]
    return chunks


def _lay_out_and_cut(
    document: Document, plan: Plan, sizing: Sizing, definitions: Sequence[Definition]
) -> tuple[Layout, list[AtomRange]]:
    """Lay a document out and cut it; return the layout that the ranges count in."""
    build_layout = _LAYOUT_BUILDERS.get(document.kind)
    if build_layout is not None:
        layout = build_layout(document, sizing)
    else:
        layout = build_code_layout(document.text, definitions, sizing)
    if document.part_start_lines:
        layout = _strengthen_part_starts(layout, document.part_start_lines)
    return _cut(document, layout, plan, sizing)


def _strengthen_part_starts(layout: Layout, part_start_lines: Sequence[int]) -> Layout:
    """Make cuts before the parts of a document (cells) better than others, but for headings."""
    part_starts = set(part_start_lines)
    strengths = list(layout.cut_strengths)
    for atom, line in enumerate(layout.atom_lines):
        starts_line = layout.atom_starts[atom] == 0
        # A forbidden cut and a last resort stay what they are.
        if starts_line and line in part_starts and strengths[atom] > LAST_RESORT:
            strengths[atom] = max(strengths[atom], NOTEBOOK_CELL)
    return replace(layout, cut_strengths=strengths)


def _with_source_lines(chunk: Chunk, source_lines: Sequence[int]) -> Chunk:
    """Return a chunk with the lines of the file that the document's text was made from."""
    return replace(
        chunk,
        start_line=source_lines[chunk.start_line - 1],
        end_line=source_lines[chunk.end_line - 1],
        anchor_line=source_lines[chunk.anchor_line - 1],
    )


def _cut(
    document: Document, layout: Layout, plan: Plan, sizing: Sizing
) -> tuple[Layout, list[AtomRange]]:
    """Cut a layout by the plan's strategy; return the layout that the ranges count in."""
    is_conversation = document.kind in CONVERSATION_KINDS
    if plan.strategy == "anchored" or (plan.strategy == "exchange" and is_conversation):
        return layout, split_layout(layout, plan.limits)
    if plan.strategy == "exchange":
        # A file that is not a transcript after all is cut as prose.
        if is_transcript(layout):
            return split_at_questions(layout, plan)
        ranges = split_single_long_paragraph(layout, plan.limits)
        if ranges is not None:
            return layout, ranges
        plan = replace(plan, strategy="paragraph")
    spans = split_by_strategy(
        document.text,
        document.kind,
        layout,
        plan,
        sizing,
    )
    return spans_to_atom_ranges(
        document.text,
        layout,
        spans,
        sizing,
        embed_with_heading=plan.strategy not in _STRATEGIES_WITHOUT_HEADING,
    )
