"""Answer `search` about an index, for the daemon and for commands without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from anchord.core.ports import Reranker
from anchord.core.quoting import quote_name
from anchord.errors import UsageError
from anchord.index.further_models import FurtherModel
from anchord.index.session import IndexReader
from anchord.ipc.messages.searching import (
    DetachedHit,
    RerankerAnswer,
    SearchAnswer,
    SearchParams,
)
from anchord.ipc.messages.searching import (
    Passage as PassageMessage,
)
from anchord.search.answers import make_describer, open_archive_of
from anchord.search.backends import Backends, FurtherQueries
from anchord.search.cosine_scale import scale_of
from anchord.search.coverage import Coverage
from anchord.search.detached import search_detached
from anchord.search.groups import Group
from anchord.search.known_queries import KnownQueries
from anchord.search.project_names import ProjectNames
from anchord.search.prompt_query import query_of_prompt
from anchord.search.ranking import SearchResults, search
from anchord.search.request import make_search_request
from anchord.search.reranking import Reranked
from anchord.search.sessions import Index, join_exchanges
from anchord.store.catalog.catalog import SqliteCatalog

A = TypeVar("A")
B = TypeVar("B")

_NO_WORDS = " \t\r\n\"'"
_WORD_SEARCH_POOL = ThreadPoolExecutor(8, "words")
"""Starts its threads when they are first needed."""


def handle_search(
    reader: IndexReader,
    catalog: SqliteCatalog,
    params: SearchParams,
    coverage: Coverage | None = None,
) -> SearchAnswer:
    """Answer `search`: groups of passages by file, best first, with their current lines.

    Args:
        reader: The index.
        catalog: The index's catalog, on the caller's connection.
        params: The request.
        coverage: What the daemon knows of the index; None without a daemon.

    Raises:
        UsageError: The mode, the root, the kind or a date is not valid.
        EmbedderError: The mode is "vector" and the model is not available.
    """
    if params.is_prompt:
        params = params.with_query(query_of_prompt(params.query))
    if not params.query.strip(_NO_WORDS):
        raise UsageError("the query is empty", "give words to search for, or a question")
    request = make_search_request(params, reader.roots, partial(_find_projects, reader))
    embedder = reader.profile.embedder
    if coverage is None:
        coverage = Coverage(
            is_complete=False,
            is_interrupted=catalog.get_meta("clean") != "1",
            chunks=reader.store.count_rows(),
            without_vector=reader.store.count_due(),
        )
    backends = Backends(
        store=reader.store,
        embedder=embedder,
        run_both=_run_in_parallel,
        cosine_scale=lambda: scale_of(embedder),
        all_have_vectors=coverage.without_vector == 0,
        further_models=[_queries_of(model) for model in reader.profile.further.models],
    )
    reranker = _TimedReranker(reader.reranker) if reader.reranker else None
    results = search(request, backends, catalog, reranker)
    index = Index(catalog, reader.store)
    groups, unfitting = join_exchanges(
        results.groups, request, lambda: open_archive_of(reader), index
    )
    is_explained = params.is_prompt or params.detached  # Nobody reads the note for a prompt.
    finds_nothing = not (results.groups or results.omitted or is_explained)
    not_searched = _detached_sentence(reader) if finds_nothing else ""
    return SearchAnswer(
        query=params.query,
        mode=params.mode,
        note="; ".join(filter(None, [results.note, *coverage.sentences(), not_searched])),
        about=results.is_about,
        complete=coverage.is_complete,
        coverage=coverage.as_message(),
        query_kind=results.query_kind,
        vector_weight=results.vector_weight,
        groups=_group_messages(reader, catalog, results, groups),
        omitted=results.omitted + unfitting,
        detached=_search_detached(reader, params) if params.detached else (),
        reranker=_reranker_message(results.reranked, reranker),
    )


def _queries_of(model: FurtherModel) -> FurtherQueries:
    return FurtherQueries(
        name=quote_name(model.files.name),
        tag=model.tag,
        embedder=KnownQueries(model.embedder),
        cosine_scale=lambda: scale_of(model.embedder),
    )


def _find_projects(reader: IndexReader, wanted: str) -> tuple[str, ...]:
    """Return the projects, as transcripts name them, that a name or a folder stands for."""
    with open_archive_of(reader) as archive:
        projects = archive.session_records.projects() if archive else []
    names = ProjectNames(projects)
    return tuple(each for each in projects if names.is_meant(each, wanted))


class _TimedReranker:
    """The reranker of one search, which measures how long its answer takes."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self.ms = 0.0

    def score_texts(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        began = time.perf_counter()
        try:
            return self._reranker.score_texts(query, texts)
        finally:
            self.ms = round(1_000 * (time.perf_counter() - began), 1)


def _reranker_message(
    reranked: Reranked | None, reranker: _TimedReranker | None
) -> RerankerAnswer | None:
    if reranked is None or reranker is None:
        return None
    return RerankerAnswer(
        hits=reranked.count,
        ms=reranker.ms,
        reason=reranked.reason,
    )


def _detached_sentence(reader: IndexReader) -> str:
    """Return how many exchanges are kept and not searched; "" for none."""
    with open_archive_of(reader) as archive:
        groups = archive.detached_groups() if archive else ()
        count = sum(group.exchange_count for group in groups)
    if not count:
        return ""
    exchanges = "1 exchange is" if count == 1 else f"{count:,} exchanges are"
    return f"{exchanges} kept but not indexed, and not searched: --detached searches them"


def _search_detached(reader: IndexReader, params: SearchParams) -> tuple[DetachedHit, ...]:
    with open_archive_of(reader) as archive:
        if archive is None:
            return ()
        groups = {group.key: group for group in archive.detached_groups()}
        hits = search_detached(
            archive.detached_exchanges(),
            groups,
            params.query,
            params.k,
        )
        return tuple(hits)


def _group_messages(
    reader: IndexReader,
    catalog: SqliteCatalog,
    results: SearchResults,
    groups: Sequence[Group],
) -> tuple[tuple[PassageMessage, ...], ...]:
    passages = [passage for group in groups for passage in group]
    locations = {passage.hit.id: passage.hit.location for passage in passages}
    copies = [copy for passage in passages for copy in passage.hit.copies]
    describer = replace(
        make_describer(reader, catalog, locations, copies),
        change_times=catalog.change_times({location.origin for location in locations.values()}),
    )
    query, judgements = results.parsed_query, results.judgement_by_id
    return tuple(
        tuple(describer.describe_passage(each, query, judgements[each.hit.id]) for each in group)
        for group in groups
    )


def _run_in_parallel(first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]:
    """Run the second in another thread: words are searched while a worker embeds the query."""
    future = _WORD_SEARCH_POOL.submit(second)
    try:
        return first(), future.result()
    finally:
        future.cancel()
