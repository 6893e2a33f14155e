"""A tree, its index, and the record of what may be embedded: the steps of sequences.

CONV: the rows equal a clean rebuild, with vectors and lines, and the next sync finds nothing to do.
MIN: exactly the texts are embedded that the tree needs and that neither table nor vector cache has; no vector of a text
is lost before it expires. After a kill the same is checked against the stores that the crash left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random

from faults.losses import LOSSES
from faults.operations import operate
from faults.stage import LATER_NS, Due, Fault, Killed, Recorder, Stage, random_failure, random_kill
from faults.tree import Tree

from anchord.core.types import Action, FileOutcome, RootedPath
from anchord.index.integrity.verify import ExpectedRows


@dataclass(slots=True)
class Figures:
    """Counts of steps and their cost."""

    sequences: int = 0
    operations: int = 0
    syncs: int = 0
    kills: int = 0
    daemon_kills: int = 0
    services: int = 0
    dropped: int = 0
    overflows: int = 0
    embedded: int = 0
    needed: int = 0
    divergences: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add other counts."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a sequence: its kind and its own seed, so that it stays the same without the others."""

    kind: str
    seed: str
    name: str = ""
    """Which operation; "" draws one."""

    def __str__(self) -> str:
        """Write the step so that it can be pasted into a test."""
        return f"Step({self.kind!r}, {self.seed!r}{f', {self.name!r}' if self.name else ''})"


class DivergenceError(AssertionError):
    """The index is wrong, or cost more than it should."""


