"""The same operations under a running service: real watcher, real loop, bursts of changes, pauses, restarts, dropped events.

After each `sync`, without another walk, the index equals a rebuild (CONV). A burst that comes while the service
is paused or stopped embeds exactly the texts that the tree then needs and no store has (MIN). A running service may also
embed texts of intermediate states, which cannot be predicted.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from unittest.mock import patch

import lancedb
import structlog
from faults.operations import operate
from faults.runs import DivergenceError, Figures
from faults.service import Service
from faults.tree import Tree

from anchord.config.file import load_config
from anchord.config.paths import Paths
from anchord.core.types import RootedPath
from anchord.daemon.writer.work_queue import WorkQueue
from anchord.index.integrity.verify import expected_rows_of_roots
from anchord.index.opening import open_reader
from anchord.sources.files import rule_files
from anchord.store.table.table import TABLE_NAME
from anchord.store.vector_cache import SqliteVectorCache

WAYS = ("followed", "followed", "paused", "stopped", "deaf")
_PLANTED = 6
_MOST_AT_ONCE = 6
_LONGEST_PAUSE_S = 0.06
_PATIENCE_S = 60.0


def missing_from(places: Paths) -> set[str]:
    """Return the keys of the vectors that a home's trees need and that neither table nor vector cache has.

    A change of an ignore file counts at once, as it does for whoever waits in `sync`.
    """
    return missing_and_excluded(places)[0]


def missing_and_excluded(places: Paths) -> tuple[set[str], set[str]]:
    """Return `missing_from`, and the keys that the trees need and only rows of excluded files have.

    What becomes excluded leaves the table and the vector cache: the same text elsewhere may be embedded again. So may
    that of a file that only the former rules exclude: they hold for two seconds after an ignore file lost rules.
    """
    keys_of_excluded = _keys_of_excluded(places)
    with patch.object(rule_files, "SETTLE_NS", 0):
        wanted, missing = _wanted_and_missing(places)
        keys_of_excluded |= _keys_of_excluded(places)
    return missing, wanted & keys_of_excluded


def _wanted_and_missing(places: Paths) -> tuple[set[str], set[str]]:
    reader = open_reader(places, load_config(places.config_file))
    vanished = SqliteVectorCache(places.vector_cache_file)
    try:
        roots = [root.name for root in reader.roots]
        parts = expected_rows_of_roots(
            roots,
            (reader.files, reader.catalog),
            reader.profile.recipe,
            reader.profile.token_counter,
        )
        wanted = sorted(
            {each.row.vector_key for part in parts for _, each in part.rows_by_id.values()}
        )
        known = {*reader.store.vectors_by_key(wanted), *vanished.get(wanted)}
        return set(wanted), set(wanted) - known
    finally:
        vanished.close()
        reader.close()


def _keys_of_excluded(places: Paths) -> set[str]:
    """Return the keys of vectors that only rows of files have that the rules exclude."""
    with closing(open_reader(places, load_config(places.config_file))) as reader:
        is_included = reader.files.path_filter()
        rows = lancedb.connect(reader.store.uri).open_table(TABLE_NAME).search()
        keys: dict[bool, set[str]] = {True: set(), False: set()}
        for row in rows.select(["root", "path", "vector_key"]).to_list():
            match = is_included(RootedPath(row["root"], row["path"]))
            keys[match.is_included].add(row["vector_key"])
        return keys[False] - keys[True]


class Watched:
    """A tree under a running service."""

    def __init__(self, base: Path, seed: str) -> None:
        """Create some files and start."""
        self.service = Service(base)
        self.tree = Tree(self.service.folder, base / "outside")
        self.figures = Figures(services=1)
        self.done: list[str] = []
        self._rng = Random(seed)  # noqa: S311 - a test's dice
        self._deaf = 0.0
        """The share of all hints that are dropped."""
        self._patch = patch.object(WorkQueue, "add_hint", self._partly_deaf())
        self._patch.start()
        self._change(_PLANTED, name="create")
        self.service.start()
        self._check()

    def close(self) -> None:
        """Stop the service."""
        self.service.stop()
        self._patch.stop()

    def step(self, way: str) -> None:
        """Change the tree while the service is in one of `WAYS`, sync, and check the index and its cost.

        Raises:
            DivergenceError: The index is wrong, or cost more than it should.
        """
        self.done.append(f"({way}:)")
        times = self._rng.randint(1, _MOST_AT_ONCE)
        if way == "stopped":
            self.service.stop()
            self._change(times)
            missing = missing_from(self.service.places)
            self.service.start()
            self._check(0, missing)
        elif way == "paused":
            before = self.service.embedded()
            self.service.pipeline.set_paused(paused=True)
            self._change(times)
            missing = missing_from(self.service.places)
            self.service.pipeline.set_paused(paused=False)
            self._check(before, missing)
        elif way == "deaf":
            self._deaf = self._rng.choice((0.3, 0.7, 1.0))
            self.figures.overflows += self._deaf == 1.0
            self._change(times, self._pause())
            self._check()
            self._deaf = 0.0
        else:
            self._change(times, self._pause())
            self._check()

    def _partly_deaf(self) -> Callable[[WorkQueue, RootedPath], None]:
        real, rng = WorkQueue.add_hint, Random(0)  # noqa: S311 - likewise

        def hint(survey: WorkQueue, origin: RootedPath) -> None:
            if rng.random() < self._deaf:
                self.figures.dropped += 1
            else:
                real(survey, origin)

        return hint

    def _pause(self) -> float:
        return self._rng.choice((0.0, _LONGEST_PAUSE_S))

    def _change(self, times: int, pause_s: float = 0.0, name: str = "") -> None:
        for _ in range(times):
            done = operate(self.tree, self._rng, name)
            if done:
                self.done.append(done)
                self.figures.operations += 1
            time.sleep(self._rng.random() * pause_s)

    def _check(self, before: int = 0, missing: set[str] | None = None) -> None:
        self.figures.syncs += 1
        found = (
            []
            if self.service.pipeline.wait_for_sync(_PATIENCE_S)
            else [f"CONV: never in sync: {self.service.pipeline.blocked_reason}"]
        )
        found += [
            f"CONV: {d.kind} {d.origin.path!r} {d.chunk_id}"
            for d in self.service.verify().differences
        ]
        if missing is not None:
            embedded = self.service.embedded() - before
            self.figures.embedded += embedded
            self.figures.needed += len(missing)
            if embedded != len(missing):
                found.append(
                    f"MIN: {embedded} texts were embedded, where {len(missing)} were in no row"
                )
        if found:
            raise DivergenceError(
                "\n".join([*found, "after", *(f"  {done}" for done in self.done)])
            )


def run_watched(seed: int, steps: int) -> Figures:
    """Run some steps under one service; the figures include a divergence."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    rng = Random(f"watched {seed}")  # noqa: S311 - a test's dice
    with tempfile.TemporaryDirectory(prefix="anchord-") as base:
        watched = Watched(Path(base), f"watched {seed}")
        try:
            for _ in range(steps):
                watched.step(rng.choice(WAYS))
        except DivergenceError as error:
            watched.figures.divergences.append(f"watched, seed {seed}, {steps} steps\n{error}")
        finally:
            watched.close()
        return watched.figures
