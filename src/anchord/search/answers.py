"""Answer requests about an index, for the daemon and for commands without one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress

from anchord.config.roots import find_root
from anchord.core.change_detection import decide_for_file
from anchord.core.quoting import escape_non_utf8, quote_name, unescape_line
from anchord.core.types import (
    Absent,
    ChunkLocation,
    FileRecord,
    Fingerprint,
    Problem,
    ReadFile,
    RemoveFromIndex,
    Root,
    RootedPath,
    Row,
    SkipFile,
)
from anchord.core.worktrees import is_left_out
from anchord.errors import UsageError
from anchord.index.reconcile import NO_SIZE_LIMIT
from anchord.index.session import IndexReader
from anchord.index.worktree_plans import WorktreePlans
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.ipc.messages.searching import (
    ConversationAnswer,
    ExplainAnswer,
    ShowAnswer,
    ShowParams,
)
from anchord.search.result_messages import ChunkDescriber, conversation_message
from anchord.sources.conversations.archive.reader import Archive, ExchangePlace
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.sources.documents.file_types import kind_of
from anchord.sources.files.folder_files import MAX_FILE_BYTES
from anchord.sources.secrets.redactor import redact
from anchord.store.catalog.catalog import SqliteCatalog

_ID_MATCHES = 10
_WHOLE_FILE = 1 << 30
"""More chunks than any file has."""
_DECISION_NAMES = {SkipFile: "skip", ReadFile: "read", RemoveFromIndex: "forget"}
"""The decisions as `explain` answers them: part of the protocol, whatever the classes are
called."""


def describe_rows(
    reader: IndexReader, catalog: SqliteCatalog, rows: Sequence[Row]
) -> list[ChunkAnswer]:
    """Return the records of rows, in their order.

    Args:
        reader: The index.
        catalog: The index's catalog, on the caller's connection.
        rows: Rows with all columns but the vector.
    """
    describer = make_describer(reader, catalog, catalog.locate_chunks([row.id for row in rows]))
    return list(map(describer.describe, rows))


def make_describer(
    reader: IndexReader,
    catalog: SqliteCatalog,
    locations: Mapping[str, ChunkLocation],
    copies: Sequence[ChunkLocation] = (),
) -> ChunkDescriber:
    """Return what makes messages of chunks.

    Args:
        reader: The index.
        catalog: The index's catalog, on the caller's connection.
        locations: Where the chunks are now, by id.
        copies: Where copies of them are.
    """
    plans = reader.profile.recipe.plans

    def strategy_of(root: str, kind: str) -> str | None:
        with suppress(KeyError):  # A damaged row can be of any kind.
            return plans.plan_for(root, kind).strategy
        return None

    return ChunkDescriber(
        root_path_by_name={root.name: root.path for root in reader.roots},
        strategy_of=strategy_of,
        locations=locations,
        places=catalog.chunk_places(list(locations)),
        exchange_places=_exchange_places(reader, [*locations.values(), *copies]),
    )


def _exchange_places(
    reader: IndexReader, locations: Sequence[ChunkLocation]
) -> Mapping[RootedPath, ExchangePlace]:
    """Return where each exchange among some chunks is, by the exchange."""
    origins = dict.fromkeys(location.origin for location in locations)
    exchanges = [origin for origin in origins if is_exchange_path(origin.path)]
    if not exchanges:
        return {}
    with open_archive_of(reader) as archive:
        return archive.exchange_places(exchanges) if archive else {}


@contextmanager
def open_archive_of(reader: IndexReader) -> Iterator[Archive | None]:
    """Open the archive of conversations on a new connection; None where there is no archive."""
    if not reader.paths.archive_file.exists():
        yield None
        return
    with closing(Archive(reader.paths.archive_file, read_only=True)) as archive:
        yield archive


def handle_show(reader: IndexReader, catalog: SqliteCatalog, params: ShowParams) -> ShowAnswer:
    """Answer `show`: a chunk with its neighbours, or with all chunks of its file.

    Of an id that an edit replaced it shows the chunk that took its place.

    `previous` and `next` are the ids around what is shown, null at the ends of the file.

    Raises:
        UsageError: No chunk has such an id, or several have, or its text is gone; or the file is
            not indexed.
    """
    replaced = None
    if params.path:
        chunk_id = _first_chunk_of(catalog, RootedPath(params.root, params.path))
    else:
        chunk_id, replaced = _find_chunk(catalog, params.id)
    is_whole_file = params.whole or bool(params.path)
    distance = _WHOLE_FILE if is_whole_file else max(0, params.context)
    # One more at each side, for `previous` and `next`.
    around = list(catalog.neighbor_chunk_ids(chunk_id, min(distance + 1, _WHOLE_FILE)))
    index = around.index(chunk_id)
    start, end = max(0, index - distance), index + distance + 1
    shown_ids = around[start:end]
    row_by_id = {row.id: row for row in reader.store.get_rows(shown_ids)}
    rows = [row_by_id[shown_id] for shown_id in shown_ids if shown_id in row_by_id]
    previous_id = around[start - 1] if start > 0 else None
    next_id = around[end] if end < len(around) else None
    return ShowAnswer(
        id=chunk_id,
        chunks=tuple(describe_rows(reader, catalog, rows)),
        previous=previous_id,
        next=next_id,
        conversation=_conversation_of(reader, catalog, row_by_id.get(chunk_id)),
        replaced=replaced,
    )


def _conversation_of(
    reader: IndexReader, catalog: SqliteCatalog, row: Row | None
) -> ConversationAnswer | None:
    """Return the conversation of an exchange's row; None for other rows."""
    if row is None or not row.session:
        return None
    with open_archive_of(reader) as archive:
        origin = RootedPath(row.root, row.path)
        context = archive.conversation_context(origin) if archive else None
    return conversation_message(context, row.root, catalog) if context else None


