"""Answer `files` and `changes`: what the index has, and what changed in it."""

from __future__ import annotations

import os
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Container, Iterable, Sequence
from datetime import UTC, datetime

from anchord.core.dates import format_utc, nanoseconds_of, parse_time
from anchord.core.ids import hash_content
from anchord.core.quoting import escape_non_utf8, quote_name, unescape_line
from anchord.core.types import Root, RootedPath
from anchord.errors import UsageError
from anchord.index.session import IndexReader
from anchord.ipc.messages.files import (
    ChangesAnswer,
    ChangesParams,
    FileChange,
    FilesAnswer,
    FilesParams,
    IndexedFile,
)
from anchord.search.coverage import Coverage
from anchord.search.request import require_known_root, scope_of_glob
from anchord.sources.documents.file_types import kind_of
from anchord.sources.files.ignore_patterns import compile_patterns
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.catalog.change_history import RecordedChange
from anchord.store.catalog.file_lists import ListedFile

FILE_KINDS = ("markdown", "text", "code", "transcript")
_PAGE = 1_000
_MAX_CURSOR_PATH = 256
"""Bytes of a path in a cursor."""
_DEFAULT_SINCE = "24h"

Selects = Callable[[RootedPath], bool]


def handle_files(
    reader: IndexReader,
    catalog: SqliteCatalog,
    params: FilesParams,
    coverage: Coverage | None = None,
) -> FilesAnswer:
    """Answer `files`.

    Args:
        reader: The index.
        catalog: The index's catalog, on the caller's connection.
        params: The filters, and where to go on.
        coverage: What the daemon knows of the index; None without a daemon.

    Raises:
        UsageError: The root, the kind or the cursor is not valid.
    """
    if params.kind and params.kind not in FILE_KINDS:
        raise UsageError(
            f"there is no kind {quote_name(params.kind)}", f"use one of {', '.join(FILE_KINDS)}"
        )
    coverage = coverage or without_daemon(catalog)
    selects = _selector(reader.roots, params.root, params.path)
    found: list[ListedFile] = []
    after = _position(catalog, params.cursor)
    folders = {root.name: root.path for root in reader.roots}
    is_last_page = params.limit == 0
    while not is_last_page and len(found) <= params.limit:
        page = catalog.list_indexed_files(after, _PAGE)
        is_last_page = len(page) < _PAGE
        after = page[-1].origin if page else after
        listed = (each for each in page if selects(each.origin))
        found += [each for each in listed if params.kind in {"", _kind(each)}]
    shown = found[: params.limit]
    has_more = len(found) > len(shown) > 0
    return FilesAnswer(
        files=tuple(_indexed_file(each, folders) for each in shown),
        next=_cursor(shown[-1].origin) if has_more else "",
        note="; ".join(coverage.sentences()),
        complete=coverage.is_complete,
    )


def handle_changes(
    reader: IndexReader,
    catalog: SqliteCatalog,
    params: ChangesParams,
    coverage: Coverage | None = None,
) -> ChangesAnswer:
    """Answer `changes`.

    Args:
        reader: The index.
        catalog: The index's catalog, on the caller's connection.
        params: Since when, and the filters.
        coverage: What the daemon knows of the index; None without a daemon.

    Raises:
        UsageError: The root or the date is not valid.
    """
    coverage = coverage or without_daemon(catalog)
    since = parse_time(params.since or _DEFAULT_SINCE, datetime.now(UTC))
    selects = _selector(reader.roots, params.root, params.path)
    changes = _by_file(catalog.history.iter_edits(nanoseconds_of(since)), selects)
    folders = {root.name: root.path for root in reader.roots}
    shown = changes[: params.limit]
    existing = catalog.change_times(edits[0].origin for edits in shown)
    return ChangesAnswer(
        since=since,
        changes=tuple(_file_change(each, folders, existing) for each in shown),
        omitted=len(changes) - len(shown),
        note="; ".join([*coverage.sentences(), *_beginning(catalog, since)]),
        complete=coverage.is_complete,
    )


def without_daemon(catalog: SqliteCatalog) -> Coverage:
    """Return what is known of an index that no daemon keeps up to date."""
    return Coverage(is_complete=False, is_interrupted=catalog.get_meta("clean") != "1")


