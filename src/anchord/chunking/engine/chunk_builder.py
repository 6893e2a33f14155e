"""Turn ranges of atoms into chunks: exact source text, repeated block openings, header paths, ids.

A chunk has three forms of its text. `content` is the source slice, with the fence or table opening
that a later part of a block repeats. The normal form drops what a reader does not see; its hash is
the content hash. `embed_text` is the normal form under the nearest heading outside the chunk.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from textwrap import dedent

from anchord.chunking.engine.anchored_cut import AtomRange
from anchord.chunking.engine.layout import BlockWrap, CountTokens, Heading, Layout, Sizing
from anchord.core.ids import hash_content, make_chunk_id
from anchord.core.types import Chunk

_DEEPEST_LEVEL = 7
"""One more than the level of any heading of markdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A range of atoms without its blank ends. Lines are 0-based and inclusive."""

    first_atom: int
    end_atom: int
    top: int
    bottom: int
    anchor_line: int
    section_line: int


def build_chunks(
    layout: Layout, atom_ranges: Sequence[AtomRange], sizing: Sizing, file_key: str, kind: str
) -> list[Chunk]:
    """Build the chunks of a text.

    Args:
        layout: The text.
        atom_ranges: One range for each chunk, in order.
        sizing: Limits and token counter.
        file_key: Names the file in the chunk ids.
        kind: Document kind. In "code" the indentation that all lines share is not embedded.

    Returns:
        The chunks in order. A range of nothing but blank lines gives none.
    """
    builder = _ChunkBuilder(layout, sizing, file_key, kind)
    chunks: list[Chunk] = []
    for atom_range in atom_ranges:
        span = _without_blank_ends(layout, atom_range)
        if span is not None:
            chunks.append(builder.build(span))
    return chunks


class _ChunkBuilder:
    """Builds the chunks of one text, in order; counts repeated ids."""

    def __init__(self, layout: Layout, sizing: Sizing, file_key: str, kind: str) -> None:
        limits = sizing.limits
        self._layout = layout
        self._limits = limits
        self._count_tokens = sizing.count_tokens
        self._file_key = file_key
        self._kind = kind
        self._header_paths = _HeaderPaths(layout.headings, limits.heading_depth)
        line_sizes = (len(line) + 1 for line in layout.lines)
        self._line_offsets = [0, *accumulate(line_sizes)]
        self._id_counts: Counter[str] = Counter()

    def build(self, span: _Span) -> Chunk:
        layout = self._layout
        top, bottom = span.top, span.bottom
        wrap_texts = _wrap_texts(layout.wraps, span)
        opening, closing = wrap_texts
        source = _source_text(layout, span)
        normal_source = _normal_text(source, span, layout.wraps)
        normal_text = opening + normal_source + closing
        tokens = _text_tokens(
            layout,
            span,
            wrap_texts,
            normal_text,
            self._count_tokens,
        )
        header_path, level, nearest = self._header_paths.enclosing(top, bottom)
        heading, heading_tokens = self._heading_to_embed(nearest, span, tokens)
        normal_bytes = normal_text.encode()
        content_hash = hash_content(normal_bytes)
        column = layout.atom_starts[span.first_atom]
        last_atom = span.end_atom - 1
        end_column = layout.atom_ends[last_atom]
        return Chunk(
            chunk_id=self._unique_id(header_path, span, content_hash),
            content=opening + source + closing,
            embed_text=self._embed_text(normal_text, heading),
            header_path=header_path,
            start_line=top + 1,
            end_line=bottom + 1,
            anchor_line=span.anchor_line + 1,
            content_hash=content_hash,
            token_count=tokens + heading_tokens,
            kind=self._kind,
            start_char=self._line_offsets[top] + column,
            end_char=self._line_offsets[bottom] + end_column,
            heading_level=level,
            block_types=_block_types(layout, span),
            is_partial_block=bool(opening or closing),
            has_added_heading=bool(heading),
        )

    def _embed_text(self, normal_text: str, heading: str) -> str:
        """Return the text to embed: the normal text under the heading, if there is one."""
        text = normal_text
        if self._kind == "code":
            # Code at another depth of indentation keeps its vector.
            text = dedent(normal_text)
        if heading:
            return f"{heading}\n{text}"
        return text

    def _heading_to_embed(
        self, nearest: Heading | None, span: _Span, tokens: int
    ) -> tuple[str, int]:
        """Return the heading to embed before a chunk and its tokens; "" where none belongs there.

        A heading belongs there if it is in the chunk's section and above the chunk's own text.
        """
        limits = self._limits
        title = ""
        if nearest is not None and span.section_line <= nearest.line < span.top:
            title = nearest.title
        room = limits.window - tokens
        max_tokens = min(limits.context, room)
        return _shorten_title(title, max_tokens, self._count_tokens)

    def _unique_id(self, header_path: tuple[str, ...], span: _Span, content_hash: str) -> str:
        """Return the id of a chunk; a number tells repeats of an identical chunk apart."""
        file_key = self._file_key
        anchor_line = span.anchor_line
        relative_top = span.top - anchor_line
        relative_bottom = span.bottom - anchor_line
        lines = (relative_top, relative_bottom)
        chunk_id = make_chunk_id(
            file_key,
            header_path,
            lines,
            content_hash,
            0,
        )
        occurrence = self._id_counts[chunk_id]
        self._id_counts[chunk_id] = occurrence + 1
        if occurrence:
            return make_chunk_id(
                file_key,
                header_path,
                lines,
                content_hash,
                occurrence,
            )
        return chunk_id


def _without_blank_ends(layout: Layout, atom_range: AtomRange) -> _Span | None:
    """Return a range without the blank lines at its ends; None where nothing is left."""
    atom_lines, blank_lines = layout.atom_lines, layout.blank_lines
    first, end = atom_range.first_atom, atom_range.end_atom
    while first < end and atom_lines[first] in blank_lines:
        first += 1
    while end > first and atom_lines[end - 1] in blank_lines:
        end -= 1
    if first == end:
        return None
    return _Span(
        first_atom=first,
        end_atom=end,
        top=atom_lines[first],
        bottom=atom_lines[end - 1],
        anchor_line=atom_range.anchor_line,
        section_line=atom_range.section_line,
    )


def _block_types(layout: Layout, span: _Span) -> tuple[str, ...]:
    """Return the types of a span's lines that are not blank, sorted, each once."""
    line_types = layout.line_types
    if not line_types:
        return ()
    blank_lines = layout.blank_lines
    end_line = span.bottom + 1
    types: set[str] = set()
    for line in range(span.top, end_line):
        if line not in blank_lines:
            types.add(line_types[line])
    return tuple(sorted(types))


