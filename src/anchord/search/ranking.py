"""Rank a query's hits by vector and by words, and fuse both scores; `groups` shows them.

How much the cosine and the words count depends on what the query looks like (`query_kind`);
exchanges of conversations have a weight of their own. `fusion` combines both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import NamedTuple

from anchord.core.ports import Catalog, TextScorer
from anchord.core.query_syntax import ParsedQuery
from anchord.core.quoting import quote_name
from anchord.core.time_phrases import find_time_phrase
from anchord.core.types import ChunkLocation, Hit, RootedPath, ScoredRow, SearchFilters
from anchord.errors import EmbedderError, UsageError
from anchord.search.backends import Backends, run_sequentially
from anchord.search.confidence import Judgement
from anchord.search.copies import merge_copies
from anchord.search.dates import find_dated_files
from anchord.search.fusion import Boosts, fuse_scores
from anchord.search.groups import Group, show_hits
from anchord.search.judging import judge_of, strong_groups
from anchord.search.known_queries import KnownQueries
from anchord.search.packing import Layout
from anchord.search.query_kind import WEIGHTS, QueryKind, Weights, kind_of_query
from anchord.search.quoted_terms import (
    can_be_relaxed,
    prefer_phrases,
    read_query,
    relaxed_note,
)
from anchord.search.recency import Recency, weigh_by_age
from anchord.search.reranking import SURE, Reranked, rerank_hits
from anchord.search.several_models import find_nearest_of_all
from anchord.sources.conversations.exchange_document import is_exchange_path

MIN_CANDIDATES = 100
CONVERSATION_VECTOR_WEIGHT = 0.35
"""The cosine's weight in exchanges, whatever the query looks like."""
SEARCH_MODES = ("hybrid", "vector", "text")
_NEAREST = 3
"""How many groups are shown if nothing seems to be about the query."""
_STRONG_HITS = 20
"""How many of the best hits are looked at where only strong matches are shown."""
_MAX_WIDENING = 10
_MAX_WIDENED = 2_000
"""Where copies take most of the places, ten times the candidates are looked at, up to so many."""
_MAX_EXACT_IDENTIFIERS = 3
"""How many identifiers of a query are searched letter by letter: each search reads every row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to search for, where, and how to lay out the results."""

    query: str
    _: KW_ONLY
    mode: str = "hybrid"
    """hybrid, vector or text."""
    filters: SearchFilters = field(default_factory=SearchFilters)
    limit: int = 10
    """Number of groups, or of chunks in a flat list."""
    spare: int = 0
    """Groups to return beyond `limit`, for those that the caller joins."""
    layout: Layout = field(default_factory=Layout)
    """How much is shown; in a flat list every chunk is a group of its own."""
    near: tuple[RootedPath, ...] = ()
    """The folders of which a copy is shown rather than one elsewhere."""
    widening: int = 1
    """How many times the usual candidates are looked at."""
    vector_weight: float | None = None
    """The cosine's weight, 0 to 1; None is the measured default."""
    recency: Recency | None = None
    """How older hits are weighed down; None does not."""
    strong_only: bool = False
    """Whether only strong matches are shown: where nothing is near enough in meaning to be one, no
    text is read."""

    @property
    def candidates(self) -> int:
        """Number of chunks that each kind of search returns, from which results are chosen."""
        usual = max(MIN_CANDIDATES, 2 * self.limit)
        return max(usual, min(usual * self.widening, _MAX_WIDENED))

    def is_near(self, origin: RootedPath) -> bool:
        """Return whether a file is in one of the folders of `near`."""
        return any(
            folder.root == origin.root
            and (not folder.path or f"{origin.path}/".startswith(f"{folder.path}/"))
            for folder in self.near
        )


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The results of a search."""

    groups: tuple[Group, ...]
    """One group a file or exchange; groups and their passages are sorted best first."""
    parsed_query: ParsedQuery
    note: str = ""
    """A sentence for the user about a degraded search, else ""."""
    query_kind: QueryKind = QueryKind.TERMS
    """What the query looks like."""
    vector_weight: float = 0.0
    """How much meaning counted beside words in documents, 0 to 1."""
    _: KW_ONLY
    omitted: int = 0
    """Groups of which nothing fits in the budget."""
    is_about: bool = True
    """Whether anything found seems to be about the query; else only the nearest are shown."""
    judgement_by_id: Mapping[str, Judgement] = field(default_factory=dict)
    """How surely each passage is about the query, by the id of its hit."""
    reranked: Reranked | None = None
    """What the reranker did; None where there is none, and with mode "text"."""


def search(
    request: SearchRequest, backends: Backends, catalog: Catalog, reranker: TextScorer | None = None
) -> SearchResults:
    """Search the index; rows whose chunk has left its file are not among the results.

    A hybrid search without an available model searches by words only, and says so in the note. If
    the reranker is not available, the note says so as well.

    Args:
        request: The query and its options.
        backends: The table and the embedder.
        catalog: Says on which lines chunks are now.
        reranker: Sorts the best hits again, except in mode "text"; None does not.

    Raises:
        UsageError: The query has exclusions only.
        EmbedderError: The mode is "vector" and the model is not available.
    """
    parsed_query = read_query(request.query)
    if not parsed_query.text and parsed_query.excluded_phrases:
        raise UsageError(
            "the query only says what to exclude",
            "add what to look for; quote a word that begins with `-`",
        )
    request = _with_dated_files(request, catalog)
    backends = replace(backends, embedder=KnownQueries(backends.embedder))
    (request, found, hits), parsed_query, relaxed = _find_or_relax(
        request, parsed_query, backends, catalog
    )
    notes = [found.note, relaxed]
    judge = judge_of(parsed_query, hits, backends, request.mode, is_model_away=bool(found.note))
    if request.strong_only and not judge.may_be_strong(hits[:_STRONG_HITS]):
        return SearchResults((), parsed_query, is_about=False)
    reranked = None
    if reranker and request.mode != "text" and parsed_query.text:
        reranked = rerank_hits(hits, judge, reranker, backends.store)
        hits = list(reranked.hits)
        notes.append("" if any(notes) else _why_not_reranked(reranked))
    if request.recency:
        hits = weigh_by_age(hits, request.recency, backends.store, catalog)
    limit = request.limit + request.spare
    layout = replace(
        request.layout, neighbor_filters=neighbor_filters(request.filters, parsed_query)
    )
    candidates = judge.may_be_strong(hits[:_STRONG_HITS]) if request.strong_only else hits
    groups, omitted = show_hits(candidates, limit, layout, backends.store, catalog)
    if found.may_lack_matches and len(groups) + omitted < request.limit:
        notes.append(
            f"only the best {request.candidates:,} chunks with words of the query were considered"
        )
    notes.append(_time_hint(request))
    judgements, about = judge.judge_shown(hits, groups, backends.store)
    if request.strong_only:
        groups = strong_groups(groups, judgements)
    return SearchResults(
        groups=groups if about else groups[:_NEAREST],
        parsed_query=parsed_query,
        note="; ".join(filter(None, notes)),
        query_kind=kind_of_query(parsed_query),
        vector_weight=found.vector_weight,
        omitted=omitted if about else 0,
        is_about=about,
        judgement_by_id=judgements,
        reranked=reranked,
    )


def neighbor_filters(filters: SearchFilters, query: ParsedQuery) -> SearchFilters:
    """Return what chunks must meet that are shown beside a hit: all but what a hit contains."""
    return replace(filters, excluded_phrases=query.excluded_phrases)


class _Contents(NamedTuple):
    """The hits of a search without copies."""

    request: SearchRequest
    """As it was searched."""
    found: FoundHits
    hits: list[Hit]
    """Best first."""


def _find_contents(
    request: SearchRequest, parsed_query: ParsedQuery, backends: Backends, catalog: Catalog
) -> _Contents:
    """Search, and return one hit a content; search wider where most of what is found are copies."""
    found = find_hits(request, parsed_query, backends, catalog.locate_chunks)
    hits = merge_copies(found.hits, request.is_near)
    wider = replace(request, widening=_MAX_WIDENING)
    has_mostly_copies = len(found.hits) > 2 * len(hits)
    if has_mostly_copies and found.is_full and wider.candidates > request.candidates:
        request = wider
        found = find_hits(
            request,
            parsed_query,
            backends,
            catalog.locate_chunks,
        )
        hits = merge_copies(found.hits, request.is_near)
    return _Contents(request, found, hits)


def _find_or_relax(
    request: SearchRequest, parsed_query: ParsedQuery, backends: Backends, catalog: Catalog
) -> tuple[_Contents, ParsedQuery, str]:
    """Search; if hardly anything has the quoted phrases, search again and only prefer them.

    Returns:
        What was found; the query that found it; a sentence that says that phrases were relaxed.
    """
    contents = _find_contents(request, parsed_query, backends, catalog)
    matches = len(contents.found.hits)
    if not can_be_relaxed(parsed_query, matches):
        return contents, parsed_query, ""
    relaxed = relaxed_note(parsed_query, matches)
    parsed_query = prefer_phrases(parsed_query)
    return _find_contents(request, parsed_query, backends, catalog), parsed_query, relaxed


def _why_not_reranked(reranked: Reranked) -> str:
    return "" if reranked.reason in {"", SURE} else f"not reranked: {reranked.reason}"


def _time_hint(request: SearchRequest) -> str:
    """Return how to search only in a time that the query names; "" for none."""
    phrase = find_time_phrase(request.query)
    if not phrase or request.filters.since or request.filters.until:
        return ""
    return f"add --since {quote_name(phrase)} to search only there"


def _with_dated_files(request: SearchRequest, catalog: Catalog) -> SearchRequest:
    """Look up which files changed in the request's span of time; only the catalog knows."""
    filters = request.filters
    if not filters.since and not filters.until:
        return request
    files = find_dated_files(filters.since, filters.until, catalog.iter_change_times())
    return replace(request, filters=replace(filters, dated_files=files))


