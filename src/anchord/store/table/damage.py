"""Find and repair lost, cut and altered files of a local table, and salvage vectors from its files.

Facts this relies on (measured, lance 13):
- Lance never changes a file once it is written. A file whose size or time differs is damaged, and
  one that is gone is missed only if the newest version still refers to it.
- Old handles go on for a while without a lost file: manifests, indices and deletion files are
  cached. Only a fresh handle sees what is on disk.
- A commit that drops fragments reads no data file, so it works when these are lost. The data files
  stay on disk until old versions are deleted, and their intact rows can be read one range at a
  time.

The writer runs these functions, between two commits.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anchord.core.ids import is_due
from anchord.core.ports import HeartbeatCallback
from anchord.core.types import Vector
from anchord.errors import StoreError
from anchord.store.table.arrow_vectors import ArrowBatch, iter_vectors
from anchord.store.table.compaction import (
    PylanceDataset,
    update_vector_index,
)
from anchord.store.table.event_loop import run_sync
from anchord.store.table.lance_errors import (
    LANCE_ERRORS,
    first_line,
    panics_as_errors,
    raise_if_unavailable,
)
from anchord.store.table.maintenance import rebuild_indices
from anchord.store.table.schema import (
    checksummed_columns,
    corrupt_row_ids,
    unknown_columns,
)
from anchord.store.table.version_files import (
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDEX_FOLDER,
    VERSIONS_FOLDER,
    ManifestError,
    manifest_version,
    newest_manifest,
    read_version_files,
)

FileStamps = Mapping[str, tuple[int, int]]
"""Path in the table's folder -> (size in bytes, modification time in nanoseconds)."""

