"""Three forms of rows whose vectors come after their texts: bytes, CPU, index upkeep, search.

    python tests/tools/benchmarks/bench_forms.py [--rows 20000]

- partial: rows with a null vector; a merge by id writes the vector columns alone. This is what anchord does.
- upserts: rows with a null vector; a merge by id writes whole rows again.
- column: rows without a column of vectors; it is added as a file of its own for each fragment, once all are made.

Vectors are random and are added 256 rows at a time, but for `column`, which can only add all at once. The table is compacted
after every 48 writes, as anchord does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lancedb
import numpy as np
import pyarrow as pa
from figures import quantile, table
from invented import article
from lancedb.index import FTS, BTree

from anchord.store.table.compaction import SMALL_FRAGMENT_ROWS

_DIMENSION = 384
_ROWS_PER_WORDS_WRITE = 512
_ROWS_PER_FILL = 256
_WRITES_PER_COMPACTION = 48
_SEARCHES = 50
_VECTOR = pa.list_(pa.float32(), _DIMENSION)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    rows = parser.parse_args().rows
    texts = [article(number, 2)[:1_200] for number in range(rows)]
    vectors = np.random.default_rng(1).standard_normal((rows, _DIMENSION)).astype("f4")
    measured = []
    for form in (_partial, _upserts, _column):
        with tempfile.TemporaryDirectory(prefix="anchord-b-") as base:
            measured.append((form.__name__[1:], *_measure(Path(base), form, texts, vectors)))
    heads = (
        "form", "words, CPU a row", "vectors, CPU a row", "bytes a row", "and compacted",
        "unindexed rows", "search p50", "while filling",
    )  # fmt: skip
    print(table(heads, measured))


class _Table:
    """A table as anchord writes it, with fewer columns of text."""

    def __init__(self, base: Path, texts: list[str], *, has_vectors: bool) -> None:
        """Create it with its indices."""
        self.folder = base / "t.lance"
        self.texts = texts
        self.has_vectors = has_vectors
        names = ("id", "path", "vector_key", "text", "search_text")
        fields = [pa.field(name, pa.string()) for name in names]
        fields += [pa.field("vector", _VECTOR)] if has_vectors else []
        self.schema = pa.schema([*fields, pa.field("checksum", pa.int64())])
        self.table = lancedb.connect(str(base)).create_table("t", schema=self.schema)
        for column in ("id", "path", "vector_key"):
            self.table.create_index(column, config=BTree())
        self.table.create_index("search_text", config=FTS(with_position=False))
        self.writes = 0

    def batch(self, first: int, count: int, vectors: Any = None) -> pa.Table:  # noqa: ANN401 - numpy
        """Return rows, with their vectors or with nulls."""
        numbers = range(first, min(first + count, len(self.texts)))
        texts = [self.texts[number] for number in numbers]
        mark = "" if vectors is not None else "~"
        columns: dict[str, Any] = {
            "id": [f"{number:032x}" for number in numbers],
            "path": [f"notes/{number // 20}.md" for number in numbers],
            "vector_key": [f"{mark}{number * 7_919:032x}" for number in numbers],
            "text": texts,
            "search_text": texts,
            "checksum": list(numbers),
        }
        if self.has_vectors:
            columns["vector"] = _arrow(vectors, first, len(texts))
        return pa.table({name: columns[name] for name in self.schema.names}, schema=self.schema)

    def wrote(self) -> None:
        """Compact after so many writes."""
        self.writes += 1
        if self.writes % _WRITES_PER_COMPACTION == 0:
            dataset = lance.dataset(str(self.folder))
            dataset.optimize.compact_files(target_rows_per_fragment=SMALL_FRAGMENT_ROWS)
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
        self.table.checkout_latest()

    def unindexed(self) -> int:
        """Count the rows that the least complete index lacks."""
        names = ("id_idx", "path_idx", "vector_key_idx", "search_text_idx")
        stats = [self.table.index_stats(name) for name in names]
        return max(int(each.num_unindexed_rows) for each in stats if each)

    def size(self) -> int:
        """Count the bytes on the disk."""
        files = (Path(folder) / name for folder, _, names in os.walk(self.folder) for name in names)
        return sum(file.stat().st_size for file in files)


def _arrow(vectors: Any, first: int, count: int) -> pa.Array:  # noqa: ANN401 - numpy
    if vectors is None:
        return pa.nulls(count, _VECTOR)
    values = pa.array(vectors[first : first + count].reshape(-1))
    return pa.FixedSizeListArray.from_arrays(values, _DIMENSION)


def _partial(made: _Table, first: int, vectors: Any) -> None:  # noqa: ANN401 - numpy
    columns = ["id", "vector_key", "vector", "checksum"]
    batch = made.batch(first, _ROWS_PER_FILL, vectors).select(columns)
    made.table.merge_insert("id").when_matched_update_all().execute(batch)


def _upserts(made: _Table, first: int, vectors: Any) -> None:  # noqa: ANN401 - numpy
    batch = made.batch(first, _ROWS_PER_FILL, vectors)
    made.table.merge_insert("id").when_matched_update_all().execute(batch)


def _column(made: _Table, first: int, vectors: Any) -> None:  # noqa: ANN401 - numpy
    if first:
        return
    rows = len(made.texts)
    ids = [f"{number:032x}" for number in range(rows)]
    added = pa.table({"id": ids, "vector": _arrow(vectors, 0, rows)})
    lance.dataset(str(made.folder)).merge(added, "id")


def _measure(
    base: Path,
    form: Callable[[_Table, int, Any], None],
    texts: list[str],
    vectors: Any,  # noqa: ANN401 - numpy
) -> tuple[str, ...]:
    made = _Table(base, texts, has_vectors=form is not _column)
    began = time.process_time()
    for first in range(0, len(texts), _ROWS_PER_WORDS_WRITE):
        made.table.add(made.batch(first, _ROWS_PER_WORDS_WRITE))
        made.wrote()
    words_s = time.process_time() - began
    filling: list[float] = []
    fill_s = 0.0
    for first in range(0, len(texts), _ROWS_PER_FILL):
        began = time.process_time()
        form(made, first, vectors)
        if form is not _column or not first:
            made.wrote()
        fill_s += time.process_time() - began
        if form is not _column and first % (_ROWS_PER_FILL * 8) == 0:
            filling.append(_search_ms(made, vectors[first]))
    size, unindexed = made.size(), made.unindexed()
    dataset = lance.dataset(str(made.folder))
    dataset.optimize.compact_files(target_rows_per_fragment=100_000)
    dataset.optimize.optimize_indices()
    lance.dataset(str(made.folder)).cleanup_old_versions(
        older_than=timedelta(0), delete_unverified=True
    )
    made.table.checkout_latest()
    times = [_search_ms(made, vectors[number]) for number in range(_SEARCHES)]
    rows = len(texts)
    return (
        f"{words_s / rows * 1e3:.3f} ms",
        f"{fill_s / rows * 1e3:.3f} ms",
        f"{size / rows:,.0f}",
        f"{made.size() / rows:,.0f}",
        f"{unindexed:,}",
        f"{quantile(times, 0.5):.1f} ms",
        f"{quantile(filling, 0.5):.1f} ms" if filling else "none until all are made",
    )


def _search_ms(made: _Table, vector: Any) -> float:  # noqa: ANN401 - numpy
    began = time.perf_counter()
    found = made.table.search(vector).select(["id", "_distance"]).limit(10).to_list()
    assert found
    return (time.perf_counter() - began) * 1e3


if __name__ == "__main__":
    main()