@dataclass(frozen=True, slots=True)
class FoundHits:
    """What the searches of a query found."""

    hits: list[Hit]
    """Best first."""
    note: str
    """A sentence for the user if vectors were not searched, or those of some models; else ""."""
    may_lack_matches: bool
    """Whether more chunks than were asked for may have words of the query."""
    vector_weight: float
    """How much the cosine counted in documents, 0 to 1."""
    is_full: bool = False
    """Whether either search returned as many rows as it was asked for."""


def find_hits(
    request: SearchRequest,
    parsed_query: ParsedQuery,
    backends: Backends,
    locations_of: Callable[[Sequence[str]], Mapping[str, ChunkLocation]],
) -> FoundHits:
    """Return the best hits of both kinds of search, fused: up to `request.candidates` of each.

    Args:
        request: Its mode, filters, vector weight and number of candidates count.
        parsed_query: The parsed `request.query`.
        backends: The table and the embedder.
        locations_of: Returns where chunks are now, by id. Chunks that it does not return are left
            out.

    Raises:
        EmbedderError: The mode is "vector" and the model is not available.
    """
    searches = _Searches(request, parsed_query, backends)
    run_both = backends.run_both if request.mode == "hybrid" else run_sequentially
    (near, note), (matching, exact_ids, phrase_ids) = run_both(
        searches.by_vector, searches.by_words
    )
    mode = "text" if note and not near else request.mode
    fixed_weight = {"vector": 1.0, "text": 0.0}.get(mode, request.vector_weight)
    weights = WEIGHTS[kind_of_query(parsed_query)]
    if fixed_weight is not None:
        weights = Weights(vector=fixed_weight, file=0.0)

    def vector_weight_of(location: ChunkLocation) -> float:
        is_exchange = fixed_weight is None and is_exchange_path(location.origin.path)
        return CONVERSATION_VECTOR_WEIGHT if is_exchange else weights.vector

    found_ids = {found.id for found in (*near, *matching)} | exact_ids | phrase_ids
    locations = locations_of(list(found_ids))
    boosts = Boosts(
        exact_match_ids=exact_ids,
        identifier_share=parsed_query.identifier_share,
        phrase_match_ids=phrase_ids,
        heading_match_by_id=_heading_matches(parsed_query, matching, locations),
        file_weight=weights.file,
    )
    hits = fuse_scores(near, matching, locations, vector_weight_of, boosts)
    return FoundHits(
        hits=hits,
        note=note,
        may_lack_matches=len(matching) >= request.candidates,
        vector_weight=weights.vector,
        is_full=max(len(near), len(matching)) >= request.candidates,
    )


