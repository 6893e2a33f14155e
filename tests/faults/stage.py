"""The index of `scenarios` with a movable clock, faults at labelled steps, and crashes."""

from __future__ import annotations

import copy
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from faults.losses import back_up
from scenarios.conftest import COUNT, Index

from anchord.core.ids import make_vector_key
from anchord.core.types import Fingerprint, RootedPath, Vector
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import StoreError
from anchord.index.integrity.verify import Difference, ExpectedRows, expected_rows_of_roots, verify
from anchord.index.models import Models
from anchord.index.reconcile import ReconcileResult
from anchord.sources.files.ignore_rules import is_ignore_file
from anchord.store.table import maintenance as lance_upkeep

LATER_NS = 10_000_000_000
"""Nanoseconds after which a file's times are trusted."""

STEPS = (
    "files.read", "embedder.embed", "catalogue.save_intents", "store.upsert", "vanished.put", "store.delete_rows", "catalogue.confirm_updates",
    "catalogue.update_fingerprints", "store.refresh",
)  # fmt: skip
"""Port and method at which the writer can end or fail, before or after it; `store.refresh` ends maintenance."""


class Killed(BaseException):
    """Simulates the end of the process: nothing may catch it."""


def failures(label: str) -> tuple[Exception, ...]:
    """Return the errors that a step can raise, without the end of the process."""
    broken = OSError(5, "Input/output error")
    return {
        "files": (broken,),
        "embedder": (broken,),
        "store": (StoreError("the disk is full"), broken),
        "catalogue": (sqlite3.OperationalError("disk I/O error"), StoreError("locked")),
        "vanished": (StoreError("the disk is full"), sqlite3.OperationalError("disk I/O error")),
    }[label.partition(".")[0]]


@dataclass(frozen=True, slots=True)
class Fault:
    """An error, the call of a step that raises it, and whether before or after the call."""

    label: str
    nth: int
    after: bool
    error: BaseException

    def __str__(self) -> str:
        """Name the place."""
        name = (
            "kill"
            if isinstance(self.error, Killed)
            else f"{type(self.error).__name__}({self.error})"
        )
        return f"{name} {'after' if self.after else 'before'} {self.label} number {self.nth}"


class Recorder(HashEmbedder):
    """An embedder that records the keys of its texts."""

    def __init__(self) -> None:
        """Start with none."""
        super().__init__()
        self.keys: list[str] = []

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:
        """Return the vectors of texts."""
        self.keys += [make_vector_key(self.model_id, text) for text in texts]
        vectors = super().embed(texts, is_query=is_query)
        self.rate = (
            0.0  # Batches normally grow with the speed; a fixed size makes sequences repeatable.
        )
        return vectors


@dataclass(slots=True)
class Due:
    """Files to index, and those among them that a walk found missing."""

    origins: dict[RootedPath, None] = field(default_factory=dict)
    gone: set[RootedPath] = field(default_factory=set)

    def joined(self, other: Due) -> Due:
        """Return the union; the other's files come later."""
        return Due(self.origins | other.origins, self.gone | other.gone)

    def add(self, found: ReconcileResult) -> None:
        """Add the result of a walk."""
        self.origins.update(dict.fromkeys(found.paths_due))
        self.gone.update(found.gone_or_emptied)


class Stage(Index):
    """An index with a movable clock, which can end by a crash."""

    embedder: Recorder
    ahead_ns = 0
    armed: Fault | None = None
    _calls = 0

    def open(self) -> None:
        """Open the stores with our clock."""
        super().open()
        assert hasattr(self.indexer._planner, "_clock")
        self.indexer._planner._clock = lambda: time.time_ns() + self.ahead_ns
        self.judge = copy.copy(self.files)
        self._patch()

    def crash(self) -> None:
        """Open the stores again as a killed process leaves them: nothing flushed, nothing closed.

        The files of SQLite are copied while they are open and put back after they are closed, which undoes what closing did.
        """
        images = {
            file: file.read_bytes() for file in self._databases() if not file.name.endswith("-shm")
        }
        self.close()
        for file in self._databases():
            file.unlink()
        for file, image in images.items():
            file.write_bytes(image)
        self.open()

    def _databases(self) -> list[Any]:
        return [*self.base.glob("state.sqlite*"), *self.base.glob("vectors.sqlite*")]

    # Actual and expected rows

    def rebuilt(self) -> tuple[ExpectedRows, ...]:
        """Read and chunk the whole tree again."""
        return tuple(
            expected_rows_of_roots(["tree"], (self.judge, self.catalogue), self.recipe, COUNT)
        )

    def differences(self, parts: Iterable[ExpectedRows]) -> tuple[Difference, ...]:
        """Compare with a rebuild, every vector included."""
        return verify(parts, self.catalogue, self.store, (Models(HashEmbedder()), None)).differences

    def has(self, keys: Iterable[str]) -> set[str]:
        """Return the keys of all vectors in the table and in the vector cache."""
        asked = sorted(keys)
        return {*self.store.vectors_by_key(asked), *self.vanished.get(asked)} if asked else set()

    # The daemon's steps

    def look(self, paths: Iterable[str]) -> Due:
        """Return the files of hints, as the daemon's writer does."""
        due = Due()
        for path in paths:
            origin = RootedPath("tree", path)
            if not path or is_ignore_file(path):
                due.add(self.indexer.reconcile("tree"))
            elif isinstance(seen := self.files.fingerprint(origin), Fingerprint):
                due.origins[origin] = None
                if not seen.size:  # The debounce time is over.
                    due.gone.add(origin)
            else:
                due.add(self.indexer.reconcile("tree", path))
        return due

    def walk(self) -> Due:
        """Return what a walk of the whole tree finds to do."""
        due = Due()
        due.add(self.indexer.reconcile("tree"))
        return due

    def audit(self) -> Due:
        """Compare all ids, as a start after an unclean stop does."""
        return Due(dict.fromkeys(self.indexer.delete_stray_rows()))

    def maintain(self) -> None:
        """Compact the table."""
        lance_upkeep.maintain(self.store)

    def back_up(self) -> None:
        """Copy the databases and the table as they are on disk after a clean stop."""
        self.close()
        back_up(self.base)
        self.open()

    # Faults

    def arm(self, fault: Fault) -> None:
        """Make the n-th call of a step from now on raise once, even after a restart."""
        self.disarm()
        self.armed = fault
        self._calls = 0
        self._patch()

    def disarm(self) -> None:
        """Disarm a fault that was not reached."""
        if self.armed:
            port, method = self.armed.label.split(".")
            vars(getattr(self, port)).pop(method, None)
        self.armed = None

    def _patch(self) -> None:
        if self.armed is None:
            return
        port, method = self.armed.label.split(".")
        thing, fault = getattr(self, port), self.armed
        real: Callable[..., Any] = getattr(type(thing), method)

        def faulty(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - any method
            self._calls += 1
            if self._calls < fault.nth:
                return real(thing, *args, **named)
            self.disarm()
            if fault.after:
                real(thing, *args, **named)
            raise fault.error

        setattr(thing, method, faulty)


def random_kill(rng: Random) -> Fault:
    """Choose where the writer ends."""
    return Fault(rng.choice(STEPS), rng.choice((1, 1, 1, 1, 2, 3)), rng.random() < 0.5, Killed())


def random_failure(rng: Random) -> Fault:
    """Choose which call fails, and how."""
    label = rng.choice(STEPS)
    return Fault(
        label, rng.choice((1, 1, 1, 2, 3)), rng.random() < 0.5, rng.choice(failures(label))
    )
