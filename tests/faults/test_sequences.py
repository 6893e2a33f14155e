"""Operations, kills, dropped hints and failures in any order: after each sync CONV and MIN of `runs` are true."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from faults.operations import OPERATIONS
from faults.runs import DivergenceError, Figures, Run, Step
from faults.sequences import run_sequence
from faults.stage import STEPS, Fault, Killed, failures
from faults.texts import markdown
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from anchord.errors import StoreError

SEEDS = 60
_FEWEST, _MOST = 5, 12
_dice = st.integers(0, 2**32 - 1).map(str)


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3, 4, 5))]
)
def test_fixed_sequences_converge_and_embed_what_is_new(part: int) -> None:
    figures = Figures()
    for seed in range(part, SEEDS, 6):
        figures.add(run_sequence(seed, _FEWEST + seed % (_MOST - _FEWEST + 1)))
    assert not figures.divergences, "\n\n".join(figures.divergences)
    assert figures.sequences == SEEDS // 6
    assert figures.embedded == figures.needed > 0
    assert figures.kills > 0


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_converges(name: str, tmp_path: Path) -> None:
    run = Run(tmp_path)
    for n, planted in enumerate(
        ("create",) * 6 + ("mkdir -p", "unpack", "move out or in", "link", "write in place")
    ):
        run.step(Step("do", f"plant {n}", planted))
    run.step(Step("sync", "planted"))
    before = run.figures.operations
    for n in range(4):
        run.step(Step("do", f"{name} {n}", name))
    run.step(Step("overflow", "last"))
    assert run.figures.operations > before
    run.close()


class AnyOrder(RuleBasedStateMachine):
    """The same steps, in an order drawn and shrunk by hypothesis."""

    def __init__(self) -> None:
        """Create some files in a new folder."""
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="anchord-")
        self.run = Run(Path(self.folder.name))
        for n in range(4):
            self.run.step(Step("do", f"plant {n}", "create"))

    @rule(name=st.sampled_from(sorted(OPERATIONS)), seed=_dice)
    def change(self, name: str, seed: str) -> None:
        """Change the tree."""
        self.run.step(Step("do", seed, name))

    @rule(
        kind=st.sampled_from(("sync", "overflow", "partial", "kill", "fail", "lose", "restart")),
        seed=_dice,
    )
    def go_on(self, kind: str, seed: str) -> None:
        """Index the changes."""
        self.run.step(Step(kind, seed))

    def teardown(self) -> None:
        """Sync a last time."""
        try:
            self.run.step(Step("overflow", "last"))
        finally:
            self.run.close()
            self.folder.cleanup()


AnyOrder.TestCase.settings = settings(
    max_examples=12,
    stateful_step_count=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestAnyOrder = AnyOrder.TestCase


@pytest.fixture
def run(tmp_path: Path) -> Any:  # noqa: ANN401 - a generator of a run
    """Give a tree with some files and its index."""
    made = Run(tmp_path)
    (tmp_path / "tree" / "deep").mkdir()
    for n in range(3):
        change_much(made, n)
        made.step(Step("sync", f"fixed {n}"))
    yield made
    made.close()


def change_much(run: Run, n: int) -> None:
    """Do something for each step of a commit; now and then more texts than one commit takes."""
    rng = Random(n)  # noqa: S311 - a test's dice
    tree = run.tree
    tree.write(f"{n}.md", "\n\n".join(markdown(rng) for _ in range(16 if n % 5 == 4 else 1)))
    tree.write("kept.md", markdown(rng))
    tree.write("deep/touched.md", "# Touched\n")
    if n > 1:
        tree.rename(f"{n - 1}.md", f"old {n - 1}.md")
        tree.unlink(f"{n - 2}.md" if n == 2 else f"old {n - 2}.md")
    run.changed(f"change much ({n})")


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(False, id="before"),
        pytest.param(True, id="after", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("label", [label for label in STEPS if label != "store.refresh"])
def test_f2_each_call_that_fails_is_made_up_for(run: Run, label: str, after: bool) -> None:  # noqa: FBT001 - a case
    rounds = count(3)
    for error in failures(label)[: 1 if after else None]:
        nth = 0
        while nth == 0 or run.fail(Fault(label, nth, after, error)):
            run.step(Step("sync", f"retry {nth}"))
            change_much(run, next(rounds))
            nth += 1
        run.step(Step("sync", "last"))
        assert nth > 1, "it failed at least once"


@pytest.mark.parametrize(
    "call",
    [
        "open",
        "pread",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("stat", "fstat", "scandir")),
    ],
)
def test_f4_each_system_call_that_fails_harms_one_file_and_is_made_up_for(
    run: Run, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = getattr(os, call)
    calls, nth, fired = 0, 0, True

    def failing(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - any call
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(5, "Input/output error")
        return real(*args, **named)

    while fired and nth < 12:
        change_much(run, nth + 3)
        nth, calls = nth + 1, 0
        with monkeypatch.context() as patched:
            patched.setattr(os, call, failing)
            found = run.stage.indexer.reconcile("tree")
            list(run.stage.indexer.index(found.paths_due))
        fired = calls >= nth
        run.step(Step("overflow", f"{call} {nth}"))
    assert nth > 2


def test_e3_files_whose_names_print_alike_keep_their_own_rows(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.tree.write("bad \udcff byte.md", "# One\n\nFirst words.\n")
    run.tree.write("bad \\xff byte.md", "# Two\n\nOther words.\n")
    run.changed("write twins")
    run.step(Step("sync", "twins"))
    run.tree.write("bad \udcff byte.md", "# One\n\nFirst words, changed.\n")
    run.changed("change one")
    assert run.fail(Fault("store.upsert", 1, after=False, error=StoreError("the disk is full")))
    run.step(Step("sync", "retry"))
    run.close()


def test_a_divergence_is_reported_with_the_steps_that_show_it(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.step(Step("do", "1", "create"))
    run.step(Step("sync", "1"))
    run.stage.store.delete_rows(list(run.stage.store.all_ids())[:1])
    with pytest.raises(DivergenceError, match="CONV: missing") as caught:
        run.step(Step("sync", "2"))
    assert "create" in str(caught.value)
    run.close()


def test_a_kill_is_a_crash_nothing_is_written_back(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.step(Step("do", "1", "create"))
    run.stage.arm(Fault("catalogue.confirm_updates", 1, after=False, error=Killed()))
    run.step(Step("sync", "1"))
    assert run.figures.kills >= 1
    run.close()
