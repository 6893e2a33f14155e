"""A new generation of the index, built beside the one that serves, and put in its place when it is ready.

It begins as a clone of the present one (which copies nothing), and the ordinary indexer brings it up to what the configuration
wants: files whose recipe differs are read, chunked and compared as if they had been edited, and a text is only embedded if
neither generation nor the vanished vectors know it. So an interrupted build goes on where it stopped, and a change that
concerns one root leaves the others alone. Where a clone cannot be (vectors of another size, another schema), it begins empty.

The present generation is meanwhile kept up with the files by what it was made with (`means.HeldRecipe`), and serves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from anchord.adapters import lance_upkeep
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.lance import NEXT, TABLE, LanceStore
from anchord.adapters.lance_schema import SCHEMA
from anchord.errors import StoreDamagedError, UsageError
from anchord.indexer import Indexer
from anchord.means import HeldRecipe
from anchord.model import Action, Origin, Outcome, Vector
from anchord.ports import Vanished, World
from anchord.recovery import begin_promotion, discard_catalogue, finish_promotion
from anchord.workspace import Writer, is_local, store_uri

log = structlog.get_logger()

_WHY = "why"
_PASSES = 2
_STEP_FILES = 200


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be built, and why."""

    why: str
    fresh: bool = False
    """Begin with nothing and embed every text anew."""
    rechunk: bool = False
    """Read and chunk every file again, whatever its recipe."""


class Building:
    """A generation that is being built. One at a time, by the writer's thread."""

    def __init__(self, writer: Writer, order: Order) -> None:
        """Go on with what an interrupted build left if it was for the same order, else begin."""
        self.order = order
        self.why = order.why
        self.done = 0
        self.waits_for: tuple[str, ...] = ()
        """Roots whose files cannot be seen now: without them nothing can take the present generation's place."""
        self._writer = writer
        self._folder = Path(store_uri(writer.places, writer.config))
        self._queue: dict[Origin, None] = {}
        self._gone: set[Origin] = set()
        self._passes = 0
        self._name = "\n".join([order.why, writer.wanted.recipe.digest(), str(SCHEMA)])
        self.resumed = self._open() and self.catalogue.noted(_WHY) == self._name
        if not self.resumed:
            self._begin(order)
        means = writer.wanted
        vanished = _Nothing() if order.fresh else _Borrowed(writer.store, writer.vanished)
        world = World(
            writer.files,
            self.catalogue,
            self.store,
            means.embedder,
            vanished,
            time.time_ns,
            writer.conversations,
            writer.pulse.beat,
        )
        self._indexer = Indexer(world, means.count, means.recipe)

    def step(self, enough: Callable[[], bool]) -> list[Outcome]:
        """Do a part of what is due; `finished` says when nothing is."""
        if not self._queue:
            self._walk()
        outcomes = []
        for outcome in self._indexer.index(list(self._queue)[:_STEP_FILES], enough, self._gone):
            self._queue.pop(outcome.origin, None)
            self.done += 1
            if outcome.action is not Action.RETRY:  # What changes just now is found once it serves.
                outcomes.append(outcome)
        return outcomes

    @property
    def due(self) -> int:
        """Count the files that wait."""
        return len(self._queue)

    @property
    def finished(self) -> bool:
        """Whether it holds everything; what changes from here on is found once it serves."""
        return self._passes >= _PASSES and not self._queue and not self.waits_for

    def promote(self) -> None:
        """Put it in the present generation's place; the writer goes on with it."""
        writer = self._writer
        means = writer.wanted
        means.note_in(self.catalogue)
        self.catalogue.note("clean", "0")
        before = writer.means.embedder
        begin_promotion(writer.places, writer.catalogue)
        self.catalogue.close()
        discard_catalogue(writer.places)
        try:
            finish_promotion(writer.places, str(self._folder), writer.repairs)
        except OSError as error:
            what = f"a new index is in place by half: {os.strerror(error.errno or 0)}"
            raise StoreDamagedError(what, "the next start puts the rest in place") from error
        writer.catalogue.note(_WHY, "")
        writer.store = LanceStore(str(self._folder), means.dimension, means.embedder.model, table=TABLE)
        writer.means = means
        world = World(
            writer.files, writer.catalogue, writer.store, means.embedder, writer.vanished, time.time_ns, writer.conversations,
            writer.pulse.beat,
        )  # fmt: skip
        commits = writer.indexer.commits + self._indexer.commits
        writer.indexer = Indexer(world, means.count, means.recipe)
        writer.indexer.commits = commits
        if before is not means.embedder:
            before.close()
        log.info("generation.promoted", why=self.why, files=self.done)

    def abandon(self) -> None:
        """Delete it."""
        self.catalogue.close()
        discard(self._writer)

    def drop_root(self, name: str) -> None:
        """Let go of a root's rows here too."""
        self._queue = {origin: None for origin in self._queue if origin.root != name}
        self._indexer.drop(self.store.ids_of_root(name))
        self.catalogue.forget_root(name)

    def close(self) -> None:
        """Leave it as it is, to be gone on with."""
        self.catalogue.close()

    def _open(self) -> bool:
        if not self._writer.places.next_catalogue.exists() or not (self._folder / f"{NEXT}.lance").is_dir():
            return False
        try:
            self.catalogue = SqliteCatalogue(self._writer.places.next_catalogue)
            self.store = self._table()
        except StoreDamagedError:
            return False
        return self.catalogue.is_sound()

    def _begin(self, order: Order) -> None:
        writer = self._writer
        discard(writer)
        alike = writer.means.dimension == writer.wanted.dimension and writer.store.form == SCHEMA
        if alike and not order.fresh and lance_upkeep.clone(self._folder):
            writer.catalogue.copy_to(writer.places.next_catalogue)
        self.store = self._table()
        self.catalogue = SqliteCatalogue(writer.places.next_catalogue)
        if order.rechunk:
            self.catalogue.outdate()
        self.catalogue.note(_WHY, self._name)
        log.info("generation.begun", why=self.why)

    def _table(self) -> LanceStore:
        wanted = self._writer.wanted
        return LanceStore(str(self._folder), wanted.dimension, wanted.embedder.model, table=NEXT)

    def _walk(self) -> None:
        """Find what is due in every root. The guard holds here as well: a root that lost its files is waited for."""
        self._passes += 1
        self._gone.clear()
        away = []
        for root in self._writer.roots:
            found = self._indexer.reconcile(root.name)
            if found.trouble or found.held:
                away.append(root.name)
            self._gone.update(found.gone)
            self._queue.update(dict.fromkeys(found.due))
        self.waits_for = tuple(away)


