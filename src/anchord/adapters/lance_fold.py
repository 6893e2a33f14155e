"""The steps of a fold, which only pylance can do; and the program that does them beside the daemon, for their memory.

`python -m anchord.adapters.lance_fold` reads orders and answers with what failed, frame by frame, until its input ends. The
writer waits for each answer, so it never works beside a write.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from anchord.adapters.child import Child, ChildError, die_with_parent
from anchord.adapters.frames import read_frame, write_frame

FRAGMENT_ROWS = 65_536
SMALL_ROWS = 8_192
"""Fragments of more are written again only together with all others: one of 65,536 takes 100 MB."""
_MUCH_LARGER = 3
VECTOR_INDEX_ROWS = 20_000
"""With fewer rows, comparing with every vector as it is takes no longer than 20 ms."""
_PARTITION_ROWS = 8_192
_OUTGROWN = 4
_VECTOR_INDEX = "vector_idx"
_IDS = "id_idx"
"""Upkeep treats all indices alike: this one tells for all."""
TROUBLE = (RuntimeError, OSError, ValueError)
FOLD_S = 1_800.0
"""After so long the process is given up."""
_IDLE_S = 120.0


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with a table."""

    dataset: str
    merge: bool
    """Whether the newest parts of the indices become one."""
    kept_s: float | None
    """Younger versions stay; None: all of them."""


def fold(order: Order, read: set[str] | None = None) -> list[str]:
    """Fold small fragments, bring the indices up to date, drop old versions; return what failed. Each step is tried.

    Nothing is dropped before every fragment of the newest version was read whole: now, or at an earlier fold, of which `read`
    tells, for what is written once is never changed.
    """
    import lance  # noqa: PLC0415 - 0.4 s and 80 MB

    try:
        dataset = lance.dataset(order.dataset)
    except TROUBLE as error:
        return [f"the table cannot be opened: {words(error)}"]
    parts, whole = newest_parts(dataset) if order.merge else (0, False)
    rows = FRAGMENT_ROWS if whole else SMALL_ROWS
    steps: list[tuple[str, Callable[[], object]]] = [
        ("folding", lambda: dataset.optimize.compact_files(target_rows_per_fragment=rows)),
        ("indexing", lambda: dataset.optimize.optimize_indices(num_indices_to_merge=parts)),
        ("indexing vectors", lambda: index_vectors(dataset)),
    ]
    if order.merge:
        steps[:2] = reversed(steps[:2])  # Only fragments that lie in the same parts of all indices can become one.

    def drop() -> None:
        newest = lance.dataset(order.dataset)
        read_whole(newest, set() if read is None else read)
        flush(newest)
        dataset.cleanup_old_versions(older_than=timedelta(seconds=order.kept_s or 0))

    if order.kept_s is not None:
        steps.append(("dropping old versions", drop))
    return list(_tried(steps))


def read_whole(dataset: Any, read: set[str]) -> None:  # noqa: ANN401 - pylance ships no types
    """Read the ids of all fragments but those already `read`, and take them into it.

    Raises:
        OSError: there are not as many as rows. RuntimeError, ValueError: a file cannot be read.
    """
    names = {_name(fragment): fragment for fragment in dataset.get_fragments()}
    unread = [fragment for name, fragment in names.items() if name not in read]
    found = dataset.scanner(columns=["id"], fragments=unread).to_table().num_rows if unread else 0
    if found != sum(fragment.count_rows() for fragment in unread):
        raise OSError("the table cannot be read as a whole")
    read.clear()
    read.update(names)


def _name(fragment: Any) -> str:  # noqa: ANN401 - likewise
    """Name a fragment with all that its rows are read from: deleting some adds a file."""
    return " ".join([*(file.path for file in fragment.data_files()), str(fragment.deletion_file())])