class _Searches:
    """The vector search and the word searches of one query."""

    def __init__(
        self, request: SearchRequest, parsed_query: ParsedQuery, backends: Backends
    ) -> None:
        self._mode = request.mode
        self._query = parsed_query
        self._backends = backends
        self._candidates = request.candidates
        self._filters = replace(
            request.filters,
            required_phrases=parsed_query.required_phrases,
            excluded_phrases=parsed_query.excluded_phrases,
            required_prefixes=parsed_query.required_prefixes,
        )

    def by_vector(self) -> tuple[Sequence[ScoredRow], str]:
        """Return the rows with the most similar vectors, and a note if a model is missing."""
        if self._mode == "text" or not self._query.text:
            return (), ""
        try:
            if self._backends.further_models:
                return find_nearest_of_all(
                    self._query.text, self._candidates, self._filters, self._backends
                )
            vectors = self._backends.embedder.embed([self._query.text], is_query=True)
        except EmbedderError as error:
            if self._mode == "vector":
                raise
            return (), f"found by words alone: {error.message}"
        rows = self._backends.store.search_by_vector(vectors[0], self._candidates, self._filters)
        return rows, ""

    def by_words(self) -> tuple[Sequence[ScoredRow], set[str], set[str]]:
        """Return the rows with the best BM25 scores, and the ids of rows with certain words.

        Returns:
            The rows; the ids of rows with an identifier; those of rows with a preferred phrase.
        """
        if self._mode == "vector":
            return (), set(), set()
        store = self._backends.store
        exact_ids: set[str] = set()
        for identifier in self._query.identifiers[:_MAX_EXACT_IDENTIFIERS]:
            exact_ids.update(store.find_ids_containing(identifier, self._candidates, self._filters))
        phrase_ids: set[str] = set()
        for phrase in self._query.preferred_phrases[:_MAX_EXACT_IDENTIFIERS]:
            filters = replace(self._filters, required_phrases=(phrase,))
            rows = store.search_by_words(phrase, self._candidates, filters)
            phrase_ids.update(row.id for row in rows)
        rows = store.search_by_words(self._query.text, self._candidates, self._filters)
        return rows, exact_ids, phrase_ids


def _heading_matches(
    parsed_query: ParsedQuery,
    matching: Sequence[ScoredRow],
    locations: Mapping[str, ChunkLocation],
) -> dict[str, float]:
    """Return how well the query matches the last heading of each row, above 0.

    Exchanges are left out: what the titles of sessions contribute has not been measured.
    """
    matches = {}
    for found in matching:
        location = locations.get(found.id)
        if location is None or is_exchange_path(location.origin.path):
            continue
        score = parsed_query.heading_score(found.header_path.rpartition(" > ")[2])
        if score:
            matches[found.id] = score
    return matches
