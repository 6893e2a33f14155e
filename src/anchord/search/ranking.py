"""Rank a query's hits by vector and by words, fuse both scores, and group the hits by file.

How much the cosine and the words count depends on what the query looks like (`query_kind`);
exchanges of conversations have a weight of their own. `fusion` combines both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain
from typing import Protocol, TypeVar

from anchord.core.ports import Catalog, ChunkStore, Reranker
from anchord.core.query_syntax import ParsedQuery, parse_query
from anchord.core.types import (
    ChunkLocation,
    Hit,
    RootedPath,
    Row,
    ScoredRow,
    SearchFilters,
    Vector,
)
from anchord.errors import EmbedderError, UsageError
from anchord.search.dates import find_dated_files
from anchord.search.fusion import Boosts, fuse_scores
from anchord.search.passages import (
    Passage,
    drop_repeated_passages,
    expand_passage,
    make_passage,
    merge_adjacent_hits,
)
from anchord.search.query_kind import WEIGHTS, QueryKind, Weights, kind_of_query
from anchord.search.reranking import rerank_hits
from anchord.sources.conversations.exchange_document import is_exchange_path

MIN_CANDIDATES = 100
CONVERSATION_VECTOR_WEIGHT = 0.35
"""The cosine's weight in exchanges, whatever the query looks like."""
SEARCH_MODES = ("hybrid", "vector", "text")
_SPARE_GROUPS = 10
"""So many groups take the place of exchanges that are shown once and were found more often."""
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
    is_flat: bool = False
    """Whether every chunk is a group of its own, in the order of scores."""
    expand_chars: int = 0
    """Expand each passage within its section up to so many characters; 0 does not expand."""
    vector_weight: float | None = None
    """The cosine's weight, 0 to 1; None is the measured default."""

    @property
    def candidates(self) -> int:
        """Number of chunks that each kind of search returns, from which results are chosen."""
        return max(MIN_CANDIDATES, 2 * self.limit)


Group = tuple[Passage, ...]


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


A = TypeVar("A")
B = TypeVar("B")


class RunBoth(Protocol):
    """Runs two independent functions, possibly in parallel, and returns both results."""

    def __call__(self, first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]:
        """Run both; what one of them raises is raised."""


def run_sequentially(first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]:
    """Run two functions one after the other; return both results."""
    return first(), second()


class QueryEmbedder(Protocol):
    """Turns queries into vectors, as `Embedder` does."""

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Return one vector a text."""


@dataclass(frozen=True, slots=True)
class Backends:
    """What a search reads from."""

    store: ChunkStore
    embedder: QueryEmbedder
    run_both: RunBoth = run_sequentially
    """Runs the vector search and the word search; callers with threads run them in parallel."""


def search(
    request: SearchRequest, backends: Backends, catalog: Catalog, reranker: Reranker | None = None
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
    parsed_query = parse_query(request.query)
    if not parsed_query.text and parsed_query.excluded_phrases:
        raise UsageError(
            "the query only says what to exclude",
            "add what to look for; quote a word that begins with `-`",
        )
    request = _with_dated_files(request, catalog)
    found = find_hits(request, parsed_query, backends, catalog.locate_chunks)
    hits, note = found.hits, found.note
    if reranker and request.mode != "text" and parsed_query.text:
        try:
            hits = rerank_hits(hits, parsed_query.text, reranker, backends.store)
        except EmbedderError as error:
            note = note or f"not reranked: {error.message}"
    groups = [[hit] for hit in hits] if request.is_flat else group_hits_by_file(hits)
    shown = tuple(_groups_with_text(groups, request, backends.store, catalog))
    if found.may_lack_matches and len(shown) < request.limit:
        cut = f"only the best {request.candidates:,} chunks with words of the query were considered"
        note = "; ".join(filter(None, (note, cut)))
    kind = kind_of_query(parsed_query)
    return SearchResults(shown, parsed_query, note, kind, found.vector_weight)


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
    """A sentence for the user if there was no search by vectors, else ""."""
    may_lack_matches: bool
    """Whether more chunks than were asked for may have words of the query."""
    vector_weight: float
    """How much the cosine counted in documents, 0 to 1."""


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
    (near, note), (matching, exact_ids) = run_both(searches.by_vector, searches.by_words)
    mode = "text" if note else request.mode
    fixed_weight = {"vector": 1.0, "text": 0.0}.get(mode, request.vector_weight)
    weights = WEIGHTS[kind_of_query(parsed_query)]
    if fixed_weight is not None:
        weights = Weights(vector=fixed_weight, file=0.0)

    def vector_weight_of(location: ChunkLocation) -> float:
        is_exchange = fixed_weight is None and is_exchange_path(location.origin.path)
        return CONVERSATION_VECTOR_WEIGHT if is_exchange else weights.vector

    found_ids = {found.id for found in (*near, *matching)} | exact_ids
    locations = locations_of(list(found_ids))
    boosts = Boosts(
        exact_match_ids=exact_ids,
        identifier_share=parsed_query.identifier_share,
        heading_match_by_id=_heading_matches(parsed_query, matching, locations),
        file_weight=weights.file,
    )
    hits = fuse_scores(near, matching, locations, vector_weight_of, boosts)
    return FoundHits(
        hits=hits,
        note=note,
        may_lack_matches=len(matching) >= request.candidates,
        vector_weight=weights.vector,
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
        """Return the rows with the most similar vectors, and a note if there is no model."""
        if self._mode == "text" or not self._query.text:
            return (), ""
        try:
            vectors = self._backends.embedder.embed([self._query.text], is_query=True)
        except EmbedderError as error:
            if self._mode == "vector":
                raise
            return (), f"found by words alone: {error.message}"
        rows = self._backends.store.search_by_vector(vectors[0], self._candidates, self._filters)
        return rows, ""

    def by_words(self) -> tuple[Sequence[ScoredRow], set[str]]:
        """Return the rows with the best BM25 scores, and the ids of rows with an identifier."""
        if self._mode == "vector":
            return (), set()
        store = self._backends.store
        exact_ids: set[str] = set()
        for identifier in self._query.identifiers[:_MAX_EXACT_IDENTIFIERS]:
            exact_ids.update(store.find_ids_containing(identifier, self._candidates, self._filters))
        rows = store.search_by_words(self._query.text, self._candidates, self._filters)
        return rows, exact_ids


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


def group_hits_by_file(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Group hits by file, in the order of each file's first hit; hits keep their order."""
    groups: dict[RootedPath, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.location.origin, []).append(hit)
    return list(groups.values())