def away_from(writer: Writer) -> tuple[str, ...]:
    """Return the roots that cannot be seen as a whole now: what serves keeps their rows, no new generation could make them."""
    found = {root.name: writer.indexer.reconcile(root.name) for root in writer.roots}
    return tuple(name for name, seen in found.items() if seen.trouble or seen.held)


def needed(writer: Writer) -> Order | None:
    """Return what must be built, None when the index is as the configuration wants it, or cannot be built beside itself."""
    if not is_local(store_uri(writer.places, writer.config)):
        return None
    if writer.means is writer.wanted and writer.store.form == SCHEMA:
        return None
    if writer.store.form != SCHEMA:
        return Order("a new form of the table")
    if isinstance(writer.means.recipe, HeldRecipe) and writer.means.embedder is writer.wanted.embedder:
        return Order("the recipe changed")
    return Order("the model changed")


def left_over(writer: Writer) -> Order | None:
    """Return the order of a build that was asked for and interrupted."""
    if not writer.places.next_catalogue.exists():
        return None
    try:
        with SqliteCatalogue(writer.places.next_catalogue) as catalogue:
            why = catalogue.noted(_WHY).split("\n")[0]
    except StoreDamagedError:
        return None
    return next((order for order in (REBUILD, RECHUNK) if order.why == why), None)


def discard(writer: Writer) -> None:
    """Delete what was built."""
    lance_upkeep.discard(Path(store_uri(writer.places, writer.config)))
    discard_catalogue(writer.places)


def refuse_remote(writer: Writer) -> None:
    """Refuse what needs a second table beside the first.

    Raises:
        UsageError: the table is not a local folder.
    """
    if not is_local(store_uri(writer.places, writer.config)):
        raise UsageError("a table that is not on this machine has no second generation", "`anchord verify --repair` mends it")


REBUILD = Order("asked for by `rebuild`", fresh=True)
RECHUNK = Order("asked for by `reindex --force-rechunk`", rechunk=True)


class _Borrowed:
    """Vectors of the generation that serves, and those that vanished."""

    def __init__(self, store: LanceStore, vanished: Vanished) -> None:
        self._store = store
        self._vanished = vanished

    def get(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        found = dict(self._store.vectors(keys))
        return found | dict(self._vanished.get([key for key in keys if key not in found]))

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Keep what leaves: whoever turns a setting back embeds nothing."""
        self._vanished.put(vectors, now_ns)

    def drop(self, keys: Sequence[str]) -> None:
        self._vanished.drop(keys)


class _Nothing:
    """No vectors at all."""

    def get(self, keys: Sequence[str]) -> Mapping[str, Vector]:  # noqa: ARG002 - there is nothing to look for
        return {}

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Keep nothing."""

    def drop(self, keys: Sequence[str]) -> None:
        """Drop nothing."""
