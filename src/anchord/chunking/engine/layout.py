"""The input of the cutting engine: a text as atoms, with the strength of a cut before each.

A format (markdown, plain text, code) finds the atoms and their strengths. `anchored_cut` chooses
the cuts; `chunk_builder` writes the chunks.

An atom is the smallest unit that is never cut: a line, or a part of a line that is heavier than
half a chunk. Atoms are stored as columns (lists of integers) instead of objects, because a file of
1 MB has 20,000 of them and the engine reads single columns.

A weight is the size that limits count in: the model's tokens of a text, or one for every 8
characters, whichever is more. A cut strength is an integer; higher is a better place for a cut, and
0 forbids it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

HEADING = 60
"""Before a heading or definition of level 1; each deeper level is worth 2 less, down to 50."""
CODE_PARAGRAPH = 59
"""Before an unindented line of code that follows a blank line.

Each level of indentation is worth 2 less, down to 51. The value is odd, headings are even.
"""
NOTEBOOK_CELL = 44
"""Before a cell of a notebook."""
BLOCK = 40
BLOCK_AFTER_COLON = 36
LIST_ITEM = 32
NESTED_LIST_ITEM = 28
TABLE_ROW = 24
LINE_AFTER_BLANK = 20
CODE_LINE = 16
TEXT_LINE = 12
SENTENCE = 8
CLAUSE = 4
INSIDE_WORD = 2
LAST_RESORT = 1
NO_CUT = 0
MIN_HEADING_STRENGTH = 50

_NO_LINE = 1 << 62

CHARS_PER_WEIGHT = 8
"""Characters that weigh as much as one token, for texts of few tokens: a word of 200 KB is one."""

CountTokens = Callable[[Sequence[str]], list[int]]
"""Count the model tokens of each text, without special tokens."""


def heading_strength(level: int) -> int:
    """Return the strength of a cut before a heading of a level, 1 to 6."""
    return HEADING - 2 * (level - 1)


def weaken_cut_before_text(number: int, strengths: list[int], weights: Sequence[int]) -> None:
    """Make the cut between a heading and its text a last resort.

    Args:
        number: The line after the heading. The text starts at the first line from there on that
            has a weight.
        strengths: Strength of a cut before each line; changed in place.
        weights: Weight of each line.
    """
    while number < len(strengths) and not weights[number]:
        number += 1
    if number < len(strengths):
        strengths[number] = min(strengths[number], LAST_RESORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes of chunks, in weights unless the field says otherwise."""

    body: int = 222
    """Maximum weight of a chunk's own text: `window` less 32 for a repeated block opening."""
    context: int = 32
    """Maximum tokens of the heading that is embedded before the text."""
    repeated: int = 32
    """Maximum weight of the fence or table opening that later parts of a block repeat."""
    window: int = 254
    """Tokens that the model accepts besides its two special ones. No embedded text is longer."""
    heading_depth: int = 6
    """Deepest heading level that is part of a header path."""
    max_chars: int = 0
    """Maximum characters of a chunk's own text; 0 means 8 for each weight."""
    min_chars: int = 0
    """Minimum characters of a section that is cut out of a text that would fit in one chunk.

    0 means that the layout's `min_side_weights` decide.
    """
    whole_fences: bool = True
    """Whether a fence that fits in a chunk is never cut."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """The limits of chunks, and the function that counts tokens."""

    limits: Limits
    count_tokens: CountTokens

    def measure_weights_and_tokens(self, texts: Sequence[str]) -> tuple[list[int], list[int]]:
        """Measure each text.

        Args:
            texts: Texts of any length. Trailing whitespace weighs nothing: it is not part of a
                content hash, so it must not move a cut either.

        Returns:
            The weights and the token counts, each in the order of `texts`.
        """
        tokens = self.count_tokens(texts)
        lengths = [len(text.rstrip()) for text in texts]
        chars_per_weight: float = CHARS_PER_WEIGHT
        max_chars = self.limits.max_chars
        if max_chars:
            # A limit of characters counts the line end of every line that is not empty.
            lengths = [
                length + 1 if text else 0 for length, text in zip(lengths, texts, strict=True)
            ]
            chars_per_weight = min(CHARS_PER_WEIGHT, max_chars / self.limits.body)
        # Without the floor by characters, a line of base64 (one token) would weigh 1.
        weights = [
            max(count, int(-(-length // chars_per_weight)))
            for count, length in zip(tokens, lengths, strict=True)
        ]
        return weights, tokens


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a section. Lines are 0-based."""

    line: int
    level: int
    """1 is the outermost."""
    title: str
    section_end_line: int = _NO_LINE
    """The section ends before this line, or at the next heading of its level or higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWrap:
    """Lines that make a part of a block (fence, table) readable by itself.

    A chunk that starts after `first_line` and not after `last_line` gets `opening` before it. A
    chunk that ends before `last_line` gets `closing` after it. Lines are 0-based and inclusive.
    """

    first_line: int
    last_line: int
    opening: str
    closing: str
    is_verbatim: bool
    """Whether runs of blank lines are content, as in code."""


@dataclass(frozen=True, slots=True)
class MinSideWeights:
    """The minimum weight that a cut at a heading leaves on both of its sides."""

    section: int = 64
    """For a section in a text that fits in a chunk; lighter ones stay with their neighbours."""
    code_paragraph: int = 64
    """For a paragraph of code in a text that fits in a chunk."""
    oversized: int = 24
    """For a text that must be cut because it fits in no chunk."""

    def min_weight_for(self, strength: int, *, fits_in_chunk: bool) -> int:
        """Return the minimum weight of the sides of a cut.

        Args:
            strength: Strength of the cut, at least `MIN_HEADING_STRENGTH`.
            fits_in_chunk: Whether the text that would be cut fits in one chunk.
        """
        if not fits_in_chunk:
            return self.oversized
        is_code_paragraph = strength % 2 == 1  # Headings are even, see CODE_PARAGRAPH.
        return self.code_paragraph if is_code_paragraph else self.section


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A text as atoms. The columns `atom_*` and `cut_strengths` have one value for each atom.

    Atom i is `lines[atom_lines[i]][atom_starts[i]:atom_ends[i]]`. Lines are 0-based.
    """

    lines: Sequence[str]
    atom_lines: Sequence[int]
    atom_starts: Sequence[int]
    atom_ends: Sequence[int]
    cut_strengths: Sequence[int]
    """Strength of the cut before each atom."""
    atom_weights: Sequence[int]
    atom_tokens: Sequence[int]
    headings: Sequence[Heading] = ()
    """In the order of their lines."""
    wraps: Sequence[BlockWrap] = ()
    """In the order of their lines; they do not overlap."""
    blank_lines: frozenset[int] = field(default_factory=frozenset)
    min_side_weights: MinSideWeights = MinSideWeights()
    line_types: Sequence[str] = ()
    """Type of each line: "heading", "list", "table", "code_block", or "". Empty: not known."""

    def atom_text(self, index: int) -> str:
        """Return an atom's text."""
        line = self.lines[self.atom_lines[index]]
        return line[self.atom_starts[index] : self.atom_ends[index]]


