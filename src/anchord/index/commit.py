"""Commit updates to the store: embed what is new, save intents, write rows, delete rows, confirm.

The order of the last four makes a crash harmless; see `indexer`. Embedding can be interrupted
between any two batches of the model. The vectors made by then go to the vector cache, so that no
text is embedded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from anchord.core.ids import is_due, without_due_mark
from anchord.core.ports import IndexerDependencies
from anchord.core.types import FileRecord, FileUpdate, Problem, RootedPath, Row, Vector
from anchord.errors import EmbedderError, StoreError
from anchord.index.heartbeat import MODEL_STEP_TIMEOUT_S
from anchord.index.models import Models
from anchord.index.provisional_vectors import provisional_vectors

MAX_EMBED_S_PER_COMMIT = 3.0
"""Upper bound on embedding work between two commits."""
NS_PER_CACHING = 300_000_000
"""Vectors that wait for a commit or a write for longer are put into the vector cache."""
TEXTS_PER_COMMIT_RANGE = (64, 2_048)
"""The fewest and the most texts to embed for one commit, whatever the model's throughput."""
DIRECT_TEXTS = 16
DIRECT_S = 0.5
"""With words first, a commit embeds its texts itself if there are so few, or it takes so long."""
WORDS_PER_COMMIT = 512
"""With words first, the fewest new texts for one commit: writing them takes about 0.1 s."""
ROWS_PER_WRITE = 4_096
_UNEMBEDDABLE_META_KEY = "refused"
"""The catalog entry of the vector keys that the model cannot make, one a line."""
_BYTES_PER_NUMBER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableChanges:
    """What a commit does to the table."""

    updates: list[FileUpdate]
    """Those that change rows; others only move lines or records."""
    new_rows: list[Row]
    text_by_key: dict[str, str]
    """The texts of the new rows, by vector key, but for `row_with_vector`."""
    row_with_vector: dict[str, str]
    """Vector key of a new row -> the row that has the vector, at the old path of a file."""
    changed_ids: list[str]
    """Ids of rows that are overwritten."""
    removed_ids: list[str]


class CommitResult(NamedTuple):
    """What a commit did."""

    updates: Sequence[FileUpdate]
    """The updates, with the lines that the model cannot embed noted as their problem."""
    embedded_keys: set[str]
    """The keys of the vectors that were made for them."""
    due_keys: frozenset[str]
    """The keys whose rows were written without their own vector."""


