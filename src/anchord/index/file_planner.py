"""Plan what to do with one file: skip it, refresh its fingerprint, or change its rows.

    fingerprint, record -> decide -> bytes -> digest -> parse -> chunk -> diff -> FileUpdate

Planning reads files and the catalog. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from anchord.chunking.engine.layout import CountTokens
from anchord.core.change_detection import TRANSCRIPT_DIGEST, decide_for_file
from anchord.core.diff import diff_chunks, row_hash
from anchord.core.ids import hash_content
from anchord.core.ports import IndexerDependencies, PathFilter
from anchord.core.predecessors import find_predecessors
from anchord.core.types import (
    NO_FINGERPRINT,
    Absent,
    Action,
    ChangedDuringRead,
    ChunkRecord,
    Decision,
    FileContent,
    FileOutcome,
    FileRecord,
    FileUpdate,
    Fingerprint,
    IngestResult,
    PathMatch,
    Problem,
    ReadFile,
    RootedPath,
    SkipFile,
)
from anchord.core.worktrees import is_left_out
from anchord.index.file_plans import (
    FilePlan,
    FingerprintRefresh,
    IngestNeeded,
    plan_row_removal,
)
from anchord.index.moved_files import MovedFiles
from anchord.index.recipe import Recipe
from anchord.index.reconcile import NO_SIZE_LIMIT
from anchord.index.row_id_lookahead import RowIdLookahead
from anchord.index.rows import PreparedRow, prepare_rows
from anchord.index.worktree_plans import WorktreePlans
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.sources.files.folder_files import MAX_FILE_BYTES


class FilePlanner:
    """Plans single files. Reads only; between files it keeps only what it looked up for them."""

    def __init__(
        self, dependencies: IndexerDependencies, count_tokens: CountTokens, recipe: Recipe
    ) -> None:
        """Plan over these files and this catalog.

        Args:
            dependencies: Files, catalog, store, clock and conversations.
            count_tokens: Counts a text's tokens as the model does.
            recipe: How files are chunked.
        """
        self._files = dependencies.files
        self._catalog = dependencies.catalog
        self._row_ids = RowIdLookahead(dependencies.store)
        self._moved = MovedFiles(dependencies.catalog, dependencies.store, recipe)
        self._clock = dependencies.clock
        self._conversations = dependencies.conversations
        self.worktrees = WorktreePlans(self._files, self._catalog, dependencies.worktrees, recipe)
        self._count_tokens = count_tokens
        self._recipe = recipe

    def expect(self, paths: Sequence[RootedPath], gone: Collection[RootedPath] = ()) -> None:
        """Name the files that are planned next, in order; what is looked up for one is for all.

        Args:
            paths: The files.
            gone: Files whose rows may be removed. Those of them that are planned next can be the
                old paths of others.
        """
        self._row_ids.expect(paths)
        self.worktrees.begin_run()
        self._moved.expect([path for path in paths if path in gone])

    def plan(
        self,
        path: RootedPath,
        path_filter: PathFilter,
        confirmed_gone: Collection[RootedPath] | None,
    ) -> FilePlan | IngestNeeded:
        """Plan for one file; reads the file if its fingerprint changed.

        Args:
            path: The file.
            path_filter: The ignore rules.
            confirmed_gone: The only files whose rows may be removed because they are missing or
                empty. None: those of every file may.

        Returns:
            What to do. Action.RETRY: the file is changing; plan it again later.
        """
        record = self._catalog.get_record(path)
        observed = self._files.fingerprint(path)
        may_remove_rows = confirmed_gone is None or path in confirmed_gone
        if record and isinstance(observed, Absent) and not may_remove_rows:
            # Invariant: the file was there at the last walk, so the mass-deletion guard has not
            # counted its deletion. The next walk does.
            return FileOutcome(
                origin=path, action=Action.RETRY, reason="deleted after its folder was listed"
            )
        is_transcript = self._conversations.is_transcript_file(path)
        match = path_filter(path)
        size_limit = _size_limit(path, is_transcript=is_transcript)
        decision = self._decide(path, match, observed, record, size_limit)
        if isinstance(decision, SkipFile):
            action = Action.SKIPPED if record is None else Action.UNCHANGED
            return FileOutcome(origin=path, action=action, reason=decision.reason)
        if is_transcript:
            return IngestNeeded(
                observed=observed,
                record=record,
                reason=decision.reason,
                read_ns=self._clock(),
                may_remove_rows=may_remove_rows,
                is_excluded=not match.is_included,
            )
        if isinstance(decision, ReadFile):
            return self._plan_read(path, record, decision.reason, may_remove_rows=may_remove_rows)
        fingerprint = observed if isinstance(observed, Fingerprint) else NO_FINGERPRINT
        plan = self._plan_removal(path, record, decision.reason, decision.problem, fingerprint)
        return _without_vectors(plan) if _is_excluded_for_certain(match) else plan

    def _decide(
        self,
        path: RootedPath,
        match: PathMatch,
        observed: Fingerprint | Absent | Problem,
        record: FileRecord | None,
        size_limit: int,
    ) -> Decision:
        decision = decide_for_file(
            match, observed, record, self._recipe.digest(path.root), size_limit
        )
        if record and isinstance(decision, SkipFile):
            return self.worktrees.decide(path, record, decision)
        return decision

    def plan_ingested(
        self, path: RootedPath, needed: IngestNeeded, ingested: IngestResult
    ) -> FilePlan:
        """Plan for a transcript file whose exchanges have been ingested and planned.

        A transcript file has no rows of its own: the catalog only records that it was read. A file
        without a conversation is planned as an ordinary document.
        """
        if ingested.is_ordinary_document:
            return self._plan_read(
                path, needed.record, needed.reason, may_remove_rows=needed.may_remove_rows
            )
        if needed.is_excluded or not isinstance(needed.observed, Fingerprint):
            return self._plan_removal(
                path, needed.record, needed.reason, ingested.problem, NO_FINGERPRINT
            )
        new_record = FileRecord(
            fingerprint=needed.observed,
            read_ns=needed.read_ns,
            content_digest=TRANSCRIPT_DIGEST,
            recipe_digest=self._recipe.digest(path.root),
            is_confirmed=True,
            chunks=(),
            problem=ingested.problem,
        )
        row_ids = [chunk.chunk_id for chunk in self._stored_chunks(path, needed.record)]
        return plan_row_removal(path, row_ids, needed.reason, new_record)

    def texts_of_rows(self, path: RootedPath) -> Mapping[str, tuple[str, str]] | Absent | None:
        """Read and chunk a file as it was indexed.

        Returns:
            Row id -> (vector key, text to embed). Absent: the file cannot be read now. None: it
            has changed, or another recipe applies, so that it must be indexed again.
        """
        record = self._catalog.get_record(path)
        is_current = record and record.recipe_digest == self._recipe.digest(path.root)
        if record is None or not record.is_confirmed or not is_current:
            return None
        content = self._files.read(path)
        if isinstance(content, (Absent, Problem)):
            return Absent()
        if isinstance(content, ChangedDuringRead):
            return None
        if hash_content(content.data) != record.content_digest:
            return None
        prepared, _ = prepare_rows(path, content.data, self._recipe, self._count_tokens)
        return {each.row.id: (each.row.vector_key, each.embed_text) for each in prepared}

    def _plan_read(
        self, path: RootedPath, record: FileRecord | None, reason: str, *, may_remove_rows: bool
    ) -> FilePlan:
        read_ns = self._clock()
        content = self._files.read(path)
        match content:
            case ChangedDuringRead():
                return FileOutcome(
                    origin=path, action=Action.RETRY, reason="written while it was read"
                )
            case Absent():
                return FileOutcome(
                    origin=path, action=Action.RETRY, reason="deleted while it was opened"
                )
            case Problem():
                return self._plan_removal(path, record, content.reason, content, NO_FINGERPRINT)
            case FileContent():
                pass
        if record and record.chunks and not content.data and not may_remove_rows:
            # Invariant: the file had text at the last walk. Many editors empty a file just before
            # they write it; the next walk sees which of both it was.
            return FileOutcome(
                origin=path, action=Action.RETRY, reason="emptied after its folder was listed"
            )
        digest, reason = self.worktrees.mark(path, hash_content(content.data), reason)
        new_record = FileRecord(
            fingerprint=content.fingerprint,
            read_ns=read_ns,
            content_digest=digest,
            recipe_digest=self._recipe.digest(path.root),
            is_confirmed=True,
        )
        if record and _has_same_rows(record, new_record):
            chunk_count = len(record.chunks)
            unchanged = FileOutcome(
                origin=path,
                action=Action.UNCHANGED,
                reason=f"{reason}, but its content did not change",
                chunks=chunk_count,
                kept=chunk_count,
            )
            return FingerprintRefresh(unchanged, content.fingerprint, read_ns)
        return self._plan_rows(path, record, new_record, content.data, reason)

    def _plan_rows(
        self,
        path: RootedPath,
        record: FileRecord | None,
        new_record: FileRecord,
        data: bytes,
        reason: str,
    ) -> FileUpdate:
        if is_left_out(new_record.content_digest):
            row_ids = [chunk.chunk_id for chunk in self._stored_chunks(path, record)]
            return plan_row_removal(path, row_ids, reason, new_record)
        if moved := self._moved.prepare_rows(path, data, new_record):
            update = self._plan_prepared(path, record, new_record, moved.prepared, reason)
            return replace(update, texts_to_embed=(), row_with_vector=moved.row_with_vector)
        prepared, problem = prepare_rows(path, data, self._recipe, self._count_tokens)
        with_problem = new_record._replace(problem=problem)
        return self._plan_prepared(path, record, with_problem, prepared, reason)

    def _plan_prepared(
        self,
        path: RootedPath,
        record: FileRecord | None,
        new_record: FileRecord,
        prepared: Sequence[PreparedRow],
        reason: str,
    ) -> FileUpdate:
        """Plan to replace a file's rows by others.

        Args:
            path: The file.
            record: What the catalog has of it.
            new_record: What it is to have, but for the chunks.
            prepared: The rows.
            reason: Why, for people.
        """
        chunks = tuple(_chunk_record(each) for each in prepared)
        known_chunks = self._stored_chunks(path, record)
        diff = diff_chunks(known_chunks, [each.row for each in prepared], chunks)
        # Another recipe may mean another model, or secrets that are to be replaced now.
        has_same_recipe = record and record.recipe_digest == new_record.recipe_digest
        may_inherit = record and record.is_confirmed and has_same_recipe
        text_by_key = {each.row.vector_key: each.embed_text for each in prepared}
        new_keys = dict.fromkeys(row.vector_key for row in (*diff.added, *diff.changed))
        return FileUpdate(
            origin=path,
            new_record=new_record._replace(chunks=chunks),
            diff=diff,
            texts_to_embed=tuple((key, text_by_key[key]) for key in new_keys),
            reason=reason,
            predecessors=find_predecessors(known_chunks, chunks) if may_inherit else {},
        )

    def _plan_removal(
        self,
        path: RootedPath,
        record: FileRecord | None,
        reason: str,
        problem: Problem | None,
        fingerprint: Fingerprint,
    ) -> FileOutcome | FileUpdate:
        if record is None and problem is None:
            return FileOutcome(origin=path, action=Action.SKIPPED, reason=reason)
        new_record = None
        if problem:
            # Invariant: the file is there and cannot be used. Its record lists the problem, and its
            # empty digest lets the file be read again when it changes.
            new_record = FileRecord(
                fingerprint=fingerprint,
                read_ns=self._clock(),
                content_digest="",
                recipe_digest=self._recipe.digest(path.root),
                is_confirmed=True,
                chunks=(),
                problem=problem,
            )
        row_ids = [chunk.chunk_id for chunk in self._stored_chunks(path, record)]
        return plan_row_removal(path, row_ids, reason, new_record)

    def _stored_chunks(self, path: RootedPath, record: FileRecord | None) -> Sequence[ChunkRecord]:
        """Return the chunks of a file's rows in the table."""
        if record is None:
            return ()
        if record.is_confirmed:
            return record.chunks
        # Invariant: a crash interrupted the file's last commit. Only the table says which rows
        # exist, and their text may be old or new: empty hashes make every row count as changed.
        return [
            ChunkRecord(chunk_id=row_id, vector_key="", row_hash="", start_line=0, end_line=0)
            for row_id in self._row_ids.ids_of_file(path)
        ]


