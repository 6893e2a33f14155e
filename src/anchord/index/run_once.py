"""Index everything once, for `anchord index` without a daemon."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anchord.config.roots import find_root, resolve_path
from anchord.core.quoting import quote_command, quote_name, quote_names
from anchord.core.types import Action, FileOutcome, Problem, RootedPath
from anchord.errors import StoreError, UsageError
from anchord.index.archive_roots import list_unlisted_files
from anchord.index.clean_shutdown import record_clean_shutdown, record_start
from anchord.index.generation import (
    REBUILD,
    RECHUNK,
    BuildRequest,
    GenerationBuild,
    delete_next_generation,
    find_interrupted_build,
    find_required_build,
    find_unavailable_roots,
)
from anchord.index.integrity.purge import erase_replaced_secrets, note_rules_of_new_index
from anchord.index.integrity.table_repair import audit_index
from anchord.index.metrics import WorkCounters, log_outcome
from anchord.index.reconcile import ReconcileResult
from anchord.index.session import IndexWriter
from anchord.index.vector_fill import FILES_PER_FILL
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.damage import list_table_files
from anchord.store.table.maintenance import COMPACT_AFTER_COMMITS

_ATTEMPTS = 25
"""A file that changes while it is read is tried so often, about five seconds in all."""
_PAUSE_S = 0.2

_REQUESTED_BUILDS = {"rechunk": RECHUNK, "rebuild": REBUILD}

ProgressCallback = Callable[[int, int, str], None]
"""(files done, files known to be due, what is being done) -> None."""


@dataclass(slots=True, kw_only=True)
class RunSummary(WorkCounters):
    """What one run did."""

    warnings: list[str] = field(default_factory=list)
    """Sentences about roots that were not indexed completely, and about failed maintenance."""
    problems: list[tuple[RootedPath, Problem]] = field(default_factory=list)
    """Problems that the catalog does not list: unreadable folders, and files that kept changing."""


def index_once(
    writer: IndexWriter, only_paths: Sequence[str], progress: ProgressCallback, mode: str = ""
) -> RunSummary:
    """Walk the roots and index what is due; blocks until everything is done.

    Each commit is durable at once. Also builds and promotes a new generation where one is required,
    and compacts the table.

    Args:
        writer: The index.
        only_paths: Files or folders to index; empty means all roots.
        progress: Called with each step.
        mode: "" indexes what changed, "reread" reads every file, "rechunk" chunks every file into a
            new generation, "rebuild" embeds every text again into a new generation.

    Raises:
        EmbedderError: The model is not available. Another run continues after the last commit.
        StoreError: The store cannot be written. As above.
    """
    summary = RunSummary()
    record_start(writer.catalog)
    note_rules_of_new_index(writer)
    scopes = _scopes_of(writer, only_paths)
    request = (
        _REQUESTED_BUILDS.get(mode) or find_required_build(writer) or find_interrupted_build(writer)
    )
    if mode == "reread":
        writer.catalog.mark_all_for_reread()
    if request:
        _build_generation(writer, request, summary, progress)
    else:
        delete_next_generation(writer)
    progress(0, 0, "looking for changes")
    run = _Run(writer=writer, summary=summary, progress=progress)
    run.index(run.reconcile(scopes))
    expected_rows = sum(chunks for _, chunks in writer.catalog.counts_by_root().values())
    if not writer.was_clean_shutdown or expected_rows != writer.store.count_rows():
        progress(0, 0, "comparing the table with the file catalog")
        run.index(audit_index(writer))
    run.make_vectors()
    if writer.indexer.commit_count and table_maintenance.slows_searches(writer.store):
        progress(0, 0, "compacting the table")
        errors = table_maintenance.maintain(writer.store, merge_indices=True)
        summary.warnings += [f"maintenance of the table failed: {error}" for error in errors]
    try:
        erase_replaced_secrets(writer)
    except StoreError as error:
        summary.warnings.append(f"replaced secrets may still be on the disk: {error}")
    record_clean_shutdown(writer.catalog, list_table_files(Path(writer.store.dataset_uri)))
    return summary


def _build_generation(
    writer: IndexWriter, request: BuildRequest, summary: RunSummary, progress: ProgressCallback
) -> None:
    """Build a new generation and promote it.

    If a root is unavailable, the build is kept for a later run and the current generation is
    indexed.
    """
    build = GenerationBuild(writer, request)
    build.unavailable_roots = find_unavailable_roots(writer)
    while not build.is_finished:
        if build.unavailable_roots:
            names = quote_names(build.unavailable_roots)
            summary.warnings.append(
                f"a new index ({request.reason}) waits until {names} is available again"
            )
            build.close()
            return
        for outcome in build.index_next_files(lambda: False):
            summary.add(outcome)
            log_outcome(outcome)
        known_files = build.files_done + build.files_due
        progress(build.files_done, known_files, "building a new index")
    build.promote()


@dataclass(slots=True, kw_only=True)
class _Run:
    """Indexes files until none of them is changing."""

    writer: IndexWriter
    summary: RunSummary
    progress: ProgressCallback
    confirmed_gone: set[RootedPath] = field(default_factory=set)
    """Missing and empty files that the mass-deletion guard does not hold."""
    _done: int = 0
    _compacted_at: int = 0
    """The commit count at the last compaction."""

    def reconcile(self, scopes: Sequence[tuple[str, str]]) -> list[RootedPath]:
        """Walk folders, given as (root, path in it); return the files that are due."""
        due: list[RootedPath] = []
        for root, prefix in scopes:
            result = self._reconcile_settled(root, prefix)
            due += result.paths_due
            self.confirmed_gone.update(result.gone_or_emptied)
            self.summary.problems += [
                (RootedPath(root, path), problem) for path, problem in result.folder_problems
            ]
            if result.walk_error:
                self.summary.warnings.append(f"{quote_name(root)}: {result.walk_error}")
            if result.held_deletions:
                self.summary.warnings.append(
                    f"{quote_name(root)}: {result.held_deletions} files disappeared at once; they "
                    f"stay searchable until {quote_command('anchord confirm-delete', root)} "
                    "confirms the deletion"
                )
        return due

    def _reconcile_settled(self, root: str, prefix: str) -> ReconcileResult:
        """Walk a folder, again while an ignore file of its root may be in the middle of a save."""
        result = self.writer.indexer.reconcile(root, prefix)
        rules = self.writer.files.folder_files.rules
        while (wait_s := rules.settle_in_s(root)) is not None:
            self.progress(0, 0, "waiting for a changed ignore file to settle")
            time.sleep(wait_s)
            rules.begin_walk(root)
            writer, files = self.writer, self.writer.files.folder_files
            list_unlisted_files(writer.archive, writer.catalog, writer.roots, files)
            result = self.writer.indexer.reconcile(root, prefix)
        return result

    def index(self, paths: Sequence[RootedPath]) -> None:
        """Index files; repeat those that change meanwhile for about five seconds."""
        self._done = 0
        self._compacted_at = self.writer.indexer.commit_count
        due = paths
        for _ in range(_ATTEMPTS):
            due = self._index_attempt(due, len(paths))
            if not due:
                return
            time.sleep(_PAUSE_S)
            for root in {path.root for path in due}:
                self.confirmed_gone.update(self.writer.indexer.reconcile(root).gone_or_emptied)
        self.summary.problems += [
            (path, Problem("it kept changing while it was read: not indexed")) for path in due
        ]

    def make_vectors(self) -> None:
        """Make the vectors of the chunks that were written with their text alone."""
        skipped = 0
        for outcome in fill_all(self.writer, self._show_vectors):
            self.summary.add(outcome)
            log_outcome(outcome)
            if outcome.action is Action.RETRY:
                self.index([outcome.origin])
            skipped += outcome.due
        if skipped:
            self.summary.warnings.append(
                f"{skipped} chunks are found by words alone until their files can be read again"
            )

    def _show_vectors(self, done: int, total: int) -> None:
        self.progress(done, total, "making vectors; words find everything already")

    def _index_attempt(self, paths: Sequence[RootedPath], total: int) -> list[RootedPath]:
        """Index files once; return those that changed while they were read."""
        changing: list[RootedPath] = []
        indexer = self.writer.indexer
        for outcome in indexer.index(paths, confirmed_gone=self.confirmed_gone):
            if outcome.action is Action.RETRY:
                changing.append(outcome.origin)
                continue
            self._done += not is_exchange_path(outcome.origin.path)
            self.summary.add(outcome)
            log_outcome(outcome)
            self.progress(self._done, total, "indexing")
            if indexer.commit_count - self._compacted_at >= COMPACT_AFTER_COMMITS:
                table_maintenance.maintain(self.writer.store)
                self._compacted_at = indexer.commit_count
        return changing


def make_all_vectors(writer: IndexWriter) -> None:
    """Make the vectors of all chunks that lack them; index files again that have changed.

    Raises:
        EmbedderError: The model is not available.
        StoreError: The table cannot be read or written.
    """
    for outcome in fill_all(writer, lambda _done, _total: None):
        if outcome.action is Action.RETRY:
            for _ in writer.indexer.index([outcome.origin]):
                pass  # Indexing is lazy: each step commits a batch.


def fill_all(writer: IndexWriter, on_progress: Callable[[int, int], None]) -> Iterator[FileOutcome]:
    """Make all missing vectors. A file that the caller indexes again is looked at once more.

    Args:
        writer: The index.
        on_progress: Called with the number of vectors that are made, and of all to be made.

    Yields:
        The outcomes of `VectorFill.fill`.

    Raises:
        EmbedderError, StoreError: As `VectorFill.fill`.
    """
    fill = writer.indexer.vector_fill
    for _ in range(_ATTEMPTS):
        files = list(fill.find_due())
        total = fill.count_due()
        has_changed = False
        while files:
            on_progress(total - fill.count_due(), total)
            for outcome in fill.fill(files[:FILES_PER_FILL], lambda: False):
                files.remove(outcome.origin)
                has_changed = has_changed or outcome.action is Action.RETRY
                yield outcome
        if not has_changed:
            return


def _scopes_of(writer: IndexWriter, only_paths: Sequence[str]) -> list[tuple[str, str]]:
    """Return (root, path in it) of each path, or of every root where no path is given."""
    if not only_paths:
        return [(root.name, "") for root in writer.roots]
    scopes = []
    for path in only_paths:
        found = find_root(writer.roots, resolve_path(path))
        if found is None:  # pragma: no cover - `open_writer` made a root of each path without one
            raise UsageError(
                f"{quote_name(path)} is in no indexed folder",
                "`anchord add FOLDER` adds its folder",
            )
        root, inside = found
        scopes.append((root.name, writer.files.redact_path(inside)))
    return scopes
