"""What the stories (`indexer`, `search`) need from the world, in the words of `model`; adapters and fakes keep the promises.

`tests/contracts/` runs the same facts against each implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from anchord.model import (
    Absent,
    Content,
    Failure,
    Filters,
    Fingerprint,
    Ingested,
    Known,
    Origin,
    Problem,
    Row,
    Scored,
    Spot,
    StoreStats,
    Unstable,
    Update,
    Vector,
    Verdict,
    Walk,
)

Judge = Callable[[Origin], Verdict]

Entering = Callable[[Origin], None]
"""Is told of a folder that is about to be listed."""


def unheard(_: Origin) -> None:
    """Let a folder be listed with nobody watching."""


Beat = Callable[[float], None]
"""Says that the writer got on, and how many seconds its next step may take if that is more than an ordinary one (else 0)."""


def unfelt(_: float) -> None:
    """Get on with nobody asking."""


class Files(Protocol):
    """The roots' trees, read-only. Never follows a symbolic link, never blocks on a pipe, never leaves a root."""

    def judge(self) -> Judge:
        """Return what says whether the rules, as they are now, let a path into the index; for many paths one after another."""

    def fingerprint(self, origin: Origin) -> Fingerprint | Absent | Problem:
        """Look at a path without reading its content."""

    def read(self, origin: Origin) -> Content | Absent | Problem | Unstable:
        """Read a whole file between two equal fingerprints."""

    def walk(self, root: str, prefix: str, entering: Entering = unheard) -> Walk | Absent | Problem:
        """List the files of a root that the rules let in, below `prefix` ("" or "a/b"). Absent: the folder is gone.

        `entering` is told of each folder before it is listed: who begins to watch it there misses nothing.
        """


class Catalogue(Protocol):
    """The truth about files: what was seen, what is wanted in the store, what is confirmed to be there."""

    def known(self, origin: Origin) -> Known | None:
        """Return what is known of a file. The chunks of one that is not settled are left out: only the store knows."""

    def overview(self, root: str, prefix: str) -> Mapping[str, Known]:
        """Return the known files of a root below a prefix, without their chunks."""

    def intend(self, updates: Sequence[Update]) -> None:
        """Note what is about to be written to the store; durable when it returns."""

    def apply(self, updates: Sequence[Update]) -> None:
        """Note that the store holds what was wanted; durable when it returns."""

    def seen(self, looks: Sequence[tuple[Origin, Fingerprint, int]]) -> None:
        """Note new fingerprints of unchanged content, each with the time before it was read."""

    def doubt(self, origins: Sequence[Origin]) -> None:
        """Mark files whose rows were found to differ, so that they are read and compared with the store again."""

    def failures(self) -> Sequence[Failure]:
        """Return every listed problem, by root and path."""

    def spots(self, chunk_ids: Sequence[str]) -> Mapping[str, Spot]:
        """Return where chunks stand now; unknown ids are left out."""

    def neighbours(self, chunk_id: str, reach: int) -> Sequence[str]:
        """Return the ids of a chunk and of those up to `reach` before and after it in its file, in order."""

    def note(self, key: str, value: str) -> None:
        """Keep a small fact."""

    def noted(self, key: str) -> str:
        """Return a small fact, "" when there is none."""

    def wanted_rows(self) -> Iterator[tuple[str, str, Origin]]:
        """Yield each row that the store should hold: its id, its hash, and its file."""


class LookedUp(NamedTuple):
    """What a table has of that for which it was asked."""

    rows: Mapping[str, tuple[str, Vector]]
    """Id -> the key of its vector, and the vector."""
    vectors: Mapping[str, Vector]
    """By their keys, of any rows."""


