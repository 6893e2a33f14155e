"""Open an index: one writer at a time, and any number of readers beside it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from anchord.chunking.formats.parser_process import ParserProcess
from anchord.config.cli_state import CliState, load_cli_state, save_cli_state
from anchord.config.paths import Paths
from anchord.config.roots import gather_roots
from anchord.config.schema import Config
from anchord.core.os_errors import os_errors_as_unavailable
from anchord.core.ports import IndexerDependencies, Reranker, VectorCache
from anchord.core.types import Root, RootRemoval
from anchord.errors import UsageError
from anchord.index.archive_recovery import open_or_salvage_archive, retry_after_damage
from anchord.index.archive_roots import attach_exchanges, is_another_root, update_at_start
from anchord.index.clean_shutdown import was_clean_shutdown
from anchord.index.heartbeat import HeartbeatMonitor
from anchord.index.indexer import Indexer
from anchord.index.profile import (
    IndexProfile,
    ProfileInputs,
    build_catalog_profile,
    build_configured_profile,
    ingest_options_of,
    pin_recipe_digests,
    reranker_of,
)
from anchord.index.recovery import (
    finish_promotion,
    open_or_recover_table,
    open_or_reset_catalog,
    open_or_reset_cli_state,
)
from anchord.index.source_files import open_source_tree, redact_archive
from anchord.index.table_location import is_local, store_uri
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.ingest import ConversationIngester
from anchord.sources.conversations.reader_process import ReaderProcess, WholeReads
from anchord.sources.files.root_identity import keep_configured_folders
from anchord.sources.files.source_memory import SourceMemory
from anchord.sources.source_tree import SourceTree
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.crash_journal import CrashJournal
from anchord.store.table.table import TABLE_FOLDER, LanceStore
from anchord.store.table_owner import claim_table_folder
from anchord.store.vector_cache import SqliteVectorCache
from anchord.store.writer_lock import WriterLock


@dataclass(slots=True, kw_only=True)
class IndexReader:
    """The open handles of an index that searches need."""

    paths: Paths
    config: Config
    roots: list[Root]
    profile: IndexProfile
    """What the rows of this index were made with. Can differ from what the configuration says
    now."""
    catalog: SqliteCatalog
    store: LanceStore
    files: SourceTree
    parser_process: ParserProcess
    """The child process that parses source code."""
    reranker: Reranker | None = field(default=None, kw_only=True)

    def close(self) -> None:
        """Close every handle, and end the child processes."""
        self.profile.embedder.close()
        self.parser_process.close()
        if self.reranker:
            self.reranker.close()
        self.catalog.close()
        if self.files.archive:
            self.files.archive.close()


@dataclass(slots=True, kw_only=True)
class IndexWriter(IndexReader):
    """The open handles of an index that is written. Holds the writer lock until `close`."""

    configured_profile: IndexProfile
    """What the configuration says now. If it differs from `profile`, a new generation must be
    built."""
    indexer: Indexer = field(init=False)
    """Writes `catalog` and `store`."""
    vector_cache: SqliteVectorCache
    archive: ArchiveWriter
    conversations: ConversationIngester
    reader_process: ReaderProcess
    """The child process that reads zips, databases and exports of conversations."""
    lock: WriterLock
    roots_by_name: dict[str, Root]
    """The same roots as `roots`. The file readers share this dict: a root added here is
    readable."""
    cli_state: CliState
    was_clean_shutdown: bool
    """Whether the last writer closed the index and its table is as it left it. False after a
    crash."""
    quarantine: CrashJournal
    """File contents that crashed the parser, and are not parsed again."""
    repairs: list[str] = field(default_factory=list)
    """One sentence for each thing that was found damaged at the start: what, and what was done."""
    heartbeat: HeartbeatMonitor = field(default_factory=HeartbeatMonitor)

    def __post_init__(self) -> None:
        """Make the indexer over these handles."""
        self.indexer = self.make_indexer(
            self.profile, catalog=self.catalog, store=self.store, vector_cache=self.vector_cache
        )

    def make_indexer(
        self,
        profile: IndexProfile,
        *,
        catalog: SqliteCatalog,
        store: LanceStore,
        vector_cache: VectorCache,
    ) -> Indexer:
        """Return an indexer that reads this writer's files and writes the given catalog and store.

        Args:
            profile: The model and the recipe.
            catalog: Where files are recorded.
            store: Where rows are written.
            vector_cache: Where vectors are looked up before a text is embedded.
        """
        dependencies = IndexerDependencies(
            files=self.files,
            catalog=catalog,
            store=store,
            embedder=profile.embedder,
            vector_cache=vector_cache,
            clock=time.time_ns,
            conversations=self.conversations,
            heartbeat=self.heartbeat.beat,
        )
        return Indexer(dependencies, profile.token_counter, profile.recipe, words_first=True)

    def close(self) -> None:
        """Close every handle, and release the writer lock last."""
        IndexReader.close(self)
        self.reader_process.close()
        self.configured_profile.embedder.close()
        self.vector_cache.close()
        self.quarantine.close()
        self.lock.release()

    def stop_idle_processes(self) -> None:
        """End the child processes that were not used for a while. Call it from time to time."""
        self.profile.embedder.stop_idle_workers()
        self.parser_process.stop_if_idle()
        self.reader_process.stop_if_idle()

    def drop_root(self, name: str) -> RootRemoval:
        """Delete a root's rows and records, detach its conversations, and remove the root.

        The archive keeps the conversations, and they return with the root. The configuration file
        is not changed.
        """
        row_ids = self.store.ids_of_root(name)
        self.indexer.delete_rows(row_ids)
        self.catalog.delete_root_records(name)
        exchange_count = self.archive.counts_by_root().get(name, {}).get("exchanges", 0)
        self.archive.detach_root(name, time.time_ns())
        self.save_cli_state(self.cli_state.without_root(name))
        self.files.folder_files.forget_root(name)
        self.roots_by_name.pop(name, None)
        self.roots[:] = [root for root in self.roots if root.name != name]
        return RootRemoval(len(row_ids), exchange_count)

    def add_root(self, root: Root) -> None:
        """Add a root, or replace the root of its name. Its files are not indexed by this.

        A root that the configuration does not list is saved in the CLI state until it is removed.
        """
        if is_another_root(self.archive, root):
            self.drop_root(root.name)
        self.roots_by_name[root.name] = root
        if root.kind == "conversations":
            for recipe in (self.profile.recipe, self.configured_profile.recipe):
                recipe.ingest_identity_by_root[root.name] = self.conversations.reader_version
        others = [other for other in self.roots if other.name != root.name]
        self.roots[:] = [*others, root]
        attach_exchanges(self.archive, self.roots)
        cli_state = self.cli_state.without_root(root.name)
        if not root.is_configured:
            cli_state = self.cli_state.with_root(root)
        self.save_cli_state(cli_state)

    def save_cli_state(self, cli_state: CliState) -> None:
        """Save the CLI state if it changed, and apply its forgotten paths to the file readers."""
        if cli_state != self.cli_state:
            save_cli_state(self.paths.cli_state_file, cli_state)
            self.cli_state = cli_state
            self.files.set_forgotten_paths(cli_state.forgotten_paths)


def open_reader(paths: Paths, config: Config) -> IndexReader:
    """Open an index for searches; needs no lock and changes nothing.

    Raises:
        StoreError: There is no index yet, or it cannot be opened.
    """
    catalog = SqliteCatalog(paths.catalog_file, read_only=True)
    cli_state = load_cli_state(paths.cli_state_file)
    memory = SourceMemory(paths.source_memory_file, read_only=True)
    roots = gather_roots(config, cli_state.given_roots, (), paths.own_folders)
    roots = keep_configured_folders(roots, memory)
    parser_process = ParserProcess()
    quarantine = CrashJournal(paths.data_folder, read_only=True)
    inputs = _profile_inputs(paths, config, roots, quarantine, parser_process)
    profile = build_catalog_profile(catalog, build_configured_profile(inputs), inputs)
    store = LanceStore(store_uri(paths, config), profile.dimension, "", read_only=True)
    roots_by_name = {root.name: root for root in roots}
    archive = Archive(paths.archive_file, read_only=True) if paths.archive_file.exists() else None
    files = open_source_tree(paths, config, roots_by_name, archive, (memory, cli_state))
    return IndexReader(
        paths=paths,
        config=config,
        roots=roots,
        profile=profile,
        catalog=catalog,
        store=store,
        files=files,
        parser_process=parser_process,
        reranker=reranker_of(config),
    )


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
        inputs = _profile_inputs(paths, config, roots, quarantine, parser_process)
        configured_profile = build_configured_profile(inputs)
        undo.callback(configured_profile.embedder.close)
        was_clean = was_clean_shutdown(catalog, Path(store_uri(paths, config)) / TABLE_FOLDER)
        profile, store = _open_generation(paths, inputs, configured_profile, catalog, repairs)
        archive = open_or_salvage_archive(paths, catalog, repairs)
        undo.callback(archive.close)
        # Only now: nothing refused to open, so a newer anchord's index is not migrated by half.
        catalog.migrate_schema()
        redact_archive(archive, config)
        roots_by_name = {root.name: root for root in roots}
        files = open_source_tree(paths, config, roots_by_name, archive, (memory, cli_state))
        reader_process = ReaderProcess()
        conversations = ConversationIngester(
            files.folder_files, archive, time.time_ns, roots_by_name, ingest_options_of(config)
        )
        conversations.whole_reads = WholeReads(reader_process, quarantine)
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
            lock=lock,
            roots_by_name=roots_by_name,
            cli_state=cli_state,
            was_clean_shutdown=was_clean,
            quarantine=quarantine,
            repairs=repairs,
        )
        _sync_roots(writer, roots)
        update_at_start(archive, catalog, roots, files.folder_files)
        undo.pop_all()
        return writer


def _profile_inputs(
    paths: Paths,
    config: Config,
    roots: Sequence[Root],
    quarantine: CrashJournal,
    parser_process: ParserProcess,
) -> ProfileInputs:
    return ProfileInputs(
        config=config,
        roots=roots,
        models_folder=paths.models_folder,
        quarantine=quarantine,
        find_definitions=parser_process,
    )


def _open_generation(
    paths: Paths,
    inputs: ProfileInputs,
    configured_profile: IndexProfile,
    catalog: SqliteCatalog,
    repairs: list[str],
) -> tuple[IndexProfile, LanceStore]:
    """Open the table that serves; return it with the profile that its rows were made with.

    A remote table has no next generation: it is written with the configured profile at once.
    """
    uri = store_uri(paths, inputs.config)
    profile = configured_profile
    if is_local(uri):
        profile = build_catalog_profile(catalog, configured_profile, inputs)
    was_clean = was_clean_shutdown(catalog, Path(uri) / TABLE_FOLDER)
    store = open_or_recover_table(paths, uri, profile, repairs, was_clean_shutdown=was_clean)
    profile.record_in_catalog(catalog)
    if is_local(uri):
        profile = pin_recipe_digests(catalog, profile, configured_profile)
    return profile, store


def _sync_roots(writer: IndexWriter, roots: Sequence[Root]) -> None:
    """Drop the roots that are not configured any more, with their rows, and add the others."""
    known_names = {root.name for root in writer.cli_state.given_roots}
    # After a kill in `drop_root` the archive may be the last that knows of a root.
    known_names |= {*writer.catalog.root_names(), *writer.archive.attached_root_names()}
    for name in known_names - writer.roots_by_name.keys():
        writer.drop_root(name)
    # All of them before one is added: two roots may have swapped their names.
    for root in roots:
        if is_another_root(writer.archive, root):
            writer.drop_root(root.name)
    for root in roots:
        writer.add_root(root)
