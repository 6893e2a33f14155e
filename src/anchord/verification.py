"""Is the index what a clean rebuild would give? Every file is read and chunked anew and compared with table and catalogue.

The comparison goes by its own way: from the files' bytes to whole rows, with no look at fingerprints, intents or diffs. Of
vectors a sample is embedded again, for embedding all of them would take as long as the first index did; but the bytes of every
row are summed up and compared with the sum that was written with it. Files are taken some hundred at a time: of an index of any
size only the ids are held in memory.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from anchord.chunkers.layout import Count
from anchord.committing import MODEL_S
from anchord.core.guard import is_alarming, missing, moves, note_of
from anchord.core.recipe import Recipe
from anchord.model import Content, Known, Origin, Row, Unstable, Vector, Walk, printable
from anchord.ports import Beat, Catalogue, Embedder, Files, Store, unfelt
from anchord.rows import MAX_BYTES, Made, make_rows
from anchord.sources.archived import is_archived

_MIN_COSINE = 0.999
_PART_FILES = 200
_EMBEDDED_TEXTS = 256


class Kind(StrEnum):
    """What can be wrong with a chunk."""

    MISSING = "missing"
    EXTRA = "extra"
    DUPLICATE = "duplicate"
    TEXT = "text"
    LINES = "lines"
    VECTOR = "vector"
    SPOILED = "spoiled"


@dataclass(frozen=True, slots=True)
class Difference:
    """What is wrong, and where."""

    kind: Kind
    origin: Origin
    chunk_id: str


@dataclass(frozen=True, slots=True)
class Rebuild:
    """What a clean rebuild would hold of some files.

    `held` are files, and folders that end with "/" ("" is all of a root), whose rows are kept although they cannot be seen.
    """

    made: Mapping[str, tuple[Origin, Made]]
    files: int
    held: tuple[Origin, ...] = ()
    changing: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """How much was compared, what differed, and which files were being written meanwhile."""

    files: int
    chunks: int
    vectors: int
    differences: tuple[Difference, ...]
    changing: tuple[Origin, ...] = field(default=())


def verify(
    parts: Iterable[Rebuild],
    catalogue: Catalogue,
    store: Store,
    vectors: tuple[Embedder, int | None],
    beat: Beat = unfelt,
) -> Verification:
    """Compare the table with all parts of a rebuild. `vectors`: an embedder and how many to embed again (None: all)."""
    embedder, sample = vectors
    seen: set[str] = set()
    held: list[Origin] = []
    changing: list[Origin] = []
    differences: list[Difference] = []
    chosen = _Sample(sample)
    files = 0
    for part in parts:
        beat(0)
        files += part.files
        held += part.held
        changing += part.changing
        seen.update(part.made)
        differences += _compare(part.made, catalogue, store)
        chosen.offer(part.made)
    differences += _extra(store, seen, held)
    for at in range(0, len(chosen.taken), _EMBEDDED_TEXTS):
        beat(MODEL_S)
        differences += _wrong(chosen.taken[at : at + _EMBEDDED_TEXTS], store, embedder)
    found = sorted(set(differences), key=lambda each: (each.origin, each.kind, each.chunk_id))
    return Verification(files, len(seen), len(chosen.taken), tuple(found), tuple(changing))


def rebuild(roots: Sequence[str], world: tuple[Files, Catalogue], recipe: Recipe, count: Count) -> Iterator[Rebuild]:
    """Read and chunk every file of some roots, some hundred at a time."""
    files, catalogue = world
    for root in roots:
        walk = files.walk(root, "")
        if not isinstance(walk, Walk):
            yield Rebuild({}, 0, (Origin(root, ""),))  # The folder is away: its rows are kept on purpose.
            continue
        yield Rebuild({}, 0, (*(Origin(root, folder + "/") for folder in walk.unread), *_guarded(root, walk, catalogue)))
        for at in range(0, len(walk.found), _PART_FILES):
            origins = [Origin(root, found.path) for found in walk.found[at : at + _PART_FILES]]
            yield rebuild_files(origins, files, recipe, count)


def rebuild_files(origins: Sequence[Origin], files: Files, recipe: Recipe, count: Count) -> Rebuild:
    """Read and chunk some files."""
    made: dict[str, tuple[Origin, Made]] = {}
    changing: list[Origin] = []
    read = 0
    for origin in origins:
        content = files.read(origin)
        if isinstance(content, Unstable):
            changing.append(origin)
        elif isinstance(content, Content) and (content.fingerprint.size <= MAX_BYTES or is_archived(origin.path)):
            rows, _ = make_rows(origin, content.data, recipe, count)
            made.update((each.row.id, (origin, each)) for each in rows)
            read += 1
    return Rebuild(made, read, tuple(changing), tuple(changing))


def verify_settled(
    entries: Sequence[tuple[Origin, Known]], files: Files, catalogue: Catalogue, store: Store, means: tuple[Recipe, Count]
) -> list[Difference]:
    """Compare some files that nothing should have changed since they were indexed: those that something did are left out."""
    recipe, count = means
    as_read = {origin: known.fingerprint for origin, known in entries if known.settled}
    quiet = [origin for origin in as_read if files.fingerprint(origin) == as_read[origin]]
    part = rebuild_files(quiet, files, recipe, count)
    differences = list(_compare(part.made, catalogue, store))
    wanted = {chunk.chunk_id: origin for origin, known in entries if origin in quiet for chunk in known.chunks}
    differences += [Difference(Kind.EXTRA, wanted[chunk_id], chunk_id) for chunk_id in wanted.keys() - part.made.keys()]
    return [d for d in differences if d.origin not in part.changing and files.fingerprint(d.origin) == as_read[d.origin]]


def _guarded(root: str, walk: Walk, catalogue: Catalogue) -> Iterator[Origin]:
    """Yield the files whose rows the delete guard holds."""
    known = catalogue.overview(root, "")
    left = missing(walk, known)
    new = {found.path: found.fingerprint for found in walk.found if found.path not in known}
    lost = {path: left[path] for path in left.keys() - set(moves(left, new).values())}
    if is_alarming(lost, known, walk, int(catalogue.noted(note_of(root)) or 0)):
        yield from (Origin(root, path) for path in lost)


def _compare(wanted: Mapping[str, tuple[Origin, Made]], catalogue: Catalogue, store: Store) -> Iterator[Difference]:
    ids = list(wanted)
    spots = catalogue.spots(ids)
    seen: set[str] = set()
    spoiled = set(store.spoiled(ids))
    for row in store.rows(ids):
        origin, made = wanted[row.id]
        if row.id in seen:
            yield Difference(Kind.DUPLICATE, origin, row.id)
        elif row.id in spoiled:
            yield Difference(Kind.SPOILED, origin, row.id)
        elif made.row != row:
            yield Difference(Kind.TEXT, origin, row.id)
        seen.add(row.id)
    for chunk_id, (origin, made) in wanted.items():
        if chunk_id not in seen:
            yield Difference(Kind.MISSING, origin, chunk_id)
        elif (spot := spots.get(chunk_id)) is None or spot[:3] != (origin, made.start_line, made.end_line):
            yield Difference(Kind.LINES, origin, chunk_id)


def _extra(store: Store, seen: set[str], held: Sequence[Origin]) -> Iterator[Difference]:
    for row in store.rows([chunk_id for chunk_id in store.ids() if chunk_id not in seen]):
        if not _is_held(row, held):
            yield Difference(Kind.EXTRA, Origin(row.root, row.path), row.id)


def _is_held(row: Row, held: Sequence[Origin]) -> bool:
    of_root = (printable(origin.path) for origin in held if origin.root == row.root)
    return any(row.path.startswith(path) if not path or path.endswith("/") else row.path == path for path in of_root)


class _Sample:
    """So many chunks of all that are offered, each as likely as any other (reservoir sampling); None takes all."""

    def __init__(self, size: int | None) -> None:
        self.taken: list[tuple[str, Origin, str]] = []
        """(chunk id, file, embedded text)."""
        self._size = size
        self._offered = 0
        self._random = random.Random()  # noqa: S311 - a sample

    def offer(self, made: Mapping[str, tuple[Origin, Made]]) -> None:
        for chunk_id, (origin, each) in made.items():
            self._offered += 1
            if self._size is None or len(self.taken) < self._size:
                self.taken.append((chunk_id, origin, each.embed_text))
            elif (at := self._random.randrange(self._offered)) < self._size:
                self.taken[at] = (chunk_id, origin, each.embed_text)


def _wrong(chosen: Sequence[tuple[str, Origin, str]], store: Store, embedder: Embedder) -> Iterator[Difference]:
    """Embed texts again; yield those whose stored vector points elsewhere."""
    if not chosen:
        return
    stored = store.row_vectors([chunk_id for chunk_id, _, _ in chosen])
    fresh = embedder.embed([text for _, _, text in chosen])
    for (chunk_id, origin, _), vector in zip(chosen, fresh, strict=True):
        if chunk_id not in stored or not (any(stored[chunk_id]) or any(vector)):  # Zeros: what the model cannot embed.
            continue
        if not cosine(stored[chunk_id], vector) >= _MIN_COSINE:  # As well when it is no number.
            yield Difference(Kind.VECTOR, origin, chunk_id)


def cosine(a: Vector, b: Vector) -> float:
    """Return the cosine of two vectors; 0 where one has no length."""
    left, right = array("f", a), array("f", b)
    if len(left) != len(right):
        return 0.0
    product = sum(x * y for x, y in zip(left, right, strict=True))
    lengths = math.sqrt(sum(x * x for x in left) * sum(y * y for y in right))
    return product / lengths if lengths else 0.0
