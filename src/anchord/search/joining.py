"""Hits of conversations -> results as long as a paragraph: an exchange with those around it.

An exchange alone is often a single sentence, which says too little. A passage grows by the chunks
around it: first within its exchange, then into the exchanges before and after it. Hits next to each
other in a session become one passage, and no chunk is shown twice. Everything here is a function of
its arguments; `sessions` reads what they need.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from anchord.core.types import ChunkLocation, RootedPath, Row
from anchord.search.passages import Passage

JOINED_CHARS = 1_000
"""Characters up to which a passage grows."""
_EXCHANGE_KIND = "exchange"
_SOURCES_WITH_NAMES = frozenset({"slack"})
"""Their texts begin with the speaker's name."""
_GAP = "\n\n"


@dataclass(frozen=True, slots=True)
class SessionChunk:
    """A chunk of a session."""

    row: Row
    location: ChunkLocation


QuestionOf = Callable[[RootedPath], str]
"""Returns the question of an exchange; "" for none."""


def join_neighbors(
    groups: Sequence[Sequence[Passage]],
    surroundings: Mapping[str, Sequence[SessionChunk]],
    question_of: QuestionOf,
    max_chars: int = JOINED_CHARS,
) -> Iterator[tuple[Passage, ...]]:
    """Yield groups, best first, in which passages of conversations have their surroundings.

    Groups whose passages are all part of earlier ones are left out.

    Args:
        groups: The passages of each file or exchange, best first.
        surroundings: Id of a passage's hit -> the chunks of its session around it, in their order,
            with its own. Passages without an entry stay as they are.
        question_of: Says where in an exchange the answer begins.
        max_chars: Length of the text up to which a passage grows.
    """
    run_of = {
        chunk_id: passage.chunk_ids
        for group in groups
        for passage in group
        for chunk_id in passage.chunk_ids
    }
    shown: set[Identity] = set()
    for group in groups:
        joined: list[Passage] = []
        for passage in group:
            if _identity(passage.row) in shown:
                continue
            around = _split(surroundings.get(passage.hit.id, ()), run_of)
            chunks = _grow(passage, around, shown, max_chars)
            shown.update([_identity(passage.row), *(_identity(each.row) for each in chunks)])
            joined.append(_with_chunks(passage, chunks, question_of) if chunks else passage)
        if joined:
            yield tuple(joined)


Identity = tuple[str, ...]


def _identity(row: Row) -> Identity:
    """Return what is equal for the same words in two roots: program, times and text.

    A chunk of a document is equal to itself alone.
    """
    if not row.source:
        return (row.id,)
    return row.source, row.at, row.until, row.text


@dataclass(frozen=True, slots=True)
class _Unit:
    """Chunks that are added together: those of a passage, or a single one."""

    chunks: Sequence[SessionChunk]
    is_complete: bool
    """Whether all chunks of the passage are there."""

    def has(self, chunk_id: str) -> bool:
        return chunk_id in _ids(self.chunks)

    def length(self) -> int:
        return sum(len(chunk.row.text) + len(_GAP) for chunk in self.chunks)


def _ids(chunks: Sequence[SessionChunk]) -> list[str]:
    return [chunk.row.id for chunk in chunks]


def _split(chunks: Sequence[SessionChunk], run_of: Mapping[str, Sequence[str]]) -> list[_Unit]:
    """Split chunks into units.

    Args:
        chunks: Chunks in the order of their session.
        run_of: Chunk id -> all chunks of the passage that has it.
    """

    def run(chunk: SessionChunk) -> Sequence[str]:
        return run_of.get(chunk.row.id, (chunk.row.id,))

    units: list[_Unit] = []
    for ids, group in groupby(chunks, run):
        unit = list(group)
        units.append(_Unit(unit, is_complete=len(unit) == len(ids)))
    return units