def _find_chunk(catalog: SqliteCatalog, id_prefix: str) -> tuple[str, str | None]:
    """Return the only id that starts with some digits, or that took the place of such a one.

    Returns:
        The id, and the id that it replaced; None if it is the one that was asked for.
    """
    prefix = id_prefix.lower()
    found: Sequence[str] = ()
    if prefix:
        found = list(catalog.chunk_ids_with_prefix(prefix, _ID_MATCHES))
    if len(found) == 1:
        return found[0], None
    replacement = None if found else catalog.history.find_replacement(prefix)
    if replacement and replacement.successor:
        return replacement.successor, replacement.old_id
    shown = quote_name(id_prefix)
    if replacement:
        origin = replacement.origin
        file = f"{quote_name(escape_non_utf8(origin.path))} of root {quote_name(origin.root)}"
        raise UsageError(
            f"the text of chunk {shown} is gone: it was in {file}", "search for it again"
        )
    count = f"{len(found)} or more chunk ids start" if found else "no chunk id starts"
    raise UsageError(
        f"{count} with {shown}", "give more digits, as `anchord search --json` shows them"
    )


def _first_chunk_of(catalog: SqliteCatalog, origin: RootedPath) -> str:
    record = catalog.get_record(origin)
    if record is None or not record.chunks:
        name = f"{quote_name(origin.path)} of root {quote_name(origin.root)}"
        raise UsageError(
            f"{name} has no text" if record else f"{name} is not indexed",
            "`anchord explain` with its path says why",
        )
    return record.chunks[0].chunk_id


def handle_dump(reader: IndexReader, catalog: SqliteCatalog) -> list[ChunkAnswer]:
    """Return every row, sorted by root, path, lines and id; holds all rows in memory."""
    return sorted(
        describe_rows(reader, catalog, list(reader.store.all_rows())),
        key=lambda chunk: (
            chunk.root,
            chunk.path,
            chunk.start_line or 0,
            chunk.end_line or 0,
            chunk.id,
        ),
    )


