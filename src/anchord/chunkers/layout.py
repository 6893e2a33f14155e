"""What a format tells the cutting engine about a text: its lines, its atoms, and how good a cut is before each.

A format (markdown, plain text, code) only gives atoms and strengths; `cut` decides and `emit` writes the chunks.
Columns instead of objects: a file of 1 MB has 20,000 atoms, and the engine reads single columns of them.

Strengths, the highest first (CHUNKER.md, step 3). A cut is never made before an atom of strength 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

HEADING = 60
"""Before a heading or definition of level 1; each deeper level is worth 2 less, so level 6 is 50."""
PARAGRAPH = 59
"""Before a line of code without indentation that follows a blank; each level of indentation is worth 2 less, down to 51."""
PART = 44
"""Before a cell of a notebook."""
BLOCK = 40
INTRODUCED_BLOCK = 36
ITEM = 32
NESTED_ITEM = 28
ROW = 24
AFTER_BLANK = 20
CODE_LINE = 16
TEXT_LINE = 12
SENTENCE = 8
CLAUSE = 4
CHARACTERS = 2
LAST_RESORT = 1
FORBIDDEN = 0
LOWEST_HEADING = 50

_NO_LINE = 1 << 62

CHARS_PER_WEIGHT = 8
"""Characters that weigh as much as a token, where they are fewer tokens: a word of 200 KB is one."""

Count = Callable[[Sequence[str]], list[int]]
"""Texts to their numbers of model tokens, special tokens left out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in weights, where one weight is a model token or 8 characters, whichever gives more."""

    body: int = 222
    """Most weight of a chunk's own text (M in CHUNKER.md): the window without a repeated opening of 32."""
    context: int = 32
    """Most tokens of the heading put before the text for embedding; fewer where the text leaves less room."""
    repeated: int = 32
    """What is repeated in later parts of a table or fence weighs at most so much."""
    window: int = 254
    """What the model can take besides its two special tokens; nothing embedded is ever longer."""
    heading_depth: int = 6
    """Deepest heading level that counts for the header path."""
    max_chars: int = 0
    """Most characters of a chunk's own text; 0: 8 for each weight."""
    min_chars: int = 0
    """Least characters of a section of its own in what would fit in a chunk; 0: as the format has it, by weight."""
    whole_fences: bool = True
    """Whether a fence that fits in a chunk is never cut."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """Limits, and how texts are counted."""

    limits: Limits
    count: Count

    def weigh(self, texts: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return (weights, tokens). Without the floor of one weight for 8 characters a line of base64 would weigh 1.

        Blanks at the end weigh nothing: they are no part of a hash, so they must not move a cut either.
        """
        tokens, most = self.count(texts), self.limits.max_chars
        per = min(CHARS_PER_WEIGHT, most / self.limits.body) if most else CHARS_PER_WEIGHT
        lengths = [len(text.rstrip()) + (1 if most and text else 0) for text in texts]  # One for the line's end.
        weights = [max(n, int(-(-length // per))) for n, length in zip(tokens, lengths, strict=True)]
        return weights, tokens


@dataclass(frozen=True, slots=True)
class Heading:
    """A section's title. Lines are 0-based; the section ends before `last` at the latest, or at a heading of its level."""

    line: int
    level: int
    title: str
    last: int = _NO_LINE


@dataclass(frozen=True, slots=True)
class Wrap:
    """Lines that a part of a block needs around it to be readable by itself.

    A chunk that starts after `first` and not after `last` gets `opening` before it; one that ends before `last` gets
    `closing` after it. Lines are 0-based and inclusive.
    """

    first: int
    last: int
    opening: str
    closing: str
    verbatim: bool
    """True in code, where runs of blank lines are content."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The least weight that a cut at a heading leaves on both of its sides."""

    section: int = 64
    """In what fits in a chunk as it is: lighter sections stay with their neighbours."""
    paragraph: int = 64
    """Likewise, for a paragraph of code."""
    broken: int = 24
    """In what must be cut anyway."""

    def least(self, strength: int, *, fits: bool) -> int:
        """Return the least side of a boundary."""
        if not fits:
            return self.broken
        return self.paragraph if strength % 2 else self.section


@dataclass(frozen=True, slots=True)
class Layout:
    """A text as atoms. Atom i is `lines[line[i]][start[i]:end[i]]`; `strength[i]` is that of a cut before it."""

    lines: Sequence[str]
    line: Sequence[int]
    start: Sequence[int]
    end: Sequence[int]
    strength: Sequence[int]
    weight: Sequence[int]
    tokens: Sequence[int]
    headings: Sequence[Heading] = ()
    wraps: Sequence[Wrap] = ()
    blanks: frozenset[int] = field(default_factory=frozenset)
    sides: Sides = Sides()
    forms: Sequence[str] = ()
    """What each line is, where the format tells: "heading", "list", "table", "code_block", else ""."""

    def atom(self, index: int) -> str:
        """Return an atom's text."""
        return self.lines[self.line[index]][self.start[index] : self.end[index]]


_SENTENCE_END = re.compile(r"(?<=[.!?;:])[\"'\u201d\u2019)\]]*\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
_CLAUSE_END = re.compile(r"\s+|(?<=[,;|{}()\[\]])")
_MIN_CLAUSE = 24
_MAX_WORD = 200
_WORD_PART = 120


def lay_out(  # noqa: PLR0913, PLR0917 - the columns and lists of a layout
    lines: Sequence[str],
    strengths: Sequence[int],
    sizing: Sizing,
    headings: Sequence[Heading] = (),
    wraps: Sequence[Wrap] = (),
    held: Collection[int] = frozenset(),
) -> Layout:
    """Turn lines with their strengths into atoms: one a line, several for a line heavier than half a chunk.

    Within the lines `held`, which belong to a block that fits in a chunk, a cut is a last resort.
    """
    line_weights, line_tokens = sizing.weigh(lines)
    heavy = sizing.limits.body // 2
    line: list[int] = []
    start: list[int] = []
    end: list[int] = []
    strength: list[int] = []
    weight: list[int] = []
    tokens: list[int] = []
    blanks: set[int] = set()
    for number, text in enumerate(lines):
        if not text.strip():
            blanks.add(number)
        pieces = [(0, len(text), strengths[number], line_weights[number], line_tokens[number])]
        if line_weights[number] > heavy:
            pieces = _split_line(text, strengths[number], sizing, LAST_RESORT if number in held else SENTENCE)
        for first, last, how, mass, pieces_tokens in pieces:
            line.append(number)
            start.append(first)
            end.append(last)
            strength.append(how)
            weight.append(mass)
            tokens.append(pieces_tokens)
    if strength:
        strength[0] = FORBIDDEN
    for index, number in enumerate(line):
        if number in blanks:
            strength[index] = FORBIDDEN
    return Layout(lines, line, start, end, strength, weight, tokens, headings, wraps, frozenset(blanks))


def _split_line(text: str, strength: int, sizing: Sizing, most: int) -> list[tuple[int, int, int, int, int]]:
    """Cut a heavy line at sentence ends, heavy sentences at clauses, and what has no blanks every 120 characters.

    No cut inside is stronger than `most`.
    """
    heavy = sizing.limits.body // 2
    spans: list[tuple[int, int, int]] = []
    sentences = _spans(text, 0, len(text), _SENTENCE_END, 1)
    sentence_weights, _ = sizing.weigh([text[a:b] for a, b in sentences])
    for (a, b), mass in zip(sentences, sentence_weights, strict=True):
        if mass <= heavy:
            spans.append((a, b, SENTENCE))
            continue
        for clause, (c, d) in enumerate(_spans(text, a, b, _CLAUSE_END, _MIN_CLAUSE)):
            how = CLAUSE if clause else SENTENCE
            step = _WORD_PART if d - c > _MAX_WORD else d - c
            spans.extend((e, min(e + step, d), how if e == c else CHARACTERS) for e in range(c, d, step))
    weights, _ = sizing.weigh([text[a:b] for a, b, _ in spans])
    spans = [part for span, mass in zip(spans, weights, strict=True) for part in _parts(*span, -(-mass // heavy))]
    spans[0] = (spans[0][0], spans[0][1], strength)
    weights, tokens = sizing.weigh([text[a:b] for a, b, _ in spans])
    inner = [(a, b, min(how, most) if a else how) for a, b, how in spans]
    return [(*span, mass, n) for span, mass, n in zip(inner, weights, tokens, strict=True)]


def _parts(first: int, last: int, strength: int, number: int) -> list[tuple[int, int, int]]:
    """Cut a span evenly: what is still heavy has neither blanks nor few tokens (a syllable of Hangul is up to three)."""
    step = max(1, -(-(last - first) // max(1, number)))
    return [(at, min(at + step, last), strength if at == first else CHARACTERS) for at in range(first, last, step)]


def _spans(text: str, first: int, last: int, end: re.Pattern[str], shortest: int) -> list[tuple[int, int]]:
    """Split text[first:last] after each match of `end` that leaves at least `shortest` characters; nothing is lost."""
    spans: list[tuple[int, int]] = []
    at = first
    for match in end.finditer(text, first, last):
        if match.end() - at >= shortest and match.end() < last:
            spans.append((at, match.end()))
            at = match.end()
    return [*spans, (at, last)]
