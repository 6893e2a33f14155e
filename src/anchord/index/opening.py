"""Open an index: one writer at a time, and any number of readers beside it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from anchord.chunking.formats.parser_process import ParserProcess
from anchord.config.cli_state import load_cli_state
from anchord.config.paths import Paths
from anchord.config.roots import gather_roots
from anchord.config.schema import Config
from anchord.core.os_errors import os_errors_as_unavailable
from anchord.core.types import Root
from anchord.errors import UsageError
from anchord.index.archive_recovery import (
    note_archive_state,
    open_or_salvage_archive,
    retry_after_damage,
)
from anchord.index.archive_roots import is_another_root, update_at_start
from anchord.index.clean_shutdown import was_clean_shutdown
from anchord.index.embedders import ProfileInputs
from anchord.index.integrity.purge import finish_interrupted_forget
from anchord.index.integrity.table_repair import retry_at_start
from anchord.index.kept_erasure import erase_forgotten_at_start, erase_trashed
from anchord.index.kept_transcripts import (
    note_kept_count,
    open_kept_transcripts,
    queue_unkept,
    record_kept_damage,
)
from anchord.index.profile import (
    RERANKER_LOAD_S,
    IndexProfile,
    build_catalog_profile,
    build_configured_profile,
    indexed_model_of,
    ingest_options_of,
    pin_recipe_digests,
    reranker_of,
)
from anchord.index.recovery import (
    finish_promotion,
    open_or_recover_table,
    open_or_reset_catalog,
    open_or_reset_cli_state,
    repair_cli_state,
)
from anchord.index.session import IndexReader, IndexWriter
from anchord.index.source_files import open_source_tree, redact_archive
from anchord.index.table_location import store_uri
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.ingest import ConversationIngester
from anchord.sources.conversations.kept.keeper import TranscriptKeeper
from anchord.sources.conversations.reader_process import ReaderProcess, WholeReads
from anchord.sources.files.root_identity import keep_configured_folders
from anchord.sources.files.source_memory import SourceMemory
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.crash_journal import CrashJournal
from anchord.store.table.connection import model_of_table
from anchord.store.table.table import TABLE_FOLDER, TABLE_NAME, LanceStore
from anchord.store.table.uri import is_local
from anchord.store.table_owner import claim_table_folder
from anchord.store.vector_cache import SqliteVectorCache
from anchord.store.writer_lock import WriterLock


def open_reader(paths: Paths, config: Config) -> IndexReader:
    """Open an index for searches; needs no lock and changes nothing.

    Raises:
        StoreError: There is no index yet, or it cannot be opened.
    """
    with ExitStack() as undo:
        catalog = SqliteCatalog(paths.catalog_file, read_only=True)
        undo.callback(catalog.close)
        cli_state = load_cli_state(paths.cli_state_file)
        memory = SourceMemory(paths.source_memory_file, read_only=True)
        roots = gather_roots(
            config,
            cli_state.given_roots,
            (),
            paths.own_folders,
        )
        roots = keep_configured_folders(roots, memory)
        parser_process = ParserProcess()
        undo.callback(parser_process.close)
        quarantine = CrashJournal(paths.data_folder, read_only=True)
        inputs = _profile_inputs(
            paths,
            config,
            roots,
            (quarantine, parser_process),
            catalog,
        )
        profile = build_catalog_profile(catalog, build_configured_profile(inputs), inputs)
        undo.callback(profile.close)
        store = LanceStore(
            store_uri(paths, config),
            profile.dimension,
            "",
            read_only=True,
        )
        roots_by_name = {root.name: root for root in roots}
        archive = (
            Archive(paths.archive_file, read_only=True) if paths.archive_file.exists() else None
        )
        if archive:
            undo.callback(archive.close)
        files = open_source_tree(
            paths,
            config,
            roots_by_name,
            archive,
            (memory, cli_state),
        )
        reader = IndexReader(
            paths=paths,
            config=config,
            roots=roots,
            profile=profile,
            catalog=catalog,
            store=store,
            files=files,
            parser_process=parser_process,
            reranker=reranker_of(config, RERANKER_LOAD_S),
        )
        undo.pop_all()
        return reader


@retry_after_damage
def open_writer(
    paths: Paths,
    config: Config,
    new_root_paths: Sequence[str],
    new_root_kind: str = "project",
    *,
    require_roots: bool = False,
) -> IndexWriter:
    """Take the writer lock and open an index for writing.

    Repairs what a crash or a failing disk left behind, and lists each repair in `repairs`. Deletes
    the rows of roots that the configuration does not list any more.

    Args:
        paths: The files and folders of this anchord.
        config: The configuration.
        new_root_paths: Folders to add as roots.
        new_root_kind: The kind of `new_root_paths`: "project" or "conversations".
        require_roots: Refuse, before anything changes, if there is no root at all.

    Raises:
        AlreadyRunningError: Another process holds the lock.
        StoreUnavailableError: The disk is full, there is no permission, and the like.
        StoreError: The index cannot be opened.
        UsageError: A path cannot be a root, or `require_roots` and there is none.
    """
    repairs: list[str] = []
    with os_errors_as_unavailable(str(paths.data_folder)), ExitStack() as undo:
        lock = WriterLock(paths.lock_file)
        undo.callback(lock.release)
        if is_local(store_uri(paths, config)):
            folder = Path(store_uri(paths, config))
            claim_table_folder(folder, paths.data_folder, paths.catalog_file)
        # First, because it replaces the catalog and the table that are opened below.
        finish_promotion(paths, store_uri(paths, config), repairs)
        cli_state = open_or_reset_cli_state(paths, repairs)
        catalog = open_or_reset_catalog(paths, repairs)
        undo.callback(catalog.close)
        roots = gather_roots(
            config, cli_state.given_roots, new_root_paths, paths.own_folders, new_root_kind
        )
        memory = SourceMemory(paths.source_memory_file)
        roots = keep_configured_folders(roots, memory)
        if require_roots and not roots:
            raise UsageError(
                "there are no folders to index yet",
                "`anchord index FOLDER` indexes one, `anchord add FOLDER` keeps it indexed",
            )
        parser_process = ParserProcess()
        quarantine = CrashJournal(paths.data_folder)
        undo.callback(quarantine.close)
        inputs = _profile_inputs(
            paths,
            config,
            roots,
            (quarantine, parser_process),
            catalog,
        )
        configured_profile = build_configured_profile(inputs)
        undo.callback(configured_profile.close)
        profile, store, was_clean = _open_generation(
            paths, inputs, configured_profile, catalog, repairs
        )
        had_archive, archive_repairs = paths.archive_file.exists(), -len(repairs)
        archive = open_or_salvage_archive(paths, catalog, repairs)
        archive_repairs += len(repairs)
        undo.callback(archive.close)
        # Only now: nothing refused to open, so a newer anchord's index is not migrated by half.
        catalog.migrate_schema()
        redact_archive(archive, config)
        roots_by_name = {root.name: root for root in roots}
        files = open_source_tree(
            paths,
            config,
            roots_by_name,
            archive,
            (memory, cli_state),
        )
        reader_process = ReaderProcess()
        conversations = ConversationIngester(
            files.folder_files, archive, time.time_ns, roots_by_name, ingest_options_of(config)
        )
        conversations.whole_reads = WholeReads(reader_process, quarantine)
        kept = open_kept_transcripts(paths, catalog, repairs)
        keeper = TranscriptKeeper(files.folder_files, roots_by_name, kept, time.time_ns)
        undo.callback(keeper.close)
        keeper.on_damage = partial(record_kept_damage, paths)
        conversations.keep_bytes = lambda origin, has_forgotten: keeper.keep(
            origin, has_forgotten=has_forgotten
        )
        writer = IndexWriter(
            paths=paths,
            config=config,
            roots=list(roots),
            profile=profile,
            catalog=catalog,
            store=store,
            files=files,
            parser_process=parser_process,
            reader_process=reader_process,
            configured_profile=configured_profile,
            vector_cache=SqliteVectorCache(paths.vector_cache_file),
            archive=archive,
            conversations=conversations,
            keeper=keeper,
            lock=lock,
            roots_by_name=roots_by_name,
            cli_state=cli_state,
            was_clean_shutdown=was_clean,
            quarantine=quarantine,
            repairs=repairs,
        )
        retry_at_start(writer, lambda: _sync_roots(writer, roots))
        update_at_start(archive, catalog, roots, files.folder_files)
        note_archive_state(archive, catalog)
        _update_kept_transcripts(writer, is_archive_whole=had_archive and archive_repairs == 0)
        repair_cli_state(paths, writer.cli_state)
        finish_interrupted_forget(writer)
        undo.pop_all()
        return writer


def _update_kept_transcripts(writer: IndexWriter, *, is_archive_whole: bool) -> None:
    """Erase and queue what became due since the last writer.

    Args:
        writer: The index.
        is_archive_whole: Whether the archive is as the last writer left it.
    """
    keeper = writer.keeper
    if is_archive_whole:
        erase_trashed(keeper, writer.archive, writer.roots, writer.repairs)
    erase_forgotten_at_start(keeper, writer.cli_state.forgotten_paths, writer.repairs)
    queue_unkept(keeper, writer.archive, writer.catalog, writer.roots)
    note_kept_count(keeper, writer.catalog)


def _profile_inputs(
    paths: Paths,
    config: Config,
    roots: Sequence[Root],
    parsing: tuple[CrashJournal, ParserProcess],
    catalog: SqliteCatalog,
) -> ProfileInputs:
    quarantine, parser_process = parsing
    # A catalog that was lost is new and empty; the table still says what made its vectors.
    indexed_model = indexed_model_of(catalog) or model_of_table(
        store_uri(paths, config), TABLE_NAME
    )
    return ProfileInputs(
        config=config,
        roots=roots,
        models_folder=paths.choose_models_folder(),
        older_models_folder=paths.home_models_folder,
        indexed_model=indexed_model,
        quarantine=quarantine,
        find_definitions=parser_process,
    )


def _open_generation(
    paths: Paths,
    inputs: ProfileInputs,
    configured_profile: IndexProfile,
    catalog: SqliteCatalog,
    repairs: list[str],
) -> tuple[IndexProfile, LanceStore, bool]:
    """Open the table that serves. A remote one has no next generation: it is written at once.

    Returns:
        The profile that its rows were made with; the table; whether the last writer ended in good
        order.
    """
    uri = store_uri(paths, inputs.config)
    profile = configured_profile
    if is_local(uri):
        profile = build_catalog_profile(catalog, configured_profile, inputs)
    was_clean = was_clean_shutdown(catalog, Path(uri) / TABLE_FOLDER)
    store = open_or_recover_table(
        paths,
        uri,
        profile,
        repairs,
        was_clean_shutdown=was_clean,
    )
    profile.record_in_catalog(catalog)
    if is_local(uri):
        names = {root.name for root in inputs.roots}
        profile = pin_recipe_digests(
            catalog,
            profile,
            configured_profile,
            names,
        )
    return profile, store, was_clean


def _sync_roots(writer: IndexWriter, roots: Sequence[Root]) -> None:
    """Drop the roots that are not configured any more, with their rows, and add the others."""
    known_names = {root.name for root in writer.cli_state.given_roots}
    # After a kill in `drop_root` the archive may be the last that knows of a root.
    known_names |= {*writer.catalog.root_names(), *writer.archive.detached.attached_root_names()}
    # Earlier versions left the names of its changed files.
    known_names |= {*writer.catalog.history.root_names()}
    for name in known_names - writer.roots_by_name.keys():
        writer.drop_root(name)
    # All of them before one is added: two roots may have swapped their names.
    for root in roots:
        if is_another_root(writer.archive, root):
            writer.replace_root(root)
    for root in roots:
        writer.add_root(root)
