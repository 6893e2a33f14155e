"""The interfaces through which indexing and searching reach files, storage, models and time.

`index` and `search` are written against these protocols. The packages `sources`, `store` and
`embedding` implement them, and `tests/fakes.py` implements them in memory. `tests/contracts/` runs
the same tests against every implementation.

Rules that hold for all methods below:

- Methods block until they are done. None is a coroutine.
- Sequences of ids, keys or paths may be empty, and may name things that do not exist; both are no
  error. The answers then leave the unknown ones out.
- Implementations raise `StoreError` when the disk or a database fails, and `EmbedderError` when a
  model fails. Trouble with a single file is never an exception: it is returned as a `Problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from anchord.core.types import (
    NO_FILTERS,
    NO_VECTORS,
    Absent,
    ChangedDuringRead,
    ChunkLocation,
    FileContent,
    FileFailure,
    FileRecord,
    FileUpdate,
    Fingerprint,
    IngestResult,
    PathMatch,
    Problem,
    RootedPath,
    Row,
    ScoredRow,
    SearchFilters,
    StoreStats,
    Vector,
    WalkResult,
)
from anchord.core.worktrees import ALL_WORKTREES, WorktreeFiles

Clock = Callable[[], int]
"""Returns the wall clock in nanoseconds since the epoch."""

PathFilter = Callable[[RootedPath], PathMatch]
"""Returns whether the include and ignore rules admit a path. The path need not exist."""

EnterDirCallback = Callable[[RootedPath], None]
"""Called with each folder just before a walk lists it."""

HeartbeatCallback = Callable[[float], None]
"""Called after each step of long work, to show that the writer is alive.

