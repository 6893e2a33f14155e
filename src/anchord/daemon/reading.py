"""The methods that only read an index, for the daemon and for processes without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from anchord.daemon.answers import failures_of, root_answers
from anchord.daemon.session_reading import decisions, session, sessions
from anchord.index.session import IndexReader
from anchord.ipc import methods
from anchord.ipc.messages.base import Params
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.ipc.messages.roots import RootAnswer
from anchord.ipc.messages.searching import ExplainAnswer, ExplainParams
from anchord.ipc.messages.status import Failure
from anchord.ipc.requests import Call
from anchord.search.answers import handle_dump, handle_explain, handle_show
from anchord.search.blame import handle_blame
from anchord.search.coverage import Coverage
from anchord.search.file_answers import handle_changes, handle_files
from anchord.search.search_answer import handle_search
from anchord.store.catalog.catalog import SqliteCatalog

A = TypeVar("A")


def answer_from_index(
    reader: IndexReader,
    catalog: SqliteCatalog,
    call: Call[A],
    coverage: Callable[[], Coverage] | None = None,
) -> A:
    """Answer a call from an opened index.

    Args:
        reader: The index.
        catalog: The index's catalog, on the caller's connection.
        call: A call of a method that only reads; its parameters are in range.
        coverage: Says how much of the files the index covers; None without a daemon.

    Raises:
        AnchordError: As the method says.
    """
    name = call.method.name
    if coverage and name in _COVERING:
        return cast("A", _COVERING[name](reader, catalog, call.params, coverage()))
    return cast("A", _ANSWERS[name](reader, catalog, call.params))


def reads_only(call: Call[Any]) -> bool:
    """Return whether a call can be answered from reading handles alone."""
    return call.method.name in _ANSWERS and not getattr(call.params, "fresh", False)


def explain(reader: IndexReader, catalog: SqliteCatalog, params: ExplainParams) -> ExplainAnswer:
    """Answer "explain"."""
    return handle_explain(reader, catalog, params.path)


def dump(reader: IndexReader, catalog: SqliteCatalog, _params: Params) -> tuple[ChunkAnswer, ...]:
    """Answer "dump"."""
    return tuple(handle_dump(reader, catalog))


def list_roots(
    reader: IndexReader, catalog: SqliteCatalog, _params: Params
) -> tuple[RootAnswer, ...]:
    """Answer "roots"."""
    return root_answers(reader.roots, catalog.counts_by_root())


def list_errors(
    reader: IndexReader, catalog: SqliteCatalog, _params: Params
) -> tuple[Failure, ...]:
    """Answer "errors": the files that the last update of the index could not read."""
    return tuple(failures_of(catalog, {root.name: root.path for root in reader.roots}))


_COVERING: dict[str, Callable[[IndexReader, SqliteCatalog, Any, Coverage], object]] = {
    methods.FILES.name: handle_files,
    methods.CHANGES.name: handle_changes,
}
"""Answers that say how much of the files the index covers."""
_ANSWERS: dict[str, Callable[[IndexReader, SqliteCatalog, Any], object]] = {
    methods.SEARCH.name: handle_search,
    methods.SHOW.name: handle_show,
    methods.FILES.name: handle_files,
    methods.CHANGES.name: handle_changes,
    methods.BLAME.name: handle_blame,
    methods.EXPLAIN.name: explain,
    methods.SESSIONS.name: lambda reader, _, params: sessions(reader.paths, params),
    methods.SESSION.name: lambda reader, _, params: session(reader.paths, params),
    methods.DECISIONS.name: lambda reader, _, params: decisions(reader.paths, params),
    methods.DUMP.name: dump,
    methods.ROOTS.name: list_roots,
    methods.ROOTS_LIST.name: list_roots,
    methods.ERRORS.name: list_errors,
}
READING = tuple(
    method
    for method in methods.METHODS
    if method.name in _ANSWERS and method not in {methods.SEARCH, methods.ERRORS}
)
"""Methods whose answers need no more than the index and how much it covers.

"search" and "errors" have more to say while a daemon runs.
"""
