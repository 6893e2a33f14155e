"""Index files: plan each one, embed what is new, and commit many at once.

    fingerprint, record -> decide (stop?) -> bytes -> digest (stop?) -> parse -> chunk -> diff
    -> embed what is new -> catalog.save_intents -> store.upsert -> store.delete_rows
    -> catalog.confirm_updates -> outcome

The order of the last four makes a crash harmless. An intent without its confirmation is repaired by
reading the file again and comparing it with the rows in the store. New rows are written before old
ones are deleted, so that every search finds one of them. `file_planner` plans; `commit` writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from anchord.chunking.engine.layout import CountTokens
from anchord.core.deletion_guard import DeletionPolicy
from anchord.core.ports import EnterDirCallback, IndexerDependencies, PathFilter, ignore_enter_dir
from anchord.core.types import (
    Absent,
    Action,
    FileOutcome,
    FileUpdate,
    Fingerprint,
    IngestResult,
    Problem,
    RootedPath,
)
from anchord.core.worktrees import is_left_out
from anchord.index.commit import ROWS_PER_WRITE, CommitResult, Committer
from anchord.index.file_planner import FilePlanner
from anchord.index.file_plans import FilePlan, FingerprintRefresh, IngestNeeded
from anchord.index.lost_exchanges import LostExchanges
from anchord.index.recipe import Recipe
from anchord.index.reconcile import ReconcileResult, reconcile
from anchord.index.row_comparison import compare_rows
from anchord.index.vector_fill import VectorFill
from anchord.sources.conversations.exchange_document import is_exchange_path

FILES_PER_COMMIT = 400
"""Two hundred files that moved, and their old paths."""

_GUARD_ALL_DELETIONS = DeletionPolicy()
_INGEST_TIMEOUT_S = 900.0
"""An export of one gigabyte is ingested in a single step of about 30 s."""


@dataclass(slots=True)
class _Batch:
    """Plans that wait for the next commit."""

    updates: list[FileUpdate] = field(default_factory=list)
    refreshes: list[FingerprintRefresh] = field(default_factory=list)
    paths: set[RootedPath] = field(default_factory=set)
    text_count: int = 0
    row_count: int = 0

    def add(self, plan: FileUpdate | FingerprintRefresh) -> None:
        if isinstance(plan, FingerprintRefresh):
            self.refreshes.append(plan)
            self.paths.add(plan.outcome.origin)
        else:
            self.updates.append(plan)
            self.paths.add(plan.origin)
            self.text_count += len(plan.texts_to_embed)
            self.row_count += len(plan.diff.added) + len(plan.diff.changed)

    def is_full(self, texts_per_commit: int) -> bool:
        file_count = len(self.updates) + len(self.refreshes)
        if self.row_count >= ROWS_PER_WRITE or self.text_count >= texts_per_commit:
            return True
        return file_count >= FILES_PER_COMMIT


@dataclass(slots=True)
class _Run:
    """One call of `Indexer.index`."""

    path_filter: PathFilter
    should_stop: Callable[[], bool]
    confirmed_gone: Collection[RootedPath] | None
    batch: _Batch = field(default_factory=_Batch)
    is_unit_open: bool = False
    """Whether plans follow that belong into the same commit as the last one."""
    planned_exchanges: dict[RootedPath, Fingerprint | Absent | Problem] = field(
        default_factory=dict
    )
    """Exchanges whose rows this run brings up to date, with the version of each."""

    def note_exchange(self, path: RootedPath, plan: FilePlan) -> None:
        """Note the version of an exchange that was planned as one of the files to index."""
        if not is_exchange_path(path.path) or isinstance(plan, FileOutcome):
            return
        if isinstance(plan, FingerprintRefresh):
            self.planned_exchanges[path] = plan.fingerprint
        else:
            record = plan.new_record
            self.planned_exchanges[path] = record.fingerprint if record else Absent()


class Indexer:
    """Brings files and folders up to date. Not thread-safe: only the writer's thread may use it."""

    def __init__(
        self,
        dependencies: IndexerDependencies,
        count_tokens: CountTokens,
        recipe: Recipe,
        *,
        words_first: bool = False,
    ) -> None:
        """Index these files into this store.

        Args:
            dependencies: Files, catalog, store, embedder, caches, clock and heartbeat.
            count_tokens: Counts a text's tokens as the model does.
            recipe: How files are chunked; files indexed under another recipe are due.
            words_first: Write chunks before vectors that take long; `vector_fill` adds those.
        """
        self._dependencies = dependencies
        self._files = dependencies.files
        self._catalog = dependencies.catalog
        self._store = dependencies.store
        self._conversations = dependencies.conversations
        self._recipe = recipe
        self.lost_exchanges = LostExchanges(dependencies)
        """What the archive has lost is restored from rows before these are deleted."""
        self._uncommitted_ingests: dict[RootedPath, IngestResult] = {}
        """Transcript file -> what its ingest changed in the archive, until the index has it."""
        self._planner = FilePlanner(dependencies, count_tokens, recipe)
        self._committer = Committer(dependencies, words_first)
        self.vector_fill = VectorFill(self._planner, self._committer)
        """Makes the vectors that `index` left for later."""

    @property
    def commit_count(self) -> int:
        """How many commits changed the table."""
        return self._committer.commit_count

    @commit_count.setter
    def commit_count(self, commits: int) -> None:
        self._committer.commit_count = commits

    def complete_before_writing(self) -> None:
        """Write no chunk without its vector from here on: nobody searches this index yet."""
        self._committer.words_first = False

    # Which paths to index

    def reconcile(
        self,
        root_name: str,
        prefix: str = "",
        on_enter_dir: EnterDirCallback = ignore_enter_dir,
        deletion_policy: DeletionPolicy = _GUARD_ALL_DELETIONS,
    ) -> ReconcileResult:
        """Compare a folder with the catalog by fingerprints; file contents are not read.

        Args:
            root_name: The root.
            prefix: A folder of the root; "" is the whole root. The mass-deletion guard applies only
                to "".
            on_enter_dir: Called with each folder before it is listed.
            deletion_policy: Which deletions the guard does not hold.

        Returns:
            The files to pass to `index`, and what the guard holds.
        """
        folder = RootedPath(root_name, prefix)
        return reconcile(self._dependencies, self._recipe, folder, on_enter_dir, deletion_policy)

    def delete_stray_rows(self) -> Sequence[RootedPath]:
        """Compare the ids and hashes of the whole table with the catalog, and delete stray rows.

        Deletes rows of no file and duplicates; their vectors stay in the vector cache. Needed after
        an unclean shutdown, or when the row counts of table and catalog differ.

        Returns:
            The files with a missing, duplicate or different row. They are marked in the catalog;
            pass them to `index` to write their rows again.
        """
        path_by_id: dict[str, RootedPath] = {}
        hash_by_id: dict[str, str] = {}
        for row_id, row_hash, path in self._catalog.iter_expected_rows():
            path_by_id[row_id] = path
            hash_by_id[row_id] = row_hash
        stray, duplicate, wrong = compare_rows(hash_by_id, self._store.all_row_hashes())
        given_back = self.lost_exchanges.restore_rows(stray)
        # Deleting by id removes every copy of a duplicate, so its file is written again.
        self.delete_rows([*stray, *duplicate])
        found = [*given_back, *(path_by_id[row_id] for row_id in wrong)]
        paths = list(dict.fromkeys(found))
        self._catalog.mark_for_reread(paths)
        return paths

    def delete_damaged_rows(
        self,
        extra_ids: Sequence[str],
        origins_to_reread: Sequence[RootedPath],
        corrupt_ids: Sequence[str],
    ) -> Sequence[RootedPath]:
        """Delete rows that a verification found wrong, and mark their files for indexing.

        Args:
            extra_ids: Rows of no file, or duplicates. Their vectors stay in the vector cache.
            origins_to_reread: The files to index again.
            corrupt_ids: Rows with a wrong vector or checksum. Their vectors leave the vector cache
                too.

        Returns:
            The files to be passed to `index`: `origins_to_reread`, and those that the archive of
            conversations got back from rows.
        """
        restored = self.lost_exchanges.restore_rows(extra_ids)
        origins_to_reread = [*origins_to_reread, *restored]
        self.delete_rows(extra_ids)
        corrupt_keys = list(self._store.vectors_by_key_of_rows(corrupt_ids))
        self._dependencies.vector_cache.delete(corrupt_keys)
        # Not by `delete_rows`, which would put the corrupt vectors into the cache again.
        self._store.delete_rows(corrupt_ids)
        self._catalog.mark_for_reread(origins_to_reread)
        return origins_to_reread

    def delete_rows(self, row_ids: Sequence[str]) -> None:
        """Delete rows by id; their vectors go to the vector cache."""
        self._committer.delete_rows(row_ids)

    # Index them

    def index(
        self,
        origins: Iterable[RootedPath],
        should_stop: Callable[[], bool] = lambda: False,
        confirmed_gone: Collection[RootedPath] | None = None,
    ) -> Iterator[FileOutcome]:
        """Bring files up to date, up to 400 of them a commit.

        Nothing is done before the iterator is consumed.

        Args:
            origins: The files; repeats are ignored.
            should_stop: Called before each file and between two batches of the model. Once it
                returned True, the remaining files are not indexed: pass them again later. Texts
                that were embedded for them are in the vector cache, and are not embedded again.
            confirmed_gone: The only files whose rows may be deleted because they are missing or
                empty; the others get Action.RETRY. None: those of every file may.

        Yields:
            An outcome for each file, once it is durable.

        Raises:
            EmbedderError: The model is not available. The files of the current commit are not
                indexed.
            StoreError: The store cannot be written. As above; call again later.
        """
        should_stop = _latched(should_stop)
        run = _Run(self._files.path_filter(), should_stop, confirmed_gone)
        for plan in self._plans(list(dict.fromkeys(origins)), run):
            if isinstance(plan, FileOutcome):
                yield plan
            elif plan:
                run.batch.add(plan)
            is_full = run.batch.is_full(self._committer.texts_per_commit)
            if plan is None or (is_full and not run.is_unit_open):
                yield from self._commit(run.batch, should_stop)
                run.batch = _Batch()
        yield from self._commit(run.batch, should_stop)

    def _plans(self, paths: Sequence[RootedPath], run: _Run) -> Iterator[FilePlan | None]:
        """Yield a plan for each file. None: commit what was planned before going on."""
        queue = deque(paths)
        self._planner.expect(paths, run.confirmed_gone or ())
        while queue:
            if run.should_stop():
                return
            path = queue.popleft()
            queue.extend((yield from self._read_again(self.lost_exchanges.restore(path), run)))
            if main := self._planner.worktrees.main_file_due(path, run.path_filter):
                yield from self._plan_with_copies(main, run)
            plan = yield from self._plan_with_copies(path, run)
            if plan is None:
                continue
            self._dependencies.heartbeat(_INGEST_TIMEOUT_S)
            ingested = self._ingest(path, is_excluded=plan.is_excluded)
            # Invariant: a transcript file is recorded as read only after its exchanges. If this
            # stops in between, the file is still due and its other exchanges are found again.
            is_complete = yield from self._exchange_plans(ingested.changed_exchanges, run)
            if not is_complete:
                return
            queue.extend((yield from self._read_again(ingested.files_to_reread, run)))
            yield self._planner.plan_ingested(path, plan, ingested)

    def _read_again(
        self, files: Sequence[RootedPath], run: _Run
    ) -> Generator[None, None, Sequence[RootedPath]]:
        """Mark files in the catalog and return them, to be planned although they did not change."""
        if not run.batch.paths.isdisjoint(files):
            # Invariant: a commit confirms what it wrote, which would take the mark away.
            yield None
        self._catalog.mark_for_reread(files)
        return files

    def _plan(
        self, path: RootedPath, run: _Run, confirmed_gone: Collection[RootedPath] | None
    ) -> Generator[None, None, FilePlan | IngestNeeded]:
        """Return the plan for a file, after what was planned for it before is committed."""
        if path in run.batch.paths:
            # Invariant: the diff of a file is made against the rows and the record that it has.
            # What waits for its commit has changed neither yet.
            yield None
        return self._planner.plan(path, run.path_filter, confirmed_gone)

    def _plan_with_copies(
        self, path: RootedPath, run: _Run, *, is_last: bool = True
    ) -> Generator[FilePlan | None, None, IngestNeeded | None]:
        """Yield a file's plan, and those of the worktrees' files that follow from it.

        Invariant: they are committed together. A file that becomes equal loses its rows only when
        the main one has them, and one that differs now has its own before those are gone.

        Returns:
            What a transcript file needs; None for any other file.
        """
        plan = yield from self._plan(path, run, run.confirmed_gone)
        if isinstance(plan, IngestNeeded):
            return plan
        run.note_exchange(path, plan)
        copies = self._planner.worktrees.copies_due(path, plan)
        run.is_unit_open = bool(copies) or not is_last
        yield plan
        for copy in copies:
            yield from self._plan_with_copies(copy, run, is_last=copy == copies[-1])
        return None

    def _ingest(self, path: RootedPath, *, is_excluded: bool) -> IngestResult:
        """Bring the archive up to date with a transcript file; return what the index lacks of that.

        Invariant: the archive tells of a removed exchange only once. So what it told is kept here
        until the file is committed: an index run that is stopped in between finds it again.
        """
        take_in = self._conversations.exclude if is_excluded else self._conversations.ingest
        ingested = take_in(path)
        self.lost_exchanges.note_found(ingested.changed_exchanges)
        earlier = self._uncommitted_ingests.get(path)
        if earlier:
            ingested = ingested.with_earlier(earlier)
        if ingested.changed_exchanges or ingested.files_to_reread:
            self._uncommitted_ingests[path] = ingested
        return ingested

    def _exchange_plans(
        self, exchanges: Sequence[RootedPath], run: _Run
    ) -> Generator[FilePlan | None, None, bool]:
        """Yield a plan for each exchange; return False if a stop ended it early.

        Several transcript files can hold one exchange.
        """
        for path in exchanges:
            if run.should_stop():
                return False
            observed = self._files.fingerprint(path)
            if run.planned_exchanges.get(path) == observed:
                # Invariant: this run has planned the same version already.
                continue
            run.planned_exchanges[path] = observed
            plan = yield from self._plan(path, run, None)
            if isinstance(plan, FileOutcome):
                self._conversations.mark_indexed([path])
            if not isinstance(plan, IngestNeeded):  # Never: an exchange is no transcript file.
                yield plan
        return True

    def _commit(self, batch: _Batch, should_stop: Callable[[], bool]) -> Iterator[FileOutcome]:
        """Commit a batch; yield an outcome for each of its files.

        If `should_stop` interrupts it, the updates are not written: they yield no outcome and are
        still due.
        """
        if batch.refreshes:
            self._catalog.update_fingerprints(
                [(each.outcome.origin, each.fingerprint, each.read_ns) for each in batch.refreshes]
            )
            self._acknowledge([each.outcome.origin for each in batch.refreshes])
            yield from (each.outcome for each in batch.refreshes)
        committed = self._committer.commit(batch.updates, should_stop) if batch.updates else None
        if committed:
            self._acknowledge([update.origin for update in committed.updates])
            yield from (_outcome_of(update, committed) for update in committed.updates)

    def _acknowledge(self, indexed_paths: Sequence[RootedPath]) -> None:
        """Record in the archive which exchanges the index holds now, and forget what it lacked."""
        for path in indexed_paths:
            self._uncommitted_ingests.pop(path, None)
        exchanges = [path for path in indexed_paths if is_exchange_path(path.path)]
        if exchanges:
            self._conversations.mark_indexed(exchanges)


