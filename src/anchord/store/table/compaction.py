"""Compaction by pylance, and the child process that runs it to bound the daemon's memory.

`python -m anchord.store.table.compaction` reads requests from its input and writes an answer to
each, frame by frame, until the input ends. The writer waits for each answer, so compaction never
runs beside a write.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from anchord.ipc.framing import read_frame, write_frame
from anchord.ipc.worker_process import WorkerProcess, WorkerProcessError, die_with_parent
from anchord.store.table.lance_errors import LANCE_ERRORS, describe, panics_as_errors
from anchord.store.table.vector_columns import vector_columns
from anchord.store.table.version_files import delete_damaged_versions, read_version_files

TARGET_FRAGMENT_ROWS = 65_536
SMALL_FRAGMENT_ROWS = 8_192
"""Larger fragments are rewritten only together with all others: one of 65,536 rows takes 100 MB."""
_MUCH_LARGER = 3
MIN_VECTOR_INDEX_ROWS = 20_000
"""Below this, comparing a query with every vector takes at most 20 ms."""
_ROWS_PER_PARTITION = 8_192
"""The partition size that Lance aims at when it builds the vector index."""
_OUTGROWN_FACTOR = 4
_ID_INDEX_NAME = "id_idx"
COMPACTION_TIMEOUT_S = 1_800.0
"""After this the compaction process is killed."""
_IDLE_S = 120.0

_THE_TABLE = "the table"

PylanceDataset = Any
"""A `lance.LanceDataset`; pylance ships no types."""

Step = tuple[str, Callable[[], object]]
"""(the name of a step, in messages; what to call)."""


class CompactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with a table."""

    dataset: str
    """The table's uri for pylance."""
    merge: bool
    """Whether to merge the newest parts of the indices into one."""
    merge_all: bool = False
    """Whether to merge all their parts, and all fragments, into as few as possible; `merge` too."""
    kept_s: float | None
    """Delete versions older than this many seconds; None deletes none."""


def compact_table(
    request: CompactionRequest, verified_fragments: set[str] | None = None
) -> list[str]:
    """Merge small fragments, update the indices, and delete old versions. Blocks.

    A step that fails does not stop the others. But old versions are deleted only once every
    fragment of the newest version was read whole.

    Args:
        request: What to do.
        verified_fragments: Names of fragments that an earlier call read whole and that need not be
            read again, because a written file never changes. Updated in place.

    Returns:
        A message for each step that failed.
    """
    import lance  # noqa: PLC0415 - 0.4 s and 80 MB

    try:
        with panics_as_errors():
            dataset = lance.dataset(request.dataset)
    except LANCE_ERRORS as error:
        return [f"the table cannot be opened: {describe(_THE_TABLE, error)}"]
    part_count, all_parts = 0, False
    if request.merge:
        part_count, all_parts = index_parts_to_merge(dataset, merge_all=request.merge_all)
    fragment_rows = TARGET_FRAGMENT_ROWS if all_parts else SMALL_FRAGMENT_ROWS
    compact: Step = (
        "compacting",
        lambda: dataset.optimize.compact_files(target_rows_per_fragment=fragment_rows),
    )
    index: Step = (
        "indexing",
        lambda: dataset.optimize.optimize_indices(num_indices_to_merge=part_count),
    )
    # Lance merges only fragments that the same parts of all indices cover. So a merge of index
    # parts comes first, and lets more fragments become one.
    steps = [index, compact] if request.merge else [compact, index]
    steps.append(("indexing vectors", lambda: update_vector_index(dataset)))
    if request.kept_s is not None:
        min_age = timedelta(seconds=request.kept_s)
        verified = set[str]() if verified_fragments is None else verified_fragments

        def delete_old_versions() -> None:
            newest = lance.dataset(request.dataset)
            verify_fragments(newest, verified)
            fsync_newest_version(newest)
            if (table := Path(dataset.uri.removeprefix("file://"))).is_dir():
                delete_damaged_versions(table)
            dataset.cleanup_old_versions(older_than=min_age)

        steps.append(("deleting old versions", delete_old_versions))
    return _run_steps(steps)


def _run_steps(steps: Iterable[Step]) -> list[str]:
    """Run each step; return a message for each that failed."""
    problems = []
    for name, step in steps:
        try:
            with panics_as_errors():
                step()
        except LANCE_ERRORS as error:
            problems.append(f"{name} failed: {describe(_THE_TABLE, error)}")
    return problems


def verify_fragments(dataset: PylanceDataset, verified_fragments: set[str]) -> None:
    """Read the ids of all fragments that were not verified before.

    Args:
        dataset: The table.
        verified_fragments: Names of fragments to skip. On success it holds exactly the names of the
            present fragments.

    Raises:
        OSError: A fragment has fewer rows than it should.
        RuntimeError: A file cannot be read; also ValueError.
    """
    fragments_by_name = {_fragment_name(each): each for each in dataset.get_fragments()}
    unread = [
        fragment for name, fragment in fragments_by_name.items() if name not in verified_fragments
    ]
    if unread:
        expected = sum(fragment.count_rows() for fragment in unread)
        found = dataset.scanner(columns=["id"], fragments=unread).to_table().num_rows
        if found != expected:
            raise OSError("the table cannot be read as a whole")
    verified_fragments.clear()
    verified_fragments.update(fragments_by_name)


def _fragment_name(fragment: Any) -> str:  # noqa: ANN401 - pylance ships no types
    """Return the files that a fragment's rows are read from; deleting rows adds or replaces one."""
    data_files = [file.path for file in fragment.data_files()]
    return " ".join([*data_files, str(fragment.deletion_file())])