_LISTED_FOLDERS = (DATA_FOLDER, DELETIONS_FOLDER, INDEX_FOLDER, VERSIONS_FOLDER)
_VERSION_HINT = "latest_version_hint.json"
_READ_ROWS = 1_024
_WENT_BACK = "the newest version of the table was damaged: went back to the one before"
_MAGIC = b"LANC"
"""The last bytes of a manifest. Lance reads one that is all NUL as a table without columns."""
_REBUILD_TIMEOUT_S = 1_800.0
_MAX_SALVAGED_BYTES = 1 << 30
"""Salvaging reads at most so many bytes of files, the newest first: about three seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRepair:
    """What a repair did."""

    repairs: tuple[str, ...] = ()
    """A sentence for each thing that was damaged."""
    corrupt_ids: tuple[str, ...] = ()
    """Rows whose bytes do not match their checksum; they are still in the table."""
    is_readable: bool = True
    """False if no version of the table opens: it must be moved aside and rebuilt."""


def list_table_files(table: Path) -> FileStamps:
    """List the files that a table is made of; empty without such a folder. Never raises.

    Costs about 5 µs a file.
    """
    found: dict[str, tuple[int, int]] = {}
    folders = list(_LISTED_FOLDERS)
    while folders:
        folder = folders.pop()
        with suppress(OSError), os.scandir(table / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.name != _VERSION_HINT and not entry.name.startswith(".tmp"):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        found[path] = (status.st_size, status.st_mtime_ns)
    return found


def find_altered_files(table: Path, before: FileStamps, now: FileStamps) -> set[str]:
    """Return the files of a table's newest version that are lost, cut, or not as they were.

    Files that the newest version does not refer to do not count: maintenance deletes them.

    Args:
        table: The table's folder.
        before: An earlier listing, empty if there is none. A file that is as it was listed then
            is right; any other must exist, with the size that the manifest says. And the newest
            version must not be older than it was.
        now: What is listed now.

    Returns:
        Their paths; empty without a table, before and now. Never raises: a manifest that cannot be
        read is among them.
    """
    former, newest = _newest_manifest(before), _newest_manifest(now)
    gone_back = {former} if former and _version(former) > _version(newest) else set[str]()
    if not newest:
        return gone_back
    try:
        needed = read_version_files(table)
    except ManifestError:
        return gone_back if before.get(newest) == now[newest] else gone_back | {newest}
    except OSError:
        return gone_back | {newest}
    return gone_back | {
        path for path, size in needed.items() if _is_altered(path, size, before, now)
    }


def _is_altered(path: str, size: int | None, before: FileStamps, now: FileStamps) -> bool:
    if path not in now:
        return True
    if path in before:
        return before[path] != now[path]
    return size is not None and size != now[path][0]


def _newest_manifest(files: FileStamps) -> str:
    """Return the path of the manifest of the newest version among listed files, "" if none is."""
    prefix = f"{VERSIONS_FOLDER}/"
    name = newest_manifest(path.removeprefix(prefix) for path in files if path.startswith(prefix))
    return prefix + name if name else ""


def _version(manifest: str) -> int:
    """Return the version of a manifest by its path, -1 without one."""
    version = manifest_version(manifest.rpartition("/")[2])
    return -1 if version is None else version


def repair_table(
    table: Path,
    altered_files: Collection[str],
    damaged_folder: Path,
    heartbeat: HeartbeatCallback,
    *,
    rebuild_indices: bool = False,
) -> TableRepair:
    """Read the whole newest version; drop what cannot be read, and rebuild damaged indices.

    The rows of a dropped fragment are missing afterwards: compare the table with the catalog. Every
    handle on the table must be opened again.

    Args:
        table: The table's folder.
        altered_files: Paths in it that are known to be lost or changed. An index whose file is
            among them is rebuilt.
        damaged_folder: Where manifests go that cannot be opened; created if needed.
        heartbeat: Called with each batch of rows.
        rebuild_indices: Rebuild the indices in any case.

    Raises:
        StoreUnavailableError: A file cannot be read or written now: there is no permission, the
            disk is full, and the like. Nothing was dropped.
        StoreError: Lance cannot write.
    """
    try:
        dataset, repairs = _open_newest(table, damaged_folder)
        if dataset is None:
            return TableRepair(repairs=tuple(repairs), is_readable=False)
        damaged_ids, corrupt_ids = _read_all(dataset, heartbeat)
        is_index_damaged = _is_index_damaged(table, altered_files)
        if damaged_ids:
            _drop_fragments(dataset, damaged_ids)
            repairs.append(
                f"{len(damaged_ids)} data files of the table were lost or damaged: "
                "their rows are written again"
            )
        if is_index_damaged or rebuild_indices:
            heartbeat(_REBUILD_TIMEOUT_S)
            _rebuild_all_indices(table)
            repairs.append("files of a search index were lost or damaged: the index is built again")
    except LANCE_ERRORS as error:
        raise_if_unavailable(f"the table in {table.parent}", error)
        raise StoreError(
            f"the table cannot be read and repaired: {first_line(error)}",
            "check the disk and its free space; `anchord rebuild` makes a new index",
        ) from error
    return TableRepair(
        repairs=tuple(repairs),
        corrupt_ids=tuple(corrupt_ids),
    )


def _open_newest(table: Path, damaged_folder: Path) -> tuple[PylanceDataset | None, list[str]]:
    """Open the newest version that opens, and move the manifests of newer ones away.

    Returns:
        The version, None if none opens; a sentence if a manifest was moved.
    """
    import lance  # noqa: PLC0415 - 0.4 s and 80 MB, and rarely needed

    versions = table / VERSIONS_FOLDER
    repairs: list[str] = []
    # Not `glob`: it finds nothing in a folder that cannot be read.
    names = os.listdir(versions) if versions.exists() else []
    numbers = {number: name for name in names if (number := manifest_version(name)) is not None}
    for manifest in [versions / numbers[number] for number in sorted(numbers, reverse=True)]:
        try:
            with panics_as_errors():
                _require_magic(manifest)
                dataset = lance.dataset(str(table))
                if unknown := unknown_columns(dataset.schema):
                    raise ValueError(f"the manifest names unknown columns: {sorted(unknown)}")
                fields = [field.id() for field in dataset.lance_schema.fields()]
                if len(set(fields)) < len(fields):
                    raise ValueError("the manifest has two columns in one place")
                return dataset, repairs
        except LANCE_ERRORS as error:
            raise_if_unavailable(str(table), error)
            damaged_folder.mkdir(parents=True, exist_ok=True)
            shutil.move(manifest, damaged_folder / manifest.name)
            (versions / _VERSION_HINT).unlink(missing_ok=True)
            repairs = [f"{_WENT_BACK} (the damaged files are in {damaged_folder})"]
    return None, repairs


def _require_magic(manifest: Path) -> None:
    """Return if a manifest ends as Lance ends it.

    Raises:
        ValueError: It does not.
        OSError: It cannot be read.
    """
    if not manifest.read_bytes().endswith(_MAGIC):
        raise ValueError("the manifest was overwritten")


def _read_all(dataset: PylanceDataset, heartbeat: HeartbeatCallback) -> tuple[list[int], list[str]]:
    """Read every row; return the ids of unreadable fragments, and those of corrupt rows."""
    damaged_ids: list[int] = []
    corrupt_ids: list[str] = []
    checksummed = checksummed_columns(dataset.schema)
    for fragment in dataset.get_fragments():
        try:
            with panics_as_errors():
                for batch in fragment.to_batches(batch_size=_READ_ROWS):
                    heartbeat(0)
                    corrupt_ids += _corrupt_ids(batch, checksummed)
        except LANCE_ERRORS as error:
            raise_if_unavailable(dataset.uri, error)
            damaged_ids.append(fragment.fragment_id)
    return damaged_ids, corrupt_ids


def _drop_fragments(dataset: PylanceDataset, fragment_ids: list[int]) -> None:
    import lance  # noqa: PLC0415 - likewise

    operation = lance.LanceOperation.Delete([], fragment_ids, "false")
    lance.LanceDataset.commit(
        dataset.uri,
        operation,
        read_version=dataset.version,
    )


def _rebuild_all_indices(table: Path) -> None:
    import lance  # noqa: PLC0415 - likewise

    run_sync(rebuild_indices(table))
    update_vector_index(lance.dataset(str(table)), rebuild=True)


def _corrupt_ids(batch: ArrowBatch, checksummed: Sequence[str]) -> Iterator[str]:
    """Yield the ids of corrupt rows; none for a table of a schema without checksums."""
    if "checksum" in batch.schema.names:
        yield from corrupt_row_ids(batch, checksummed)


def _is_index_damaged(table: Path, altered_files: Collection[str]) -> bool:
    """Whether an index of the newest version lacks files, or some of them were altered."""
    altered = {*altered_files, *find_altered_files(table, {}, list_table_files(table))}
    return any(path.startswith(f"{INDEX_FOLDER}/") for path in altered)


def salvage_vectors(
    table: Path, other_folders: Sequence[Path], is_wanted: Callable[[str], bool]
) -> Iterator[dict[str, Vector]]:
    """Read vectors from data files that the newest version of the table does not refer to.

    These are the files of dropped fragments, and of other versions. A row whose checksum is wrong
    is left out, and so is a range of rows that cannot be read.

    Args:
        table: The table's folder.
        other_folders: More folders with data files, of tables that were moved aside.
        is_wanted: Says of a vector key whether its vector is worth keeping.

    Yields:
        Vector key -> vector, for a range of rows.
    """
    in_use: Collection[str] = ()
    with suppress(ManifestError, OSError):
        in_use = read_version_files(table)
    data = (table / DATA_FOLDER).glob("*.lance")
    unused = [file for file in data if f"{DATA_FOLDER}/{file.name}" not in in_use]
    for folder in other_folders:
        unused += folder.glob("*.lance")
    bytes_left = _MAX_SALVAGED_BYTES
    for file in sorted(unused, key=lambda file: file.stat().st_mtime_ns, reverse=True):
        size = file.stat().st_size
        bytes_left -= size
        if bytes_left < 0:
            return
        if not size:
            continue  # Lance panics at an empty file, which no `except Exception` catches.
        for batch in _read_ranges(file):
            vectors = _intact_vectors(batch)
            wanted = {key: vector for key, vector in vectors.items() if is_wanted(key)}
            if wanted:
                yield wanted


def _read_ranges(file: Path) -> Iterator[Any]:
    """Yield the rows of a data file a range at a time, but for those that cannot be read."""
    from lance.file import LanceFileReader  # noqa: PLC0415 - likewise

    try:
        with panics_as_errors():
            reader = LanceFileReader(str(file))
            row_count = reader.metadata().num_rows
    except LANCE_ERRORS:
        return
    for start in range(0, row_count, _READ_ROWS):
        with suppress(*LANCE_ERRORS), panics_as_errors():
            count = min(_READ_ROWS, row_count - start)
            yield from reader.read_range(start, count).to_table().to_batches()


def _intact_vectors(batch: ArrowBatch) -> dict[str, Vector]:
    """Return vector key -> vector of the rows whose checksum is right, and whose vector is theirs.

    Empty without checksums.
    """
    if not {"id", "text", "checksum", "vector", "vector_key"} <= set(batch.schema.names):
        return {}  # Or a file of vectors alone, whose checksums cover texts of other files.
    corrupt = set(corrupt_row_ids(batch, checksummed_columns(batch.schema)))
    rows = zip(
        batch["id"].to_pylist(), batch["vector_key"].to_pylist(), iter_vectors(batch), strict=True
    )
    return {
        key: vector for row_id, key, vector in rows if row_id not in corrupt and not is_due(key)
    }
