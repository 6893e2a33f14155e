"""Sequences of steps drawn from a seed: run, judged after each command, and shortened while they still fail."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tools.simulator import backups, commands, faults, sources
from tools.simulator.commands import Stage
from tools.simulator.oracle import Answer, Finding
from tools.simulator.program import CommandLine, Daemon, Workers
from tools.simulator.world import World

WEIGHTS: dict[Callable[..., Any], float] = {
    sources.write_file: 4, sources.append_file: 2, sources.edit_file: 3, sources.rename_file: 1.5,
    sources.delete_file: 1.5, sources.truncate_file: 1, sources.nul_file: 0.7, sources.restore_file: 1.5,
    sources.say_something: 6, sources.rename_talk: 1.5, sources.delete_talk: 2, sources.copy_talk: 0.7,
    sources.truncate_talk: 1, sources.tear_talk: 1, sources.nul_talk: 1,
    sources.write_many: 0.4, sources.delete_many: 0.4, sources.ignore: 1.5, sources.unignore: 0.5,
    sources.ignore_talks: 1.2, sources.unignore_talks: 0.8,
    sources.lose_config: 0.8, sources.restore_config: 0.8, sources.rename_root: 0.8, sources.drop_root: 0.6,
    sources.put_roots_back: 1, sources.nest_root: 0.8, sources.replace_root: 0.8, sources.put_folders_back: 0.8,
    commands.index: 9, commands.reindex: 0.7, commands.rebuild: 0.4, commands.verify: 1, commands.search: 2,
    commands.forget: 0.8, commands.unforget: 0.3, commands.confirm: 0.4, commands.remove_root: 0.5,
    commands.add_root: 0.5, commands.month_later: 0.4, sources.set_on_delete: 0.6,
    faults.failing_call: 2, faults.killed: 1.5, faults.unreadable_rules: 0.7, faults.full_disk: 0.7, faults.damage: 1,
    faults.failing_lance: 1, faults.failing_file: 1, backups.backup: 0.7, backups.restore: 0.7,
}  # fmt: skip
"""How often each step is drawn."""
DAEMON_WEIGHTS = WEIGHTS | {
    commands.start: 2, commands.stop: 1, faults.restart_after_kill: 2, commands.pause: 0.5,
    commands.abandon_clients: 0.7, commands.reload: 1.5, commands.month_later: 0, faults.full_disk: 0, faults.killed: 1,
}  # fmt: skip
_STEPS: dict[str, Callable[..., Any]] = {step.__name__: step for step in DAEMON_WEIGHTS}
_FEWEST, _MOST = 4, 20
_REPLAYS = 60
"""Maximum number of replays to shorten a sequence."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step; all that it draws comes from its seed."""

    name: str
    seed: str

    def __str__(self) -> str:
        """Return the form that `parse` reads."""
        return f"{self.name}@{self.seed}"


@dataclass(slots=True)
class Result:
    """What came of a sequence."""

    steps: Sequence[Step]
    findings: list[Finding] = field(default_factory=list)
    commands: int = 0
    lines: list[str] = field(default_factory=list)
    """What was done and answered."""

    @property
    def kinds(self) -> set[str]:
        """The kinds of what was found."""
        return {finding.kind for finding in self.findings}


def plan(
    seed: int, *, is_daemon: bool = False, only: Collection[str] = (), most: int = _MOST
) -> list[Step]:
    """Draw a sequence: some files, exchanges and an index, then any steps.

    Args:
        seed: Another seed gives another sequence.
        is_daemon: Whether steps are drawn that only a daemon knows.
        only: Names of the steps to draw from; empty for all.
        most: As many steps are drawn at most.
    """
    rng = Random(f"plan {seed}")  # noqa: S311 - a test's dice
    all_weights = DAEMON_WEIGHTS if is_daemon else WEIGHTS
    weights = {
        step: often for step, often in all_weights.items() if not only or step.__name__ in only
    }
    drawn = rng.choices(
        list(weights), list(weights.values()), k=rng.randint(min(_FEWEST, most), most)
    )
    first: list[Callable[..., Any]] = [sources.write_file] * 3 + [sources.say_something] * 4
    first += [commands.start] * is_daemon + [commands.index]
    names = [step.__name__ for step in (*first, *drawn)]
    return [Step(name, f"{seed}.{place}") for place, name in enumerate(names)]


def parse(text: str) -> list[Step]:
    """Read steps as `Step` prints them, separated by blanks."""
    return [Step(*step.split("@")) for step in text.split()]


