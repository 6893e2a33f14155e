"""A real daemon that is killed repeatedly while files change; the next one reaches the correct index.

After each kill an unmodified daemon is started and checked: `anchord verify --vectors all` finds no difference (CONV); no
id is in `anchord dump` twice; exactly those texts were embedded whose vectors were neither in the table nor in the vector cache
at the kill (MIN). Both are read from a copy of the home, so that the check changes nothing. A vector that only a data file
without a version has, because the kill came between writing and committing it, may be embedded again or taken from there.
So may one that only rows of files have that a rule excludes since: what is excluded leaves the vector cache too.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

from faults.killed_daemon import PLACES, prepare_kill
from faults.operations import operate
from faults.runs import DivergenceError, Figures
from faults.tree import Tree
from faults.watched import missing_and_excluded
from live.conftest import Home, until
from preloaded import PreloadedDaemon

from anchord.config.paths import find_paths
from anchord.errors import NotRunningError
from anchord.store.table.damage import salvage_vectors
from anchord.store.table.table import TABLE_NAME

MOMENTS = ("before", "after", "during")
_PLANTED = 8
_OPERATIONS = 60
_PAUSE_S = 0.04
_LAST_WAIT_S = 3.0
_SETTLE = "[watch]\nsettle_ms = 20\nmax_wait_ms = 200\n"


class _Missing(NamedTuple):
    """What no row has after a kill."""

    keys: set[str]
    """The keys of the vectors that the tree needs and that neither a row nor the vector cache has."""
    uncommitted: set[str]
    """Those that a data file without a version has."""
    excluded: set[str]
    """The keys of vectors that only rows of files have that a rule now excludes."""


class Victim:
    """A home with an index, and a tree that changes."""

    def __init__(self, base: Path, seed: str) -> None:
        """Index a few files without a fault."""
        self.home = Home(base, "hash")
        (self.home.path / "config.toml").write_text(self.home.settings + _SETTLE)
        self.tree = Tree(self.home.folder, base / "outside")
        self.figures = Figures()
        self._rng = Random(seed)  # noqa: S311 - a test's dice
        self._base = base
        self.done: list[str] = []
        for _ in range(_PLANTED):
            self._change("create")
        self.home.run()
        self.home.call("sync")
        self.home.terminate()

    def close(self) -> None:
        """End all processes."""
        process = self.home.process
        if process is not None and process.poll() is None:
            self.home.kill()

    def round(self, place: str, moment: str, nth: int) -> None:
        """Kill a daemon at a step while files change, start the next, and check both.

        Raises:
            DivergenceError: The index is wrong, or cost more than it should.
        """
        self.done = [f"(kill {moment} {place} number {nth})"]
        try:
            self._kill(place, moment, nth)
            self._judge(self._missing())
        except AssertionError as error:
            log = (self.home.path / "run.log").read_text("utf-8", "replace")[-3000:]
            raise DivergenceError(
                "\n".join([str(error), "after", *(f"  {done}" for done in self.done), log])
            ) from error

    def _kill(self, place: str, moment: str, nth: int) -> None:
        environment = {
            "ANCHORD_KILL": f"{place} {moment} {nth}",
            "ANCHORD_KILL_AFTER_MS": f"{self._rng.random() * 15:.3f}",
        }
        process = self.home.process = PreloadedDaemon(
            [str(self.home.folder)],
            self.home.environment | environment,
            self.home.path / "run.log",
            prepare_kill,
        )
        until(lambda: process.poll() is not None or self._answers())
        for _ in range(_OPERATIONS):
            if process.poll() is not None:
                break
            self._change()
            time.sleep(self._rng.random() * 2 * _PAUSE_S)
        try:
            process.wait(_LAST_WAIT_S)
        except subprocess.TimeoutExpired:
            self.done.append("(it was not reached: killed from outside)")
            self.home.kill()
        assert process.returncode == -signal.SIGKILL, f"the daemon ended with {process.returncode}"
        self.figures.daemon_kills += 1

    def _answers(self) -> bool:
        try:
            return bool(self.home.call("ping"))
        except NotRunningError:
            return False

    def _change(self, name: str = "") -> None:
        done = operate(self.tree, self._rng, name)
        if done:
            self.done.append(done)
            self.figures.operations += 1

    def _missing(self) -> _Missing:
        with tempfile.TemporaryDirectory(dir=self._base) as folder:
            copy = Path(folder) / "home"
            shutil.copytree(self.home.path, copy, ignore=shutil.ignore_patterns("run"))
            paths = find_paths({"ANCHORD_HOME": str(copy)})
            keys, excluded = missing_and_excluded(paths)
            table = paths.data_folder / "lance" / f"{TABLE_NAME}.lance"
            found = salvage_vectors(table, (), keys.__contains__)
            uncommitted = {key for vectors in found for key in vectors}
            return _Missing(keys, uncommitted, excluded)

    def _judge(self, missing: _Missing) -> None:
        home = self.home
        home.run()
        home.call("sync")
        embedded = home.status()["embedded_total"]
        self.figures.syncs += 1
        self.figures.embedded += embedded
        fewest = len(missing.keys - missing.uncommitted)
        most = len(missing.keys | missing.excluded)
        self.figures.needed += min(max(embedded, fewest), most)
        verified = home.anchord("verify", "--vectors", "all", "--json")
        answer = json.loads(verified.stdout)
        twice = [
            row
            for row, times in Counter(row["id"] for row in home.call("dump")).items()
            if times > 1
        ]
        # Operations make ignore files that nobody can read: then verify is not equal, and says so.
        is_right = answer["ok"] or (answer["unread_rules"] and not answer["differences"])
        assert is_right, f"CONV: {verified.stdout}{verified.stderr}"
        assert not answer["held"], f"CONV: {verified.stdout}"
        assert not twice, f"CONV: ids that are there twice: {twice}"
        assert fewest <= embedded <= most, (
            f"MIN: {embedded} texts were embedded, where {len(missing.keys)} were in no row, "
            f"{len(missing.uncommitted)} of them in data files without a version, and "
            f"{len(missing.excluded)} in rows of excluded files only"
        )
        assert not os.path.lexists(home.path / "data" / "damaged"), (
            "CONV: a kill alone damages nothing"
        )
        assert home.terminate() == 0


def run_kills(seed: int, kills: int) -> Figures:
    """Kill daemons of one home at random steps; the figures include divergences."""
    rng = Random(f"kills {seed}")  # noqa: S311 - a test's dice
    with tempfile.TemporaryDirectory(prefix="anchord-") as base:
        victim = Victim(Path(base), f"kills {seed}")
        try:
            for _ in range(kills):
                victim.round(
                    rng.choice(list(PLACES)), rng.choice(MOMENTS), rng.choice((1, 1, 2, 3, 5))
                )
        except DivergenceError as error:
            victim.figures.divergences.append(f"kills, seed {seed}\n{error}")
        finally:
            victim.close()
        return victim.figures