def _source_text(layout: Layout, span: _Span) -> str:
    """Return the exact text of a span, which may begin and end inside a line."""
    lines = layout.lines
    top, bottom = span.top, span.bottom
    last_atom = span.end_atom - 1
    first_column = layout.atom_starts[span.first_atom]
    end_column = layout.atom_ends[last_atom]
    top_line = lines[top]
    if top == bottom:
        return top_line[first_column:end_column]
    head = top_line[first_column:]
    bottom_line = lines[bottom]
    tail = bottom_line[:end_column]
    inner_top = top + 1
    inner_lines = lines[inner_top:bottom]
    parts = [head, *inner_lines, tail]
    return "\n".join(parts)


def _normal_text(source: str, span: _Span, wraps: Sequence[BlockWrap]) -> str:
    """Drop trailing whitespace, and outside code all but the first of consecutive blank lines."""
    source_lines = source.split("\n")
    lines: list[str] = []
    follows_blank = False
    for number, line in enumerate(source_lines, span.top):
        text = line.rstrip()
        repeats_blank = follows_blank and not text
        if repeats_blank and not _is_in_code(number, wraps):
            continue
        lines.append(text)
        follows_blank = not text
    return "\n".join(lines)


def _is_in_code(line: int, wraps: Sequence[BlockWrap]) -> bool:
    wrap = _last_wrap_from(line, wraps)
    if wrap is None or not wrap.is_verbatim:
        return False
    return line <= wrap.last_line


def _last_wrap_from(line: int, wraps: Sequence[BlockWrap]) -> BlockWrap | None:
    """Return the last wrap that starts at or before a line; wraps are sorted and do not overlap."""
    number = bisect_right(wraps, line, key=_first_line)
    if number == 0:
        return None
    return wraps[number - 1]


def _first_line(wrap: BlockWrap) -> int:
    return wrap.first_line


def _wrap_texts(wraps: Sequence[BlockWrap], span: _Span) -> tuple[str, str]:
    """Return the block opening to put before a span and the closing after it; "" for none."""
    return _opening_before(wraps, span.top), _closing_after(wraps, span.bottom)


def _opening_before(wraps: Sequence[BlockWrap], top: int) -> str:
    wrap = _last_wrap_from(top, wraps)
    if wrap is None or not wrap.opening:
        return ""
    continues_block = wrap.first_line < top <= wrap.last_line
    if not continues_block:
        return ""
    return f"{wrap.opening}\n"