def _grow(
    passage: Passage, units: Sequence[_Unit], shown: Collection[Identity], max_chars: int
) -> list[SessionChunk]:
    """Return the chunks of a passage and those around it that fit, added one at each side.

    Args:
        passage: The passage.
        units: What surrounds it, with its own chunks.
        shown: Chunks that other passages show: it grows up to them.
        max_chars: Length of the text; a longer passage stays as it is.

    Returns:
        The chunks in their order; none if those of the passage are not there any more.
    """
    place = next((index for index, unit in enumerate(units) if unit.has(passage.hit.id)), None)
    if place is None or not units[place].is_complete:
        return []
    growth = _Growth(units, place, shown, max_chars)
    growth.grow(is_own_exchange=True)
    growth.grow(is_own_exchange=False)
    return growth.chunks()


class _Growth:
    """The units of a passage, to which those around them are added one at each side."""

    def __init__(
        self, units: Sequence[_Unit], place: int, shown: Collection[Identity], max_chars: int
    ) -> None:
        """Begin with the unit at a place."""
        self._units = units
        self._shown = shown
        self._max_chars = max_chars
        self._own = units[place].chunks[0]
        self._first = self._last = place
        self._length = units[place].length()

    def grow(self, *, is_own_exchange: bool) -> None:
        """Add units as long as one fits, of the hit's exchange alone or of all."""
        has_grown = True
        while has_grown:
            has_grown = False
            if self._can_add(self._last + 1, is_own_exchange=is_own_exchange):
                self._last += 1
                self._length += self._units[self._last].length()
                has_grown = True
            if self._can_add(self._first - 1, is_own_exchange=is_own_exchange):
                self._first -= 1
                self._length += self._units[self._first].length()
                has_grown = True

    def _can_add(self, index: int, *, is_own_exchange: bool) -> bool:
        if not 0 <= index < len(self._units):
            return False
        unit = self._units[index]
        chunk, own = unit.chunks[0], self._own
        is_in_reach = not is_own_exchange or chunk.location.origin == own.location.origin
        is_shown = any(_identity(each.row) in self._shown for each in unit.chunks)
        is_alike = chunk.row.kind == own.row.kind
        fits = self._length + unit.length() <= self._max_chars
        return unit.is_complete and is_in_reach and is_alike and fits and not is_shown

    def chunks(self) -> list[SessionChunk]:
        """Return the chunks in their order."""
        grown = self._units[self._first : self._last + 1]
        return [chunk for unit in grown for chunk in unit.chunks]


def _with_chunks(
    passage: Passage, chunks: Sequence[SessionChunk], question_of: QuestionOf
) -> Passage:
    """Return a passage with the text of these chunks, and its lines in its own exchange."""
    origin = passage.hit.location.origin
    own = [chunk.location for chunk in chunks if chunk.location.origin == origin]
    return replace(
        passage,
        start_line=own[0].start_line,
        end_line=own[-1].end_line,
        text=conversation_text(chunks, question_of),
        chunk_ids=tuple(_ids(chunks)),
    )


def conversation_text(chunks: Sequence[SessionChunk], question_of: QuestionOf) -> str:
    """Return the text of chunks, with `user: ` and `assistant: ` where somebody begins to speak.

    Args:
        chunks: Chunks that follow each other in a session.
        question_of: Says where in an exchange the answer begins.
    """
    parts: list[str] = []
    previous: tuple[RootedPath, str] | None = None
    end_line = 0
    for chunk in chunks:
        location = chunk.location
        for speaker, text in _spoken_parts(chunk, question_of(location.origin)):
            turn = (location.origin, speaker)
            if turn == previous:
                parts.append("\n" * max(1, location.start_line - end_line))
            else:
                parts.append(_GAP if parts else "")
                parts.append(f"{speaker}: " if speaker else "")
            parts.append(text)
            previous = turn
            end_line = location.end_line
    return "".join(parts)


def _spoken_parts(chunk: SessionChunk, question: str) -> Iterator[tuple[str, str]]:
    """Yield who speaks in a chunk, and what; "" for a text that names its speakers itself."""
    row = chunk.row
    if row.kind != _EXCHANGE_KIND or row.source in _SOURCES_WITH_NAMES:
        yield "", row.text
        return
    question_lines = question.count("\n") + 1 if question.strip() else 0
    lines = row.text.split("\n")
    count = max(0, question_lines - chunk.location.start_line + 1)
    for speaker, spoken in (("user", lines[:count]), ("assistant", lines[count:])):
        text = "\n".join(spoken).strip("\n")
        if text.strip():
            yield speaker, text