def _beginning(catalog: SqliteCatalog, since: str) -> list[str]:
    begin_ns = catalog.history.begin_ns()
    if begin_ns <= nanoseconds_of(since):
        return []
    return [f"older changes than {format_utc(begin_ns)} are not known any more"]


def _selector(roots: Sequence[Root], root: str, glob: str) -> Selects:
    """Return a test of files: whether one is in these roots, or in a root, and matches a pattern.

    Raises:
        UsageError: There is no such root.
    """
    require_known_root(root, roots)
    root, glob = scope_of_glob(roots, root, glob)
    shown = frozenset([root] if root else (each.name for each in roots))
    if not glob:
        return lambda origin: origin.root in shown
    # A "!" or "#" at the beginning is a character of a name here.
    wanted = dict.fromkeys((glob, unescape_line(glob)))
    lines = tuple(f"\\{each}" if each[0] in "!#" else each for each in wanted)
    patterns = compile_patterns("", "", lines)

    def selects(origin: RootedPath) -> bool:
        return origin.root in shown and patterns.nearest_match(origin.path) is not None

    return selects


def _cursor(last: RootedPath) -> str:
    """Return where to go on: opaque, because a path can have characters that answers escape.

    Of a long path, which would not fit an answer, it has the beginning and a digest.
    """
    position = os.fsencode(f"{last.root}\0{last.path}")
    end = len(os.fsencode(last.root)) + 1 + _MAX_CURSOR_PATH
    if len(position) > end:
        position = position[:end] + b"\0" + _digest(last).encode()
    return urlsafe_b64encode(position).decode()


def _position(catalog: SqliteCatalog, cursor: str) -> RootedPath:
    """Return the file after which a list goes on.

    Raises:
        UsageError: The cursor is not one of `_cursor`.
    """
    try:
        position = os.fsdecode(b64decode(cursor, altchars=b"-_", validate=True))
        root, path, *digests = position.split("\0") if position else ("", "")
    except ValueError:
        raise UsageError("this is no cursor", "give `next` of the answer before") from None
    begin = RootedPath(root, path)
    return _find_long_path(catalog, begin, digests[0]) if digests else begin


def _find_long_path(catalog: SqliteCatalog, begin: RootedPath, digest: str) -> RootedPath:
    """Return the file of which a cursor has the beginning of its path; that, if it is gone."""
    after = begin
    beginning = os.fsencode(begin.path)  # It may end within a character.
    while page := catalog.list_indexed_files(after, _PAGE):
        for listed in page:
            after = listed.origin
            if after.root != begin.root or not os.fsencode(after.path).startswith(beginning):
                return begin
            if _digest(after) == digest:
                return after
    return begin


def _digest(origin: RootedPath) -> str:
    return hash_content(os.fsencode(origin.path))[:32]


def _kind(listed: ListedFile) -> str:
    if listed.is_transcript:
        return "transcript"
    return kind_of(listed.origin.path) or "text"


def _indexed_file(listed: ListedFile, folders: dict[str, str]) -> IndexedFile:
    origin = listed.origin
    return IndexedFile(
        root=origin.root,
        path=escape_non_utf8(origin.path),
        file=_absolute(origin, folders),
        kind=_kind(listed),
        chunks=listed.chunk_count,
        modified=format_utc(listed.modified_ns),
    )


def _absolute(origin: RootedPath, folders: dict[str, str]) -> str:
    return escape_non_utf8(os.path.join(folders.get(origin.root, ""), origin.path))


def _by_file(edits: Iterable[RecordedChange], selects: Selects) -> list[list[RecordedChange]]:
    """Return the changes of each file, newest first, in the order of their newest."""
    by_file: dict[RootedPath, list[RecordedChange]] = {}
    for edit in edits:
        if edit.origin in by_file or selects(edit.origin):
            by_file.setdefault(edit.origin, []).append(edit)
    return list(by_file.values())


def _file_change(
    edits: Sequence[RecordedChange], folders: dict[str, str], existing: Container[RootedPath]
) -> FileChange:
    newest = edits[0]
    origin = newest.origin
    return FileChange(
        root=origin.root,
        path=escape_non_utf8(origin.path),
        file=_absolute(origin, folders),
        at=format_utc(newest.at_ns),
        saves=len(edits),
        new=sum(edit.new for edit in edits),
        gone=sum(edit.gone for edit in edits),
        kept=newest.kept,
        deleted=origin not in existing,
    )