def index_parts_to_merge(dataset: PylanceDataset, *, merge_all: bool = False) -> tuple[int, bool]:
    """Decide how many of its newest parts an index should merge into one.

    From the newest part back, a part is included if it has at most 8,192 rows, or at most three
    times the rows of all newer ones. So a row is rewritten a few times in its life, however large
    the table gets, and the parts stay few. Every search looks into each part.

    Returns:
        The number of parts, and whether that is all parts.
    """
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in dataset.get_fragments()}
    parts = _id_index_parts(dataset)
    merged_parts = 0
    merged_rows = 0
    for part in sorted(parts, key=lambda part: part.dataset_version_at_last_update, reverse=True):
        part_rows = sum(rows.get(fragment_id, 0) for fragment_id in part.fragment_ids)
        is_much_larger = part_rows > max(SMALL_FRAGMENT_ROWS, _MUCH_LARGER * merged_rows)
        if is_much_larger and not merge_all:
            break
        merged_parts += 1
        merged_rows += part_rows
    return merged_parts, merged_parts == len(parts)


def _id_index_parts(dataset: PylanceDataset) -> list[Any]:
    """Return the parts of the index of `id`, which stands for all: they are maintained together."""
    for index in dataset.describe_indices():
        if index.name == _ID_INDEX_NAME:
            return list(index.segments)
    return []


def fsync_newest_version(dataset: PylanceDataset) -> None:
    """Flush all files of the newest version to the disk; does nothing for a remote store.

    Lance leaves flushing to the system, which takes half a minute. A power loss in that time could
    damage the newest versions when the older ones are already deleted.

    Raises:
        ManifestError: The newest version is damaged.
        OSError: A file cannot be opened or flushed.
    """
    table = Path(dataset.uri.removeprefix("file://"))
    if not table.is_dir():
        return
    files = [table / path for path in read_version_files(table)]
    folders = {file.parent for file in files}
    for path in [*files, *folders, table / "_indices", table]:
        _fsync(path)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def update_vector_index(dataset: PylanceDataset, *, rebuild: bool = False) -> None:
    """Build the vector index of each model's vectors if the table needs a new one. Blocks.

    It is built at 20,000 vectors, and rebuilt once there are four times those that its partitions
    are meant for. The index stores one byte for each float32; what it finds is compared again with
    the vectors themselves.

    Args:
        dataset: The table.
        rebuild: Rebuild an existing index in any case.

    Raises:
        OSError: Lance could not build it; also RuntimeError and ValueError.
    """
    for column in vector_columns(dataset.schema.names):
        _update_vector_index(dataset, column, rebuild=rebuild)


def _update_vector_index(dataset: PylanceDataset, column: str, *, rebuild: bool) -> None:
    # Rows that wait for their vectors do not count: an index of few vectors is trained badly.
    rows = dataset.count_rows(f"{column} IS NOT NULL")
    name = f"{column}_idx"
    exists = any(index.name == name for index in dataset.describe_indices())
    if exists:
        due = rebuild or _has_outgrown_vector_index(dataset, name, rows)
    else:
        due = rows >= MIN_VECTOR_INDEX_ROWS
    if not due:
        return
    dataset.create_index(
        column,
        "IVF_SQ",
        name=name,
        metric="cosine",
        replace=True,
        sample_rate=32,
        max_iterations=8,
    )


def _has_outgrown_vector_index(dataset: PylanceDataset, name: str, rows: int) -> bool:
    # Only the number of partitions is read: without this, the statistics list every centroid.
    os.environ["LANCE_INCLUDE_VECTOR_CENTROIDS"] = "false"
    statistics = dataset.stats.index_stats(name)
    # Missing if every row that it covered was written again since.
    partitions = statistics["indices"][0].get("num_partitions", 0)
    return bool(rows > _OUTGROWN_FACTOR * _ROWS_PER_PARTITION * partitions)


@dataclass(slots=True)
class CompactionWorker:
    """Runs compaction in a child process, started on demand and stopped by `stop_if_idle`."""

    lock_fd: int
    """The writer lock's file descriptor.

    The child inherits it: if this process is killed, no other writer can start while the child is
    still working.
    """
    _child: WorkerProcess | None = None
    _last_used: float = field(default=0.0)

    def __call__(self, request: CompactionRequest) -> list[str]:
        """Run `compact_table` in the child process, for at most half an hour, and wait for it.

        Returns:
            A message for each step that failed, or one if the process failed.
        """
        try:
            child = self._start_if_needed()
            answer = child.call_or_kill(COMPACTION_TIMEOUT_S, msgspec.to_builtins(request))
        except WorkerProcessError as error:
            self.close()
            return [f"the compaction process {error}"]
        self._last_used = time.monotonic()
        problems = answer.get("problems")
        if not isinstance(problems, list):
            return ["the compaction process gave no answer"]
        return [str(problem) for problem in problems]

    def _start_if_needed(self) -> WorkerProcess:
        if self._child is None or not self._child.is_alive:
            self.close()
            self._child = WorkerProcess(
                "anchord.store.table.compaction", (), os.environ, (self.lock_fd,)
            )
        return self._child

    def stop_if_idle(self) -> None:
        """Stop the process if its last request ended more than two minutes ago."""
        if self._child and time.monotonic() - self._last_used > _IDLE_S:
            self.close()

    def close(self) -> None:
        """Stop the process, if it runs."""
        child, self._child = self._child, None
        if child:
            child.shut_down()


def main() -> None:
    """Answer requests until the input ends."""
    die_with_parent()
    # Answers get a descriptor of their own: what a library prints must not corrupt a frame.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    verified_fragments: set[str] = set()
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        request = msgspec.convert(frame, CompactionRequest)
        write_frame(answers, {"problems": compact_table(request, verified_fragments)})


if __name__ == "__main__":
    main()