@dataclass
class Committer:
    """Writes to the store. Besides it only `VectorFill` does, which adds missing vectors."""

    dependencies: IndexerDependencies
    words_first: bool = False
    """Whether rows are written without the vectors that take long to make."""
    restless_files: set[RootedPath] = field(default_factory=set)
    """Files that changed before their vectors were made: their next commit makes them itself.

    Else a file that changes all the time would never get vectors.
    """
    model_fails: bool = False
    """Whether the model failed when it was last asked: until `VectorFill` reaches it, no commit
    waits for it."""
    commit_count: int = 0
    """How many commits changed the table."""
    _keys_embedded_ahead: set[str] = field(default_factory=set)
    """Keys of vectors that were made for a commit that was then interrupted."""
    _cached_keys: set[str] = field(default_factory=set)
    """Keys of vectors that wait in the vector cache for a commit."""
    _unembeddable_keys: set[str] | None = None
    _excluded_keys: frozenset[str] = frozenset()
    """Vectors of the rows that this commit deletes because the rules exclude their file."""

    def __post_init__(self) -> None:
        """Take the models of the dependencies."""
        dependencies = self.dependencies
        self.models = Models(dependencies.embedder, dependencies.further_embedders)

    @property
    def texts_per_commit(self) -> int:
        """How many new texts to collect for a commit: about three seconds of embedding.

        With words first at least 512, because most of them are embedded later.
        """
        fewest, most = TEXTS_PER_COMMIT_RANGE
        affordable = round(self.models.texts_per_second * MAX_EMBED_S_PER_COMMIT)
        if self._writes_words_first:
            fewest = WORDS_PER_COMMIT
        return min(max(fewest, affordable), most)

    @property
    def _writes_words_first(self) -> bool:
        is_slow = not self.models.is_immediate
        return self.words_first and is_slow and self.dependencies.store.can_lack_vectors

    def _embeds_now(self, text_count: int) -> bool:
        """Whether a commit waits for the vectors of so many texts."""
        seconds_of_texts = self.models.texts_per_second * DIRECT_S
        is_quick = text_count <= DIRECT_TEXTS or text_count <= seconds_of_texts
        return (is_quick and self._answers_soon) or not self._writes_words_first

    @property
    def _answers_soon(self) -> bool:
        """Whether the model can be asked: it works, and need not be prepared first."""
        return not self.model_fails and self.models.is_prepared

    def commit(
        self, updates: Sequence[FileUpdate], should_stop: Callable[[], bool]
    ) -> CommitResult | None:
        """Embed what is new, and write a batch of updates.

        With words first, texts that take long to embed are written without their own vectors, and
        so is every text while the model fails. Their rows have the vectors of those that they
        replace until `VectorFill` adds their own.

        Vectors of deleted and overwritten rows go to the vector cache, unless the file is excluded.

        Args:
            updates: The updates; they become durable together.
            should_stop: Called between two batches of the model.

        Returns:
            None: `should_stop` returned True while texts were embedded, and nothing was written.

        Raises:
            EmbedderError: The model is not available, and rows may not lack vectors. Nothing was
                written.
            StoreError: The store cannot be written. No update may count as done.
        """
        dependencies = self.dependencies
        changes = _table_changes(updates)
        first_removed = changes.removed_ids[:ROWS_PER_WRITE]
        self._excluded_keys = self._keys_of_excluded(updates)
        new_ids = [row.id for row in changes.new_rows]
        vectors, stored = self._reuse_vectors(
            leaving_ids=[*changes.changed_ids, *first_removed],
            vector_keys=list(changes.text_by_key),
            new_ids=new_ids,
            row_with_vector=changes.row_with_vector,
        )
        absent_ids = set(new_ids) - stored.keys()
        missing_texts = {
            key: text for key, text in changes.text_by_key.items() if key not in vectors
        }
        made = self._embed_if_soon(updates, missing_texts, should_stop)
        if made is None:
            return None
        missing_keys = missing_texts.keys() | changes.row_with_vector.keys()
        due_keys = frozenset(missing_keys).difference(made, vectors)
        vectors.update(made)
        due = provisional_vectors(changes.updates, due_keys, stored)
        if changes.updates:
            # Only now: if the embedder fails, no file is left between intent and confirmation.
            dependencies.catalog.save_intents(changes.updates)
        for start in range(0, len(changes.new_rows), ROWS_PER_WRITE):
            rows = changes.new_rows[start : start + ROWS_PER_WRITE]
            dependencies.store.upsert(rows, vectors, absent_ids, due)
        if self._excluded_keys:
            # Before the rows go: after a crash they say again which vectors must not stay.
            dependencies.vector_cache.delete(sorted(self._excluded_keys))
        dependencies.store.delete_rows(first_removed)
        self.delete_rows(changes.removed_ids[ROWS_PER_WRITE:])
        confirmed = [self._with_unembeddable_lines(update) for update in updates]
        dependencies.catalog.confirm_updates(confirmed)
        self._excluded_keys = frozenset()
        self.restless_files.difference_update(update.origin for update in updates)
        if changes.updates:
            self.commit_count += 1
        # Vectors that an interrupted commit made are found in the vector cache now, and count here.
        ahead = self._keys_embedded_ahead.intersection(changes.text_by_key) - due_keys
        embedded_keys = ahead.union(made)
        self._keys_embedded_ahead -= embedded_keys
        self.delete_cached(self._cached_keys & embedded_keys)
        self._cached_keys -= embedded_keys
        return CommitResult(confirmed, embedded_keys, due_keys)

    def _embed_if_soon(
        self,
        updates: Sequence[FileUpdate],
        text_by_key: Mapping[str, str],
        should_stop: Callable[[], bool],
    ) -> dict[str, Vector] | None:
        """Embed the texts that the commit waits for, as `_embed`; leave out the others.

        Raises:
            EmbedderError: The model is not available, and rows may not lack vectors.
        """
        keys = list(text_by_key)
        if keys and self._writes_words_first:
            # Meanwhile files are read. It has nothing to do if the model was used before.
            self.models.prepare_in_background()
        if not self._embeds_now(len(keys)):
            keys = self._keys_of_restless_files(updates, keys)
        try:
            return self._embed({key: text_by_key[key] for key in keys}, should_stop)
        except EmbedderError:
            self.model_fails = True
            if not self._writes_words_first:
                raise
            # Words wait for no model. `VectorFill` asks it again, and raises what it says.
            return dict(self.dependencies.vector_cache.get(keys))

    def _keys_of_restless_files(
        self, updates: Sequence[FileUpdate], missing_keys: Sequence[str]
    ) -> list[str]:
        if not self._answers_soon:
            return []
        restless = [update for update in updates if update.origin in self.restless_files]
        keys = {key for update in restless for key, _ in update.texts_to_embed}
        return [key for key in missing_keys if key in keys]

    def _keys_of_excluded(self, updates: Sequence[FileUpdate]) -> frozenset[str]:
        """Return the vector keys of the rows of files that the rules exclude now."""
        ids = [
            row_id for update in updates if update.forgets_vectors for row_id in update.diff.removed
        ]
        if not ids:
            return frozenset()
        found = self.dependencies.store.look_up_vectors(ids, ()).keyed_vectors_by_id
        # The vectors that rows lack may be in the vector cache.
        return frozenset(without_due_mark(key) for key, _ in found.values())

    def delete_rows(self, row_ids: Sequence[str]) -> None:
        """Delete rows by id; their vectors go to the vector cache."""
        dependencies = self.dependencies
        for start in range(0, len(row_ids), ROWS_PER_WRITE):
            part = row_ids[start : start + ROWS_PER_WRITE]
            dependencies.heartbeat(0)
            self._cache_vectors(dependencies.store.vectors_by_key_of_rows(part))
            dependencies.store.delete_rows(part)

    def _reuse_vectors(
        self,
        leaving_ids: Sequence[str],
        vector_keys: Sequence[str],
        new_ids: Sequence[str],
        row_with_vector: Mapping[str, str],
    ) -> tuple[dict[str, Vector], Mapping[str, tuple[str, Vector]]]:
        """Return the vectors that exist already, and what the table has of the leaving and new ids.

        Existing vectors are those of any row of any file, and those in the vector cache. The
        vectors of the leaving rows go to the cache. A row that gets another text under the same id
        counts as leaving: a heading was added before it, or removed. The table keeps these rows
        until the new ones are written, because nothing else writes rows. A vector that a new row
        has as well, as when a file moves, stays in the table and is not cached.
        """
        if not leaving_ids and not vector_keys and not new_ids:
            return {}, {}
        looked_up_ids = list(dict.fromkeys([*leaving_ids, *new_ids, *row_with_vector.values()]))
        stored, by_key = self.dependencies.store.look_up_vectors(looked_up_ids, vector_keys)
        moving = dict(stored[row_id] for row_id in row_with_vector.values() if row_id in stored)
        found = {**by_key, **{key: moving[key] for key in row_with_vector if key in moving}}
        leaving = dict(stored[row_id] for row_id in leaving_ids if row_id in stored)
        leaving = {
            key: vector for key, vector in leaving.items() if not is_due(key) and key not in found
        }
        if leaving:
            self._cache_vectors(leaving)
        vectors = found
        missing = [key for key in (*vector_keys, *row_with_vector) if key not in vectors]
        if missing:
            vectors.update(self.dependencies.vector_cache.get(missing))
            vectors.update(self.unembeddable_vectors(missing))
        return vectors, stored

    def _embed(
        self, text_by_key: Mapping[str, str], should_stop: Callable[[], bool]
    ) -> dict[str, Vector] | None:
        """Embed texts; return None if `should_stop` ended it early.

        If it ends early, or the embedder fails, the vectors made by then go to the vector cache.
        """
        keys = list(text_by_key)
        made: dict[str, Vector] = {}
        uncached: dict[str, Vector] = {}
        cached_ns = self.dependencies.clock()
        is_complete = False
        self.dependencies.heartbeat(MODEL_STEP_TIMEOUT_S if keys else 0)
        try:
            for batch in self.models.embed_batches(text_by_key):
                uncached.update(batch)
                made.update(uncached)
                has_more = len(made) < len(keys)
                self.dependencies.heartbeat(MODEL_STEP_TIMEOUT_S if has_more else 0)
                # Invariant: a crash loses at most the vectors of `uncached`.
                if has_more and self.dependencies.clock() - cached_ns >= NS_PER_CACHING:
                    self._cache_until_commit(uncached)
                    uncached.clear()
                    cached_ns = self.dependencies.clock()
                if has_more and should_stop():
                    return None
            is_complete = True
        finally:
            self.record_unembeddable(made)
            if not is_complete:
                if uncached:
                    self._cache_until_commit(uncached)
                self._keys_embedded_ahead.update(made)
        return made

    def _cache_until_commit(self, vectors: Mapping[str, Vector]) -> None:
        self._cache_vectors(vectors)
        self._cached_keys.update(vectors)

    def delete_cached(self, vector_keys: Collection[str]) -> None:
        """Delete vectors from the cache that the table has; at worst they stay for seven days."""
        if vector_keys:
            with suppress(StoreError):
                self.dependencies.vector_cache.delete(sorted(vector_keys))

    def _cache_vectors(self, vectors: Mapping[str, Vector]) -> None:
        kept = {key: each for key, each in vectors.items() if key not in self._excluded_keys}
        self.dependencies.vector_cache.put(kept, self.dependencies.clock())

    # Texts that the model cannot embed

    @property
    def unembeddable_keys(self) -> set[str]:
        """The keys of texts that crash the model.

        Their vector is all zeros, so that only word search finds the row.
        """
        if self._unembeddable_keys is None:
            stored = self.dependencies.catalog.get_meta(_UNEMBEDDABLE_META_KEY)
            self._unembeddable_keys = set(stored.split())
        return self._unembeddable_keys

    def unembeddable_vectors(self, vector_keys: Collection[str]) -> dict[str, Vector]:
        """Return vectors of zeros for those of the keys whose texts crash the model."""
        return {
            key: bytes(_BYTES_PER_NUMBER * self.models.dimension_of(key))
            for key in self.unembeddable_keys.intersection(vector_keys)
        }

    def record_unembeddable(self, made: Mapping[str, Vector]) -> None:
        """Record in the catalog which texts got a vector of zeros."""
        zero_keys = {key for key, vector in made.items() if not any(vector)}
        if zero_keys - self.unembeddable_keys:
            self.unembeddable_keys.update(zero_keys)
            stored = "\n".join(sorted(self.unembeddable_keys))
            self.dependencies.catalog.set_meta(_UNEMBEDDABLE_META_KEY, stored)

    def _with_unembeddable_lines(self, update: FileUpdate) -> FileUpdate:
        record = update.new_record
        if record is None or not self.unembeddable_keys:
            return update
        return replace(update, new_record=with_unembeddable_lines(record, self.unembeddable_keys))


