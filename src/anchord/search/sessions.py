"""Read what surrounds the hits of conversations in their sessions, and what these are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice, takewhile

from anchord.core.ports import Catalog, ChunkStore
from anchord.core.query_syntax import parse_query
from anchord.core.types import RootedPath, SearchFilters
from anchord.search.groups import Group
from anchord.search.headings import best_title, conversation_heading
from anchord.search.joining import SessionChunk, join_neighbors
from anchord.search.packing import passage_tokens
from anchord.search.passages import Passage, Piece
from anchord.search.project_names import ProjectNames
from anchord.search.ranking import SearchRequest, neighbor_filters
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.session_order import SessionOrder, SessionStretch
from anchord.sources.conversations.exchange_document import is_exchange_path

_NEAR_EXCHANGES = 4
_NEAR_CHUNKS = 6
"""How many exchanges, and how many chunks, before and after a hit are looked at."""


@dataclass(frozen=True, slots=True)
class Index:
    """Where chunks are, and their texts."""

    catalog: Catalog
    store: ChunkStore


def join_exchanges(
    groups: Sequence[Group],
    request: SearchRequest,
    open_archive: Callable[[], AbstractContextManager[Archive | None]],
    index: Index,
) -> tuple[tuple[Group, ...], int]:
    """Return the groups of an answer; hits of conversations are joined and have headings.

    Args:
        groups: The passages of each file or exchange, best first.
        request: How many to return; a flat list is not joined.
        open_archive: Opens the archive; called only where an exchange was found.
        index: Which chunks exchanges have, and their texts.

    Returns:
        The groups, and how many were left out because the budget is spent.
    """
    first = tuple(groups[: request.limit])
    if not any(is_exchange_path(group[0].hit.location.origin.path) for group in groups):
        return first, 0
    with open_archive() as archive:
        if archive is None:
            return first, 0
        if request.layout.is_flat:
            return with_headings(first, archive.sessions), 0
        joined = with_surroundings(groups, request, archive.sessions, index)
    budget = request.layout.budget
    return (joined, 0) if budget is None else _fit(joined, groups, budget)


def _fit(
    joined: Sequence[Group], unjoined: Sequence[Group], budget: int
) -> tuple[tuple[Group, ...], int]:
    """Return the joined groups that fit in a budget, and how many do not.

    A passage that does not fit is shown as it was before, if that does.
    """
    before = {passage.hit.id: passage for group in unjoined for passage in group}
    answer = _BudgetedGroups(budget)
    for group in joined:
        forms = ((each, replace(before[each.hit.id], heading=each.heading)) for each in group)
        answer.show(forms)
    for group in unjoined:
        # What was joined to a passage that is shown as it was before has to be shown itself.
        if not answer.shows(group):
            answer.show((each,) for each in group)
    return tuple(answer.groups), sum(not answer.shows(group) for group in unjoined)


class _BudgetedGroups:
    """Groups of passages, as far as the tokens suffice."""

    def __init__(self, budget: int) -> None:
        """Begin without a group."""
        self.groups: list[Group] = []
        self._tokens_left = budget
        self._shown_ids: set[str] = set()

    def shows(self, group: Group) -> bool:
        """Return whether a passage of a group is shown, or a part of it."""
        return any(not self._shown_ids.isdisjoint(passage.chunk_ids) for passage in group)

    def show(self, passages_in_forms: Iterable[Sequence[Passage]]) -> None:
        """Show a group: of each passage the first form that fits, if any."""
        kept: list[Passage] = []
        for forms in passages_in_forms:
            fitting = next((form for form in forms if _tokens(form) <= self._tokens_left), None)
            if fitting:
                self._tokens_left -= _tokens(fitting)
                self._shown_ids.update(fitting.chunk_ids)
                kept.append(fitting)
        if kept:
            self.groups.append(tuple(kept))


def _tokens(passage: Passage) -> int:
    """Return an upper bound of the tokens of a passage with its place and headings."""
    section = passage.heading or passage.row.header_path
    row = replace(passage.row, text=passage.text, header_path=section)
    return passage_tokens([Piece(row, passage.hit.location, passage.hit)])


def with_surroundings(
    groups: Sequence[Group], request: SearchRequest, sessions: SessionOrder, index: Index
) -> tuple[Group, ...]:
    """Return the first groups; hits of conversations are joined with what surrounds them.

    Args:
        groups: The passages of each file or exchange, best first.
        request: How many to return, and what chunks must meet to be joined.
        sessions: Which exchanges surround another one.
        index: Which chunks exchanges have, and their texts.
    """
    stretches = _stretches(groups, sessions)
    near = _near_ids(groups, stretches, index.catalog)
    filters = neighbor_filters(request.filters, parse_query(request.query))
    chunks = _read_chunks(chain.from_iterable(near.values()), index, filters)
    surroundings = {
        passage.hit.id: _run_around(passage, near[passage.hit.id], chunks)
        for passage in chain.from_iterable(groups)
        if passage.hit.id in near
    }
    every = join_neighbors(groups, surroundings, cache(sessions.question_of))
    joined = islice(every, request.limit)
    return _with_headings(tuple(joined), stretches, sessions)


def _run_around(
    passage: Passage, ids: Sequence[str], chunks: Mapping[str, SessionChunk]
) -> list[SessionChunk]:
    """Return the chunks of a passage and those around it, up to one that must not be joined.

    Args:
        passage: The passage.
        ids: Its chunks and those around it, in the order of the session.
        chunks: Chunks by id, without those that were just deleted and those that the request
            excludes.
    """
    places = [number for number, chunk_id in enumerate(ids) if chunk_id in passage.chunk_ids]
    first, last = places[0], places[-1]
    before = list(takewhile(chunks.__contains__, reversed(ids[:first])))
    after = list(takewhile(chunks.__contains__, ids[last + 1 :]))
    run = [*reversed(before), *ids[first : last + 1], *after]
    return [chunks[chunk_id] for chunk_id in run if chunk_id in chunks]


def with_headings(groups: Sequence[Group], sessions: SessionOrder) -> tuple[Group, ...]:
    """Return groups whose passages of conversations say what their sessions are called."""
    return _with_headings(groups, _stretches(groups, sessions), sessions)


def _stretches(groups: Sequence[Group], sessions: SessionOrder) -> dict[RootedPath, SessionStretch]:
    """Return what surrounds the exchanges among the hits."""
    passages = chain.from_iterable(groups)
    origins = dict.fromkeys(passage.hit.location.origin for passage in passages)
    stretches: dict[RootedPath, SessionStretch] = {}
    for origin in filter(lambda origin: is_exchange_path(origin.path), origins):
        stretch = sessions.stretch_around(origin, _NEAR_EXCHANGES)
        if stretch:
            stretches[origin] = stretch
    return stretches


def _near_ids(
    groups: Sequence[Group], stretches: Mapping[RootedPath, SessionStretch], catalog: Catalog
) -> dict[str, list[str]]:
    """Return the ids of the chunks around each passage, with its own, by the id of its hit."""

    @cache
    def ids_of(origin: RootedPath) -> list[str]:
        record = catalog.get_record(origin)
        return [placed.chunk_id for placed in record.chunks] if record else []

    near: dict[str, list[str]] = {}
    for passage in chain.from_iterable(groups):
        stretch = stretches.get(passage.hit.location.origin)
        ids = list(chain.from_iterable(map(ids_of, stretch.exchanges))) if stretch else []
        places = [ids.index(each) for each in passage.chunk_ids if each in ids]
        if places:
            start = max(0, min(places) - _NEAR_CHUNKS)
            near[passage.hit.id] = ids[start : max(places) + _NEAR_CHUNKS + 1]
    return near


def _read_chunks(
    ids: Iterable[str], index: Index, filters: SearchFilters
) -> dict[str, SessionChunk]:
    """Return chunks by id, without those that were just deleted or do not meet the filters."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    locations = index.catalog.locate_chunks(wanted)
    rows = index.store.get_display_rows(wanted, filters)
    return {row.id: SessionChunk(row, locations[row.id]) for row in rows if row.id in locations}


def _with_headings(
    groups: Sequence[Group],
    stretches: Mapping[RootedPath, SessionStretch],
    sessions: SessionOrder,
) -> tuple[Group, ...]:
    question_of = cache(sessions.question_of)
    names = ProjectNames(stretch.project for stretch in stretches.values())

    def named(passage: Passage) -> Passage:
        stretch = stretches.get(passage.hit.location.origin)
        if stretch is None:
            return passage
        title = best_title(stretch.title, map(question_of, stretch.opening))
        project = names.name_of(stretch.project)
        heading = conversation_heading(title, project, passage.row.at)
        return replace(passage, heading=heading)

    return tuple(tuple(map(named, group)) for group in groups)