Argument: the seconds that the next step may take; 0 means the default (120 s).
"""


def ignore_enter_dir(_: RootedPath) -> None:
    """Do nothing: the `EnterDirCallback` of a walk that nobody follows."""


def no_heartbeat(_: float) -> None:
    """Do nothing: the `HeartbeatCallback` of work that nobody monitors."""


class FileTree(Protocol):
    """Read-only access to the files of all roots.

    Implementations never follow a symbolic link, never block on a pipe or device, and never leave
    a root.
    """

    def path_filter(self) -> PathFilter:
        """Return a filter for many paths, using the ignore files as they are now.

        The filter reads each ignore file once and does not see later edits of it. Get a new one
        for each batch of work.
        """

    def check_root(
        self, root: str, known_paths: Callable[[], Collection[str]], *, accept: bool
    ) -> str:
        """Accept or refuse the folder at a root's path; call it before a walk of the whole root.

        A refused folder is not read: `fingerprint` and `read` find nothing in it, and `walk` has a
        problem.

        Args:
            root: Name of the root.
            known_paths: Returns the paths of the root's indexed files, exchanges included.
            accept: Whether a person accepted whatever folder is there.

        Returns:
            Why the folder is refused, with the remedy; "" if it is accepted.
        """

    def fingerprint(self, origin: RootedPath) -> Fingerprint | Absent | Problem:
        """Return the fingerprint of a file without reading its content.

        Args:
            origin: A file. Its root must be one of the tree's.

        Returns:
            `Absent` for a missing path, a folder or a symbolic link. `Problem` for a path that
            cannot be examined, such as one without permission.
        """

    def read(self, origin: RootedPath) -> FileContent | Absent | Problem | ChangedDuringRead:
        """Read a whole file, retrying briefly while it changes.

        Returns:
            `FileContent` whose bytes match its fingerprint, or `ChangedDuringRead` for a file that
            kept changing. `Absent` and `Problem` as for `fingerprint`.
        """

    def walk(
        self, root: str, prefix: str, on_enter_dir: EnterDirCallback = ignore_enter_dir
    ) -> WalkResult | Absent | Problem:
        """List the files below a folder that the rules admit.

        Args:
            root: Name of the root.
            prefix: Folder at which to begin, such as "a/b"; "" for the whole root.
            on_enter_dir: Called before each folder is listed. A watch that it sets up misses no
                change, because whatever happens later is seen by the watch or by the walk.

        Returns:
            `Absent` when the folder does not exist, `Problem` when it cannot be listed. Folders
            below it that cannot be listed are named in `WalkResult.unreadable_folders`.
        """


class Catalog(Protocol):
    """The durable record of every file: what was read, and which chunks the table holds of it.

    An object must not be shared between threads; each opens its own.

    A change is written in two steps: `save_intents`, then the table, then `confirm_updates`. After
    a crash between them the file is unconfirmed, and is read and compared with the table again.
    """

    def get_record(self, origin: RootedPath) -> FileRecord | None:
        """Return the record of a file with its chunks, or None for an unknown file.

        The chunks are left out while the record is unconfirmed: only the table knows them then
        (`ChunkStore.ids_of_file`).
        """

    def list_records(self, root: str, prefix: str) -> Mapping[str, FileRecord]:
        """Return the records of a root by path, without their chunks.

        Args:
            root: Name of the root.
            prefix: Only this file, or the files below this folder; "" for the whole root.
        """

    def save_intents(self, updates: Sequence[FileUpdate]) -> None:
        """Record the chunks that are about to be written to the table, and unconfirm the files.

        The call is durable when it returns, and idempotent.
        """

    def confirm_updates(self, updates: Sequence[FileUpdate]) -> None:
        """Replace the records of files after the table was written.

        An update without `new_record` deletes the file. The call is durable when it returns, and
        idempotent.
        """

    def update_fingerprints(
        self, fingerprints: Sequence[tuple[RootedPath, Fingerprint, int]]
    ) -> None:
        """Record that files were read and found unchanged.

        Args:
            fingerprints: (file, its new fingerprint, wall clock in ns just before the read).
        """

    def mark_for_reread(self, origins: Sequence[RootedPath]) -> None:
        """Unconfirm files, so that the next run reads them and compares them with the table."""

    def list_failures(self) -> Sequence[FileFailure]:
        """Return the files with a problem, sorted by root and path."""

    def locate_chunks(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkLocation]:
        """Return the locations of chunks by id.

        Where a file is unconfirmed, the location that the intent gives wins.
        """

    def iter_change_times(self) -> Iterator[tuple[RootedPath, int]]:
        """Yield each file, exchanges left out, and when it changed before it was last read, in ns.

        The time is the file's own (`Fingerprint.mtime_ns`).
        """

    def change_times(self, origins: Iterable[RootedPath]) -> Mapping[RootedPath, int]:
        """Return when files changed before they were last read, in ns; without unknown files."""

    def neighbor_chunk_ids(self, chunk_id: str, max_distance: int) -> Sequence[str]:
        """Return the ids of the chunks around a chunk in its file, itself included, in file order.

        Args:
            chunk_id: The chunk in the middle.
            max_distance: How many chunks before it and after it to return, at most.

        Returns:
            No ids for an unknown chunk.
        """

    def set_meta(self, key: str, value: str) -> None:
        """Store a value under a key of the caller's, replacing the former one."""

    def get_meta(self, key: str) -> str:
        """Return the value that `set_meta` stored, or "" when there is none."""

    def iter_expected_rows(self) -> Iterator[tuple[str, str, RootedPath]]:
        """Yield (chunk id, row hash, file) of each row that the table should hold."""


class VectorLookup(NamedTuple):
    """The answer of `ChunkStore.look_up_vectors`."""

    keyed_vectors_by_id: Mapping[str, tuple[str, Vector]]
    """Row id -> (vector key, vector), for the ids that exist.

    (marked key, provisional vector or b"") for a row that lacks its own; see
    `core.ids.DUE_MARK`."""
    vectors_by_key: Mapping[str, Vector]
    """Vector key -> vector, for the keys that any row has."""


