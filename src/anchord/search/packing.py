"""Choose the passages that a search shows: whole chunks by score, under a budget of tokens.

Pure: pieces with scores, texts and places go in, passages come out. Its laws are tested as
properties: never over the budget, no text twice, each passage is a contiguous part of its file, a
larger budget never shows less of the best hit, and equal arguments give equal passages.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

from anchord.core.token_counts import cut_field, field_tokens
from anchord.core.types import NO_FILTERS, ChunkLocation, RootedPath, SearchFilters
from anchord.search.passages import (
    Passage,
    Piece,
    best_first,
    join_texts,
    line_ends_between,
    make_passage,
)

NEIGHBOR_SHARE = 0.85
"""A chunk beside a chosen one of its section counts this share of the score of the hit that they
were chosen for, however far from it. More completes long sections, and shows fewer files
(docs/design/search.md)."""
_HEAD_TOKENS = 116
"""What an agent is shown of a passage besides its path, headings and text: names of fields, lines,
id, score, confidence and date, and the folder that the path is in."""
_SHOWN_COPIES = 3
"""How many other places of a passage an agent is shown."""
_FOLDER_TOKENS = 20
_COPY_TOKENS = 16
"""What it is shown of each besides its path: the folder that the path is in; and the line, quotes,
and a share of the field's name."""
_MAX_PLACE_TOKENS = 60
"""At most so much of a path counts, and of the headings: answers cut them."""
_LINE_END_TOKENS = 2
_MIN_CUT_TOKENS = 60
"""The last chunk is cut to fill the budget if so much of it fits; the best one always is."""
_MAX_MISSES = 8
"""After so many chunks that do not fit, the budget counts as spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How much is shown, and in what form."""

    budget: int | None = None
    """Tokens of all passages, with their places and headings (`passage_tokens`); None for all."""
    expand_chars: int = 0
    """Each hit grows within its section up to so many characters, before the next hit is chosen."""
    is_flat: bool = False
    """Whether each hit is a passage of its own."""
    neighbor_filters: SearchFilters = NO_FILTERS
    """What chunks must meet that are added to hits; whoever reads them sees to it."""


def pack(pieces: Sequence[Piece], layout: Layout) -> list[Passage]:
    """Choose passages, and return them best first.

    Chunks are chosen in the order of their scores. With a budget, a chunk beside a chosen one
    counts a share of the score of the hit that this one was chosen for, if it is in the same
    section or in one below it. So a section becomes whole before worse hits are shown. The last
    chunk is cut where it does not fit.

    Args:
        pieces: The hits and their neighbours. Of two at one place in a file the first counts.
        layout: How much is shown.
    """
    packer = _Packer(pieces, layout)
    packer.choose()
    return sorted(packer.passages(), key=lambda passage: best_first(passage.hit))


def passage_tokens(pieces: Sequence[Piece]) -> int:
    """Return an upper bound of the tokens of a passage with its place and headings.

    Args:
        pieces: Its chunks, in the order of the file.
    """
    heads = max(map(_head_tokens, pieces))
    return _passage_cost(pieces, heads, sum(field_tokens(piece.row.text) for piece in pieces))


def _head_tokens(piece: Piece) -> int:
    section = min(field_tokens(piece.row.header_path), _MAX_PLACE_TOKENS)
    path = min(field_tokens(piece.location.origin.path), _MAX_PLACE_TOKENS)
    copies = piece.hit.copies[:_SHOWN_COPIES] if piece.hit else ()
    return _HEAD_TOKENS + path + section + sum(map(_copy_tokens, copies))


def _copy_tokens(copy: ChunkLocation) -> int:
    path = field_tokens(copy.origin.path) + _FOLDER_TOKENS
    return min(path, _MAX_PLACE_TOKENS) + _COPY_TOKENS


