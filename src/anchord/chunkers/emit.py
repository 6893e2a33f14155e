"""Pieces -> chunks: exact source text, repeated fence and table openings, header paths, ids (CHUNKER.md, steps 6 and 7)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from textwrap import dedent

from anchord.chunkers.cut import Piece
from anchord.chunkers.layout import Count, Heading, Layout, Sizing, Wrap
from anchord.core.identity import chunk_id, digest
from anchord.model import Chunk


@dataclass(frozen=True, slots=True)
class _Span:
    """A piece without its blank ends: atoms [first, last), and its lines, 0-based and inclusive."""

    first: int
    last: int
    top: int
    bottom: int
    anchor_line: int
    section_line: int


def emit(layout: Layout, pieces: Sequence[Piece], sizing: Sizing, key: str, kind: str) -> list[Chunk]:
    """Write the chunks of a text; pieces of nothing but blank lines give none."""
    limits = sizing.limits
    sections = _Sections(layout.headings, limits.heading_depth)
    offsets = [0, *accumulate(len(line) + 1 for line in layout.lines)]
    seen: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for piece in pieces:
        span = _trimmed(layout, piece)
        if span is None:
            continue
        opening, closing = _wrapping(layout.wraps, span)
        content = opening + _source(layout, span) + closing
        normal = opening + _normal(_source(layout, span), span, layout.wraps) + closing
        tokens = _tokens(layout, span, (opening, closing), normal, sizing.count)
        path, level, nearest = sections.around(span.top, span.bottom)
        title = nearest.title if nearest and span.section_line <= nearest.line < span.top else ""
        context, context_tokens = _shortened(title, min(limits.context, limits.window - tokens), sizing.count)
        # In code the margin that all lines share is no content: moved to another depth, a block keeps its vector.
        plain = dedent(normal) if kind == "code" else normal
        embed_text = f"{context}\n{plain}" if context else plain
        content_hash = digest(normal.encode())
        lines = (span.top - span.anchor_line, span.bottom - span.anchor_line)
        identity = chunk_id(key, path, lines, content_hash, 0)
        repeat = seen[identity]
        seen[identity] += 1
        chunks.append(
            Chunk(
                chunk_id=chunk_id(key, path, lines, content_hash, repeat) if repeat else identity,
                content=content,
                embed_text=embed_text,
                header_path=path,
                start_line=span.top + 1,
                end_line=span.bottom + 1,
                anchor_line=span.anchor_line + 1,
                content_hash=content_hash,
                tokens=tokens + context_tokens,
                kind=kind,
                start_char=offsets[span.top] + layout.start[span.first],
                end_char=offsets[span.bottom] + layout.end[span.last - 1],
                level=level,
                forms=_forms(layout, span),
                is_part=bool(opening or closing),
                is_titled=bool(context),
            )
        )
    return chunks


def _trimmed(layout: Layout, piece: Piece) -> _Span | None:
    first, last = piece.first, piece.last
    while first < last and layout.line[first] in layout.blanks:
        first += 1
    while last > first and layout.line[last - 1] in layout.blanks:
        last -= 1
    if first == last:
        return None
    return _Span(first, last, layout.line[first], layout.line[last - 1], piece.anchor_line, piece.section_line)


def _forms(layout: Layout, span: _Span) -> tuple[str, ...]:
    numbers = range(span.top, span.bottom + 1) if layout.forms else ()
    return tuple(sorted({layout.forms[number] for number in numbers if number not in layout.blanks}))


def _source(layout: Layout, span: _Span) -> str:
    """The exact text of a span, which may begin and end inside a line."""
    top, bottom = span.top, span.bottom
    if top == bottom:
        return layout.lines[top][layout.start[span.first] : layout.end[span.last - 1]]
    head = layout.lines[top][layout.start[span.first] :]
    tail = layout.lines[bottom][: layout.end[span.last - 1]]
    return "\n".join([head, *layout.lines[top + 1 : bottom], tail])


def _normal(source: str, span: _Span, wraps: Sequence[Wrap]) -> str:
    """Drop what a reader does not see: blanks at line ends, and blank lines beyond the first outside code."""
    lines: list[str] = []
    for number, line in enumerate(source.split("\n"), span.top):
        text = line.rstrip()
        if not text and lines and not lines[-1] and not _in_code(number, wraps):
            continue
        lines.append(text)
    return "\n".join(lines)


def _in_code(line: int, wraps: Sequence[Wrap]) -> bool:
    return any(wrap.verbatim and wrap.first <= line <= wrap.last for wrap in _near(line, wraps))


def _near(line: int, wraps: Sequence[Wrap]) -> Sequence[Wrap]:
    """The last wrap that starts at or before a line; wraps are sorted and do not overlap."""
    at = bisect_right(wraps, line, key=lambda wrap: wrap.first)
    return wraps[at - 1 : at] if at else ()


def _wrapping(wraps: Sequence[Wrap], span: _Span) -> tuple[str, str]:
    opening = next((w.opening for w in _near(span.top, wraps) if w.first < span.top <= w.last), "")
    closing = next((w.closing for w in _near(span.bottom, wraps) if w.first <= span.bottom < w.last), "")
    return (f"{opening}\n" if opening else ""), (f"\n{closing}" if closing else "")


_WORD = re.compile(r"\s*\S+")
_CONTEXT_CHARS = 400


def _shortened(title: str, limit: int, count: Count) -> tuple[str, int]:
    """Cut a heading at the last word, or in a long first word at the last character, that keeps it within `limit` tokens."""
    title = " ".join(title[:_CONTEXT_CHARS].split())
    (whole,) = count([title])
    if whole <= limit:
        return title, whole
    ends = [match.end() for match in _WORD.finditer(title)]
    ends = [*range(1, ends[0] if ends else 0), *ends]  # No word, and a piece over the limit: that is cut smaller.
    sizes = count([title[:end] for end in ends])
    return max(((title[:end], size) for end, size in zip(ends, sizes, strict=True) if size <= limit), default=("", 0))


def _tokens(layout: Layout, span: _Span, around: tuple[str, ...], text: str, count: Count) -> int:
    """Number of model tokens of a text. Counts add up over whole lines, not over parts of one."""
    inside_line = layout.start[span.first] > 0 or layout.end[span.last - 1] < len(layout.lines[span.bottom])
    if inside_line or _has_split_line(span):
        return count([text])[0]
    return sum(layout.tokens[span.first : span.last]) + sum(count(around))


def _has_split_line(span: _Span) -> bool:
    return span.last - span.first != span.bottom - span.top + 1


class _Sections:
    """Header paths by line."""

    def __init__(self, headings: Sequence[Heading], depth: int) -> None:
        self._headings = headings
        self._lines = [heading.line for heading in headings]
        self._stacks: list[tuple[Heading, ...]] = []
        self._depth = depth
        stack: tuple[Heading, ...] = ()
        for heading in headings:
            stack = (*(h for h in stack if h.level < heading.level), heading)
            self._stacks.append(stack)

    def around(self, top: int, bottom: int) -> tuple[tuple[str, ...], int, Heading | None]:
        """Return the titles of the headings that enclose all of the lines, the level of the last, and the innermost."""
        at = bisect_right(self._lines, top)
        stack = self._stacks[at - 1] if at else ()
        until = bisect_right(self._lines, bottom)
        shallowest = min((heading.level for heading in self._headings[at:until]), default=7)
        enclosing = tuple(h for h in stack if h.level < shallowest and h.last > bottom)
        named = [h for h in enclosing if h.level <= self._depth]
        return tuple(h.title for h in named), named[-1].level if named else 0, enclosing[-1] if enclosing else None
