"""Build a new generation of the index beside the one that serves, and promote it when complete.

A build starts as a clone of the current table, which copies no data. The ordinary indexer then
brings it up to what the configuration says: files with another recipe are read, chunked and
compared as if they had been edited. A text is embedded only if neither generation nor the vector
cache has its vector. So an interrupted build continues where it stopped, and a change to one root
leaves the others alone. Where cloning is impossible (another vector size, another schema), the
build starts empty.

Meanwhile the current generation serves searches, and is kept up to date with the profile that its
rows were made with (`profile.PinnedRecipe`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from anchord.config.paths import Paths
from anchord.core.ids import model_tag_of, other_model_key
from anchord.core.ports import VectorCache
from anchord.core.types import Action, FileOutcome, RootedPath, Vector
from anchord.errors import DimensionMismatchError, StoreDamagedError, UsageError
from anchord.index.archive_roots import list_unlisted_files
from anchord.index.indexer import Indexer
from anchord.index.integrity.purge import carry_rules_over
from anchord.index.leaving_vectors import cache_leaving_vectors
from anchord.index.profile import PinnedRecipe
from anchord.index.recovery import begin_promotion, delete_next_catalog, finish_promotion
from anchord.index.session import IndexWriter
from anchord.index.table_location import store_uri
from anchord.index.vector_fill import FILES_PER_FILL, made_vectors
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table import maintenance as table_maintenance
from anchord.store.table.connection import TableReadError
from anchord.store.table.table import NEXT_TABLE_NAME, TABLE_NAME, LanceStore
from anchord.store.table.uri import is_local
from anchord.store.table.versions import SCHEMA_VERSION

log = structlog.get_logger()

_BUILD_META_KEY = "why"
"""The catalog entry of the build's identity: reason, recipe digest and schema version, one a
line."""
_WALKS_BEFORE_PROMOTION = 2
"""The second walk finds what changed while the files of the first were indexed."""
_STEP_FILES = 200


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to build, and why."""

    reason: str
    is_from_scratch: bool = False
    """Start with an empty table, and embed every text again."""
    rechunks_all_files: bool = False
    """Read and chunk every file again, whatever its recipe."""


