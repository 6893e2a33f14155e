"""Compare the index with what a clean rebuild would hold.

Every file is read and chunked again, and compared with the table and the catalog. The comparison
shares nothing with indexing beyond `rows`: it goes from the files' bytes to whole rows, without
fingerprints, intents or diffs. Only a sample of the vectors is embedded again, because embedding
all of them takes as long as the first indexing. But the checksum of every row is compared with the
one written with it. Files
are read 200 at a time: only ids are held in memory for an index of any size.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from anchord.chunking.engine.layout import CountTokens
from anchord.core.ports import (
    Catalog,
    ChunkStore,
    FileTree,
    HeartbeatCallback,
    no_heartbeat,
)
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import (
    ChangedDuringRead,
    FileContent,
    FileRecord,
    RootedPath,
    Row,
    Vector,
    WalkResult,
)
from anchord.index.heartbeat import MODEL_STEP_TIMEOUT_S
from anchord.index.integrity.row_sample import RowSample, SampledRow
from anchord.index.mass_deletions import held_by_guard
from anchord.index.models import Models
from anchord.index.recipe import Recipe
from anchord.index.rows import PreparedRow, prepare_rows
from anchord.sources.conversations.exchange_document import is_exchange_path
from anchord.sources.files.folder_files import MAX_FILE_BYTES

_MIN_COSINE = 0.999
"""Below it a vector counts as different: the same text gives the same vector, but for rounding."""
_FILES_PER_PART = 200
_TEXTS_PER_BATCH = 256

_ExpectedById = Mapping[str, tuple[RootedPath, PreparedRow]]
"""Row id -> its file, and the row as a rebuild makes it."""


UNKNOWN_FILE = RootedPath("", "")
"""The file of a row that is in the table and cannot be looked up: an index is damaged."""


class DifferenceKind(StrEnum):
    """What is wrong with a row. The values are part of the JSON output."""

    MISSING = "missing"
    """A file has the chunk, and the table lacks it."""
    EXTRA = "extra"
    """The table has a row of no file."""
    DUPLICATE = "duplicate"
    """The table has the id more than once."""
    TEXT = "text"
    """A column differs from the file."""
    LINES = "lines"
    """The catalog has other lines or another file for it."""
    VECTOR = "vector"
    """The vector differs from that of its text."""
    SPOILED = "spoiled"
    """The stored bytes differ from the checksum."""
    NOT_ARCHIVED = "unarchived"
    """A transcript file contains an exchange that the archive lacks."""
    ARCHIVED = "archived"
    """The archive has recorded another form of an exchange than its transcript file contains."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that is wrong."""

    kind: DifferenceKind
    origin: RootedPath
    chunk_id: str
    """The row's id; for a difference of the archive, the path of the exchange."""


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """What a clean rebuild would hold of some files."""

    rows_by_id: _ExpectedById
    file_count: int
    held_deletions: tuple[RootedPath, ...] = ()
    """Files whose rows are kept although they cannot be read. A path that ends with "/" is a
    folder, "" a whole root."""
    changing_files: tuple[RootedPath, ...] = ()
    """Files that were written while they were read."""
    unread_rules: tuple[RootedPath, ...] = ()
    """Ignore files without last good rules that cannot be read: their folders have no rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """How much was compared, and what differs."""

    file_count: int
    """Files that were read; `verify_index` replaces it by the number of indexed files."""
    chunk_count: int
    """Rows that were compared; `verify_index` replaces it by the number of rows in the table."""
    vectors_checked: int
    differences: tuple[Difference, ...]
    """Sorted by file, kind and id."""
    changing_files: tuple[RootedPath, ...] = field(default=())
    """Files that were written while they were read, and so were not compared."""
    kept_files: Mapping[str, int] = field(default_factory=dict)
    """Root name -> files that are gone or cannot be read, and whose rows are kept: they were not
    compared. Most are held by the mass-deletion guard."""
    unread_rules: Mapping[str, int] = field(default_factory=dict)
    """Root name -> ignore files that cannot be read: nothing in their folders is indexed."""
    without_vector: int = 0
    """Rows that lack their own vector; `verify_index` counts them."""
    exchange_count: int = 0
    transcript_count: int = 0
    """Transcript files that were read again and compared with the archive."""


def verify(
    expected_parts: Iterable[ExpectedRows],
    catalog: Catalog,
    store: ChunkStore,
    models_and_sample_size: tuple[Models, int | None],
    heartbeat: HeartbeatCallback = no_heartbeat,
) -> VerifyResult:
    """Compare the table and the catalog with all parts of a rebuild; writes nothing.

    Args:
        expected_parts: Together, every file of every root.
        catalog: Says where chunks are.
        store: The table.
        models_and_sample_size: The models, and how many texts to embed again; None means all.
        heartbeat: Called with each part and each batch of texts.

    Raises:
        EmbedderError: The model is not available.
    """
    models, sample_size = models_and_sample_size
    expected_ids: set[str] = set()
    held: list[RootedPath] = []
    kept: list[RootedPath] = []
    changing: list[RootedPath] = []
    unread_rules: Counter[str] = Counter()
    differences: list[Difference] = []
    sample = RowSample(sample_size)
    file_count = 0
    for part in expected_parts:
        heartbeat(0)
        file_count += part.file_count
        held += part.held_deletions
        kept += [each for each in part.held_deletions if each not in part.changing_files]
        changing += part.changing_files
        unread_rules.update(each.root for each in part.unread_rules)
        expected_ids.update(part.rows_by_id)
        differences += _compare_rows(part.rows_by_id, catalog, store)
        sample.offer(part.rows_by_id)
    differences += _find_extra_rows(store, expected_ids, held)
    for start in range(0, len(sample.chosen), _TEXTS_PER_BATCH):
        heartbeat(MODEL_STEP_TIMEOUT_S)
        batch = sample.chosen[start : start + _TEXTS_PER_BATCH]
        differences += _compare_vectors(batch, store, models)
    unique = sorted(set(differences), key=lambda each: (each.origin, each.kind, each.chunk_id))
    return VerifyResult(
        file_count=file_count,
        chunk_count=len(expected_ids),
        vectors_checked=len(sample.chosen),
        differences=tuple(unique),
        changing_files=tuple(changing),
        kept_files=_count_by_root(kept, catalog),
        unread_rules=unread_rules,
    )


def _count_by_root(kept: Sequence[RootedPath], catalog: Catalog) -> dict[str, int]:
    """Count the files at some paths by root; a path that ends with "/", and "", is a folder."""
    files: dict[str, set[str]] = {}
    for each in kept:
        paths = [each.path]
        if not each.path or each.path.endswith("/"):
            paths = list(catalog.list_records(each.root, each.path.rstrip("/")))
        files.setdefault(each.root, set()).update(
            path for path in paths if not is_exchange_path(path)
        )
    return {root: len(paths) for root, paths in files.items() if paths}


def expected_rows_of_roots(
    root_names: Sequence[str],
    files_and_catalog: tuple[FileTree, Catalog],
    recipe: Recipe,
    count_tokens: CountTokens,
) -> Iterator[ExpectedRows]:
    """Read and chunk every file of some roots, 200 files at a time.

    Args:
        root_names: The roots.
        files_and_catalog: The files; the catalog, which says what the mass-deletion guard holds.
        recipe: How to chunk.
        count_tokens: Counts a text's tokens as the model does.

    Yields:
        For each root first a part without rows, which names the files whose rows are kept although
        they cannot be read; then its files.
    """
    files, catalog = files_and_catalog
    for root in root_names:
        walk = files.walk(root, "")
        if not isinstance(walk, WalkResult):
            # The whole folder is missing, as an unmounted disk is: all of its rows are kept.
            yield ExpectedRows({}, 0, held_deletions=(RootedPath(root, ""),))
            continue
        unreadable = [RootedPath(root, folder + "/") for folder in walk.unreadable_folders]
        held = held_by_guard(root, walk, files, catalog)
        yield ExpectedRows(
            {},
            0,
            held_deletions=(*unreadable, *held),
            unread_rules=tuple(RootedPath(root, path) for path in walk.unknown_rules),
        )
        for start in range(0, len(walk.files), _FILES_PER_PART):
            found_files = walk.files[start : start + _FILES_PER_PART]
            paths = [RootedPath(root, found.path) for found in found_files]
            yield expected_rows_of_files(paths, files, recipe, count_tokens)


def expected_rows_of_files(
    origins: Sequence[RootedPath], files: FileTree, recipe: Recipe, count_tokens: CountTokens
) -> ExpectedRows:
    """Read and chunk some files. Unreadable and too large files have no rows."""
    rows_by_id: dict[str, tuple[RootedPath, PreparedRow]] = {}
    changing: list[RootedPath] = []
    file_count = 0
    for origin in origins:
        content = files.read(origin)
        if isinstance(content, ChangedDuringRead):
            changing.append(origin)
        elif isinstance(content, FileContent) and _has_indexed_size(origin, content):
            rows, _ = prepare_rows(origin, content.data, recipe, count_tokens)
            rows_by_id.update((each.row.id, (origin, each)) for each in rows)
            file_count += 1
    return ExpectedRows(
        rows_by_id, file_count, held_deletions=tuple(changing), changing_files=tuple(changing)
    )


def verify_unchanged_files(
    entries: Sequence[tuple[RootedPath, FileRecord]],
    files: FileTree,
    catalog: Catalog,
    store: ChunkStore,
    recipe_and_counter: tuple[Recipe, CountTokens],
) -> list[Difference]:
    """Compare the files whose fingerprint is as indexed; skip those that changed.

    Vectors are not compared.

    Args:
        entries: Files and their records, chunks included.
        files: The files.
        catalog: Says where chunks are.
        store: The table.
        recipe_and_counter: How the files were chunked.
    """
    recipe, count_tokens = recipe_and_counter
    indexed = {path: record.fingerprint for path, record in entries if record.is_confirmed}
    unchanged = [path for path in indexed if files.fingerprint(path) == indexed[path]]
    part = expected_rows_of_files(unchanged, files, recipe, count_tokens)
    differences = list(_compare_rows(part.rows_by_id, catalog, store))
    path_by_recorded_id = {
        chunk.chunk_id: path
        for path, record in entries
        if path in unchanged
        for chunk in record.chunks
    }
    differences += [
        Difference(DifferenceKind.EXTRA, path_by_recorded_id[chunk_id], chunk_id)
        for chunk_id in path_by_recorded_id.keys() - part.rows_by_id.keys()
    ]
    return [
        each
        for each in differences
        if each.origin not in part.changing_files
        and files.fingerprint(each.origin) == indexed[each.origin]
    ]


def _has_indexed_size(origin: RootedPath, content: FileContent) -> bool:
    return content.fingerprint.size <= MAX_FILE_BYTES or is_exchange_path(origin.path)


def _compare_rows(
    expected: _ExpectedById, catalog: Catalog, store: ChunkStore
) -> Iterator[Difference]:
    """Yield at most one difference of each row: the most basic one."""
    ids = list(expected)
    locations = catalog.locate_chunks(ids)
    stored_ids: set[str] = set()
    corrupt_ids = set(store.find_corrupt_ids(ids))
    for row in store.get_rows(ids):
        origin, prepared = expected[row.id]
        if row.id in stored_ids:
            yield Difference(DifferenceKind.DUPLICATE, origin, row.id)
        elif row.id in corrupt_ids:
            yield Difference(DifferenceKind.SPOILED, origin, row.id)
        elif store.as_stored(prepared.row) != row:
            yield Difference(DifferenceKind.TEXT, origin, row.id)
        stored_ids.add(row.id)
    for chunk_id, (origin, prepared) in expected.items():
        location = locations.get(chunk_id)
        expected_place = (origin, prepared.start_line, prepared.end_line)
        if chunk_id not in stored_ids:
            yield Difference(DifferenceKind.MISSING, origin, chunk_id)
        elif location is None or location[:3] != expected_place:
            yield Difference(DifferenceKind.LINES, origin, chunk_id)


def _find_extra_rows(
    store: ChunkStore, expected_ids: set[str], held: Sequence[RootedPath]
) -> Iterator[Difference]:
    unexpected_ids = [row_id for row_id in store.all_ids() if row_id not in expected_ids]
    rows = {row.id: row for row in store.get_rows(unexpected_ids)}
    for row_id in unexpected_ids:
        row = rows.get(row_id)
        if row is None:
            yield Difference(DifferenceKind.EXTRA, UNKNOWN_FILE, row_id)
        elif not _is_held(row, held):
            yield Difference(DifferenceKind.EXTRA, RootedPath(row.root, row.path), row_id)


def _is_held(row: Row, held: Sequence[RootedPath]) -> bool:
    held_paths = (escape_non_utf8(each.path) for each in held if each.root == row.root)
    return any(_covers(held_path, row.path) for held_path in held_paths)


def _covers(held_path: str, path: str) -> bool:
    is_folder = not held_path or held_path.endswith("/")
    return path.startswith(held_path) if is_folder else path == held_path


def _compare_vectors(
    batch: Sequence[SampledRow], store: ChunkStore, models: Models
) -> Iterator[Difference]:
    """Embed texts again, each by its own model; yield the rows whose stored vector differs."""
    if not batch:
        return
    stored = store.vectors_by_id([each.row_id for each in batch])
    fresh = models.embed({each.vector_key: each.embed_text for each in batch})
    for row_id, origin, key, _ in batch:
        stored_vector, fresh_vector = stored.get(row_id), fresh[key]
        if stored_vector is None:
            continue  # The row is reported as missing, or counted as without a vector.
        is_unembeddable = not any(stored_vector) and not any(fresh_vector)
        # `not >=` and not `<`: a cosine that is not a number differs as well.
        if not is_unembeddable and not cosine(stored_vector, fresh_vector) >= _MIN_COSINE:
            yield Difference(DifferenceKind.VECTOR, origin, row_id)


def cosine(a: Vector, b: Vector) -> float:
    """Return the cosine of two vectors; 0 if one is all zeros or their sizes differ."""
    left, right = array("f", a), array("f", b)
    if len(left) != len(right):
        return 0.0
    product = sum(x * y for x, y in zip(left, right, strict=True))
    lengths = math.hypot(*left) * math.hypot(*right)
    return product / lengths if lengths else 0.0