def build_layout(  # noqa: PLR0913 - the parts of a layout that a format finds
    lines: Sequence[str],
    line_strengths: Sequence[int],
    sizing: Sizing,
    headings: Sequence[Heading] = (),
    *,
    wraps: Sequence[BlockWrap] = (),
    unsplit_lines: Collection[int] = frozenset(),
) -> Layout:
    """Turn lines with cut strengths into atoms: one a line, several for a heavy line.

    A line is heavy when it weighs more than half a chunk.

    Args:
        lines: The text, split at line feeds.
        line_strengths: Strength of a cut before each line. It is ignored before the first line and
            before blank lines: there is never a cut.
        sizing: Limits and token counter.
        headings: Headings in the order of their lines.
        wraps: Blocks in the order of their lines.
        unsplit_lines: 0-based lines of blocks that fit in a chunk. A cut inside such a line has
            the strength `LAST_RESORT`.

    Returns:
        The layout, with default `min_side_weights` and no `line_types`.
    """
    line_weights, line_tokens = sizing.measure_weights_and_tokens(lines)
    heavy_weight = sizing.limits.body // 2
    atom_lines: list[int] = []
    atom_starts: list[int] = []
    atom_ends: list[int] = []
    cut_strengths: list[int] = []
    atom_weights: list[int] = []
    atom_tokens: list[int] = []
    blank_lines = frozenset(number for number, text in enumerate(lines) if not text.strip())
    for number, text in enumerate(lines):
        # Invariant: no chunk starts with a blank line.
        strength = NO_CUT if number in blank_lines else line_strengths[number]
        spans = [(0, len(text), strength)]
        weights, tokens = [line_weights[number]], [line_tokens[number]]
        if line_weights[number] > heavy_weight:
            max_inner = LAST_RESORT if number in unsplit_lines else SENTENCE
            max_inner = NO_CUT if number in blank_lines else max_inner
            spans = _split_heavy_line(text, sizing, strength, max_inner)
            parts = [text[start:end] for start, end, _ in spans]
            weights, tokens = sizing.measure_weights_and_tokens(parts)
        for start, end, span_strength in spans:
            atom_lines.append(number)
            atom_starts.append(start)
            atom_ends.append(end)
            cut_strengths.append(span_strength)
        atom_weights += weights
        atom_tokens += tokens
    if cut_strengths:
        cut_strengths[0] = NO_CUT
    return Layout(
        lines=lines,
        atom_lines=atom_lines,
        atom_starts=atom_starts,
        atom_ends=atom_ends,
        cut_strengths=cut_strengths,
        atom_weights=atom_weights,
        atom_tokens=atom_tokens,
        headings=headings,
        wraps=wraps,
        blank_lines=blank_lines,
    )


