"""The open handles of an index: those that searches need, and those that a writer has besides."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from anchord.chunking.formats.parser_process import ParserProcess
from anchord.config.cli_state import CliState, save_cli_state
from anchord.config.paths import Paths
from anchord.config.schema import Config
from anchord.core.ports import IndexerDependencies, Reranker, VectorCache
from anchord.core.types import Root, RootRemoval
from anchord.errors import StoreError
from anchord.index.archive_recovery import note_archive_state
from anchord.index.archive_roots import attach_exchanges, is_another_root
from anchord.index.heartbeat import HeartbeatMonitor
from anchord.index.indexer import Indexer
from anchord.index.kept_transcripts import note_kept_count
from anchord.index.profile import (
    IndexProfile,
)
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.ingest import ConversationIngester
from anchord.sources.conversations.kept.keeper import TranscriptKeeper
from anchord.sources.conversations.reader_process import ReaderProcess
from anchord.sources.source_tree import SourceTree
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.crash_journal import CrashJournal
from anchord.store.table.table import LanceStore
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
        self.profile.close()
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
    keeper: TranscriptKeeper
    """Keeps the bytes of transcripts."""
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
            worktrees=self.files.folder_files.worktrees,
            further_embedders=profile.further.embedders,
        )
        return Indexer(
            dependencies,
            profile.token_counter,
            profile.recipe,
            words_first=True,
        )

    def close(self) -> None:
        """Close every handle, and release the writer lock last."""
        with suppress(StoreError):
            note_kept_count(self.keeper, self.catalog)
        self.keeper.close()
        IndexReader.close(self)
        self.reader_process.close()
        self.configured_profile.close()
        self.vector_cache.close()
        self.quarantine.close()
        self.lock.release()

    def stop_idle_processes(self) -> None:
        """End the child processes that were not used for a while. Call it from time to time."""
        for embedder in self.profile.embedders:
            embedder.stop_idle_workers()
        self.parser_process.stop_if_idle()
        self.reader_process.stop_if_idle()

    def drop_root(self, name: str) -> RootRemoval:
        """Delete a root's rows and records, detach its conversations, and remove the root.

        The archive keeps the conversations, and they return with the root. The configuration file
        is not changed.
        """
        row_ids = self.store.ids_of_root(name)
        self.indexer.lost_exchanges.restore_rows(row_ids)
        return self._drop_root(name, row_ids)

    def _drop_root(self, name: str, row_ids: Sequence[str]) -> RootRemoval:
        self.indexer.delete_rows(row_ids)
        self.catalog.delete_root_records(name)
        exchange_count = self.archive.counts_by_root().get(name, {}).get("exchanges", 0)
        self.archive.detach_root(name, time.time_ns())
        note_archive_state(self.archive, self.catalog)
        self.save_cli_state(self.cli_state.without_root(name))
        self.files.folder_files.forget_root(name)
        self.roots_by_name.pop(name, None)
        self.roots[:] = [root for root in self.roots if root.name != name]
        return RootRemoval(len(row_ids), exchange_count)

    def replace_root(self, root: Root) -> None:
        """Drop the root that the archive knows by this root's name.

        Exchanges that have rows but are not in the archive become `root`'s own: the archive is that
        of another home, which has a root of the same name.
        """
        row_ids = self.store.ids_of_root(root.name)
        lost_exchanges = self.indexer.lost_exchanges
        rows_by_exchange = {
            path: lost_exchanges.rows_of(path) for path in lost_exchanges.find(row_ids)
        }
        self._drop_root(root.name, row_ids)
        for path, rows in rows_by_exchange.items():
            self.conversations.restore(path, rows)

    def add_root(self, root: Root) -> None:
        """Add a root, or replace the root of its name. Its files are not indexed by this.

        A root that the configuration does not list is saved in the CLI state until it is removed.
        """
        if is_another_root(self.archive, root):
            self.replace_root(root)
        self.roots_by_name[root.name] = root
        if root.kind == "conversations":
            for recipe in (self.profile.recipe, self.configured_profile.recipe):
                recipe.ingest_identity_by_root[root.name] = self.conversations.reader_version
        others = [other for other in self.roots if other.name != root.name]
        self.roots[:] = [*others, root]
        attach_exchanges(self.archive, self.roots)
        note_archive_state(self.archive, self.catalog)
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