class GenerationBuild:
    """A generation that is being built. Only one at a time, and only on the writer's thread."""

    def __init__(self, writer: IndexWriter, request: BuildRequest) -> None:
        """Continue an interrupted build of the same request, or start one.

        Starting deletes every other unfinished build.

        Args:
            writer: Its files are indexed, and its configured profile is used.
            request: What to build.

        Raises:
            StoreError: The catalog or the table of the build cannot be created.
        """
        self.request = request
        self.reason = request.reason
        self.files_done = 0
        self.unavailable_roots: tuple[str, ...] = ()
        """Roots that are missing or have held deletions. The build waits for them."""
        self._writer = writer
        self._table_folder = Path(store_uri(writer.paths, writer.config))
        self._queue: dict[RootedPath, None] = {}
        self._confirmed_gone: set[RootedPath] = set()
        self._walk_count = 0
        self._may_lack_vectors = True
        profile = writer.configured_profile
        columns_version = str(SCHEMA_VERSION)
        self._identity = f"{request.reason}\n{profile.recipe.digest()}\n{columns_version}"
        self.was_resumed = self._open_unfinished() and self._is_same_build()
        if not self.was_resumed:
            for root in writer.roots:
                if root.kind == "conversations":
                    writer.indexer.lost_exchanges.restore_root(root.name)
            self._start()
        self._has_begun_again = False
        self._indexer = self._make_indexer()
        if self.was_resumed:  # A root can have left while nothing built.
            for name in set(self.catalog.root_names()) - writer.roots_by_name.keys():
                self.drop_root(name)

    def _make_indexer(self) -> Indexer:
        """Return the indexer that writes the new catalog and table."""
        writer = self._writer
        # Invariant: an empty catalog knows no file that was deleted, or that the rules exclude now.
        files = writer.files.folder_files
        list_unlisted_files(writer.archive, self.catalog, writer.roots, files)
        vector_cache = _NoVectors() if self.request.is_from_scratch else _SharedVectors(writer)
        indexer = writer.make_indexer(
            writer.configured_profile,
            catalog=self.catalog,
            store=self.store,
            vector_cache=vector_cache,
        )
        indexer.complete_before_writing()
        return indexer

    def index_next_files(self, should_stop: Callable[[], bool]) -> list[FileOutcome]:
        """Index up to 200 of the files that are due; walk the roots first if none is.

        Args:
            should_stop: As for `Indexer.index`.

        Returns:
            The outcomes, without files that are changing: the first walk after the promotion finds
                them.

        Raises:
            TableReadError: The table that serves cannot be read; or that of the build cannot,
                though the build began again because of that.
        """
        try:
            return self._index_next_files(should_stop)
        except TableReadError as error:
            if self._has_begun_again or error.table_name != NEXT_TABLE_NAME:
                raise
            log.warning("generation.damaged", why=self.reason, reason=error.message)
            self._begin_again()
            return self._index_next_files(should_stop)

    def _begin_again(self) -> None:
        """Delete what was built, whose table cannot be read, and start over. Once only."""
        self._has_begun_again = True
        self.catalog.close()
        self._queue.clear()
        self._walk_count = self.files_done = 0
        self._may_lack_vectors = True
        self._start()
        self._indexer = self._make_indexer()

    def _index_next_files(self, should_stop: Callable[[], bool]) -> list[FileOutcome]:
        if not self._queue:
            self._walk_roots()
        outcomes = []
        next_files = list(self._queue)[:_STEP_FILES]
        for outcome in self._indexer.index(next_files, should_stop, self._confirmed_gone):
            self._queue.pop(outcome.origin, None)
            self.files_done += 1
            if outcome.action is not Action.RETRY:
                outcomes.append(outcome)
        if not self._queue and self._may_lack_vectors and not should_stop():
            outcomes += self._fill_vectors(should_stop)
        return outcomes

    def _fill_vectors(self, should_stop: Callable[[], bool]) -> list[FileOutcome]:
        """Make vectors that the present generation lacked when its table was cloned."""
        files = self._indexer.vector_fill.find_due()
        handled: set[RootedPath] = set()
        outcomes = []
        for outcome in self._indexer.vector_fill.fill(files[:FILES_PER_FILL], should_stop):
            handled.add(outcome.origin)
            if outcome.action is Action.RETRY:
                self._queue[outcome.origin] = None
            if made := made_vectors(outcome):
                outcomes.append(made)
        self._may_lack_vectors = len(handled) < len(files)
        return outcomes

    @property
    def files_due(self) -> int:
        """How many files wait to be indexed."""
        return len(self._queue)

    @property
    def is_finished(self) -> bool:
        """Whether the build can be promoted: two walks done, nothing due, no root unavailable."""
        has_walked = self._walk_count >= _WALKS_BEFORE_PROMOTION
        has_work = bool(self._queue) or self._may_lack_vectors
        return has_walked and not has_work and not self.unavailable_roots

    def promote(self) -> None:
        """Replace the current generation with this one; the writer continues with it.

        Call only when `is_finished`. Closes this build and deletes the former table.

        Raises:
            StoreDamagedError: The catalog was replaced, but not the table. The next start completes
                it.
            StoreError: Nothing has changed.
        """
        writer = self._writer
        profile = writer.configured_profile
        former_profile = writer.profile
        has_further = bool(former_profile.further.models or profile.further.models)
        if has_further and not self.request.is_from_scratch:
            cache_leaving_vectors(writer.store, self.store, writer.vector_cache)
        profile.record_in_catalog(self.catalog)
        self.catalog.set_meta("clean", "0")
        # Invariant: until `begin_promotion` returns, a crash leaves the former generation serving.
        # From then on its marker makes the next start finish the promotion.
        begin_promotion(writer.paths, writer.catalog)
        self.catalog.close()
        delete_next_catalog(writer.paths)
        try:
            finish_promotion(writer.paths, str(self._table_folder), writer.repairs)
        except OSError as error:
            cause = os.strerror(error.errno or 0)
            raise StoreDamagedError(
                f"the new index could not be moved into place: {cause}",
                "the next start of anchord completes it",
            ) from error
        # Invariant: both halves are in place; catalog and table describe the same rows again.
        writer.catalog.set_meta(_BUILD_META_KEY, "")
        writer.store = self._open_table(TABLE_NAME)
        writer.profile = profile
        commit_count = writer.indexer.commit_count + self._indexer.commit_count
        writer.indexer = writer.make_indexer(
            profile, catalog=writer.catalog, store=writer.store, vector_cache=writer.vector_cache
        )
        writer.indexer.commit_count = commit_count
        former_profile.close(unless_in=profile)
        log.info("generation.promoted", why=self.reason, files=self.files_done)

    def delete(self) -> None:
        """Close the build and delete its catalog and table."""
        self.catalog.close()
        delete_next_generation(self._writer)

    def drop_root(self, name: str) -> None:
        """Delete a root's rows and records from the build."""
        self._queue = {path: None for path in self._queue if path.root != name}
        self._indexer.delete_rows(self.store.ids_of_root(name))
        self.catalog.delete_root_records(name)

    def close(self) -> None:
        """Close the build and keep it on disk: a build of the same request continues it."""
        self.catalog.close()

    def _open_unfinished(self) -> bool:
        """Open the catalog and the table of an unfinished build; return whether both are intact."""
        has_catalog = self._writer.paths.next_catalog_file.exists()
        if not has_catalog or not (self._table_folder / f"{NEXT_TABLE_NAME}.lance").is_dir():
            return False
        try:
            self.catalog = _open_next_catalog(self._writer.paths)
            self.store = self._open_table(NEXT_TABLE_NAME)
        except (StoreDamagedError, DimensionMismatchError):
            return False
        return self.catalog.is_intact()

    def _is_same_build(self) -> bool:
        return self.catalog.get_meta(_BUILD_META_KEY) == self._identity

    def _start(self) -> None:
        writer = self._writer
        delete_next_generation(writer)
        # Invariant: rows can be shared between generations only if both tables have the same
        # columns, the size of the vectors included.
        can_clone = (
            not self.request.is_from_scratch
            and writer.profile.dimensions == writer.configured_profile.dimensions
            and writer.store.schema_version >= SCHEMA_VERSION
        )
        if can_clone and table_maintenance.clone_to_next_table(self._table_folder):
            writer.catalog.copy_to(writer.paths.next_catalog_file)
        self.store = self._open_table(NEXT_TABLE_NAME)
        self.catalog = _open_next_catalog(writer.paths)
        carry_rules_over(writer.catalog, self.catalog)
        if self.request.rechunks_all_files:
            self.catalog.mark_all_for_rechunk()
        self.catalog.set_meta(_BUILD_META_KEY, self._identity)
        log.info("generation.begun", why=self.reason)

    def _open_table(self, table_name: str) -> LanceStore:
        profile = self._writer.configured_profile
        return LanceStore(
            str(self._table_folder),
            profile.dimensions,
            profile.embedder.model_id,
            table_name=table_name,
        )

    def _walk_roots(self) -> None:
        """Queue the files that are due in every root.

        The mass-deletion guard applies here as well: a root with held deletions counts as
        unavailable.
        """
        self._walk_count += 1
        self._confirmed_gone.clear()
        unavailable = []
        for root in self._writer.roots:
            result = self._indexer.reconcile(root.name)
            if result.walk_error or result.held_deletions:
                unavailable.append(root.name)
            self._confirmed_gone.update(result.gone_or_emptied)
            self._queue.update(dict.fromkeys(result.paths_due))
        self.unavailable_roots = tuple(unavailable)


