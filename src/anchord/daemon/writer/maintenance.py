"""What the writer does while nothing waits: compact the table, check files, free memory.

A daemon that runs for months must not grow, and must not trust its index blindly. Every two minutes
of rest the next few files are compared with their rows; what differs is counted and repaired. In
time every file is checked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import psutil
import structlog

from anchord.core.types import FileRecord, RootedPath
from anchord.daemon.host.malloc import trim_heap
from anchord.daemon.writer.index_check import IndexCheck
from anchord.daemon.writer.page_check import PageCheck
from anchord.errors import StoreError
from anchord.index.integrity.merged_files import merged_files
from anchord.index.integrity.purge import (
    erase_replaced_secrets,
    is_erasure_due,
    note_rules_of_new_index,
)
from anchord.index.integrity.repair import delete_damaged_rows
from anchord.index.integrity.verify import verify_unchanged_files
from anchord.index.kept_transcripts import keep_due, note_kept_count
from anchord.index.session import IndexWriter
from anchord.sources.conversations.archive.reader import find_damage
from anchord.sources.conversations.kept.salvage import find_damaged_piece
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.compaction import COMPACTION_TIMEOUT_S, CompactionWorker
from anchord.store.table.connection import TableReadError
from anchord.store.table.maintenance import (
    COMPACT_AFTER_COMMITS,
    has_many_deleted_rows,
    is_scattered,
    slows_searches,
)

log = structlog.get_logger()

COMPACTIONS_PER_INDEX_MERGE = 10
"""Each compaction adds a part to the table's indices; this many parts are merged into one."""
_COMPACTIONS_PER_IDLE_MERGE = 4
"""Likewise when the writer is idle: then people search, and every part slows a search down."""
_SINCE_MERGE_KEY = "upkeep passes"
"""Catalog key of the compactions since the last merge: short-lived processes must merge too."""
_IDLE_S = 30.0
_IDLE_COMMITS = 20
"""After 30 s without a commit, this many commits are compacted."""
_LONG_IDLE_S = 300.0
_LONG_IDLE_COMMITS = 1
"""After 5 minutes even one is: a dozen of them make a text search a fifth slower."""
_UNINDEXED_IDLE_S = 3.0
"""With many rows in no index, one commit is compacted after 3 s: a first index writes thousands of
rows with each."""
_CHECK_EVERY_S = 120.0
_ERASE_AGAIN_S = 3_600.0
"""How long after a try the next one begins to remove replaced secrets from the disk."""
_CHECK_TIME_S = 0.03
"""A check stops after so long: less than 0.05 % of the time."""
_CHECK_PAGE_FILES = 8
KEEP_TIME_S = 0.1
"""So long transcripts are kept, then the writer rests for 2 s: 5 % of the time."""
_KEEP_FILE_S = 300.0
"""For one file: 2 GB take 40 s on a slow disk."""


