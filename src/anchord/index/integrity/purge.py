"""`forget`: remove a path from the index, its old versions and the caches, and keep it out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from anchord.config.cli_state import UnfinishedForget
from anchord.config.privacy import redacts_conversations
from anchord.config.roots import covers, find_root
from anchord.core.quoting import quote_command, quote_name, quote_names
from anchord.core.types import Root, RootedPath
from anchord.errors import StoreError, UsageError
from anchord.index.archive_recovery import save_forgotten
from anchord.index.file_plans import plan_row_removal
from anchord.index.integrity.forgotten_traces import erase_traces
from anchord.index.integrity.table_repair import retry_at_start
from anchord.index.kept_erasure import erase_forgotten
from anchord.index.kept_transcripts import accept_unforgotten
from anchord.index.metrics import log_outcome
from anchord.index.session import IndexWriter
from anchord.index.table_location import store_uri
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.sources.secrets.redactor import rules_version
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.uri import is_local

_RULES_KEY = "rules for secrets on disk"
_NO_RULES = "none"
_NOTHING_BEGUN = UnfinishedForget(path=b"", files=0, exchanges=0)
_REWRITE_TIMEOUT_S = 3_600.0
"""Rewriting a table of a million rows, or reading 5 GB of kept transcripts, takes minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult:
    """What was deleted."""

    path: str
    """Absolute."""
    file_count: int
    """Indexed files."""
    row_count: int
    exchange_count: int
    """Exchanges of conversations, detached ones included."""
    disk_files_removed: int
    """Files of the table that held the rows; -1 for a remote table, whose files cannot be
    listed."""
    damaged_folder: str
    """Where damaged copies are that may hold the text; "" if there are none."""
    files_to_reread: list[RootedPath]
    """Other transcript files that contain some of the exchanges; they are marked in the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePreview:
    """What `purge_path` would delete."""

    path: str
    """Absolute."""
    file_count: int
    exchange_count: int
    only_here: int
    """How many of the exchanges are in no transcript file that exists."""


def preview_purge(writer: IndexWriter, path: str) -> PurgePreview:
    """Count what `purge_path` would delete.

    Raises:
        UsageError: The path is in no root and no conversation comes from it, or it is a root.
    """
    found = _find(writer, path)
    return PurgePreview(
        path=found.path,
        file_count=found.file_count,
        exchange_count=found.exchange_count,
        only_here=found.only_here,
    )


def purge_path(writer: IndexWriter, path: str) -> PurgeResult:
    """Remove a file or folder from the index for good. The file itself is not touched.

    Deletes its rows, records and archived conversations, detached ones included, all old versions
    of the table, the whole vector cache, and its names and ids in logs. Damaged copies that repairs
    set aside stay. Adds the path to the forgotten paths, so that no walk indexes it again; not one
    that does not exist.

    What left the index before is deleted too, though nothing of it is counted: old versions and the
    vector cache may hold it. After a crash, or a repair of damage that it met, the next call counts
    what this one began to delete.

    Args:
        writer: The index.
        path: A file or folder; absolute, or relative to the working directory.

    Raises:
        UsageError: The path is in no root and no conversation comes from it, or it is a root.
        TableReadError: A file of the table is damaged. Repair the table and call again.
        StoreError: Kept transcripts cannot be erased now: only the path is noted, call again. Or
            the table's files could not be rewritten: searches no longer find the rows; call again
            to remove them from the disk.
    """
    found = _find(writer, path)
    if found.file_count or found.exchange_count or os.path.lexists(found.path):
        # First, so that no walk indexes the path again while this runs.
        state = writer.cli_state.with_forgotten_path(found.path)
        writer.save_cli_state(state.with_unfinished_forget(found.as_unfinished()))
    # Before the archive: after a crash between the two, the next start finds it unfinished.
    writer.heartbeat.beat(_REWRITE_TIMEOUT_S)
    kept_file = writer.paths.kept_transcripts_file
    erase_forgotten(writer.keeper, writer.archive, kept_file, found.path)
    erased = writer.archive.erase(found.path)
    save_forgotten(writer.archive, writer.catalog)
    # Now: the archive's next transaction, in `_delete_rows`, begins another list.
    files_to_reread = list(writer.archive.files_to_reread)
    origins = list(dict.fromkeys((*found.files, *erased)))
    row_ids = list(dict.fromkeys((*found.row_ids, *_rows_of(writer, origins))))
    unwritable = erase_traces(writer.paths, found.path, origins, row_ids)
    # All of it: of a file that was deleted before, nothing says which vectors were its own.
    writer.vector_cache.clear()
    _delete_rows(writer, origins, row_ids)
    writer.catalog.history.forget([*origins, *_as_folder(writer, found.path)])
    writer.catalog.mark_for_reread(files_to_reread)
    disk_files_removed = _erase_from_disk(writer)
    if unwritable:
        raise StoreError(
            f"it is forgotten, but its name may still be in {quote_names(map(str, unwritable))}, "
            "which cannot be written",
            "make that writable, then run the command again",
        )
    if writer.cli_state.unfinished_forget:
        writer.save_cli_state(writer.cli_state.with_unfinished_forget(None))
    damaged_folder = writer.paths.damaged_folder
    file_count = sum(not is_exchange_path(origin.path) for origin in origins)
    return PurgeResult(
        path=found.path,
        file_count=max(file_count, found.file_count),
        row_count=len(row_ids),
        exchange_count=found.exchange_count,
        disk_files_removed=disk_files_removed,
        damaged_folder=str(damaged_folder) if damaged_folder.exists() else "",
        files_to_reread=files_to_reread,
    )


def finish_interrupted_forget(writer: IndexWriter) -> None:
    """Delete the rest of what a `forget` has begun to delete; nothing if none was interrupted.

    Until then its rows can be found, and its text is on the disk. Where that fails, the next start
    tries it again.
    """
    begun = writer.cli_state.unfinished_forget
    if begun is None:
        return
    path = os.fsdecode(begun.path)
    shown = quote_name(path)
    try:
        retry_at_start(writer, lambda: purge_path(writer, path))
    except (StoreError, UsageError) as error:
        # UsageError: the configuration has changed, and the path contains an indexed folder now.
        writer.repairs.append(f"`forget` of {shown} was interrupted and cannot end: {error}")
    else:
        writer.repairs.append(f"`forget` of {shown} was interrupted, and is complete now")


def note_rules_of_new_index(writer: IndexWriter) -> None:
    """Note the rules for secrets of an index without rows: no other rules wrote to its disk."""
    if not writer.catalog.get_meta(_RULES_KEY) and not writer.store.count_rows():
        writer.catalog.set_meta(_RULES_KEY, _rules_of(writer))


def carry_rules_over(former: SqliteCatalog, following: SqliteCatalog) -> None:
    """Note the rules for secrets that the disk was written under in the catalog that takes over.

    Without that note everything on the disk is erased again, and the vector cache emptied.
    """
    following.set_meta(_RULES_KEY, former.get_meta(_RULES_KEY))


def is_erasure_due(writer: IndexWriter) -> bool:
    """Return whether old versions of the table may hold secrets that the rules replace now."""
    return writer.catalog.get_meta(_RULES_KEY) != _rules_of(writer)


def erase_replaced_secrets(writer: IndexWriter) -> None:
    """Remove from the disk what the index replaced after the rules for secrets changed.

    Does nothing unless `is_erasure_due`, and waits while a file or a folder could not be read with
    the new rules. The time is that of rewriting the table.

    Raises:
        StoreError: The table's files could not be rewritten. The next call tries it again.
    """
    if not is_erasure_due(writer) or not _all_read_with_these_rules(writer):
        return
    rules = _rules_of(writer)
    if rules != _NO_RULES:
        writer.vector_cache.clear()
        writer.catalog.history.clear()  # It has paths from before, which can contain secrets.
        _erase_from_disk(writer)
    writer.catalog.set_meta(_RULES_KEY, rules)


def _rules_of(writer: IndexWriter) -> str:
    if not redacts_conversations(writer.config):
        return _NO_RULES
    return f"{writer.config.privacy.redact} {rules_version()}"


def _all_read_with_these_rules(writer: IndexWriter) -> bool:
    recipe = writer.profile.recipe
    return all(
        not record.content_digest or record.recipe_digest == recipe.digest(root)
        for root in writer.catalog.root_names()
        for record in writer.catalog.list_records(root, "").values()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the index and the archive hold of a path."""

    path: str
    files: list[RootedPath]
    file_count: int
    """More than `files` if an earlier call began to delete them."""
    row_ids: Sequence[str]
    """Rows of files: the table has more than `files` says if the catalog was just rebuilt."""
    exchange_count: int
    only_here: int
    """How many of the exchanges are in no transcript file that exists."""

    def as_unfinished(self) -> UnfinishedForget:
        """Return what is to be counted if this `forget` has to be called again."""
        return UnfinishedForget(
            path=os.fsencode(self.path),
            files=self.file_count,
            exchanges=self.exchange_count,
        )