def _open_next_catalog(paths: Paths) -> SqliteCatalog:
    """Open the catalog of the next generation: that everything is written again is no change."""
    return SqliteCatalog(paths.next_catalog_file, records_changes=False)


def find_unavailable_roots(writer: IndexWriter) -> tuple[str, ...]:
    """Walk every root; return those that are missing, unreadable or have held deletions.

    The current generation keeps the rows of their files. A new one could not make them.
    """
    results = {root.name: writer.indexer.reconcile(root.name) for root in writer.roots}
    return tuple(
        name for name, result in results.items() if result.walk_error or result.held_deletions
    )


def find_required_build(writer: IndexWriter) -> BuildRequest | None:
    """Return the build that the configuration or this version of anchord requires.

    Returns:
        None where the index is as configured, or the table is remote and can have no next
        generation.
    """
    if not is_local(store_uri(writer.paths, writer.config)):
        return None
    if writer.store.schema_version < SCHEMA_VERSION:
        return BuildRequest("a new form of the table")
    if writer.profile is writer.configured_profile:
        return None
    has_same_embedder = writer.profile.embedder is writer.configured_profile.embedder
    if has_same_embedder and isinstance(writer.profile.recipe, PinnedRecipe):
        return BuildRequest("the recipe changed")
    return BuildRequest("the model changed")


