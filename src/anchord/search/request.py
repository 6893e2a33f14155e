"""Check the parameters of a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from anchord.chunking.chunk_metadata import CHUNK_TYPES
from anchord.config.roots import find_root
from anchord.config.schema import DOCUMENT_KINDS
from anchord.core.dates import parse_age, parse_time_span
from anchord.core.quoting import quote_name, quote_names
from anchord.core.types import Root, RootedPath, SearchFilters
from anchord.errors import UsageError
from anchord.ipc.messages.searching import SearchParams
from anchord.search.packing import Layout
from anchord.search.project_names import path_in_repository
from anchord.search.ranking import SEARCH_MODES, SearchRequest
from anchord.search.recency import Recency
from anchord.sources.documents.file_types import names_of_language

_SPARE_GROUPS = 10
"""So many groups take the place of exchanges that are shown as a part of another result."""


def make_search_request(
    params: SearchParams,
    roots: Sequence[Root],
    projects: Callable[[str], tuple[str, ...]] = lambda _: (),
) -> SearchRequest:
    """Check the parameters of a search, and return them as a request.

    Args:
        params: The parameters. Dates without a zone are in this machine's zone.
        roots: The indexed roots. An absolute path glob must be in one of them to match anything.
        projects: Returns the projects that a part of a name, or a folder, stands for.

    Raises:
        UsageError: The mode, the root, the kind or a date is not valid.
    """
    _require_known_names(params, roots)
    since, until = parse_time_span(params.since, params.until, datetime.now(UTC))
    root, path_glob = scope_of_glob(roots, params.root, params.path)
    has_conversations = any(each.kind == "conversations" for each in roots)
    # With a budget, what is joined takes the place of worse hits.
    may_be_joined = has_conversations and not (params.show_chunks or params.budget)
    return SearchRequest(
        query=params.query,
        mode=params.mode,
        filters=SearchFilters(
            root=root,
            path_glob=path_glob,
            kind=params.kind,
            section=params.section,
            room=params.room,
            session=params.session,
            chunk_type=params.chunk_type,
            agent=params.agent,
            tool=params.tool,
            branch=params.branch,
            projects=projects(params.project) if params.project else None,
            touched=path_in_repository(params.file) if params.file else "",
            languages=names_of_language(params.language) if params.language.strip() else (),
            since=since,
            until=until,
        ),
        limit=params.k,
        spare=_SPARE_GROUPS if may_be_joined else 0,
        layout=Layout(
            budget=params.budget or None,
            expand_chars=params.expand,
            is_flat=params.show_chunks,
        ),
        near=_near_folders(roots, params.cwd) if params.cwd else (),
        strong_only=params.is_prompt,
        recency=_recency_of(params.recent),
    )


def _near_folders(roots: Sequence[Root], folder: str) -> tuple[RootedPath, ...]:
    """Return which roots, and which folder of a root, are in the caller's folder."""
    inside_folder = f"{folder.rstrip('/')}/"
    near = [
        RootedPath(root.name, "") for root in roots if f"{root.path}/".startswith(inside_folder)
    ]
    found = find_root(roots, folder)
    if found:
        root, inside = found
        near.append(RootedPath(root.name, inside))
    return tuple(near)


def _require_known(thing: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise UsageError(
            f"there is no {thing} {quote_name(name)}", f"use one of {', '.join(names)}"
        )


def require_known_root(name: str, roots: Sequence[Root]) -> None:
    """Return if there is a root of this name, or the name is "".

    Raises:
        UsageError: There is none.
    """
    names = sorted(root.name for root in roots)
    if name and name not in names:
        raise UsageError(
            f"there is no root {quote_name(name)}",
            f"there are: {quote_names(names, 'none yet')}",
        )


def _require_known_names(params: SearchParams, roots: Sequence[Root]) -> None:
    _require_known("search mode", params.mode, SEARCH_MODES)
    require_known_root(params.root, roots)
    if params.kind:
        _require_known("kind", params.kind, DOCUMENT_KINDS)
    if params.chunk_type:
        _require_known("type of chunks", params.chunk_type, CHUNK_TYPES)


def _recency_of(half_life: str) -> Recency | None:
    if not half_life:
        return None
    return Recency(parse_age(half_life).total_seconds(), time.time_ns())


def scope_of_glob(roots: Sequence[Root], root: str, path_glob: str) -> tuple[str, str]:
    """Return the root and the glob in it; an absolute path becomes a glob in its root."""
    found = find_root(roots, path_glob) if path_glob.startswith("/") else None
    if found is None:
        return root, path_glob
    glob_root, inside = found
    if root not in {"", glob_root.name}:
        return root, path_glob
    return glob_root.name, f"/{inside}" if inside else ""