def with_unembeddable_lines(record: FileRecord, unembeddable_keys: set[str]) -> FileRecord:
    """Return a file's record with the lines that the model cannot embed added to its problem.

    Returns:
        `record` itself where no chunk has one of the keys.
    """
    lines = [
        f"{chunk.start_line}-{chunk.end_line}"
        for chunk in record.chunks
        if chunk.vector_key in unembeddable_keys
    ]
    if not lines:
        return record
    reason = (
        f"lines {', '.join(lines)} crash the embedding process: only word search finds them; "
        "`anchord rebuild` tries again"
    )
    if record.problem and reason in record.problem.reason:
        return record
    if record.problem:
        reason = f"{record.problem.reason}; {reason}"
    return record._replace(problem=Problem(reason, is_partial=True))


def _table_changes(updates: Sequence[FileUpdate]) -> _TableChanges:
    changing = [update for update in updates if update.diff.changes_table]
    diffs = [update.diff for update in changing]
    return _TableChanges(
        updates=changing,
        new_rows=[row for diff in diffs for row in (*diff.added, *diff.changed)],
        text_by_key=_united(dict(update.texts_to_embed) for update in changing),
        row_with_vector=_united(update.row_with_vector for update in changing),
        changed_ids=[row.id for diff in diffs for row in diff.changed],
        removed_ids=[row_id for diff in diffs for row_id in diff.removed],
    )


def _united(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    united: dict[str, str] = {}
    for part in parts:
        united.update(part)
    return united
