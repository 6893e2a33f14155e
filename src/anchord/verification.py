"""Is the index what a clean rebuild would give? Every file is read and chunked anew and compared with table and catalogue.

The comparison goes by its own way: from the files' bytes to whole rows, with no look at fingerprints, intents or diffs. Of
vectors a sample is embedded again, for embedding all of them would take as long as the first index did.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from anchord.chunkers.layout import Count
from anchord.core.recipe import Recipe
from anchord.model import Content, Origin, Row, Spot, Unstable, Vector, Walk
from anchord.ports import Catalogue, Embedder, Files, Store
from anchord.rows import MAX_BYTES, Made, make_rows

_MIN_COSINE = 0.999


class Kind(StrEnum):
    """What can be wrong with a chunk."""

    MISSING = "missing"
    EXTRA = "extra"
    DUPLICATE = "duplicate"
    TEXT = "text"
    LINES = "lines"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Difference:
    """What is wrong, and where."""

    kind: Kind
    origin: Origin
    chunk_id: str


@dataclass(frozen=True, slots=True)
class Rebuild:
    """What a clean rebuild would hold; `held` are (root, path prefix) of files that cannot be seen now and are left out."""

    made: Mapping[str, tuple[Origin, Made]]
    files: int
    held: tuple[tuple[str, str], ...]
    changing: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """How much was compared, what differed, and which files were being written meanwhile."""

    files: int
    chunks: int
    vectors: int
    differences: tuple[Difference, ...]
    changing: tuple[Origin, ...] = field(default=())


def verify(
    rebuild: Rebuild, rows: Iterable[Row], catalogue: Catalogue, store: Store, vectors: tuple[Embedder, int | None]
) -> Verification:
    """Compare. `rows` are all rows of the table; `vectors`: an embedder and how many to embed again (None: all)."""
    seen = [row for row in rows if not _is_held(row, rebuild.held)]
    differences = list(_compare(rebuild.made, seen, catalogue.spots(list(rebuild.made))))
    checked, wrong = _verify_vectors(rebuild, store, *vectors)
    return Verification(rebuild.files, len(rebuild.made), checked, (*differences, *wrong), rebuild.changing)


def rebuild(roots: Sequence[str], files: Files, recipe: Recipe, count: Count) -> Rebuild:
    """Read and chunk every file of some roots."""
    made: dict[str, tuple[Origin, Made]] = {}
    held: list[tuple[str, str]] = []
    changing: list[Origin] = []
    read = 0
    for root in roots:
        walk = files.walk(root, "")
        if not isinstance(walk, Walk):
            held.append((root, ""))  # The folder is away: its rows are kept on purpose.
            continue
        held += [(root, folder + "/") for folder in walk.unread]
        for found in walk.found:
            origin = Origin(root, found.path)
            content = files.read(origin)
            if isinstance(content, Unstable):
                changing.append(origin)
                held.append((root, found.path))
            elif isinstance(content, Content) and content.fingerprint.size <= MAX_BYTES:
                rows, _ = make_rows(origin, content.data, recipe, count)
                made.update((each.row.id, (origin, each)) for each in rows)
                read += 1
    return Rebuild(made, read, tuple(held), tuple(changing))


def _is_held(row: Row, held: Sequence[tuple[str, str]]) -> bool:
    return any(row.root == root and row.path.startswith(prefix) for root, prefix in held)


def _compare(wanted: Mapping[str, tuple[Origin, Made]], rows: Sequence[Row], spots: Mapping[str, Spot]) -> Iterator[Difference]:
    seen: set[str] = set()
    for row in rows:
        origin, made = wanted.get(row.id, (Origin(row.root, row.path), None))
        if row.id in seen:
            yield Difference(Kind.DUPLICATE, origin, row.id)
        elif made is None:
            yield Difference(Kind.EXTRA, origin, row.id)
        elif made.row != row:
            yield Difference(Kind.TEXT, origin, row.id)
        seen.add(row.id)
    for chunk_id, (origin, made) in wanted.items():
        if chunk_id not in seen:
            yield Difference(Kind.MISSING, origin, chunk_id)
        elif spots.get(chunk_id) != Spot(origin, made.start_line, made.end_line):
            yield Difference(Kind.LINES, origin, chunk_id)


def _verify_vectors(rebuild: Rebuild, store: Store, embedder: Embedder, sample: int | None) -> tuple[int, list[Difference]]:
    """Embed the texts of some chunks again; return how many, and those whose stored vector points elsewhere."""
    able = sorted(rebuild.made)
    chosen = able if sample is None or sample >= len(able) else random.Random().sample(able, sample)  # noqa: S311 - a sample
    if not chosen:
        return 0, []
    stored = store.row_vectors(chosen)
    fresh = embedder.embed([rebuild.made[chunk_id][1].embed_text for chunk_id in chosen])
    wrong = []
    for chunk_id, vector in zip(chosen, fresh, strict=True):
        if chunk_id in stored and not cosine(stored[chunk_id], vector) >= _MIN_COSINE:  # As well when it is no number.
            wrong.append(Difference(Kind.VECTOR, rebuild.made[chunk_id][0], chunk_id))
    return len(chosen), wrong


def cosine(a: Vector, b: Vector) -> float:
    """Return the cosine of two vectors; 0 where one has no length."""
    left, right = array("f", a), array("f", b)
    if len(left) != len(right):
        return 0.0
    product = sum(x * y for x, y in zip(left, right, strict=True))
    lengths = math.sqrt(sum(x * x for x in left) * sum(y * y for y in right))
    return product / lengths if lengths else 0.0