_SENTENCE_END = re.compile(r"(?<=[.!?;:])[\"'\u201d\u2019)\]]*\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
_CLAUSE_END = re.compile(r"\s+|(?<=[,;|{}()\[\]])")
_MIN_CLAUSE_CHARS = 24
_MAX_WORD_CHARS = 200
_WORD_PART_CHARS = 120

_StrengthSpan = tuple[int, int, int]
"""Start and end in characters of a line, the end excluded, and the strength of a cut before it."""


def _split_heavy_line(
    text: str, sizing: Sizing, line_strength: int, max_inner_strength: int
) -> list[_StrengthSpan]:
    """Split a line into spans of at most half a chunk; together they cover the line.

    The line is split at sentence ends, heavy sentences at clauses, and clauses of more than 200
    characters every 120 characters. Inner cuts are no stronger than `max_inner_strength`.
    """
    heavy_weight = sizing.limits.body // 2
    sentences = _split_after(text, 0, len(text), _SENTENCE_END, 1)
    sentence_texts = [text[start:end] for start, end in sentences]
    sentence_weights, _ = sizing.measure_weights_and_tokens(sentence_texts)
    spans: list[_StrengthSpan] = []
    for (start, end), weight in zip(sentences, sentence_weights, strict=True):
        if weight <= heavy_weight:
            spans.append((start, end, SENTENCE))
        else:
            spans += _split_sentence(text, start, end)
    split_spans: list[_StrengthSpan] = []
    span_texts = [text[start:end] for start, end, _ in spans]
    weights, _ = sizing.measure_weights_and_tokens(span_texts)
    for span, weight in zip(spans, weights, strict=True):
        if weight <= heavy_weight:
            split_spans.append(span)
        else:
            # It has no whitespace and many tokens: a syllable of Hangul is up to three.
            split_spans += _split_evenly(span, -(-weight // heavy_weight))
    inner_spans = [
        (start, end, min(strength, max_inner_strength)) for start, end, strength in split_spans[1:]
    ]
    return [(0, split_spans[0][1], line_strength), *inner_spans]


def _split_sentence(text: str, start: int, end: int) -> list[_StrengthSpan]:
    """Split a heavy sentence at clauses, and long clauses every 120 characters."""
    spans: list[_StrengthSpan] = []
    for first, last in _split_after(text, start, end, _CLAUSE_END, _MIN_CLAUSE_CHARS):
        strength = SENTENCE if first == start else CLAUSE
        if last - first <= _MAX_WORD_CHARS:
            spans.append((first, last, strength))
        else:
            spans += _split_by_length((first, last, strength), _WORD_PART_CHARS)
    return spans


def _split_evenly(span: _StrengthSpan, part_count: int) -> list[_StrengthSpan]:
    length = span[1] - span[0]
    return _split_by_length(span, max(1, -(-length // part_count)))


def _split_by_length(span: _StrengthSpan, part_chars: int) -> list[_StrengthSpan]:
    """Split a span into parts of `part_chars` characters; only the first keeps its strength."""
    start, end, strength = span
    parts = [
        (first, min(first + part_chars, end), INSIDE_WORD)
        for first in range(start, end, part_chars)
    ]
    parts[0] = (start, parts[0][1], strength)
    return parts


def _split_after(
    text: str, start: int, end: int, separator: re.Pattern[str], min_chars: int
) -> list[tuple[int, int]]:
    """Split text[start:end] after each match that leaves at least `min_chars` before it.

    The spans cover text[start:end].
    """
    spans: list[tuple[int, int]] = []
    for match in separator.finditer(text, start, end):
        cut = match.end()
        if cut - start >= min_chars and cut < end:
            spans.append((start, cut))
            start = cut
    return [*spans, (start, end)]