def replay(steps: Sequence[Step], workers: Workers, *, is_daemon: bool = False) -> Result:
    """Do these steps in a new folder; then put everything back and demand that all is well."""
    result = Result(steps)
    world = World(Path(tempfile.mkdtemp(prefix="sim-")))
    program = Daemon(world.home, workers) if is_daemon else CommandLine(world.home, workers)
    stage = Stage(world, program, result.lines.append, lambda home: CommandLine(home, workers))
    try:
        world.make()
        for step in steps:
            _do(stage, step, result)
        result.findings += _put_right(stage)
    finally:
        program.close()
        _delete(world)
    result.commands = sum(line.startswith("$") for line in result.lines)
    return result


def _do(stage: Stage, step: Step, result: Result) -> None:
    function = _STEPS[step.name]
    result.lines.append(f"{step}")
    rng = Random(step.seed)  # noqa: S311 - a test's dice
    if function.__module__ == sources.__name__:
        if stage.world.moved_roots and function is not sources.put_folders_back:
            return  # What is written now would be written into another folder.
        function(stage.world, rng)
        stage.world.note_what_is_said()
        if function in sources.CHANGES_CONFIG:
            result.findings += commands.reload(stage, rng)
    else:
        result.findings += function(stage, rng)


def _put_right(stage: Stage) -> Iterable[Finding]:
    """Put folders, configuration and roots back; after at most one repair everything must be right."""
    world, rng = stage.world, Random(0)  # noqa: S311 - a test's dice
    stage.trace("-- all is put back --")
    sources.put_folders_back(world, rng)
    sources.put_roots_back(world, rng)
    sources.unignore_talks(world, rng)
    if isinstance(stage.program, Daemon):
        found = commands.start(stage, rng)
        command: tuple[str, ...] = ("sync", "--timeout", "30")
    else:
        found, command = list[Finding](), ("index",)
    first = stage.answer(*command)
    found += stage.judge(first)
    if first.code:
        found += stage.run("verify", "--repair")
        first = stage.answer(*command)
        found += stage.judge(first)
        if first.code:
            reason = first.error.strip()[-300:]
            return [*found, Finding("stuck", f"after a repair: {first.code} {reason}")]
    if isinstance(first.json, dict) and (first.json.get("away") or first.json.get("held")):
        for root in world.roots:
            found += stage.run("confirm-delete", root.name)
        found += stage.run(*command)
    return [*found, *_must_be_equal(stage)]


def _must_be_equal(stage: Stage) -> list[Finding]:
    first = stage.answer("verify")
    found = stage.judge(first)
    if first.code == 0:
        return [*found, *_different_counts(stage, first)]
    found += stage.run("verify", "--repair")
    last = stage.answer("verify")
    found += stage.judge(last)
    if last.code:
        report = str(last.json)[:300] + last.error.strip()[-300:]
        found.append(Finding("never-equal", f"after a repair: {last.code} {report}"))
    return found


def _different_counts(stage: Stage, verified: Answer) -> Iterable[Finding]:
    """Compare what `verify` and `roots` say of the same index."""
    listed = stage.answer("roots").json
    for name in ("files", "chunks"):
        counts = (verified.json[name], sum(root[name] for root in listed))
        if len(set(counts)) > 1:
            yield Finding(f"counts-differ/{name}", f"verify: {counts[0]}, roots: {counts[1]}")


def _delete(world: World) -> None:
    shutil.rmtree(world.base, ignore_errors=True)


def shrink(
    steps: Sequence[Step], kind: str, workers: Workers, *, is_daemon: bool = False, seconds: float
) -> Result | None:
    """Leave steps out, many at once and then one by one, while a finding of this kind stays.

    Returns:
        What came of the shortest sequence; None if not even the whole sequence fails again.
    """
    deadline = time.monotonic() + seconds
    best = replay(steps, workers, is_daemon=is_daemon)
    if kind not in best.kinds:
        return None
    size, tries = len(steps) // 2, 0
    while size and tries < _REPLAYS and time.monotonic() < deadline:
        at = 0
        while at < len(best.steps) and tries < _REPLAYS and time.monotonic() < deadline:
            fewer = [*best.steps[:at], *best.steps[at + size :]]
            tries += 1
            result = replay(fewer, workers, is_daemon=is_daemon)
            if kind in result.kinds:
                best = result
            else:
                at += size
        size //= 2
    return best