def _groups_with_text(
    groups: Sequence[Sequence[Hit]], request: SearchRequest, store: ChunkStore, catalog: Catalog
) -> Iterator[Group]:
    """Yield the first groups as passages; rows that were just deleted are left out."""
    limit = request.limit + request.spare
    count = limit
    if any(_is_exchange(group[0]) for group in groups[:count]):
        count += _SPARE_GROUPS
    candidates = groups[:count]
    hits = list(chain.from_iterable(candidates))
    ids = [hit.id for hit in hits]
    rows = {row.id: row for row in store.get_display_rows(ids)}
    copies = _find_copies(hits, rows)
    originals = [group for group in candidates if group[0].location.origin not in copies]
    for group in originals[:limit]:
        rows_and_hits = [(rows[hit.id], hit) for hit in group if hit.id in rows]
        passages = _make_passages(rows_and_hits, request, store, catalog)
        if passages:
            yield tuple(drop_repeated_passages(passages))


def _make_passages(
    rows_and_hits: Sequence[tuple[Row, Hit]],
    request: SearchRequest,
    store: ChunkStore,
    catalog: Catalog,
) -> list[Passage]:
    """Make the passages of one file: merged unless the request is flat, and as long as asked."""
    if request.is_flat:
        passages = [make_passage([each]) for each in rows_and_hits]
    else:
        passages = merge_adjacent_hits(rows_and_hits)
    if not request.expand_chars:
        return passages
    return [expand_passage(passage, request.expand_chars, store, catalog) for passage in passages]


def _is_exchange(hit: Hit) -> bool:
    return is_exchange_path(hit.location.origin.path)


def _find_copies(hits: Sequence[Hit], rows: Mapping[str, Row]) -> set[RootedPath]:
    """Return the exchanges that repeat a better hit: another file or root contains them too.

    They have the same program, times and text. Of equal hits the first is the better one.
    """
    original_of: dict[tuple[str, ...], RootedPath] = {}
    copies: set[RootedPath] = set()
    for hit in hits:
        origin, row = hit.location.origin, rows.get(hit.id)
        if row is None or origin in copies or not _is_exchange(hit):
            continue
        identity = (row.source, row.at, row.until, row.text)
        original = original_of.setdefault(identity, origin)
        if original in copies:
            original_of[identity] = origin
        elif original != origin:
            copies.add(origin)
    return copies
