"""Make the vectors of rows that were written without their own.

A row's text to embed is not stored: its file is read and chunked again. Vectors are written every
256 texts or two seconds. Until then those of a slow model are in the vector cache, so that a crash
loses only what the model works on. The table itself says which rows lack their own vector, so a
crash cannot lose count of them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from anchord.core.ids import model_tag_of
from anchord.core.types import (
    Absent,
    Action,
    ChunkDiff,
    FileOutcome,
    FileUpdate,
    RootedPath,
    Vector,
)
from anchord.errors import EmbedderError
from anchord.index.commit import NS_PER_CACHING, Committer, with_unembeddable_lines
from anchord.index.file_planner import FilePlanner
from anchord.index.heartbeat import MODEL_STEP_TIMEOUT_S

FILES_PER_FILL = 64
"""Files to hand to `VectorFill.fill` at once."""
TEXTS_PER_WRITE = 256
S_PER_WRITE = 2.0
"""Made vectors are written after so many texts or seconds."""
_TEXTS_PER_CALL = 1_024
"""Texts that the model gets at once: it batches those of similar length together."""
_MAX_TEXTS_IN_MEMORY = 4_096
"""No further file is read while so many texts wait."""
_NO_CHANGE = ChunkDiff(
    added=(),
    changed=(),
    removed=(),
    shifted=0,
    kept=0,
)


@dataclass(slots=True)
class _FileToFill:
    """A file with rows that lack vectors."""

    origin: RootedPath
    due: dict[str, tuple[str, str]]
    """Row id -> (vector key, text to embed) of the rows that still lack a vector."""


@dataclass(slots=True)
class _Counts:
    """What a file got since its last outcome."""

    embedded: int = 0
    reused: int = 0


def made_vectors(outcome: FileOutcome) -> FileOutcome | None:
    """Return what `VectorFill.fill` made for a file, to be counted whatever became of the file.

    Returns:
        None if it made nothing.
    """
    if outcome.embedded or outcome.reused:
        return replace(outcome, action=Action.EMBEDDED)
    return None


class VectorFill:
    """Adds missing vectors to the table. Only the writer's thread may use it."""

    def __init__(self, planner: FilePlanner, committer: Committer) -> None:
        """Use the planner and the committer of an indexer."""
        self.failed_files: Sequence[RootedPath] = ()
        """The files that lack the vectors of a model that failed in the last `fill`."""
        self._planner = planner
        self._committer = committer
        self._dependencies = committer.dependencies
        self._begun: dict[RootedPath, _FileToFill] = {}
        """The files that an interrupted `fill` has read and not completed."""
        self._counts: defaultdict[RootedPath, _Counts] = defaultdict(_Counts)
        """What files got that have had no outcome since; also of files that are not begun now."""

    def count_due(self) -> int:
        """Count the rows that lack their vector."""
        return self._dependencies.store.count_due()

    def find_due(self) -> Sequence[RootedPath]:
        """Return the files with rows that lack their vector, in the order of the catalog.

        Raises:
            StoreError: The table or the catalog cannot be read.
        """
        due_ids = set(self._dependencies.store.due_ids())
        if not due_ids:
            return []
        rows = self._dependencies.catalog.iter_expected_rows()
        return list(dict.fromkeys(origin for row_id, _, origin in rows if row_id in due_ids))

    def fill(
        self, origins: Sequence[RootedPath], should_stop: Callable[[], bool]
    ) -> Iterator[FileOutcome]:
        """Make and write the missing vectors of files.

        Args:
            origins: The files, at most `FILES_PER_FILL`. Those for whose texts there is no room
                yield no outcome: pass them again later.
            should_stop: Called between two batches of the model. Once it returned True, what is
                made is written, and the other files yield no outcome.

        Yields:
            Action.EMBEDDED: no row of the file lacks a vector. Action.RETRY: the file has changed;
            it is marked in the catalog, index it again. Action.SKIPPED: the file cannot be read
            now. Each counts the vectors that the file got since its last outcome.

        Raises:
            EmbedderError: A model is not available. What was made is written, and `failed_files`
                lack the vectors of that model; those of other models are completed before.
            StoreError: The table cannot be read or written.
        """
        begun, self._begun = self._begun, {}
        files: list[_FileToFill] = []
        due_ids_by_file = self._dependencies.store.due_ids_of_files(origins)
        for origin in origins:
            if should_stop() or sum(len(file.due) for file in files) >= _MAX_TEXTS_IN_MEMORY:
                break
            self._dependencies.heartbeat(0)
            due_ids = due_ids_by_file[origin]
            prepared = self._prepare(origin, due_ids, begun.get(origin))
            if isinstance(prepared, FileOutcome):
                counts = self._counts.pop(origin, _Counts())
                yield replace(
                    prepared,
                    embedded=counts.embedded,
                    reused=counts.reused,
                )
            else:
                files.append(prepared)
        self._begun = {file.origin: file for file in files}
        self._fill_from_known(files)
        yield from self._finished()
        self.failed_files, failure = (), None
        failed_tags: set[str] = set()
        is_stopped = False
        while not is_stopped and (batch := self._next_texts(failed_tags)) and not should_stop():
            try:
                is_stopped = self._embed(batch, should_stop)
            except EmbedderError as error:
                failure = failure or error
                # The other models have made the vectors of all their texts.
                failed_tags.update(model_tag_of(key) for key in self._due_keys() & batch.keys())
            yield from self._finished()
        if failure:
            self._committer.model_fails = True
            self.failed_files = [
                file.origin
                for file in self._begun.values()
                if any(model_tag_of(key) in failed_tags for key, _ in file.due.values())
            ]
            raise failure

    def _prepare(
        self, origin: RootedPath, due_ids: Sequence[str], begun: _FileToFill | None
    ) -> _FileToFill | FileOutcome:
        """Find the texts of a file's rows without vectors; the file is read if that is needed."""
        if not due_ids:
            return _FileToFill(origin, {})
        if begun and begun.due.keys() >= set(due_ids):
            begun.due = {row_id: begun.due[row_id] for row_id in due_ids}
            return begun
        texts = self._planner.texts_of_rows(origin)
        if isinstance(texts, Absent):
            return FileOutcome(
                origin=origin,
                action=Action.SKIPPED,
                reason="its vectors wait until it can be read",
                due=len(due_ids),
            )
        if texts is None or not texts.keys() >= set(due_ids):
            self._dependencies.catalog.mark_for_reread([origin])
            self._committer.restless_files.add(origin)
            return FileOutcome(
                origin=origin, action=Action.RETRY, reason="it changed before its vectors were made"
            )
        return _FileToFill(origin, {row_id: texts[row_id] for row_id in due_ids})

    def _fill_from_known(self, files: Sequence[_FileToFill]) -> None:
        """Give rows the vectors that another row or the vector cache has."""
        due = chain.from_iterable(file.due.values() for file in files)
        keys = list(dict.fromkeys(key for key, _ in due))
        if not keys:
            return
        known = dict(self._dependencies.store.vectors_by_key(keys))
        cached = self._dependencies.vector_cache.get([key for key in keys if key not in known])
        known.update(cached)
        known.update(self._committer.unembeddable_vectors(keys))
        if known:
            self._write(known, embedded_keys=set())
        self._committer.delete_cached(cached)

    def _due_keys(self) -> set[str]:
        return {key for file in self._begun.values() for key, _ in file.due.values()}

    def _next_texts(self, failed_tags: Collection[str]) -> dict[str, str]:
        """Return vector key -> text of the next texts to embed.

        Args:
            failed_tags: Of models whose texts are left out.
        """
        texts: dict[str, str] = {}
        for file in self._begun.values():
            for key, text in file.due.values():
                if model_tag_of(key) in failed_tags:
                    continue
                texts[key] = text
                if len(texts) >= _TEXTS_PER_CALL:
                    return texts
        return texts

    def _embed(self, text_by_key: Mapping[str, str], should_stop: Callable[[], bool]) -> bool:
        """Embed texts and write their vectors; return whether `should_stop` ended it early."""
        unwritten: dict[str, Vector] = {}
        cached: list[str] = []
        left = len(text_by_key)
        written_at = time.monotonic()
        self._dependencies.heartbeat(MODEL_STEP_TIMEOUT_S)
        try:
            for batch in self._committer.models.embed_batches(text_by_key):
                self._committer.model_fails = False
                unwritten.update(batch)
                left -= len(batch)
                self._dependencies.heartbeat(MODEL_STEP_TIMEOUT_S if left else 0)
                waited_s = time.monotonic() - written_at
                if len(unwritten) >= TEXTS_PER_WRITE or waited_s >= S_PER_WRITE:
                    self._write(unwritten, embedded_keys=set(unwritten))
                    self._committer.delete_cached(cached)
                    unwritten, cached = {}, []
                    written_at = time.monotonic()
                elif left and waited_s * 1e9 >= NS_PER_CACHING:
                    # Invariant: a crash loses at most the vectors of `unwritten` without these.
                    uncached = {key: unwritten[key] for key in unwritten.keys() - set(cached)}
                    self._dependencies.vector_cache.put(uncached, self._dependencies.clock())
                    cached.extend(uncached)
                if left and should_stop():
                    return True
        except EmbedderError:
            self._committer.model_fails = True
            raise
        finally:
            if unwritten:  # If that fails, the cache keeps what it has.
                self._write(unwritten, embedded_keys=set(unwritten))
                self._committer.delete_cached(cached)
        return False

    def _write(self, vectors: Mapping[str, Vector], embedded_keys: set[str]) -> None:
        """Write vectors to all begun files' rows of their keys.

        Args:
            vectors: Vector key -> vector.
            embedded_keys: Those that the model made now. Each counts for one file.
        """
        if embedded_keys:
            self._committer.record_unembeddable(vectors)
        keyed_by_id: dict[str, tuple[str, Vector]] = {}
        filled: list[tuple[_FileToFill, list[str]]] = []
        for file in self._begun.values():
            ids = [row_id for row_id, (key, _) in file.due.items() if key in vectors]
            for row_id in ids:
                key, _ = file.due[row_id]
                keyed_by_id[row_id] = (key, vectors[key])
            filled.append((file, ids))
        self._dependencies.store.set_vectors(keyed_by_id)
        self._committer.commit_count += 1
        for file, ids in filled:
            if not ids:
                continue
            keys_of_file = {file.due[row_id][0] for row_id in ids}
            own_keys = keys_of_file & embedded_keys
            embedded_keys -= own_keys
            counts = self._counts[file.origin]
            counts.embedded += len(own_keys)
            counts.reused += len(ids) - len(own_keys)
            for row_id in ids:
                del file.due[row_id]

    def _finished(self) -> Iterator[FileOutcome]:
        """Yield the outcome of each file whose last vector was written."""
        for file in [each for each in self._begun.values() if not each.due]:
            del self._begun[file.origin]
            yield self._completed(file.origin)

    def _completed(self, origin: RootedPath) -> FileOutcome:
        """Return the outcome of a file whose last vector was written."""
        catalog = self._dependencies.catalog
        counts = self._counts.pop(origin, _Counts())
        record = catalog.get_record(origin)
        if record and self._committer.unembeddable_keys:
            noted = with_unembeddable_lines(record, self._committer.unembeddable_keys)
            if noted is not record:
                update = FileUpdate(
                    origin=origin,
                    new_record=noted,
                    diff=_NO_CHANGE,
                    texts_to_embed=(),
                    reason="",
                )
                catalog.confirm_updates([update])
        return FileOutcome(
            origin=origin,
            action=Action.EMBEDDED,
            reason="its vectors were made",
            chunks=len(record.chunks) if record else 0,
            embedded=counts.embedded,
            reused=counts.reused,
        )