def newest_parts(dataset: Any) -> tuple[int, bool]:  # noqa: ANN401 - pylance ships no types
    """Return of how many of its newest parts an index is to become one, and whether those are all.

    As far back as a part is small, or not much larger than all that are newer: a row is written again a few times in its life,
    however large the table gets, and the parts stay few. Every search looks into each.
    """
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in dataset.get_fragments()}
    parts = next((index.segments for index in dataset.describe_indices() if index.name == _IDS), ())
    count = newer = 0
    for part in sorted(parts, key=lambda part: part.dataset_version_at_last_update, reverse=True):
        held = sum(rows.get(each, 0) for each in part.fragment_ids)
        if held > max(SMALL_ROWS, _MUCH_LARGER * newer):
            break
        count, newer = count + 1, newer + held
    return count, count == len(parts)


def flush(dataset: Any) -> None:  # noqa: ANN401 - pylance ships no types
    """Have the newest version on the disk itself. Lance leaves that to the system, which takes half a minute.

    Without it a power loss could spoil the newest versions when the older ones are gone already.
    """
    table = Path(dataset.uri.removeprefix("file://"))
    if not table.is_dir():
        return  # A remote store keeps what it was given.
    fragments = dataset.get_fragments()
    files = [table / "data" / file.path for fragment in fragments for file in fragment.data_files()]
    files += [table / deleted for fragment in fragments if (deleted := fragment.deletion_file())]
    parts = [table / "_indices" / str(part.uuid) for index in dataset.describe_indices() for part in index.segments]
    files += [file for part in parts for file in part.iterdir()]
    numbers = (dataset.version, 2**64 - 1 - dataset.version)
    files += [file for number in numbers if (file := table / "_versions" / f"{number}.manifest").exists()]
    for path in [*files, *{file.parent for file in files}, table / "_indices", table]:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def index_vectors(dataset: Any, *, anew: bool = False) -> None:  # noqa: ANN401 - pylance ships no types
    """Make the index of vectors, where there are so many that it pays: anew when asked for, or when the table outgrew it.

    One byte a number instead of four; what it finds is compared again with the vectors as they are.
    """
    rows = dataset.count_rows()
    there = any(index.name == _VECTOR_INDEX for index in dataset.describe_indices())
    if there and not anew:
        os.environ["LANCE_INCLUDE_VECTOR_CENTROIDS"] = "false"  # Of the statistics only the count of parts is read.
        partitions = dataset.stats.index_stats(_VECTOR_INDEX)["indices"][0]["num_partitions"]
        anew = rows > _OUTGROWN * _PARTITION_ROWS * partitions
    if anew if there else rows >= VECTOR_INDEX_ROWS:
        dataset.create_index(
            "vector", "IVF_SQ", name=_VECTOR_INDEX, metric="cosine", replace=True, sample_rate=32, max_iterations=8
        )


@dataclass(slots=True)
class Folding:
    """Folds in a process of its own, which is started when there is something to fold and ends after a while without.

    `lock`: the open file of the writer's lock. The process keeps it, so that no other writer begins while it still works after
    this one was killed.
    """

    lock: int
    _child: Child | None = None
    _last_used: float = field(default=0.0)

    def __call__(self, order: Order) -> list[str]:
        """Do what `fold` does."""
        try:
            if self._child is None or not self._child.alive:
                self.close()
                self._child = Child("anchord.adapters.lance_fold", (), os.environ, (self.lock,))
            answer = self._child.answer(FOLD_S, msgspec.to_builtins(order))
        except ChildError as error:
            self.close()
            return [f"the process that folds the table {error}"]
        self._last_used = time.monotonic()
        problems = answer.get("problems")
        return list(map(str, problems)) if isinstance(problems, list) else ["the process that folds the table gave no answer"]

    def rest(self) -> None:
        """End the process when it has had nothing to do for a while; called now and then."""
        if self._child and time.monotonic() - self._last_used > _IDLE_S:
            self.close()

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child:
            child.end()


def words(error: BaseException) -> str:
    """Return an error's first line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _tried(steps: Sequence[tuple[str, Callable[[], object]]]) -> Iterator[str]:
    for name, step in steps:
        try:
            step()
        except TROUBLE as error:
            yield f"{name} failed: {words(error)}"


def main() -> None:
    """Fold until the input ends."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    read: set[str] = set()
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        write_frame(answers, {"problems": fold(msgspec.convert(frame, Order), read)})


if __name__ == "__main__":
    main()