def _size_limit(path: RootedPath, *, is_transcript: bool) -> int:
    is_streamed = is_transcript or is_exchange_path(path.path)
    return NO_SIZE_LIMIT if is_streamed else MAX_FILE_BYTES


def _is_excluded_for_certain(match: PathMatch) -> bool:
    """Whether the rules exclude a file; False while its repository's rules are unknown."""
    return not (match.is_included or match.is_undecided)


def _without_vectors(plan: FileOutcome | FileUpdate) -> FileOutcome | FileUpdate:
    """Return a removal that also deletes the cached vectors of the file's chunks."""
    return replace(plan, forgets_vectors=True) if isinstance(plan, FileUpdate) else plan


def _has_same_rows(record: FileRecord, new_record: FileRecord) -> bool:
    """Whether the table already holds the new rows.

    The same bytes under the same recipe give the same rows.
    """
    return (
        record.is_confirmed
        and record.recipe_digest == new_record.recipe_digest
        and record.content_digest == new_record.content_digest
    )


def _chunk_record(prepared: PreparedRow) -> ChunkRecord:
    return ChunkRecord(
        chunk_id=prepared.row.id,
        vector_key=prepared.row.vector_key,
        row_hash=row_hash(prepared.row),
        start_line=prepared.start_line,
        end_line=prepared.end_line,
    )