class Store(Protocol):
    """The table. Calls are idempotent and touch only the ids named."""

    def upsert(self, rows: Sequence[Row], vectors: Mapping[str, Vector], absent: Collection[str] = ()) -> None:
        """Write rows by id, with the vectors of their keys; visible to both searches when it returns.

        `absent`: ids of which the caller knows that they are not in the table. The others are looked for.
        """

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows by id; unknown ids are no error."""

    def ids_of(self, origin: Origin) -> Sequence[str]:
        """Return the ids of a file's rows, those of an interrupted change too."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of those keys that some row has."""

    def vectors_of(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of rows, by their keys."""

    def look_up(self, ids: Sequence[str], keys: Sequence[str]) -> LookedUp:
        """Return what the table has of rows and of vectors, for the price of one of them."""

    def row_vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vector of each row, by its id."""

    def nearest(self, vector: Vector, limit: int, filters: Filters) -> Sequence[Scored]:
        """Return the rows most similar to a vector, best first."""

    def matching(self, text: str, limit: int, filters: Filters) -> Sequence[Scored]:
        """Return the rows that hold words of a text, or words that begin as the filters ask for, best first."""

    def holding(self, literal: str, limit: int, filters: Filters) -> Sequence[str]:
        """Return the ids of rows that hold a text letter by letter, in no order."""

    def rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows by id, in any order."""

    def shown(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows by id, in any order, for somebody to read who knows their files.

        `doc_id`, `root`, `path`, `vector_key` and `search_text` are empty.
        """

    def ids(self) -> Sequence[str]:
        """Return the id of every row, repeats included."""

    def hashes(self) -> Sequence[tuple[str, str]]:
        """Return id and hash (`core.diff.row_hash`) of every row, repeats included; "" for a row without one."""

    def spoiled(self, ids: Sequence[str]) -> Iterable[str]:
        """Return the ids of those rows whose bytes are not those that were written."""

    def stats(self) -> StoreStats:
        """Count the table."""


class Embedder(Protocol):
    """Texts to vectors."""

    @property
    def model(self) -> str:
        """What the vectors depend on, as one text; part of the recipe and of every vector key."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    @property
    def rate(self) -> float:
        """Texts a second lately; 0 when nothing was embedded yet."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Vector]:
        """Return a vector a text, of length one; of zeros for a text that the model cannot embed. Queries go before texts.

        Raises:
            EmbedderError: no vectors can be had now.
        """

    def stream(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Yield batch by batch what is made, as number of a text -> its vector, in any order; after a batch one can stop.

        Raises:
            EmbedderError: no more can be had now; what was yielded counts.
        """


class Reranker(Protocol):
    """Reads a query and a text together: slower than vectors, and better."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a number a text; more is better.

        Raises:
            EmbedderError: none can be had now.
        """

    def close(self) -> None:
        """Give up what it holds."""


class Vanished(Protocol):
    """Vectors of rows that left the table, kept for a while so that an undo, a move or a branch switch embeds nothing."""

    def get(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return what is kept of these keys."""

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Keep vectors."""

    def drop(self, keys: Sequence[str]) -> None:
        """Forget vectors that turned out to be wrong."""


Clock = Callable[[], int]
"""Nanoseconds of the wall clock."""


class Conversations(Protocol):
    """What reads files of conversations, so that their exchanges are among `Files`."""

    def is_carrier(self, origin: Origin) -> bool:
        """Whether a file is taken in, and not chunked itself."""

    def keeps(self, origin: Origin) -> bool:
        """Whether what a file has told stays when the file goes."""

    def take_in(self, origin: Origin) -> Ingested:
        """Read what a file has to tell, or note that it is gone; durable when it returns."""

    def done(self, origins: Sequence[Origin]) -> None:
        """Note that what changed was taken into the index."""


class NoConversations:
    """There are only files."""

    def is_carrier(self, origin: Origin) -> bool:  # noqa: ARG002 - the answer is the same for all
        """Say no."""
        return False

    def keeps(self, origin: Origin) -> bool:  # noqa: ARG002 - likewise
        """Say no."""
        return False

    def take_in(self, origin: Origin) -> Ingested:  # noqa: ARG002 - likewise
        """Take nothing in."""
        return Ingested(ordinary=True)

    def done(self, origins: Sequence[Origin]) -> None:
        """Note nothing."""


_NONE = NoConversations()


@dataclass(frozen=True, slots=True)
class World:
    """Everything that the indexer acts on."""

    files: Files
    catalogue: Catalogue
    store: Store
    embedder: Embedder
    vanished: Vanished
    clock: Clock
    conversations: Conversations = _NONE
    beat: Beat = unfelt