def _find(writer: IndexWriter, path: str) -> _Found:
    absolute = writer.files.redact_path(_resolve_parent(path))
    shown = quote_name(path)
    inner = next((root for root in writer.roots if covers(absolute, root.path)), None)
    if inner is not None and inner.path != absolute:
        raise UsageError(
            f"{shown} contains the indexed folder {quote_name(inner.path)}",
            f"{quote_command('anchord remove', inner.name)} first, or forget what is inside it",
        )
    in_root = find_root(writer.roots, absolute)
    if in_root is not None:
        _read_changed_transcripts(writer, *in_root)
    archived = writer.archive.find_from(absolute)
    begun = _begun(writer, absolute)
    if in_root is None and not (archived.exchanges or begun.exchanges):
        raise UsageError(
            f"{shown} is in no indexed folder", "`anchord roots` lists the indexed folders"
        )
    files: list[RootedPath] = []
    row_ids: Sequence[str] = ()
    if in_root is not None:
        root, inside = in_root
        if not inside:
            raise UsageError(
                f"{shown} is an indexed folder itself",
                f"{quote_command('anchord remove', root.name)} removes it; then `forget` deletes "
                "its conversations",
            )
        files = [
            RootedPath(root.name, each) for each in writer.catalog.list_records(root.name, inside)
        ]
        row_ids = writer.store.ids_of_root(root.name, inside)
    return _Found(
        path=absolute,
        files=files,
        file_count=max(len(files), begun.files, 1 if row_ids else 0),
        row_ids=row_ids,
        exchange_count=max(len(archived.exchanges), begun.exchanges),
        only_here=archived.only_here,
    )