class ChunkStore(Protocol):
    """The table of chunks with their vectors. All writes are idempotent.

    There may be one writer at a time: two would write the same row twice.
    """

    @property
    def can_lack_vectors(self) -> bool:
        """Whether `upsert` may write rows without vectors: not in a table of an old schema."""

    def as_stored(self, row: Row) -> Row:
        """Return a row as the table holds it: an old schema has no column for some fields."""

    def upsert(
        self,
        rows: Sequence[Row],
        vectors: Mapping[str, Vector],
        absent_ids: Collection[str] = (),
        due: Mapping[str, Vector] = NO_VECTORS,
    ) -> None:
        """Insert rows, replacing those with the same id. Both searches see them on return.

        A row can lack its own vector: making it takes long. Until `set_vectors` adds it, the row is
        found by words, and by `search_by_vector` if it has a provisional one. No other method
        returns a provisional vector as a row's or a key's vector.

        Args:
            rows: Rows to write. Of rows with equal ids the last one is written.
            vectors: The vector of every row's `vector_key`. Other keys are ignored.
            absent_ids: Ids that the caller knows are not in the table. Skipping their lookup is
                faster; naming one that is there writes it twice.
            due: Vector key -> provisional vector, b"" for none, of the rows that lack their own.
                Only if `can_lack_vectors`. A table of an old schema stores no provisional ones.

        Raises:
            KeyError: A row's vector is missing. Nothing was written.
        """

    def set_vectors(self, keyed_vectors_by_id: Mapping[str, tuple[str, Vector]]) -> None:
        """Give rows that lack their own vector theirs.

        Args:
            keyed_vectors_by_id: Row id -> (vector key, vector). Ignored where the row is gone, has
                its own vector, or has another key by now.
        """

    def due_ids(self) -> Sequence[str]:
        """Return the ids of all rows that lack their own vector."""

    def due_ids_of_files(self, origins: Sequence[RootedPath]) -> Mapping[RootedPath, Sequence[str]]:
        """Return the ids of each file's rows that lack their own vector."""

    def due_ids_among(self, ids: Sequence[str]) -> Sequence[str]:
        """Return which of these rows lack their own vector, in any order."""

    def count_due(self) -> int:
        """Count the rows that lack their own vector."""

    def delete_rows(self, ids: Sequence[str]) -> None:
        """Delete rows by id, and with them the vectors that no other row has."""

    def ids_of_file(self, origin: RootedPath) -> Sequence[str]:
        """Return the ids of all rows of a file, including those an interrupted update left."""

    def ids_of_files(self, origins: Sequence[RootedPath]) -> Mapping[RootedPath, Sequence[str]]:
        """Return what `ids_of_file` returns for each of these files; a few queries in all."""

    def vectors_by_key(self, vector_keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return vectors by key, for the keys that any row has."""

    def vectors_by_key_of_rows(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of these rows by vector key; rows with one key give one entry.

        Rows that lack their own vector are left out.
        """

    def look_up_vectors(self, ids: Sequence[str], vector_keys: Sequence[str]) -> VectorLookup:
        """Look up rows by id and vectors by key, in one query."""

    def vectors_by_id(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of these rows by row id, without those that lack their own."""

    def search_by_vector(
        self, vector: Vector, limit: int, filters: SearchFilters, model_tag: str = ""
    ) -> Sequence[ScoredRow]:
        """Return the rows that are most similar to a vector.

        Args:
            vector: The query's vector, of the model's dimension.
            limit: Maximum number of rows.
            filters: Rows that do not match are left out before `limit` is applied.
            model_tag: The further model that made it (`core.ids.model_tag_of`), "" for the main
                one. Rows whose vectors another model made are not found.

        Returns:
            Rows by descending cosine similarity. Rows with a vector of zeros are never returned.
        """

    def search_by_words(self, text: str, limit: int, filters: SearchFilters) -> Sequence[ScoredRow]:
        """Return the rows that contain words of a text, by descending BM25 score.

        Args:
            text: Words, in any case. A text of white space finds nothing.
            limit: Maximum number of rows.
            filters: Rows that do not match are left out before `limit` is applied. The words that
                start with `filters.required_prefixes` count as words of the text.
        """

    def find_ids_containing(
        self, literal: str, limit: int, filters: SearchFilters
    ) -> Sequence[str]:
        """Return the ids of up to `limit` rows whose `search_text` contains a text, in any order.

        Args:
            literal: Text to find, matched exactly, including its case.
            limit: Maximum number of ids.
            filters: Rows that do not match are left out.
        """

    def get_rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return the rows of these ids, each once, in any order."""

    def get_embedded_rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return those rows of files that have their own vector, each once, in any order.

        The columns that only rows of conversations have are left out.
        """

    def get_display_rows(
        self, ids: Sequence[str], filters: SearchFilters = NO_FILTERS
    ) -> Sequence[Row]:
        """Return rows with only the columns that an answer shows; faster than `get_rows`.

        Args:
            ids: The rows' ids.
            filters: Rows that do not match are left out.

        Returns:
            The rows, each once, in any order. `doc_id`, `root`, `path`, `vector_key` and
            `search_text` are "".
        """

    def ids_of_root(self, root: str, path: str = "") -> Sequence[str]:
        """Return the ids of a root's rows.

        Args:
            root: Its name.
            path: Only rows of this file, or of what is in this folder.
        """

    def all_ids(self) -> Sequence[str]:
        """Return the id of every row, with duplicates should the table be damaged."""

    def all_row_hashes(self) -> Sequence[tuple[str, str]]:
        """Return (id, row hash) of every row, with duplicates should the table be damaged.

        The hash is "" in a table whose schema has no hashes yet.
        """

    def find_corrupt_ids(self, ids: Sequence[str]) -> Iterable[str]:
        """Return those ids whose rows do not match the checksum stored with them."""

    def stats(self) -> StoreStats:
        """Count rows, fragments, versions and bytes."""


class Embedder(Protocol):
    """A model that turns texts into vectors. Any thread may call it.

    Every vector is L2-normalised: its length is 1. A text that the model rejects gets a vector of
    zeros, which a vector search never returns.
    """

    @property
    def model_id(self) -> str:
        """Identity of the model and of everything its vectors depend on.

        Vectors of equal ids can be compared and reused. The id is part of every vector key.
        """

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    @property
    def texts_per_second(self) -> float:
        """Recent throughput; 0 before the first text."""

    @property
    def is_immediate(self) -> bool:
        """Whether making vectors takes no longer than writing rows, so that no text waits."""

    @property
    def is_prepared(self) -> bool:
        """Whether a text can be embedded at once.

        Otherwise the first text waits until the model was prepared for this machine, once, which
        takes ten seconds or more.
        """

    def prepare_in_background(self) -> None:
        """Begin to prepare the model unless it is prepared, or being prepared; returns at once.

        What goes wrong is raised by the next text.
        """

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Embed texts and wait for all of them.

        Args:
            texts: Texts within the model's window. What happens to longer ones is up to the
                implementation.
            is_query: True for the text of a search. It is embedded before any waiting document,
                and as a query where the model distinguishes the two.

        Returns:
            One vector per text, in order.

        Raises:
            EmbedderError: The model is unavailable. No vector is returned; try again later.
        """

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Embed texts batch by batch. The caller may stop after any batch.

        Yields:
            Index of a text in `texts` -> its vector. Each index is yielded once, in any order.

        Raises:
            EmbedderError: The model is unavailable. The vectors that were yielded are valid.
        """


class TextScorer(Protocol):
    """A model that scores a query together with a text: slower than vectors, and more accurate."""

    def score_texts(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score per text, in order. Higher is better; the scale is the model's.

        Raises:
            EmbedderError: The model is unavailable.
        """


class Reranker(TextScorer, Protocol):
    """The configured model, in a process of its own."""

    @property
    def problem(self) -> str:
        """Why the last call failed, or the first one will; "" if it did not."""

    def close(self) -> None:
        """Stop the model and free its memory. The next `score_texts` starts it again."""


class VectorCache(Protocol):
    """Vectors of deleted rows, kept so that an undo, a move or a branch switch embeds nothing.

    Entries may disappear at any time. Nothing but embedding work is lost with them.
    """

    def get(self, vector_keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the cached vectors by key."""

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Cache vectors by key, and evict entries that are too old or too many.

        Args:
            vectors: Vector key -> vector.
            now_ns: Wall clock in nanoseconds; the age of entries counts from here.
        """

    def delete(self, vector_keys: Sequence[str]) -> None:
        """Remove vectors that turned out to be wrong."""


class TranscriptIngester(Protocol):
    """Copies the exchanges of transcript files into the archive. Only the writer's thread uses it.

    Once they are in the archive, `FileTree` lists and reads exchanges as it does files.

    Attributes:
        without_copy: Exchanges that the catalog knew, and that no archive, row or transcript has;
            a dict that is used as a set that keeps its order.
    """

    without_copy: dict[RootedPath, None]

    def is_transcript_file(self, origin: RootedPath) -> bool:
        """Whether a file's exchanges are ingested instead of its text being chunked."""

    def keeps_after_delete(self, origin: RootedPath) -> bool:
        """Whether the exchanges of a transcript file outlive the file."""

    def ingest(self, origin: RootedPath) -> IngestResult:
        """Update the archive from a transcript file, or from its absence.

        For a deleted file its exchanges are deleted too, unless `keeps_after_delete`. The archive
        is durable when the call returns. A file that cannot be read is a `Problem` in the result.
        """

    def exclude(self, origin: RootedPath) -> IngestResult:
        """Take the exchanges of a transcript file out of the index: the rules exclude the file now.

        The archive keeps them, detached; they return when the file is ingested again.
        """

    def mark_indexed(self, origins: Sequence[RootedPath]) -> None:
        """Acknowledge exchanges: `ingest` stops reporting them until they change again."""

    def has_root(self, name: str) -> bool:
        """Whether a root is configured. The table can have rows of others after a crash."""

    def is_lost(self, origin: RootedPath) -> bool:
        """Whether the archive lacks an exchange of the index that nothing deleted on purpose."""

    def is_renamed(self, origin: RootedPath) -> bool:
        """Whether an exchange is stored under another path since its ids were redacted."""

    def restore(self, origin: RootedPath, rows: Sequence[Row]) -> None:
        """Store a lost exchange again, from all of its rows in their order."""


class NoConversations:
    """A `TranscriptIngester` for indexes without conversations: every file is a document."""

    def __init__(self) -> None:
        """Have lost nothing."""
        self.without_copy: dict[RootedPath, None] = {}

    def is_transcript_file(self, origin: RootedPath) -> bool:  # noqa: ARG002 - the same for all files
        """Return False."""
        return False

    def keeps_after_delete(self, origin: RootedPath) -> bool:  # noqa: ARG002 - the same for all files
        """Return False."""
        return False

    def ingest(self, origin: RootedPath) -> IngestResult:  # noqa: ARG002 - the same for all files
        """Return that the file is an ordinary document."""
        return IngestResult(is_ordinary_document=True)

    def exclude(self, origin: RootedPath) -> IngestResult:  # noqa: ARG002 - the same for all files
        """Return that nothing changed."""
        return IngestResult()

    def mark_indexed(self, origins: Sequence[RootedPath]) -> None:
        """Do nothing."""

    def has_root(self, name: str) -> bool:  # noqa: ARG002 - the same for all roots
        """Return True."""
        return True

    def is_lost(self, origin: RootedPath) -> bool:  # noqa: ARG002 - the same for all files
        """Return False."""
        return False

    def is_renamed(self, origin: RootedPath) -> bool:  # noqa: ARG002 - the same for all files
        """Return False."""
        return False

    def restore(self, origin: RootedPath, rows: Sequence[Row]) -> None:
        """Do nothing."""


_NO_CONVERSATIONS = NoConversations()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerDependencies:
    """Everything outside itself that the indexer reads and writes."""

    files: FileTree
    catalog: Catalog
    store: ChunkStore
    embedder: Embedder
    """The main model."""
    vector_cache: VectorCache
    clock: Clock
    conversations: TranscriptIngester = _NO_CONVERSATIONS
    worktrees: WorktreeFiles = ALL_WORKTREES
    heartbeat: HeartbeatCallback = no_heartbeat
    further_embedders: Mapping[str, Embedder] = field(default_factory=dict)
    """Tag of a vector key (`core.ids.model_tag_of`) -> further model."""