def _closing_after(wraps: Sequence[BlockWrap], bottom: int) -> str:
    wrap = _last_wrap_from(bottom, wraps)
    if wrap is None or not wrap.closing:
        return ""
    if bottom >= wrap.last_line:
        return ""
    return f"\n{wrap.closing}"


_WORD = re.compile(r"\s*\S+")
_MAX_TITLE_CHARS = 400


def _shorten_title(title: str, max_tokens: int, count_tokens: CountTokens) -> tuple[str, int]:
    """Cut a title after the last word that keeps it within `max_tokens`.

    A first word that is too long is cut after a character. Returns the title and its tokens, or
    ("", 0) where not even one character fits.
    """
    title_start = title[:_MAX_TITLE_CHARS]
    words = title_start.split()
    title = " ".join(words)
    (tokens,) = count_tokens([title])
    if tokens <= max_tokens:
        return title, tokens
    prefixes = _title_prefixes(title)
    counts = count_tokens(prefixes)
    longest, longest_tokens = "", 0
    # Invariant: prefixes grow, so the last one that fits is the longest.
    for prefix, count in zip(prefixes, counts, strict=True):
        if count <= max_tokens:
            longest, longest_tokens = prefix, count
    return longest, longest_tokens


def _title_prefixes(title: str) -> list[str]:
    """Return the starts of a title, shortest first.

    They end after each character of the first word and after each later word. A title without
    words has none: the text alone is over the limit then, and the caller cuts it smaller.
    """
    word_ends = [match.end() for match in _WORD.finditer(title)]
    if not word_ends:
        return []
    first_word_end = word_ends[0]
    inner_ends = range(1, first_word_end)
    ends = [*inner_ends, *word_ends]
    return [title[:end] for end in ends]


def _text_tokens(
    layout: Layout,
    span: _Span,
    wrap_texts: tuple[str, str],
    normal_text: str,
    count_tokens: CountTokens,
) -> int:
    """Return the model tokens of a span's normal text.

    Counts add up over whole lines, but not over parts of a line.
    """
    first, end = span.first_atom, span.end_atom
    last_line = layout.lines[span.bottom]
    starts_inside_line = layout.atom_starts[first] > 0
    ends_inside_line = layout.atom_ends[end - 1] < len(last_line)
    line_count = span.bottom - span.top + 1
    atom_count = end - first
    has_split_line = atom_count != line_count
    if starts_inside_line or ends_inside_line or has_split_line:
        (tokens,) = count_tokens([normal_text])
        return tokens
    atom_tokens = layout.atom_tokens[first:end]
    wrap_tokens = count_tokens(wrap_texts)
    return sum(atom_tokens) + sum(wrap_tokens)


class _HeaderPaths:
    """The header path of every line of a text."""

    def __init__(self, headings: Sequence[Heading], max_level: int) -> None:
        self._headings = headings
        self._lines = [heading.line for heading in headings]
        self._stacks: list[tuple[Heading, ...]] = []
        """For each heading, the headings around it and itself, outermost first."""
        self._max_level = max_level
        stack: tuple[Heading, ...] = ()
        for heading in headings:
            level = heading.level
            outer = [one for one in stack if one.level < level]
            stack = (*outer, heading)
            self._stacks.append(stack)

    def enclosing(self, top: int, bottom: int) -> tuple[tuple[str, ...], int, Heading | None]:
        """Find the headings whose sections hold all lines from `top` to `bottom`.

        Returns:
            Their titles, outermost first, without levels deeper than the maximum; the level of the
            last title (0 for none); the innermost heading of any level.
        """
        first_inner = bisect_right(self._lines, top)
        if first_inner == 0:
            return (), 0, None
        end_inner = bisect_right(self._lines, bottom)
        inner_headings = self._headings[first_inner:end_inner]
        inner_levels = [heading.level for heading in inner_headings]
        # A heading inside the lines ends the sections of its level and deeper.
        shallowest = min(inner_levels, default=_DEEPEST_LEVEL)
        titles: list[str] = []
        level = 0
        innermost: Heading | None = None
        for heading in self._stacks[first_inner - 1]:
            is_ended = heading.level >= shallowest or heading.section_end_line <= bottom
            if is_ended:
                continue
            innermost = heading
            if heading.level <= self._max_level:
                titles.append(heading.title)
                level = heading.level
        return tuple(titles), level, innermost