class Maintenance:
    """The writer's maintenance. All methods run in the writer thread, between two commits."""

    def __init__(self, writer: IndexWriter, memory_limit_mb: int, index_check: IndexCheck) -> None:
        """Prepare; the table counts as compacted, unless many of its rows are in no index.

        Args:
            writer: The opened index.
            memory_limit_mb: For `exceeds_memory_limit`; 0 means no limit.
            index_check: Finds damage before a compaction deletes old versions, which may hold what
                was lost.
        """
        self.errors: list[str] = []
        """What failed in the last compaction, empty when all went well."""
        self.compaction_count = 0
        self.compaction_seconds = 0.0
        """Time that all compactions since the start took."""
        self.differences_found = 0
        """Differences between files and rows that checks found since the start."""
        self.last_checked_at: float | None = None
        """When the last check ended, by the monotonic clock; None before the first."""
        self.on_index_merge: Callable[[], None] = lambda: None
        """Called after a merge, which deletes index files that readers may have open."""
        self.page_check = PageCheck(
            (
                writer.paths.archive_file,
                writer.paths.catalog_file,
                writer.paths.kept_transcripts_file,
            ),
            {
                writer.paths.archive_file: find_damage,
                writer.paths.kept_transcripts_file: find_damaged_piece,
            },
        )
        self._writer = writer
        self._index_check = index_check
        self._memory_limit_bytes = memory_limit_mb * 1_000_000
        self._process = psutil.Process()
        self._compaction_worker = CompactionWorker(writer.lock.descriptor)
        self._compacted_commits = 0
        """How many commits there had been at the last compaction."""
        # The process before may have left up to half of a first index without compacting it; its
        # commits are not counted here. Rows in no index, or many deleted ones, count as one commit.
        with suppress(StoreError):
            note_rules_of_new_index(writer)
            has_news = writer.store.count_unindexed_rows() or has_many_deleted_rows(writer.store)
            self._compacted_commits -= bool(has_news)
        self._commits_at_row_count = 0
        """How many commits were uncompacted when unindexed rows were last counted."""
        self._commits_at_fragment_count = -1
        """How many commits there had been when fragments were last counted."""
        since_merge = int((writer.catalog.get_meta(_SINCE_MERGE_KEY) or "0").split()[0])
        self._compactions_since_merge = min(since_merge, COMPACTIONS_PER_INDEX_MERGE)
        self._trimmed_commits = 0
        """How many commits there had been when free memory was last returned to the system."""
        self._last_checked_file: RootedPath | None = None
        self._next_erasure = 0.0
        self._next_check = time.monotonic() + _CHECK_EVERY_S

    def compact_if_due(self, *, idle_s: float = 0.0) -> None:
        """Compact the table if it pays, else return free memory to the system when idle.

        Blocks until it is done, in the worst case for `COMPACTION_TIMEOUT_S`.

        Args:
            idle_s: Seconds since the last commit; 0 while the writer is busy.
        """
        all_commits = self._writer.indexer.commit_count
        commits = all_commits - self._compacted_commits
        is_idle = idle_s >= _IDLE_S
        if is_idle:
            self._erase_replaced_secrets()
        if commits >= COMPACT_AFTER_COMMITS:
            self.compact(idle=is_idle)
        elif self._slows_searches(commits, idle_s):
            self.compact(idle=True)
        elif idle_s >= _LONG_IDLE_S and self._is_scattered():
            self.compact(idle=True, merge_all=True)
        elif is_idle and all_commits > self._trimmed_commits:
            trim_heap()
            self._trimmed_commits = all_commits

    def finish_before_end(self) -> None:
        """Do now what no daemon will do later: compact the table if it slows searches.

        Also erases replaced secrets from the disk if the rules for them have changed. Errors do not
        raise: they are in `errors` afterwards.
        """
        is_scattered = self._is_scattered()
        if is_scattered or self._is_compaction_due():
            self.compact(idle=True, merge_all=is_scattered)
        with suppress(StoreError):  # The catalog cannot be read: the next run tries it again.
            self._erase_replaced_secrets()
            self.keep_transcripts()

    def compact(self, *, idle: bool = False, merge_all: bool = False) -> None:
        """Compact the table now. Errors do not raise: they are in `errors` afterwards.

        A table with lost or changed files is left as it is: `index_check` repairs it first.

        Args:
            idle: Nothing else waits: index parts are merged sooner and old versions are deleted.
            merge_all: Merge all index parts and all fragments, whatever that takes.
        """
        self._index_check.look_for_altered_files()
        if self._index_check.is_repair_due:
            return
        began = time.monotonic()
        self.compaction_count += 1
        parts = _COMPACTIONS_PER_IDLE_MERGE if idle else COMPACTIONS_PER_INDEX_MERGE
        merge_indices = merge_all or self._compactions_since_merge + 1 >= parts
        self._compactions_since_merge = 0 if merge_indices else self._compactions_since_merge + 1
        # On a full disk this fails, and the compaction is what makes room.
        with suppress(StoreError):
            self._writer.catalog.set_meta(_SINCE_MERGE_KEY, str(self._compactions_since_merge))
        self._compacted_commits = self._writer.indexer.commit_count
        self._commits_at_row_count = 0
        self._writer.heartbeat.beat(COMPACTION_TIMEOUT_S)
        self.errors = table_maintenance.maintain(
            self._writer.store,
            merge_indices=merge_indices,
            merge_all=merge_all,
            drop_old_versions=merge_indices or idle,
            compact=self._compaction_worker,
        )
        self._writer.heartbeat.beat()
        if merge_indices:
            self.on_index_merge()
        trim_heap()
        seconds = time.monotonic() - began
        self.compaction_seconds += seconds
        log.info(
            "table.compacted",
            seconds=round(seconds, 3),
            errors=self.errors,
        )

    def _erase_replaced_secrets(self) -> None:
        """Rewrite the table once after the rules for secrets changed."""
        if time.monotonic() < self._next_erasure or not is_erasure_due(self._writer):
            return
        self._next_erasure = time.monotonic() + _ERASE_AGAIN_S
        try:
            erase_replaced_secrets(self._writer)
        except StoreError as error:
            if isinstance(error, TableReadError):
                self._index_check.request_repair()
            self.errors = [f"replaced secrets may still be on the disk: {error}"]
            return
        finally:
            self._writer.heartbeat.beat()
        self.on_index_merge()
        trim_heap()

    def keep_transcripts(self, *, seconds: float | None = None) -> None:
        """Keep the bytes of transcripts that are due, one file at least.

        Args:
            seconds: No file is begun after so long; None keeps all of them, also shortly after an
                error that can pass.

        Raises:
            StoreDamagedError: The kept transcripts are damaged. Raised once: a restart repairs it.
            StoreError: The catalog cannot be written.
        """
        writer = self._writer
        writer.keeper.check_place()
        if not writer.keeper.due:
            return
        if seconds is None:
            writer.keeper.retry_now()
        deadline = None if seconds is None else time.monotonic() + seconds

        def should_stop() -> bool:
            writer.heartbeat.beat(_KEEP_FILE_S)
            return deadline is not None and time.monotonic() > deadline

        try:
            keep_due(writer.keeper, should_stop)
        finally:
            writer.heartbeat.beat()
            if seconds is None and writer.keeper.problem:  # No daemon: nobody asks for the status.
                log.error("transcripts.not_kept", reason=writer.keeper.problem)
        if not writer.keeper.due:
            note_kept_count(writer.keeper, writer.catalog)

    def is_check_due(self, now: float) -> bool:
        """Whether `check_and_repair_if_due` would check files now (monotonic clock)."""
        return now >= self._next_check

    def check_and_repair_if_due(self, now: float) -> list[RootedPath]:
        """Every two minutes, compare the next few files with their rows; delete damaged rows.

        Also starts the daily check of the databases' pages.

        Args:
            now: Time of the monotonic clock.

        Returns:
            The files whose rows differed, to be indexed again.

        Raises:
            StoreDamagedError: The check of the pages found a damaged database.
            StoreError: The catalog or the table cannot be read or changed.
        """
        self.page_check.run_if_due(now)
        if not self.is_check_due(now):
            return []
        self._next_check = now + _CHECK_EVERY_S
        deadline = now + _CHECK_TIME_S
        files_to_reindex = self._check_next_files()
        # None: all files were checked; the next check begins with the first again.
        while self._last_checked_file is not None and time.monotonic() < deadline:
            files_to_reindex += self._check_next_files()
        self.last_checked_at = time.monotonic()
        return files_to_reindex

    def stop_worker_if_idle(self) -> None:
        """End the worker process that compacts if it was not used for two minutes."""
        self._compaction_worker.stop_if_idle()

    def close(self) -> None:
        """End the worker process that compacts, also in the middle of its work."""
        self.page_check.close()
        self._compaction_worker.close()

    def exceeds_memory_limit(self) -> bool:
        """Whether this process uses more memory than the limit it was given."""
        limit = self._memory_limit_bytes
        return bool(limit) and self._process.memory_info().rss > limit

    def _slows_searches(self, commits: int, idle_s: float) -> bool:
        """Whether enough is uncompacted that searches are slower than they need to be."""
        if idle_s >= _IDLE_S:
            if self._compactions_since_merge >= _COMPACTIONS_PER_IDLE_MERGE:
                return True
            limit = _LONG_IDLE_COMMITS if idle_s >= _LONG_IDLE_S else _IDLE_COMMITS
            if commits >= limit:
                return True
        if idle_s < _UNINDEXED_IDLE_S or commits == self._commits_at_row_count:
            return False  # Counted before, and too few rows: nothing was committed since.
        self._commits_at_row_count = commits
        return self._is_compaction_due()

    def _is_scattered(self) -> bool:
        """Whether the rows are in many fragments; asked once after a commit."""
        commits = self._writer.indexer.commit_count
        if commits == self._commits_at_fragment_count:
            return False
        self._commits_at_fragment_count = commits
        try:
            return is_scattered(self._writer.store)
        except StoreError:
            return False  # The next compaction that is due reports what is wrong.

    def _is_compaction_due(self) -> bool:
        try:
            return slows_searches(self._writer.store)
        except StoreError:
            return True  # The compaction reports what is wrong, or repairs it.

    def _check_next_files(self) -> list[RootedPath]:
        """Compare one page of files with their rows; delete damaged rows, return their files."""
        writer = self._writer
        page = writer.catalog.list_files_page(self._last_checked_file, _CHECK_PAGE_FILES)
        self._last_checked_file = page[-1][0] if page else None
        differences = verify_unchanged_files(
            [(file, record) for file, record in page if self._is_checkable(file, record)],
            merged_files(writer),
            writer.catalog,
            writer.store,
            (writer.profile.recipe, writer.profile.token_counter),
        )
        if not differences:
            return []
        self.differences_found += len(differences)
        log.warning("index.differs", differences=len(differences))
        return delete_damaged_rows(writer, differences)

    def _is_checkable(self, file: RootedPath, record: FileRecord) -> bool:
        """Whether the file's rows should be what its content gives by the configured recipe."""
        if file.root not in self._writer.roots_by_name or not record.content_digest:
            return False
        recipe = self._writer.configured_profile.recipe
        return record.recipe_digest == recipe.digest(file.root)