class Run:
    """A tree and its index, and the record of what may be embedded."""

    def __init__(self, base: Path) -> None:
        """Start with an empty tree."""
        self.stage = Stage(base, embedder=Recorder())
        self.tree = Tree(self.stage.folder, base / "outside")
        self.figures = Figures(sequences=1)
        self.done: list[str] = []
        """The steps so far, in words."""
        self._ever: set[str] = set()
        """Keys of vectors that were in the table."""
        self._late: list[str] = []
        """Hints that are delivered late."""
        self._made: tuple[ExpectedRows, ...] | None = None
        self._maker = self.stage.judge

    def close(self) -> None:
        """Close the stores."""
        self.stage.close()

    def step(self, step: Step) -> None:
        """Run one step; restart after a step that ends the writer."""
        rng = Random(step.seed)  # noqa: S311 - a test's dice
        steps: dict[str, Callable[[], object]] = {
            "do": lambda: self.change(rng, step.name),
            "sync": lambda: self.sync(hints=True, ahead=rng.random() < 0.5),
            "overflow": lambda: self.sync(hints=False, ahead=rng.random() < 0.5),
            "partial": lambda: self.partial(rng),
            "kill": lambda: self.kill(rng),
            "fail": lambda: self.fail(random_failure(rng), rng),
            "lose": lambda: self.lose(rng),
            "restart": lambda: self.restart(rng),
            "maintain": self.maintain,
        }
        try:
            steps[step.kind]()
        except Killed:
            self._recover(rng)

    def change(self, rng: Random, name: str = "") -> None:
        """Change the tree."""
        done = operate(self.tree, rng, name)
        if done:
            self.changed(done)

    def changed(self, done: str) -> None:
        """Record a change of the tree."""
        self._made = None
        self.figures.operations += 1
        self.done.append(done)

    def sync(self, *, hints: bool, ahead: bool) -> None:
        """Walk and index, with all hints or none; then check CONV and MIN."""
        self.done.append("sync" if hints else "overflow, sync")
        self.figures.overflows += not hints
        self.figures.dropped += 0 if hints else len(self.tree.touched)
        self.stage.ahead_ns = LATER_NS if ahead else 0
        hinted = list(self.tree.touched) if hints else []
        self.tree.touched.clear()
        self._index(lambda: self.stage.look(hinted).joined(self.stage.walk()))
        self._check()
        if ahead and hints:
            self.stage.back_up()

    def partial(self, rng: Random) -> None:
        """Index some hints in any order, twice or late, and drop the others; sometimes stop midway."""
        self.stage.ahead_ns = 0
        paths = [*self.tree.touched, *self._late]
        rng.shuffle(paths)
        hinted, rest = paths[: (cut := rng.randint(0, len(paths)))], paths[cut:]
        self._late = rest if rng.random() < 0.3 else []
        self.figures.dropped += 0 if self._late else len(rest)
        self.tree.touched.clear()
        left = rng.choice((None, None, 1, 3))
        self.done.append(f"index {'all' if left is None else left} of what {hinted} lead to")
        self._index(lambda: self.stage.look([*hinted, *hinted[:1]]), left=left)

    def maintain(self) -> None:
        """Compact the table."""
        self.done.append("maintain")
        self.stage.maintain()

    def restart(self, rng: Random) -> None:
        """Stop cleanly and start again."""
        if rng.random() < 0.5:
            self.sync(hints=False, ahead=True)
        self.done.append("restart")
        self.stage.close()
        self.stage.open()

    def kill(self, rng: Random) -> None:
        """Arm a kill at a labelled step of the next work."""
        fault = random_kill(rng)
        self.done.append(f"({fault})")
        self.stage.arm(fault)
        if fault.label == "store.refresh":
            self.maintain()

    def fail(self, fault: Fault, rng: Random | None = None) -> bool:
        """Sync with a failing step; return whether it was reached. The next sync retries."""
        self.done.append(f"({fault})")
        self.stage.arm(fault)
        try:
            self._index(self.stage.walk)
        except type(fault.error):
            if rng and rng.random() < 0.5:
                self.change(rng, "undo")
            return True
        finally:
            self.stage.disarm()
        return False

    def lose(self, rng: Random) -> None:
        """Stop, damage the files on disk, and start as after an unclean stop."""
        self.stage.close()
        lost = rng.choice(LOSSES)(self.stage.base, rng)
        self.stage.open()
        self._ever &= self.stage.has(self._ever)
        if lost:
            self.done.append(lost)
            self._start()

    def _recover(self, rng: Random) -> None:
        """Start as after a crash: walk, index, audit, index. The start can be killed too."""
        self._late = []
        self.tree.touched.clear()
        while True:
            self.figures.kills += 1
            self.done.append("killed; start")
            self.stage.crash()
            if rng.random() < 0.3:
                fault = random_kill(rng)
                self.done.append(f"({fault})")
                self.stage.arm(fault)
            try:
                self._start()
            except Killed:
                continue
            return

    def _start(self) -> None:
        """Walk, index, audit, index."""
        self._index(self.stage.walk, self.stage.audit)
        self._check()

    # The record of vectors

    def _index(self, *looks: Callable[[], Due], left: int | None = None) -> None:
        """Index up to `left` files of each look, and compare the cost with what these files need."""
        wanted = self._wanted()
        everything = set().union(*wanted.values())
        had = (everything & self._ever) | self.stage.has(everything - self._ever)
        before = len(self.stage.embedder.keys)
        started, ended = 0, False
        due: list[RootedPath] = []
        outcomes: list[FileOutcome] = []

        def enough() -> bool:
            nonlocal started
            started += 1
            return left is not None and started > left

        try:
            for look in looks:
                found = look()
                due += found.origins
                outcomes += self.stage.indexer.index(found.origins, enough, found.gone)
            ended = True
        finally:
            handled = [outcome.origin for outcome in outcomes] if ended else due
            spent = Counter(self.stage.embedder.keys[before:])
            may = {key for origin in handled for key in wanted.get(origin, ())} - had
            self.figures.embedded += spent.total()
            self.figures.needed += len(may if ended else may & spent.keys())
            self._ever |= had | (may if ended else set())
            self._judge_cost(spent, may, ended=ended)
            path_filter = self.stage.files.path_filter()
            if any(not path_filter(origin).is_included for origin in handled):
                # The vectors of excluded files are deleted with the rows.
                self._ever = self.stage.has(self._ever)
        self._refuse(
            [f"CONV: to be tried again: {o}" for o in outcomes if o.action is Action.RETRY]
        )

    def _wanted(self) -> dict[RootedPath, set[str]]:
        """Return the keys of the vectors that each file needs."""
        wanted: dict[RootedPath, set[str]] = {}
        for origin, each in (pair for part in self._rebuilt() for pair in part.rows_by_id.values()):
            wanted.setdefault(origin, set()).add(each.row.vector_key)
        return wanted

    def _rebuilt(self) -> tuple[ExpectedRows, ...]:
        """Return the rows of a rebuild of the tree; cached until the next change or start.

        A new process does not know the rules of an ignore file that cannot be read any more.
        """
        if self._made is None or self._maker is not self.stage.judge:
            self._maker = self.stage.judge
            self._made = self.stage.rebuilt()
        return self._made

    def _judge_cost(self, spent: Counter[str], may: set[str], *, ended: bool) -> None:
        faults = {
            "embedded more than once in one go": [key for key, times in spent.items() if times > 1],
            "embedded, but known or not wanted": [key for key in spent if key not in may],
            "not embedded, but nowhere": sorted(may - spent.keys()) if ended else [],
        }
        self._refuse([f"MIN: {what}: {keys}" for what, keys in faults.items() if keys])

    def _check(self) -> None:
        """Check CONV, that nothing is left to do, and that no vector is lost."""
        self.figures.syncs += 1
        stage = self.stage
        found = [
            f"CONV: {d.kind} {d.origin.path!r} {d.chunk_id}"
            for d in stage.differences(self._rebuilt())
        ]
        found += [
            f"MIN: a vector was lost: {key}" for key in sorted(self._ever - stage.has(self._ever))
        ]
        commits, embedded = stage.indexer.commit_count, len(stage.embedder.keys)
        due = stage.walk()
        again = list(stage.indexer.index(due.origins, confirmed_gone=due.gone))
        if (stage.indexer.commit_count, len(stage.embedder.keys)) != (commits, embedded):
            found.append(
                f"CONV: a second sync finds work: {[str(o) for o in again if o.upserted + o.deleted]}"
            )
        self._refuse(found)

    def _refuse(self, found: Sequence[str]) -> None:
        if found:
            raise DivergenceError(
                "\n".join([*found, "after", *(f"  {done}" for done in self.done)])
            )