def _latched(should_stop: Callable[[], bool]) -> Callable[[], bool]:
    """Return a predicate that stays True: no file may be indexed after one that was left out."""
    has_stopped = False

    def check() -> bool:
        nonlocal has_stopped
        has_stopped = has_stopped or should_stop()
        return has_stopped

    return check


def _outcome_of(update: FileUpdate, committed: CommitResult) -> FileOutcome:
    """Summarise a committed update, and remove its keys from `committed.embedded_keys`.

    So a text that several files of a commit share counts as embedded for the first of them only.
    """
    diff = update.diff
    record = update.new_record
    own_keys = {key for key, _ in update.texts_to_embed if key in committed.embedded_keys}
    committed.embedded_keys.difference_update(own_keys)
    written = (*diff.added, *diff.changed)
    due = sum(row.vector_key in committed.due_keys for row in written)
    upserted = len(written)
    reason = update.reason
    if record and record.problem:
        reason = f"{reason}; {record.problem.reason}"
    return FileOutcome(
        origin=update.origin,
        action=_action_of(update),
        reason=reason,
        chunks=len(record.chunks) if record else 0,
        kept=diff.kept,
        shifted=diff.shifted,
        upserted=upserted,
        deleted=len(diff.removed),
        embedded=len(own_keys),
        reused=upserted - len(own_keys) - due,
        due=due,
    )


def _action_of(update: FileUpdate) -> Action:
    record = update.new_record
    if record is None:
        return Action.REMOVED
    if is_left_out(record.content_digest):
        return Action.REMOVED if update.diff.removed else Action.SKIPPED
    if record.problem and not record.problem.is_partial:
        return Action.FAILED
    if update.diff.changes_table:
        return Action.INDEXED
    if update.diff.shifted:
        return Action.SHIFTED
    return Action.UNCHANGED