def _passage_cost(pieces: Sequence[Piece], head: int, texts: int) -> int:
    line_ends = 0
    for previous, piece in pairwise(pieces):
        line_ends += line_ends_between(previous.location.end_line, piece.location.start_line)
    return head + texts + _LINE_END_TOKENS * line_ends


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A chosen piece, and the hit that it was chosen for."""

    piece: Piece
    hit_id: str


class _Packer:
    """The choice of one search."""

    def __init__(self, pieces: Sequence[Piece], layout: Layout) -> None:
        self._layout = layout
        self._tokens_left = layout.budget
        self._piece_at: dict[tuple[RootedPath, int], Piece] = {}
        for piece in pieces:
            place = (piece.location.origin, piece.location.ordinal)
            self._piece_at.setdefault(place, piece)
        self._chosen_by_file: dict[RootedPath, dict[int, _Chosen]] = {}
        self._costs: dict[str, tuple[int, int]] = {}

    def choose(self) -> None:
        """Choose pieces by score until the budget is spent."""
        hits = [(piece.hit, piece) for piece in self._piece_at.values() if piece.hit]
        hits.sort(key=lambda found: best_first(found[0]))
        order = count()
        # The order breaks ties, so that pieces are never compared.
        queue = [(-hit.score, next(order), piece, hit) for hit, piece in hits]
        misses = 0
        while queue and misses < _MAX_MISSES:
            _, _, piece, hit = heapq.heappop(queue)
            if self._is_chosen(piece):
                continue
            if not self._take(piece, hit.id):
                if self._take_beginning(piece, hit.id):
                    break
                misses += 1
                continue
            self._expand(piece, hit.id)
            for neighbor in self._neighbors(piece):
                entry = (-NEIGHBOR_SHARE * hit.score, next(order), neighbor, hit)
                heapq.heappush(queue, entry)

    def passages(self) -> Iterator[Passage]:
        """Yield what was chosen."""
        for chosen in self._chosen_by_file.values():
            yield from map(make_passage, self._runs(chosen))

    def _is_chosen(self, piece: Piece) -> bool:
        return piece.location.ordinal in self._chosen_of(piece)

    def _chosen_of(self, piece: Piece) -> dict[int, _Chosen]:
        """Return what is chosen of a piece's file."""
        return self._chosen_by_file.setdefault(piece.location.origin, {})

    def _beside(self, piece: Piece, step: int) -> Piece | None:
        location = piece.location
        return self._piece_at.get((location.origin, location.ordinal + step))

    def _neighbors(self, piece: Piece) -> Iterator[Piece]:
        """Yield what may be added beside a chosen piece: the next one, and the one before."""
        if self._layout.budget is None or self._layout.is_flat:
            return
        after, before = self._beside(piece, 1), self._beside(piece, -1)
        if after and _is_within(_section(after), _section(piece)):
            yield after
        if before and _section(before) == _section(piece):
            yield before

    def _expand(self, piece: Piece, hit_id: str) -> None:
        """Add neighbours of the same section, one at each side in turn, as long as they fit."""
        steps = [1, -1] if self._layout.expand_chars else []
        while steps:
            steps = [step for step in steps if self._grow(piece, step, hit_id)]

    def _grow(self, piece: Piece, step: int, hit_id: str) -> bool:
        """Add the nearest piece on one side; return whether there was one, and it fits."""
        chosen = self._chosen_of(piece)
        neighbor = self._beside(piece, step)
        while neighbor and neighbor.location.ordinal in chosen:
            neighbor = self._beside(neighbor, step)
        if neighbor is None or _section(neighbor) != _section(piece):
            return False
        before, after = self._joined(_Chosen(neighbor, hit_id))
        is_joined = any(each is piece for each in (*before, *after))
        length = len(join_texts([*before, neighbor, *after]))
        if not is_joined or length > self._layout.expand_chars:
            return False
        return self._take(neighbor, hit_id)

    def _take(self, piece: Piece, hit_id: str) -> bool:
        """Choose a piece if it fits; return whether it does."""
        added = _Chosen(piece, hit_id)
        if self._tokens_left is not None:
            tokens = self._added_tokens(added)
            if tokens > self._tokens_left:
                return False
            self._tokens_left -= tokens
        self._chosen_of(piece)[piece.location.ordinal] = added
        return True

    def _take_beginning(self, piece: Piece, hit_id: str) -> bool:
        """Choose as much of a piece as fits, if that is worth its place; return whether it is."""
        is_best = not any(self._chosen_by_file.values())
        chosen = self._chosen_of(piece)
        if self._tokens_left is None or piece.location.ordinal + 1 in chosen:
            return False
        without_text = replace(piece, row=replace(piece.row, id=f"{piece.row.id}:", text=""))
        tokens = self._tokens_left - self._added_tokens(_Chosen(without_text, hit_id))
        if not is_best and tokens < _MIN_CUT_TOKENS:
            return False
        beginning = cut_field(piece.row.text, tokens)
        if beginning:
            chosen[piece.location.ordinal] = _Chosen(_with_text(piece, beginning), hit_id)
        return bool(beginning)

    def _added_tokens(self, added: _Chosen) -> int:
        """Return what it costs to choose a piece: less than its own if it joins passages."""
        before, after = self._joined(added)
        joined = self._cost([*before, added.piece, *after])
        return joined - self._cost(before) - self._cost(after)

    def _joined(self, added: _Chosen) -> tuple[list[Piece], list[Piece]]:
        """Return the chosen pieces before and after a piece that would be one passage with it."""
        chosen = self._chosen_of(added.piece)
        before: list[Piece] = []
        current = added
        while previous := chosen.get(current.piece.location.ordinal - 1):
            if not self._is_joined(previous, current):
                break
            before.insert(0, previous.piece)
            current = previous
        after: list[Piece] = []
        current = added
        while following := chosen.get(current.piece.location.ordinal + 1):
            if not self._is_joined(current, following):
                break
            after.append(following.piece)
            current = following
        return before, after

    def _cost(self, passage: Sequence[Piece]) -> int:
        """Return the tokens of a passage; 0 for none."""
        if not passage:
            return 0
        heads, texts = zip(*map(self._tokens_of, passage), strict=True)
        return _passage_cost(passage, max(heads), sum(texts))

    def _tokens_of(self, piece: Piece) -> tuple[int, int]:
        """Return the tokens of a piece's head and of its text; each is counted once."""
        chunk_id = piece.row.id
        if chunk_id not in self._costs:
            self._costs[chunk_id] = (_head_tokens(piece), field_tokens(piece.row.text))
        return self._costs[chunk_id]

    def _runs(self, chosen: Mapping[int, _Chosen]) -> list[list[Piece]]:
        """Return the pieces of each passage of a file, in the order of the file.

        A passage has adjacent pieces; without a budget, only those of one section.
        """
        runs: list[list[Piece]] = []
        previous = None
        for ordinal in sorted(chosen):
            current = chosen[ordinal]
            if previous and self._is_joined(previous, current):
                runs[-1].append(current.piece)
            else:
                runs.append([current.piece])
            previous = current
        return runs

    def _is_joined(self, previous: _Chosen, current: _Chosen) -> bool:
        if current.piece.location.ordinal != previous.piece.location.ordinal + 1:
            return False
        if self._layout.is_flat and current.hit_id != previous.hit_id:
            return False
        # With a budget, a place of its own for each section would cost more than it tells.
        is_budgeted = self._layout.budget is not None
        return is_budgeted or _section(current.piece) == _section(previous.piece)


def _section(piece: Piece) -> str:
    return piece.row.header_path


def _is_within(section: str, outer: str) -> bool:
    """Return whether a section is another one, or below it; both are joined header paths."""
    return section == outer or bool(outer and section.startswith(f"{outer} > "))


def _with_text(piece: Piece, beginning: str) -> Piece:
    """Return a piece with the beginning of its text; it ends where that ends, if lines tell."""
    location = piece.location
    line_count = location.end_line - location.start_line + 1
    if piece.row.text.count("\n") + 1 == line_count:
        location = location._replace(end_line=location.start_line + beginning.count("\n"))
    return replace(
        piece,
        row=replace(piece.row, text=beginning),
        location=location,
    )