def find_interrupted_build(writer: IndexWriter) -> BuildRequest | None:
    """Return the request of an unfinished `rebuild` or `reindex --force-rechunk`, else None."""
    if not writer.paths.next_catalog_file.exists():
        return None
    try:
        with _open_next_catalog(writer.paths) as catalog:
            reason = catalog.get_meta(_BUILD_META_KEY).split("\n")[0]
    except StoreDamagedError:
        return None
    return next((request for request in (REBUILD, RECHUNK) if request.reason == reason), None)


def delete_next_generation(writer: IndexWriter) -> None:
    """Delete the catalog and the table of an unfinished build; does nothing where there is none."""
    table_maintenance.delete_next_table(Path(store_uri(writer.paths, writer.config)))
    delete_next_catalog(writer.paths)


def require_local_table(writer: IndexWriter) -> None:
    """Refuse a command that builds a second table beside the first.

    Raises:
        UsageError: The table is not a local folder.
    """
    if not is_local(store_uri(writer.paths, writer.config)):
        raise UsageError(
            "a remote table cannot be rebuilt beside itself",
            "`anchord verify --repair` repairs it in place",
        )


# The reasons are stored in catalogs: a change would make an interrupted build start again.
REBUILD = BuildRequest("asked for by `rebuild`", is_from_scratch=True)
RECHUNK = BuildRequest("asked for by `reindex --force-rechunk`", rechunks_all_files=True)


class _SharedVectors:
    """The vectors of the generation that serves, and those of the writer's vector cache."""

    def __init__(self, writer: IndexWriter) -> None:
        self._store = writer.store
        self._cache: VectorCache = writer.vector_cache
        self._has_further = bool(writer.profile.further.models)
        self._main_model_id = writer.configured_profile.embedder.model_id

    def get(self, vector_keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors that are known, by key."""
        found = dict(self._store.vectors_by_key(vector_keys))
        if self._has_further or any(map(model_tag_of, vector_keys)):
            # A main model that becomes a further one, or the reverse, embeds nothing again.
            missing = [key for key in vector_keys if key not in found]
            former = {other_model_key(key, self._main_model_id): key for key in missing}
            of_former = self._store.vectors_by_key(list(former))
            found.update((former[key], vector) for key, vector in of_former.items())
        return found | dict(self._cache.get([key for key in vector_keys if key not in found]))

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Cache the vectors of deleted rows: a setting that is changed back embeds nothing."""
        self._cache.put(vectors, now_ns)

    def delete(self, vector_keys: Sequence[str]) -> None:
        self._cache.delete(vector_keys)


class _NoVectors:
    """An empty vector cache that keeps nothing: every text is embedded again."""

    def get(self, vector_keys: Sequence[str]) -> Mapping[str, Vector]:  # noqa: ARG002 - there is nothing to look for
        return {}

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Keep nothing."""

    def delete(self, vector_keys: Sequence[str]) -> None:
        """Delete nothing."""