def _begun(writer: IndexWriter, path: str) -> UnfinishedForget:
    """Return what an earlier call for this path has begun to delete."""
    begun = writer.cli_state.unfinished_forget
    return begun if begun and begun.path == os.fsencode(path) else _NOTHING_BEGUN


def _read_changed_transcripts(writer: IndexWriter, root: Root, inside: str) -> None:
    """Index what changed below a path of a conversation root, without making vectors.

    What a transcript contains now is to be forgotten too, and the archive may know it from a file
    that is gone.
    """
    if root.kind != "conversations" or not inside:
        return
    due = writer.indexer.reconcile(root.name, inside).paths_due
    for outcome in writer.indexer.index(due):
        log_outcome(outcome)


def _delete_rows(
    writer: IndexWriter, origins: Sequence[RootedPath], row_ids: Sequence[str]
) -> None:
    """Delete rows, and the records of their files, as one change that outlives a crash."""
    updates = [plan_row_removal(origin, row_ids, "forgotten by a command") for origin in origins]
    writer.catalog.save_intents(updates)
    writer.store.delete_rows(row_ids)
    writer.catalog.confirm_updates(updates)
    exchanges = [origin for origin in origins if is_exchange_path(origin.path)]
    writer.conversations.mark_indexed(exchanges)


def _as_folder(writer: IndexWriter, path: str) -> list[RootedPath]:
    """Return a path in its root: files below it may have left the index before."""
    found = find_root(writer.roots, path)
    return [RootedPath(found[0].name, found[1])] if found else []


def _rows_of(writer: IndexWriter, origins: Sequence[RootedPath]) -> list[str]:
    ids_by_file = writer.store.ids_of_files(origins)
    return [row_id for row_ids in ids_by_file.values() for row_id in row_ids]


def unforget_path(writer: IndexWriter, path: str) -> str:
    """Remove a path from the forgotten paths; the next walk indexes it again.

    Returns:
        The name of its root.

    Raises:
        UsageError: The path is not forgotten, or is in no root.
    """
    absolute = writer.files.redact_path(_resolve_parent(path))
    if absolute not in writer.cli_state.forgotten_paths:
        forgotten = quote_names(writer.cli_state.forgotten_paths, "nothing")
        raise UsageError(f"{quote_name(path)} was not forgotten", f"forgotten: {forgotten}")
    found = find_root(writer.roots, absolute)
    if found is None:
        raise UsageError(
            f"{quote_name(path)} was forgotten, but it is in no indexed folder now",
            "`anchord add` its folder, then run this command again",
        )
    writer.save_cli_state(writer.cli_state.without_forgotten_path(absolute))
    writer.catalog.mark_for_reread(writer.archive.unforget(absolute))
    save_forgotten(writer.archive, writer.catalog)
    accept_unforgotten(writer.keeper, writer.archive, writer.catalog, writer.roots)
    return found[0].name


def _resolve_parent(path: str) -> str:
    """Return the absolute path; symbolic links of its folder are resolved, a link itself is not.

    Raises:
        UsageError: It is empty.
    """
    if not path:
        raise UsageError("the path is empty", "name a file or a folder")
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _erase_from_disk(writer: IndexWriter) -> int:
    """Erase deleted content from journals and the table's old versions.

    Returns:
        How many files of the table were removed; -1 for a remote table.
    """
    writer.catalog.checkpoint_wal()
    writer.vector_cache.checkpoint_wal()
    writer.archive.truncate_wal()
    writer.heartbeat.beat(_REWRITE_TIMEOUT_S)
    if not is_local(store_uri(writer.paths, writer.config)):
        return -1
    return table_maintenance.erase_deleted_rows(writer.store)