def handle_explain(reader: IndexReader, catalog: SqliteCatalog, path: str) -> ExplainAnswer:
    """Answer `explain`: whether a file is indexed, which rule decided, and what the next walk does.

    Args:
        reader: The index.
        catalog: The index's catalog, on the caller's connection.
        path: A file; absolute, or relative to the working directory.

    Raises:
        UsageError: The path has a NUL character, which no file's can have.
    """
    if "\0" in path:
        raise UsageError("a path cannot contain a NUL character", "give the path of a file")
    path = _as_on_disk(path)
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    absolute = os.path.join(folder, os.path.basename(path))
    found = find_root(reader.roots, absolute)
    if found is None or not found[1] or os.path.isdir(absolute):
        rule, hint = _explain_no_file(found)
        return ExplainAnswer(
            path=escape_non_utf8(reader.files.redact_path(absolute)),
            indexed=False,
            rule=rule,
            decision="skip",
            reason=hint,
        )
    return _explain_file(reader, catalog, absolute, *found)


def _explain_file(
    reader: IndexReader, catalog: SqliteCatalog, absolute: str, root: Root, inside: str
) -> ExplainAnswer:
    """Explain the file at a path within a root."""
    origin = RootedPath(root.name, reader.files.redact_path(inside))
    is_transcript = root.kind == "conversations"
    exchanges = _exchanges_in(reader, origin) if is_transcript else ()
    record = catalog.get_record(origin)
    observed = reader.files.fingerprint(origin)
    match = reader.files.path_filter()(origin)
    recipe = reader.profile.recipe
    max_bytes = NO_SIZE_LIMIT if is_transcript else MAX_FILE_BYTES
    decision = decide_for_file(
        match,
        observed,
        record,
        recipe.digest(origin.root),
        max_bytes,
    )
    if record and isinstance(decision, SkipFile):
        worktrees = reader.files.folder_files.worktrees
        plans = WorktreePlans(reader.files, catalog, worktrees, recipe)
        decision = plans.decide(origin, record, decision)
    problem = _current_problem(record, observed)
    kind = "exchange" if exchanges else kind_of(origin.path) or "text"
    return ExplainAnswer(
        path=escape_non_utf8(reader.files.redact_path(absolute)),
        root=origin.root,
        indexed=_is_indexed(record),
        chunks=_count_chunks([record, *map(catalog.get_record, exchanges)]),
        exchanges=len(exchanges) if is_transcript else None,
        rule=redact(match.reason).text,  # It quotes a pattern.
        strategy=recipe.plans.plan_for(origin.root, kind).strategy,
        decision=_DECISION_NAMES[type(decision)],
        reason=redact(decision.reason).text,
        last_reason=catalog.last_reason(origin),
        problem=problem.reason if problem else None,
        size=observed.size if isinstance(observed, Fingerprint) else None,
    )


def _as_on_disk(path: str) -> str:
    """Return the path of a file that is given as an answer shows it, with escaped characters."""
    unescaped = unescape_line(path)
    is_shown_form = not os.path.lexists(path) and os.path.lexists(unescaped)
    return unescaped if is_shown_form else path


def _current_problem(
    record: FileRecord | None, observed: Fingerprint | Absent | Problem
) -> Problem | None:
    if record:
        return record.problem
    return observed if isinstance(observed, Problem) else None


def _is_indexed(record: FileRecord | None) -> bool:
    if record is None or not record.content_digest or is_left_out(record.content_digest):
        return False
    return record.problem is None or record.problem.is_partial


def _count_chunks(records: Sequence[FileRecord | None]) -> int:
    return sum(len(record.chunks) for record in records if record)


def _explain_no_file(found: tuple[Root, str] | None) -> tuple[str, str]:
    """Say why a path is no file that can be indexed, and what to do."""
    if found is None:
        return "is in no indexed folder", "`anchord add FOLDER` adds its folder"
    root, inside = found
    if inside:
        return (
            f"is a folder of the root {quote_name(root.name)}",
            "name a file; `search --path` takes a folder",
        )
    return "is an indexed folder itself", "`anchord roots` lists the indexed folders"


def _exchanges_in(reader: IndexReader, transcript_file: RootedPath) -> tuple[RootedPath, ...]:
    with open_archive_of(reader) as archive:
        return archive.exchanges_in(transcript_file) if archive else ()
